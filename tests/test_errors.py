"""The tree of errors: who is whose child, with which exit code, and how many faults are printed."""

from __future__ import annotations

import re
from pathlib import Path

import fairagent.errors
from fairagent.errors import (
    BackendUnavailable,
    BudgetExceeded,
    DataError,
    FairAgentError,
    FatalModelError,
    Fault,
    IndexMismatch,
    ModelError,
    NotRegular,
    PartError,
    PromptError,
    ReplyError,
    ReplyInvalid,
    ReplyRefused,
    ReplyTruncated,
    SettingsError,
    TransientModelError,
    UsageError,
)

TREE = {
    FairAgentError: (Exception, 1),
    UsageError: (FairAgentError, 2),
    SettingsError: (UsageError, 2),
    BackendUnavailable: (FairAgentError, 3),
    DataError: (FairAgentError, 4),
    IndexMismatch: (DataError, 4),
    PartError: (DataError, 4),
    PromptError: (DataError, 4),
    NotRegular: (DataError, 4),
    ModelError: (FairAgentError, 5),
    TransientModelError: (ModelError, 5),
    FatalModelError: (ModelError, 5),
    ReplyError: (ModelError, 5),
    ReplyInvalid: (ReplyError, 5),
    ReplyRefused: (ReplyError, 5),
    ReplyTruncated: (ReplyError, 5),
    BudgetExceeded: (FairAgentError, 6),
}


def test_parents_and_exit_codes() -> None:
    assert {error: (error.__bases__[0], error.exit_code) for error in TREE} == TREE
    assert all(error.__doc__ for error in TREE)


def test_no_error_is_missing_here_or_in_the_drawing() -> None:
    there = {
        name
        for name, value in vars(fairagent.errors).items()
        if isinstance(value, type) and issubclass(value, FairAgentError)
    }
    assert there == {error.__name__ for error in TREE}
    drawing = fairagent.errors.__doc__ or ""
    assert there == set(re.findall(r"(?:^|─ |─)([A-Z]\w+)", drawing.split("\n\n")[1], flags=re.MULTILINE))
    drawn_codes = dict(re.findall(r"([A-Z]\w+) \.+ .*exit (\d)", drawing))
    assert {name: int(code) for name, code in drawn_codes.items()} == {
        error.__name__: error.exit_code for error in TREE if error.__name__ in drawn_codes
    }
    assert len(drawn_codes) >= 7


def test_a_fault_names_file_and_line() -> None:
    assert str(Fault(Path("a.tsv"), 3, "no label")) == "a.tsv:3: no label"
    assert str(Fault(Path("a.tsv"), None, "no such file")) == "a.tsv: no such file"


def test_a_data_error_lists_its_faults() -> None:
    error = DataError("2 faults", [Fault(Path("a.tsv"), 3, "no label"), Fault(Path("b.tsv"), None, "no such file")])
    assert str(error) == "2 faults\n  a.tsv:3: no label\n  b.tsv: no such file"
    assert len(error.faults) == 2
    assert DataError("plain").faults == ()


def test_a_data_error_says_once_what_is_wrong_with_many_lines() -> None:
    files = Path("a.tsv"), Path("b.tsv")
    error = DataError("many", [*(Fault(file, line, "bad") for line in range(1, 5) for file in files)])
    assert str(error).splitlines() == ["many", "  a.tsv:1: bad (and so in 3 more)", "  b.tsv:1: bad (and so in 3 more)"]
    assert len(error.faults) == 8


def test_a_message_cannot_steer_a_terminal() -> None:
    error = DataError("a\x1b[2Jb\u202e", [Fault(Path("x\ny.tsv"), 1, "bad \x9b")])
    assert str(error) == "a\ufffd[2Jb\ufffd\n  x y.tsv:1: bad \ufffd"


def test_a_data_error_prints_the_first_fifty_and_keeps_all() -> None:
    error = DataError("many", (Fault(Path("a.tsv"), line, f"bad {line}") for line in range(1, 54)))
    lines = str(error).splitlines()
    assert (len(lines), lines[50], lines[51]) == (52, "  a.tsv:50: bad 50", "  ... and 3 more")
    assert len(error.faults) == 53


def test_errors_of_models_carry_what_is_worth_knowing() -> None:
    assert TransientModelError("busy", retry_after=2.0).retry_after == 2.0
    assert TransientModelError("busy").retry_after is None
    assert len(ReplyInvalid("no JSON", raw="x" * 10_000).raw) == 2000
    assert ReplyTruncated("cut off").raw == ""
    assert FatalModelError("no key").usage.calls == 0
