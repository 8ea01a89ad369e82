"""Small Java programs put together from method handles (`fairagent.retrieve.handles`), with variables.

An expression is a method handle that takes all variables of its `Frame`; calls of methods and sequences are made of
expressions, and loops of both. What comes out is run by one call from Python.
"""

from __future__ import annotations

from typing import Any

from fairagent.retrieve.handles import class_of, signature
from fairagent.retrieve.java import java_class


class Frame:
    """The variables of an expression: their names and Java types."""

    def __init__(self, **variables: str) -> None:
        self._types = variables

    def variable(self, name: str) -> Any:
        """The value of a variable."""
        kind = self._types[name]
        return _handles().permuteArguments(
            _handles().identity(class_of(kind)),
            signature(kind, *self._types.values()),
            list(self._types).index(name),
        )

    def constant(self, kind: str, value: Any) -> Any:
        """A number or a text."""
        fixed = _handles().constant(class_of(kind), value)
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


def identity(kind: str) -> Any:
    """What returns what it is given."""
    return _handles().identity(class_of(kind))


def new_array(array: str) -> Any:
    """What makes an array of a length."""
    return _handles().arrayConstructor(class_of(array))


def set_element(array: str) -> Any:
    """What sets an element of an array."""
    return _handles().arrayElementSetter(class_of(array))


def run(handle: Any, *arguments: Any) -> Any:
    """Call a handle from Python."""
    listed = java_class("java.util.ArrayList")()
    for argument in arguments:
        listed.add(argument)
    return handle.invokeWithArguments(listed)


def _classes(names: Any) -> list[Any]:
    return [class_of(name) for name in names]


def _handles() -> Any:
    return java_class("java.lang.invoke.MethodHandles")
