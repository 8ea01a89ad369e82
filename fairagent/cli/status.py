"""What a command is doing, as one line on a terminal's standard error that is gone when it is done."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairagent.cli.terminal import error_console
from fairagent.doing import told

if TYPE_CHECKING:
    from rich.live import Live
    from rich.spinner import Spinner

PATIENCE = 1.0
"""Seconds that nobody minds."""


@contextmanager
def status(hidden: bool = False, patience: float = PATIENCE) -> Iterator[Callable[[], None]]:
    """Show what is being done inside the block, once that takes longer than `patience` (seconds).

    Yields what ends it earlier, to be called before anything is printed inside the block. Nothing is shown where
    standard error is no terminal, or where it is to be `hidden`: a log is written there.
    """
    if hidden or not sys.stderr.isatty():
        yield lambda: None
        return
    line = _Line()
    timer = threading.Timer(patience, line.show)
    timer.daemon = True
    timer.start()
    try:
        with told(line.say):
            yield line.end
    finally:
        timer.cancel()
        line.end()


class _Line:
    """The line; it is spoken to by the thread that works, and shown by that of the timer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._what = "starting"
        self._live: Live | None = None
        self._ended = False

    def say(self, what: str) -> None:
        """Another thing is being done now."""
        with self._lock:
            self._what = what
            if self._live:
                # At once: what comes next may keep every other thread waiting, as the start of Java does.
                self._live.update(self._drawn(), refresh=True)

    def show(self) -> None:
        from rich.live import Live

        with self._lock:
            if not self._ended:
                # Results stay on standard output, wherever that leads.
                self._live = Live(self._drawn(), console=error_console(), transient=True, redirect_stdout=False)
                self._live.start(refresh=True)

    def end(self) -> None:
        with self._lock:
            self._ended = True
            if self._live:
                self._live.stop()
                self._live = None

    def _drawn(self) -> Spinner:
        from rich.spinner import Spinner
        from rich.text import Text

        return Spinner("dots", Text(f"{self._what} ...", no_wrap=True, overflow="ellipsis"))
