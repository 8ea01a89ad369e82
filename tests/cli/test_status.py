"""What a command shows of what it does: a line on a terminal's standard error, gone when it is done."""

from __future__ import annotations

import io
import sys
import time

import pytest

from fairagent.cli.options import status
from fairagent.storage.threads import listening, progress

from .conftest import Call, Small


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in the place of standard error; no fixture, since pytest puts its own there before a test runs."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def waits_for(shown: Terminal, text: str) -> None:
    deadline = time.monotonic() + 250
    while text not in shown.getvalue():
        assert time.monotonic() < deadline, shown.getvalue()
        time.sleep(0.01)


def test_what_is_done_is_shown_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    with status(patience=0), progress("searching"):
        waits_for(shown, "searching ...")
        with progress("starting Java"):
            waits_for(shown, "starting Java ...")
    # The last thing written erases the line.
    assert shown.getvalue().endswith("\x1b[2K")


def test_a_search_and_an_answer_say_what_they_do(call: Call, small: Small) -> None:
    said: list[str] = []
    with listening(said.append):
        assert call("answer", "lawyer", *small.options).exit_code == 0
    order = ["reading the collection", f"opening the index {small.index}", "searching", "writing the answer"]
    assert [one for one in dict.fromkeys(said) if one in order] == order
