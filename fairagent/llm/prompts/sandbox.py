"""The template sandbox: values, filters, `if` and `for`, and nothing that computes, calls or reads anything else.

A template comes from a user's folder, perhaps a downloaded one, so what is not on the lists here is refused before
anything runs. What is left cannot make a value larger than the text it stands in, and its loops are counted.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from traceback import walk_tb
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, Undefined, meta, nodes
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_context

from fairagent.settings.faults import no_such

LARGEST = 64 * 1024
"""The largest output in bytes, of all sections together, and the longest filtered value in characters."""

MOST_STEPS = 100_000
"""A turn of a loop takes as many steps as the loop has parts; all sections together may take so many."""

DEEPEST = 25
"""Levels of loops, conditions, filters and brackets within each other; a document in a list takes about seven."""

MOST_LOOPS = 100
"""Of all sections together: Jinja takes a second to compile a thousand of them."""

_ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If),
    *(nodes.Name, nodes.Const, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Filter, nodes.Test),
    *(nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Keyword),
)
_LEFT = "_left"
_PRINTED = (str, Real, type(None), list, tuple, dict)
_OF_LOOPS = ("index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem")


class TemplateFault(Exception):
    """What is wrong with a template; `line` counts from 1, None means the template as a whole."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class _Sandbox(ImmutableSandboxedEnvironment):
    def getattr(self, obj: Any, attribute: str) -> Any:
        """A value of a mapping, or what is known of a loop's turn; never what Python has beside: its methods."""
        if isinstance(obj, LoopContext) and attribute in _OF_LOOPS:
            return getattr(obj, attribute)
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """As `getattr`, or a part of a list or a text by its number."""
        if isinstance(argument, str):
            return self.getattr(obj, argument)
        try:
            return obj[argument]
        except (TypeError, LookupError):
            return self.undefined(obj=obj, name=argument)


def _shown(value: Any) -> Any:
    """What a template prints as it is; SecurityError where that is no text, number, list or mapping of these.

    Anything else is shown as Python does, which tells the model a place in this computer's memory.
    """
    if isinstance(value, Undefined):
        # It says itself what is missing.
        return str(value)
    level = [value]
    while level:
        one = level.pop()
        if not isinstance(one, _PRINTED):
            raise SecurityError(f"{type(one).__name__} is nothing to print; texts, numbers, lists and mappings are")
        if isinstance(one, dict | list | tuple):
            level += [part for pair in one.items() for part in pair] if isinstance(one, dict) else one
    return value


def _capped(filter: Callable[..., Any]) -> Callable[..., Any]:
    def capped(value: Any, *args: Any, **options: Any) -> Any:
        value = filter(value if isinstance(value, Undefined) else _shown(value), *args, **options)
        if isinstance(value, str) and len(value) > LARGEST:
            raise SecurityError(f"a value is longer than {LARGEST} characters")
        return value

    return capped


@dataclass(slots=True)
class Left:
    """What the sections of a prompt may still take together: steps of loops, and bytes of output."""

    steps: int = MOST_STEPS
    bytes: int = LARGEST


@pass_context
def _counted(context: Context, values: Iterable[Any], parts: int) -> Iterator[Any]:
    for value in values:
        context[_LEFT].steps -= parts
        if context[_LEFT].steps < 0:
            raise SecurityError("the loops are too long")
        yield value


# Not optimized: to look for constants in a long chain of filters takes the optimizer minutes.
_SANDBOX = _Sandbox(
    undefined=StrictUndefined, finalize=_shown, trim_blocks=True, lstrip_blocks=True, cache_size=0, optimized=False
)
_SANDBOX.globals = {}
_PLAIN = {name: FILTERS[name] for name in ("default", "first", "last", "length", "lower", "trim", "upper")}
_SANDBOX.filters = {
    name: filter if hasattr(filter, "jinja_pass_arg") else _capped(filter)
    for name, filter in {
        **_PLAIN,
        "join": lambda values, separator="": separator.join(str(_shown(value)) for value in values),
        # Jinja's own escapes <, >, & and ' for web pages, which only makes a prompt harder to read.
        "tojson": lambda value: json.dumps(value, ensure_ascii=False),
    }.items()
}
_FILTERS = tuple(sorted(_SANDBOX.filters))
_SANDBOX.filters["_counted"] = _counted


@dataclass(frozen=True, slots=True)
class Compiled:
    """A section: its template, None with `faults`; the variables that it uses, each with a line; its loops.

    `used` is None where the syntax is wrong, so that nobody knows.
    """

    template: Template | None
    used: Mapping[str, int] | None = None
    loops: int = 0
    faults: tuple[TemplateFault, ...] = ()


def compile_template(text: str, line: int, name: str, loops_before: int = 0) -> Compiled:
    """A template from `text`, which begins in `line` of the file `name`; the sections before it have so many loops.

    All that is refused is told, with its lines, where its syntax is right.
    """
    try:
        # Empty lines before it make Jinja's line numbers those of the file.
        tree = _SANDBOX.parse("\n" * (line - 1) + text)
        level: list[nodes.Node] = [tree]
        for _ in range(DEEPEST):
            level = [child for node in level for child in node.iter_child_nodes()]
        if level:
            raise TemplateFault(f"more than {DEEPEST} levels of loops, conditions and filters", level[0].lineno or line)
        named = list(tree.find_all(nodes.Name))
        if refused := tuple(_refused(tree)):
            given = {node.name for node in named if node.ctx != "load"}
            return Compiled(None, {n.name: n.lineno for n in reversed(named) if n.name not in given}, 0, refused)
        # As `meta.find_undeclared_variables`, without its optimizer.
        tracker = meta.TrackingCodeGenerator(_SANDBOX)
        tracker.optimizer = None
        tracker.visit(tree)
        used = {node.name: node.lineno for node in reversed(named) if node.name in tracker.undeclared_identifiers}
        loops = list(tree.find_all(nodes.For))
        if loops_before + len(loops) > MOST_LOOPS:
            raise TemplateFault(f"more than {MOST_LOOPS} loops", loops[MOST_LOOPS - loops_before].lineno)
        for loop in loops:
            parts = nodes.Const(sum(1 for _ in loop.find_all(nodes.Node)))
            loop.iter = nodes.Filter(loop.iter, "_counted", [parts], [], None, None, lineno=loop.lineno)
            loop.iter.set_environment(_SANDBOX)
        code = _SANDBOX.compile(tree, filename=name)
        return Compiled(_SANDBOX.template_class.from_code(_SANDBOX, code, {}), used, len(loops))
    except TemplateFault as fault:
        return Compiled(None, faults=(fault,))
    except TemplateError as error:
        wrong = TemplateFault(error.message or str(error), getattr(error, "lineno", None))
        return Compiled(None, faults=(wrong,))
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        # Numbers of thousands of digits, loops and brackets nested deeper than Python takes.
        wrong = TemplateFault(f"this cannot be read as a template ({type(error).__name__})", line)
        return Compiled(None, faults=(wrong,))


def render_template(template: Template, variables: Mapping[str, object], left: Left) -> str:
    """The text with its holes filled, without the empty lines around it; takes what it needs of what is `left`.

    Raises TemplateFault.
    """
    chunks = []
    try:
        for chunk in template.generate({**variables, _LEFT: left}):
            chunks.append(chunk.encode("utf-8", "replace"))
            left.bytes -= len(chunks[-1])
            if left.bytes < 0:
                raise TemplateFault(f"the output is longer than {LARGEST // 1024} kB")
    except (TemplateError, TypeError, ValueError, RecursionError) as error:
        # Jinja puts the template's lines into the traceback.
        walked = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
        places = [line for name, line in walked if name == template.filename]
        raise TemplateFault(str(error), places[-1] if places else None) from None
    return b"".join(chunks).decode().strip("\n")


def _refused(node: nodes.Node) -> Iterator[TemplateFault]:
    """All that is not available in a tree; of an expression that is refused, nothing more is listed."""
    if message := _refusal(node):
        yield TemplateFault(message, node.lineno)
        if isinstance(node, nodes.Expr):
            return
    for child in node.iter_child_nodes():
        yield from _refused(child)


def _refusal(node: nodes.Node) -> str | None:
    if isinstance(node, nodes.Tuple) and node.ctx == "store":
        return None
    if not isinstance(node, _ALLOWED):
        return f"{type(node).__name__} is not available in a prompt; there are values, filters, if and for"
    if isinstance(node, nodes.Filter) and node.name not in _FILTERS:
        return no_such("filter", node.name, _FILTERS)
    if isinstance(node, nodes.Test) and node.name not in _SANDBOX.tests:
        return f"no test {node.name!r}"
    if isinstance(node, nodes.For):
        source: nodes.Node = node.iter
        while isinstance(source, nodes.Getattr | nodes.Getitem):
            source = source.node
        if not isinstance(source, nodes.Name):
            return "a loop goes over a variable or a part of one, and over nothing made up for it"
        if node.recursive:
            return "recursive loops are not available in a prompt"
    part = node.attr if isinstance(node, nodes.Getattr) else node.arg if isinstance(node, nodes.Getitem) else None
    name = part.value if isinstance(part, nodes.Const) else part
    if isinstance(name, str) and name.startswith("_"):
        return f"{name!r} is not available: names that begin with _ are private"
    return None
