"""The tree of errors: who is whose child, with which exit code, and how many faults are printed."""

from __future__ import annotations

import re
from pathlib import Path

from fairagent import errors
from fairagent.errors import DataError, FairAgentError, FatalModelError, Fault, ReplyInvalid, TransientModelError

TREE = {
    "FairAgentError": ("Exception", 1),
    "UsageError": ("FairAgentError", 2),
    "SettingsError": ("UsageError", 2),
    "BackendUnavailable": ("FairAgentError", 3),
    "DataError": ("FairAgentError", 4),
    **dict.fromkeys(("IndexMismatch", "PartError", "PromptError", "NotRegular"), ("DataError", 4)),
    "ModelError": ("FairAgentError", 5),
    **dict.fromkeys(("TransientModelError", "FatalModelError", "ReplyError"), ("ModelError", 5)),
    **dict.fromkeys(("ReplyInvalid", "ReplyRefused", "ReplyTruncated"), ("ReplyError", 5)),
    "BudgetExceeded": ("FairAgentError", 6),
}


def test_parents_and_exit_codes_are_those_of_the_drawing() -> None:
    there = {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, FairAgentError)
    }
    assert {name: (one.__bases__[0].__name__, one.exit_code) for name, one in there.items()} == TREE
    assert all(one.__doc__ for one in there.values())
    drawing = errors.__doc__ or ""
    assert there.keys() == set(re.findall(r"(?:^|─ |─)([A-Z]\w+)", drawing.split("\n\n")[1], flags=re.MULTILINE))
    codes = dict(re.findall(r"([A-Z]\w+) \.+ .*exit (\d)", drawing))
    assert {name: int(code) for name, code in codes.items()} == {name: there[name].exit_code for name in codes}
    assert len(codes) >= 7


def test_a_data_error_lists_its_faults_with_file_and_line() -> None:
    error = DataError("2 faults", [Fault(Path("a.tsv"), 3, "no label"), Fault(Path("b.tsv"), None, "no such file")])
    assert str(error) == "2 faults\n  a.tsv:3: no label\n  b.tsv: no such file"
    assert (len(error.faults), DataError("plain").faults) == (2, ())


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
    assert len(ReplyInvalid("no JSON", raw="x" * 10_000).raw) == 2000
    assert FatalModelError("no key").usage.calls == 0
