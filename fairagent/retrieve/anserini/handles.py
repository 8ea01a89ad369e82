"""Small Java programs put together from method handles: there is no compiler in a slim Java.

An expression is a method handle that takes all variables of its `Frame`; calls of methods and sequences are made of
expressions, and loops of both. What comes out is run by one call from Python.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fairagent.retrieve.java import java_class

PRIMITIVES = {
    "double": "Double",
    "int": "Integer",
    "long": "Long",
    "float": "Float",
    "boolean": "Boolean",
    "void": "Void",
}


class Frame:
    """The variables of an expression: their names and Java types."""

    def __init__(self, **variables: str) -> None:
        self._types = variables

    def variable(self, name: str) -> Any:
        """The value of a variable."""
        kind = self._types[name]
        return _handles().permuteArguments(
            _handles().identity(java_type(kind)),
            method_type(kind, *self._types.values()),
            list(self._types).index(name),
        )

    def constant(self, kind: str, value: Any) -> Any:
        """A number or a text."""
        fixed = _handles().constant(java_type(kind), value)
        return _handles().dropArguments(fixed, 0, *_classes(self._types.values()))

    def call(self, handle: Any, *arguments: Any) -> Any:
        """`handle` with these values: names of variables, or expressions."""
        values = [self.variable(value) if isinstance(value, str) else value for value in arguments]
        together = handle
        for place in reversed(range(len(values))):
            together = _handles().collectArguments(together, place, values[place])
        places = list(range(len(self._types))) * len(values)
        import jnius

        wanted = jnius.cast("java.lang.Class", together.type().returnType())
        own = java_class("java.lang.invoke.MethodType").methodType(wanted, _classes(self._types.values()))
        return _handles().permuteArguments(together, own, *places)

    def sequence(self, *steps: Any) -> Any:
        """The steps one after another; the value of the last."""
        *before, whole = steps
        for step in reversed(before):
            whole = _handles().foldArguments(whole, _handles().dropReturn(step))
        return whole


def repeat(times: Any, body: Any, first: Any = None) -> Any:
    """`body`, which takes the number of the turn before its variables, as often as the expression `times` says.

    With `first` there is a value that begins as it, which the body takes before the turn, and returns.
    """
    return _handles().countedLoop(times, first, body)


def repeat_while(first: Any, condition: Any, body: Any) -> Any:
    """A value that begins as `first` and becomes what `body` makes of it, as long as `condition` holds of it."""
    return _handles().whileLoop(first, condition, body)


def only_if(condition: Any, body: Any) -> Any:
    """`body` where `condition`, of the same variables, holds."""
    nothing = _handles().empty(body.type())
    return _handles().guardWithTest(condition, body, nothing)


def method(owner: str, name: str, returns: str, *arguments: str) -> Any:
    """A method of objects; its first argument is the object."""
    return _handles().publicLookup().findVirtual(java_type(owner), name, method_type(returns, *arguments))


def static(owner: str, name: str, returns: str, *arguments: str) -> Any:
    """A method of a class."""
    return _handles().publicLookup().findStatic(java_type(owner), name, method_type(returns, *arguments))


def field(owner: str, name: str, kind: str) -> Any:
    """What reads a field."""
    return _handles().publicLookup().findGetter(java_type(owner), name, java_type(kind))


def constructor(owner: str, *arguments: str) -> Any:
    """What makes an object."""
    return _handles().publicLookup().findConstructor(java_type(owner), method_type("void", *arguments))


def identity(kind: str) -> Any:
    """What returns what it is given."""
    return _handles().identity(java_type(kind))


def new_array(array: str) -> Any:
    """What makes an array of a length."""
    return _handles().arrayConstructor(java_type(array))


def array_length(array: str) -> Any:
    """What counts the elements of an array."""
    return _handles().arrayLength(java_type(array))


def element(array: str) -> Any:
    """What reads an element of an array."""
    return _handles().arrayElementGetter(java_type(array))


def set_element(array: str) -> Any:
    """What sets an element of an array."""
    return _handles().arrayElementSetter(java_type(array))


def as_type(handle: Any, returns: str, *arguments: str) -> Any:
    """The handle with other types, to which its own can be cast."""
    return handle.asType(method_type(returns, *arguments))


def run(handle: Any, *arguments: Any) -> Any:
    """Call a handle from Python."""
    listed = java_class("java.util.ArrayList")()
    for argument in arguments:
        listed.add(argument)
    return handle.invokeWithArguments(listed)


@cache
def java_type(name: str) -> Any:
    """The class of a Java type, e.g. int, [I or java.lang.String."""
    if name in PRIMITIVES:
        return java_class(f"java.lang.{PRIMITIVES[name]}").TYPE
    return java_class("java.lang.Class").forName(name)


def method_type(returns: str, *arguments: str) -> Any:
    """A MethodType."""
    return java_class("java.lang.invoke.MethodType").methodType(java_type(returns), _classes(arguments))


def _classes(names: Any) -> list[Any]:
    return [java_type(name) for name in names]


def _handles() -> Any:
    return java_class("java.lang.invoke.MethodHandles")
