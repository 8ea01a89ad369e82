from __future__ import annotations

import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairagent.cli import app as program
from fairagent.cli import search as command
from fairagent.storage.signals import Ended

from .conftest import Call, Small, start, write_collection


def test_a_mistyped_command_is_a_usage_error(call: Call) -> None:
    result = call("serach")
    assert result.exit_code == 2
    assert "search" in result.stderr


def test_an_unexpected_error_is_not_dressed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(command.options, "settings_of", broken)
    result = CliRunner().invoke(program, ["search", "x"])
    assert isinstance(result.exception, ZeroDivisionError)


def test_ctrl_c_in_a_command_says_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command.options, "settings_of", interrupted)
    result = CliRunner().invoke(program, ["search", "x"])
    assert result.exit_code == 130
    assert result.stderr == "fairagent: interrupted\n"


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_other_signals_are_named(name: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object, **__: object) -> None:
        raise Ended(signal.Signals[name])

    monkeypatch.setattr(command.options, "settings_of", ended)
    result = CliRunner().invoke(program, ["search", "x"])
    assert result.exit_code == code
    assert result.stderr == f"fairagent: ended by {name}\n"


INTERRUPTED = """
import os, signal
from fairagent.collection import Collection

documents = Collection.documents

def interrupted(self):
    for number, document in enumerate(documents(self)):
        if number == 12:
            os.kill(os.getpid(), signal.SIGINT)
        yield document

Collection.documents = interrupted
from fairagent.cli import main
main()
"""
"""The program, which Ctrl-C reaches while it reads the documents that it indexes."""


def test_ctrl_c_while_indexing_leaves_nothing_behind(tmp_path: Path) -> None:
    file = write_collection(tmp_path / "many")
    process = start("index", "-c", str(file), "--index", "index", folder=tmp_path, program=INTERRUPTED)
    out, err = process.communicate(timeout=250)
    assert (process.returncode, out, err) == (130, "", "fairagent: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["many"]


def test_pipes_get_no_control_codes_and_any_encoding_will_do(small: Small, tmp_path: Path) -> None:
    process = start("search", "lawyer", *small.options, folder=tmp_path, PYTHONIOENCODING="ascii", COLUMNS="80")
    out, err = process.communicate(timeout=250)
    assert (process.returncode, err) == (0, "")
    assert "\x1b" not in out
    assert out.isascii()
    assert "#|" in out
    assert max(map(len, out.splitlines())) <= 80
