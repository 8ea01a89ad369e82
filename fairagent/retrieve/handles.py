"""Java code put together from Java's own methods, so that loops over documents and terms run in Java.

Every call from Python to Java costs a microsecond or more, and there is no Java compiler in the Java that comes with
fairagent. Java's method handles are methods as values, which can be combined: with arguments filled in, one after the
other, in a loop. What is made here runs on Java's threads, without Python's lock. To be used inside `using_java()`.
"""

import time
from functools import cache
from typing import Any

from fairagent.retrieve.java import java_class, using_java

LONGEST_WAIT = 0.02
"""Seconds between two looks at work that goes on in Java."""
PRIMITIVES = {
    "int": "Integer",
    "long": "Long",
    "float": "Float",
    "double": "Double",
    "boolean": "Boolean",
    "void": "Void",
}
STRING, STRINGS = "java.lang.String", "[Ljava.lang.String;"
OBJECT, OBJECTS = "java.lang.Object", "[Ljava.lang.Object;"


@cache
def class_of(name: str) -> Any:
    """The java.lang.Class of that name, or of a primitive type."""
    if name in PRIMITIVES:
        return java_class(f"java.lang.{PRIMITIVES[name]}").TYPE
    return java_class("java.lang.Class").forName(name)


def signature(returns: str, *takes: str) -> Any:
    """The type of a method."""
    classes = [class_of(name) for name in takes]
    kind = java_class("java.lang.invoke.MethodType")
    return kind.methodType(class_of(returns), classes) if classes else kind.methodType(class_of(returns))


def method(owner: str, name: str, returns: str, *takes: str) -> Any:
    """The method of an object: its first argument is the object."""
    where, kind = class_of(owner), signature(returns, *takes)
    return _lookup().findVirtual(where, name, kind)


def static(owner: str, name: str, returns: str, *takes: str) -> Any:
    """A method of a class."""
    where, kind = class_of(owner), signature(returns, *takes)
    return _lookup().findStatic(where, name, kind)


def constructor(owner: str, *takes: str) -> Any:
    """What makes an object."""
    where, kind = class_of(owner), signature("void", *takes)
    return _lookup().findConstructor(where, kind)


def field(owner: str, name: str, kind: str) -> Any:
    """What reads a field of an object."""
    where, what = class_of(owner), class_of(kind)
    return _lookup().findGetter(where, name, what)


def typed(handle: Any, returns: str, *takes: str) -> Any:
    """The same with other types, converted as Java's casts do."""
    kind = signature(returns, *takes)
    return _combine().explicitCastArguments(handle, kind)


def bound(handle: Any, *values: Any, at: int = 0) -> Any:
    """The same with arguments filled in, from position `at` on."""
    for value in values:
        handle = _combine().insertArguments(handle, at, value)
    return handle


def number(value: int) -> Any:
    """An int to fill in."""
    return java_class("java.lang.Integer")(value)


def piped(first: Any, *then: Any) -> Any:
    """Each with the result of the one before."""
    for handle in then:
        first = _combine().filterReturnValue(first, handle)
    return first


def fed(handle: Any, *makers: Any) -> Any:
    """`handle` with each of its arguments made by another from an argument of its own."""
    return _combine().filterArguments(handle, 0, *makers)


def ordered(handle: Any, kind: Any, *places: int) -> Any:
    """`handle` as a method of signature `kind`: its arguments are those at these places, which may repeat."""
    return _combine().permuteArguments(handle, kind, *places)


def spread(handle: Any, kind: str, count: int) -> Any:
    """`handle` with its `count` arguments taken from an array of class `kind`."""
    where = class_of(kind)
    return handle.asSpreader(where, count)


def collected(handle: Any, kind: str) -> Any:
    """`handle`, whose last argument is an array of class `kind`, with one element instead."""
    where = class_of(kind)
    return handle.asCollector(where, 1)


def both(first: Any, second: Any) -> Any:
    """One after the other with the same arguments; `first` returns nothing."""
    return _combine().foldArguments(second, first)


def repeated(condition: Any, body: Any) -> Any:
    """`body` as long as `condition` says so; both have the same arguments."""
    return _combine().whileLoop(None, condition, body)


def as_function(kind: str, handle: Any) -> Any:
    """`handle` as a Java object of a functional interface such as java.lang.Runnable."""
    import jnius

    made = java_class("java.lang.invoke.MethodHandleProxies").asInterfaceInstance(class_of(kind), handle)
    return jnius.cast(kind, made)


def wait(stage: Any) -> None:
    """Wait for work in Java (a CompletionStage), open to Ctrl-C and to other threads' use of Java.

    Raises the JavaException that it ended in.
    """
    pause = 0.0005
    with using_java():
        future = stage.toCompletableFuture()
    while True:
        with using_java():
            if future.isDone():
                future.get()
                return
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_WAIT)


def _lookup() -> Any:
    return java_class("java.lang.invoke.MethodHandles").publicLookup()


def _combine() -> Any:
    return java_class("java.lang.invoke.MethodHandles")
