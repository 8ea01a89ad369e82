"""What is wrong with a value, in the same words at every door: Python, files, the command line, the API and tools.

`no_such` answers a name that there is not, `fault_lines` whatever else a pydantic model refuses.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fairagent.types.clean import in_line
from fairagent.types.common import listed

MOST_FAULTS = 50
"""So many are explained, each with the nearest key; of thousands nobody reads the others."""
LONGEST_VALUE = 200
"""Characters of a value in a message."""
UNKNOWN_KEY = "unknown_key"
"""Type of a fault whose message says all there is to say about a key."""

EXPECTED: Mapping[str, str] = {
    **dict.fromkeys(("list", "tuple", "set", "frozen_set"), "a list"),
    **dict.fromkeys(("dict", "mapping", "model", "model_attributes"), "keys with values (key: value)"),
    **dict.fromkeys(("float", "finite_number"), "a number"),
    "bool": "true or false",
    "int": "a whole number",
    "string": "text",
    "path": "a path",
    "json_invalid": "JSON ({error})",
    "greater_than_equal": "{ge:g} or more",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "{le:g} or less",
    "less_than": "less than {lt:g}",
    "string_pattern_mismatch": "text of the form {pattern}",
    "string_too_long": "a text of at most {max_length} characters",
    "string_too_short": "a text of {min_length} or more characters",
    "too_long": "a list of at most {max_length} entries",
    "too_short": "a list of {min_length} or more entries",
}
"""What pydantic's types of faults wanted; those of a type of values come with `_type`, `_parsing` and the like."""
_OF_TYPES = re.compile(r"_(type|parsing|parsing_size|from_float|sub_type|unicode)$")
_BRANCH = re.compile(r"bool|int|float|str|none|constrained-\w+|[a-z-]+\[.*\]")
"""What pydantic calls the branches of a union in the place of a fault, which no user has written."""


def nearest(name: str, known: Iterable[str]) -> str:
    """What there is beside an unknown name: the nearest of the `known` ones, whatever their case, and the first 20.

    >>> nearest("MRR", ["exposure", "mmr"]), nearest("x", ["exposure", "mmr"]), nearest("x", [])
    ("did you mean 'mmr'? There are: exposure, mmr", 'there are: exposure, mmr', 'there are: none')
    """
    names = list(map(str, known))
    by_small = {one.lower(): one for one in reversed(names)}
    near = difflib.get_close_matches(str(name)[:LONGEST_VALUE].lower(), by_small, n=1, cutoff=0.5)
    there = f"here are: {in_line(listed(names) or 'none')}"
    return f"did you mean {by_small[near[0]]!r}? T{there}" if near else f"t{there}"


def no_such(what: str, name: object, known: Iterable[str]) -> str:
    """The answer to a name that there is not, of an option, a key, a kind, a dimension or anything that is named.

    >>> no_such("loop", "widn", ["widen", "none"])
    "no loop 'widn'; did you mean 'widen'? There are: widen, none"
    """
    text = str(name)
    return f"no {what} {_cut(text)!r}; {nearest(text, known)}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]} ..."


def distinct_faults(faults: Sequence[Any]) -> dict[tuple[Any, ...], list[Any]]:
    """The faults that pydantic found by their places as they are written: the branches of a union are one."""
    alike: dict[tuple[Any, ...], list[Any]] = {}
    for fault in faults:
        last = len(fault["loc"]) - (fault["type"] == "extra_forbidden")
        written = (step for n, step in enumerate(fault["loc"]) if n >= last or not _BRANCH.fullmatch(str(step)))
        alike.setdefault(tuple(written), []).append(fault)
    return alike


def fault_lines(model: type[BaseModel] | None, faults: Sequence[Any], most: int | None = None) -> list[str]:
    """`PLACE: what is wrong (got VALUE)` of the `distinct_faults` in values for `model`, of the first ones (`most`).

    None: of no model, so that no key is hinted at.
    """
    lines = []
    for loc, several in islice(distinct_faults(faults).items(), most):
        first, *rest = loc or ("(top)",)
        place = "".join([str(first), *(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)])
        type_, value = several[0]["type"], several[0]["input"]
        if type_ == "extra_forbidden":
            known = _field_names(model, loc[:-1]) if model else []
            message = f"unknown key; {nearest(str(loc[-1]), known)}"
        else:
            message = worded(*several)
            whole = type_ in (UNKNOWN_KEY, "missing") or isinstance(value, Mapping) or message.startswith("no value")
            message += "" if whole else f" (got {'nothing' if value is None else _cut(repr(value))})"
        lines.append(f"{_cut(place)}: {message}")
    return lines


def worded(*several: Any) -> str:
    """What is wrong, without its place, in our words; of several faults of one value what each branch wanted.

    >>> worded({"type": "int_parsing", "input": "x", "msg": ""})
    'expected a whole number'
    """
    # Where a branch's type fits, what is wrong there is what is wrong.
    fit = [one for one in several if not _OF_TYPES.search(one["type"]) and one["type"] != "literal_error"]
    first, *others = fit or several
    texts = list(dict.fromkeys(filter(None, map(_wanted, (first, *others)))))
    if not texts:
        return "is missing" if first["type"] == "missing" else str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "literal_error" and isinstance(first["input"], str):
        return ", or ".join([no_such("value", first["input"], _choices(first)), *texts[1:]])
    return f"expected {', '.join(texts[:-1])}{' or ' * (len(texts) > 1)}{texts[-1]}"


def _choices(fault: Any) -> list[str]:
    return re.findall("'([^']*)'", fault["ctx"]["expected"])


def _wanted(fault: Any) -> str:
    """What was expected; "" where the message is ours already."""
    if fault["type"] == "literal_error":
        return f"one of {', '.join(_choices(fault)) or fault['ctx']['expected']}"
    form = EXPECTED.get(fault["type"]) or EXPECTED.get(_OF_TYPES.sub("", fault["type"]), "")
    return form.format_map(fault.get("ctx", {}))


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The keys of a section as files write them, which may be words that Python keeps for itself (`assert`)."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _field_names(model: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """The keys that are valid at `loc`, by the annotations of the fields on the way."""

    def models_in(annotation: Any) -> list[Any]:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return [annotation]
        return [one for part in getattr(annotation, "__args__", ()) for one in models_in(part)]

    candidates: list[Any] = [model]
    for part in loc:
        fields = [(candidate, keys_of(candidate).get(str(part))) for candidate in candidates]
        # A part that is no field is a mapping key, a list index or a union's tag: stay on the level.
        candidates = [one for at, field in fields for one in (models_in(field.annotation) if field else [at])]
    return sorted({name for candidate in candidates for name in keys_of(candidate)})
