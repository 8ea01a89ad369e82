"""What this thread is doing that may take its time, told to whoever shows it: a command does on a terminal.

Where nobody asked to be told, saying it costs nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Told = Callable[[str], None]

_told: ContextVar[Told | None] = ContextVar("told", default=None)
_current: ContextVar[str] = ContextVar("current", default="")


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say that `what` is being done inside the block, and after it, what was being done before.

    >>> said = []
    >>> with told(said.append), doing("searching"):
    ...     with doing("starting Java"):
    ...         pass
    >>> said
    ['searching', 'starting Java', 'searching']
    """
    tell, outer = _told.get(), _current.get()
    if tell is None:
        yield
        return
    token = _current.set(what)
    tell(what)
    try:
        yield
    finally:
        _current.reset(token)
        if outer:
            tell(outer)


@contextmanager
def told(tell: Told) -> Iterator[None]:
    """Tell `tell` of everything that is done inside the block by this thread, and by those that share its context."""
    token = _told.set(tell)
    try:
        yield
    finally:
        _told.reset(token)
