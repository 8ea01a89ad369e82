"""Ctrl-C, and the signals that ask the program to end: noted at any time, raised only where it does no harm.

An exception in the middle of an import, or after the work, becomes another error, or a traceback of Python's own.
"""

from __future__ import annotations

import os
import signal
import sys
from time import monotonic
from types import FrameType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

ENDING = tuple(number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGHUP"))
"""The signals that ask a program to end; Windows has no SIGHUP."""
BY_SIGNAL = 128
"""The exit code of a program that a signal has ended, less the signal's number."""
SAME = 0.5
"""Seconds within which a second signal is the same wish: a terminal and `make` both send one."""


class Ended(KeyboardInterrupt):
    """Someone asks the program to end, by Ctrl-C or another signal; whatever heeds Ctrl-C heeds this."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.signal = signal.Signals(number)


class EndingSignals:
    """What has become of the signals of this process, of which it has one."""

    def __init__(self) -> None:
        self._came = 0
        self._raised: float | None = None
        self._heeding: FrameType | None = None
        self._importing: FrameType | None = None

    def watch(self) -> None:
        """From here on they are noted. Who ignores one, as `nohup` does SIGHUP, goes on ignoring it."""
        for number in ENDING:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, self._on_signal)
        sys.unraisablehook = self._on_unraisable

    def heed(self) -> None:
        """While the caller works they are raised, as `Ended`, but in an import after it; so is one that came before."""
        self._heeding = sys._getframe(1)
        if self._came:
            self._raise()

    def note(self) -> None:
        """From here on they are noted again: nothing that is under way is to be interrupted."""
        self._heeding = self._raised = None

    def leave(self) -> None:
        """The work is done, and Python ends: from here on one ends the process at once, without another word."""
        for number in ENDING:
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, _end_at_once)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        silenced()
        if self._raised is not None:
            # Whatever has become of the first, nobody who asks twice waits.
            if monotonic() - self._raised > SAME:
                _end_at_once(number, frame)
            return
        self._came = self._came or number
        if self._heeding is None:
            return
        self._importing = None
        # The outermost import that the frame stands in, if any.
        while frame is not None and frame is not self._heeding:
            if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
                self._importing = frame
            frame = frame.f_back
        if self._importing is None or sys.getprofile() not in (None, self._after_import):
            self._raise()
        sys.setprofile(self._after_import)

    def _after_import(self, frame: FrameType, event: str, result: object) -> None:
        if frame is self._importing and event == "return":
            sys.setprofile(None)
            self._importing = None
            if self._heeding is not None:
                self._raise()

    def _raise(self) -> NoReturn:
        came, self._came, self._raised = self._came, 0, monotonic()
        raise Ended(came)

    def _on_unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        """What came while Python removed an object, or ran a callback of one, goes no further, and so comes again."""
        if not isinstance(unraisable.exc_value, Ended):
            sys.__unraisablehook__(unraisable)
            return
        # Here and not above: this module is imported before everything else.
        from threading import Timer

        self._raised = None
        again = Timer(0.02, os.kill, (os.getpid(), unraisable.exc_value.signal))
        again.daemon = True
        again.start()


def silenced() -> bool:
    """Whether a terminal is gone, and with it whoever could read: output from here on must not be an error."""
    gone = False
    for stream in (1, 2):
        try:
            os.write(stream, b"")
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            gone = True
    return gone


def _end_at_once(number: int, frame: FrameType | None) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, RuntimeError):
            # Whoever read it is gone, or it is being written this moment.
            continue
    os._exit(BY_SIGNAL + number)


SIGNALS = EndingSignals()
