"""YAML of strangers: read only where it is small once all aliases are resolved, and without values that surprise.

A few lines of YAML can stand for billions of values (aliases of aliases, merge keys that merge each other), nest deeper
than any stack, or name objects to be made. So the text is gone through as events first, in time and memory that grow
with its length alone, and values are made only where it keeps to the bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import yaml

from fairagent.storage.readers import Malformed

LARGEST_YAML = 1 << 20
"""Characters of a text, and bytes of a file."""
MOST_VALUES = 20_000
"""Keys and values, what an alias stands for counted each time."""
DEEPEST = 40
"""Lists and mappings within each other."""
NESTED = f"more than {DEEPEST} lists and mappings within each other"
LONGEST_NUMBER = 40
"""Characters of a number; longer ones are no settings, and some of them take Python long to read."""

_TIMESTAMP, _INT, _FLOAT, _BOOL = (f"tag:yaml.org,2002:{name}" for name in ("timestamp", "int", "float", "bool"))
_TRUTH = re.compile("(?:true|True|TRUE|false|False|FALSE)$")

T = TypeVar("T")

# libyaml's parser, where PyYAML was built with it: some ten times as fast.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """Safe YAML without dates, which no setting is: 2022-01-01 is a text.

    As in YAML 1.2 only true and false are what they say: yes, no, on and off are texts, as they are in a table.
    """

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, _TRUTH if tag == _BOOL else pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in _Base.yaml_implicit_resolvers.items()
    }

    def number(self, node: yaml.ScalarNode) -> float:
        if len(node.value) > LONGEST_NUMBER:
            raise _at(node, f"a number of {len(node.value):,} characters")
        value: float = self.construct_yaml_int(node) if node.tag == _INT else self.construct_yaml_float(node)
        if isinstance(value, int) and value.bit_length() > 63:
            raise _at(node, f"the number {value} is too large")
        return value


_Loader.add_constructor(_INT, _Loader.number)
_Loader.add_constructor(_FLOAT, _Loader.number)


def parse_yaml(text: str) -> Any:
    """The value of a YAML text; Malformed, with the line, where it is none or exceeds the bounds."""
    return _guarded(text, lambda: yaml.load(text, _Loader))


def compose_yaml(text: str) -> yaml.Node | None:
    """The same as nodes, which know their lines."""
    node: yaml.Node | None = _guarded(text, lambda: yaml.compose(text, _Loader))
    return node


def _guarded(text: str, read: Callable[[], T]) -> T:
    if len(text) > LARGEST_YAML:
        raise Malformed(f"larger than {LARGEST_YAML:,} characters")
    try:
        _check(text)
        return read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(", ".join(part for part in (error.context, error.problem) if part).split())
        if "nesting depth" in message:
            # libyaml's own bound, which newer versions reach before the first event of such a text.
            message = NESTED
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise Malformed(f"not valid YAML: {message}{where}", mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise Malformed(f"not valid YAML: {' '.join(str(error).split())}") from None


def _check(text: str) -> None:
    """Malformed where a YAML text exceeds the bounds, what an alias stands for counted each time."""
    events = yaml.parse(text, _Loader)
    anchors: dict[str, tuple[int, int]] = {}

    def size(event: Any, depth: int) -> tuple[int, int]:
        """How many values it stands for, in how many levels; `depth` are around it."""
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                raise _at(event, f"the alias *{event.anchor} stands for nothing that ends before it")
            values, levels = anchors[event.anchor]
        else:
            if event.tag is not None:
                raise _at(event, "a tag (!name), which is not available; quote what should be a text")
            if isinstance(event, yaml.ScalarEvent):
                if "\0" in event.value:
                    raise _at(event, "a NUL character")
                event.value.encode()  # half of a surrogate pair is no text
            values, levels = (1, 0) if isinstance(event, yaml.ScalarEvent) else inside(event, depth)
            if event.anchor:
                anchors[event.anchor] = values, levels
        if depth + levels > DEEPEST:
            raise _at(event, NESTED)
        return values, levels

    def inside(event: Any, depth: int) -> tuple[int, int]:
        if depth >= DEEPEST:
            raise _at(event, NESTED)
        values, levels, number, keys = 1, 1, 0, set[str]()
        while not isinstance(inner := next(events), yaml.CollectionEndEvent):
            more, deeper = size(inner, depth + 1)
            values, levels = values + more, max(levels, deeper + 1)
            if values > MOST_VALUES:
                raise _at(inner, f"more than {MOST_VALUES:,} keys and values, aliases resolved")
            if isinstance(event, yaml.MappingStartEvent) and number % 2 == 0 and isinstance(inner, yaml.ScalarEvent):
                if inner.value in keys:
                    raise _at(inner, f"the key {inner.value[:60]!r} occurs twice")
                keys.add(inner.value)
            number += 1
        return values, levels

    for event in events:
        if isinstance(event, yaml.NodeEvent):
            size(event, 0)


def _at(place: Any, message: str) -> Malformed:
    line = place.start_mark.line + 1
    return Malformed(f"not valid YAML: {message} (line {line})", line)
