"""Old indexes, runs, accounts, settings and prompts are refused in one sentence that says what to do, and stay."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from fairagent.evaluate.run import HEAD
from fairagent.llm.prompts import Prompts
from fairagent.retrieve.manifest import MANIFEST
from fairagent.search.account import SCHEMA

from .conftest import Call, Small


def index(small: Small) -> Path:
    shutil.copytree(small.index, "index")
    manifest = Path("index", MANIFEST)
    manifest.write_text(json.dumps(json.loads(manifest.read_text(encoding="utf-8")) | {"format": 1}), encoding="utf-8")
    return manifest


def run(small: Small) -> Path:
    Path("run").mkdir()
    Path("run", HEAD).write_text('{"format": 1}', encoding="utf-8")
    return Path("run", HEAD)


def account(small: Small) -> Path:
    connection = sqlite3.connect("account.db")
    connection.executescript(SCHEMA)
    connection.executemany("INSERT INTO about VALUES (?, ?)", [("format", "1"), ("collection", "small")])
    connection.commit()
    connection.close()
    return Path("account.db")


def settings(small: Small) -> Path:
    Path("old.yaml").write_text("loop: {slots: x}\n", encoding="utf-8")
    return Path("old.yaml")


def prompts(small: Small) -> Path:
    """A template that there is no more, beside one as it is."""
    Path("mine").mkdir()
    shutil.copy(Prompts()["answer"].path, "mine/answer.j2")
    Path("mine/steer.j2").write_bytes(Path("mine/answer.j2").read_bytes().replace(b"id: answer", b"id: steer"))
    return Path("mine/steer.j2")


SEARCH = ["search", "law", "-c", "{file}", "--index"]
OLD: list[tuple[Callable[[Small], Path], list[str], int, str]] = [
    (index, [*SEARCH, "index"], 4, "of another version of fairagent (format 1, now 5); run `fairagent index`"),
    (run, ["report", "run"], 4, "name another folder with --run, or start over with --new"),
    (account, ["audit", "account.db"], 4, "move it away, and a new one is begun"),
    (settings, ["config", "--settings", "old.yaml"], 2, "loop.slots: unknown key of"),
    (prompts, ["prompts", "check", "--prompts", "mine"], 4, "mine/steer.j2: no shipped template 'steer'"),
]


@pytest.mark.parametrize(("write", "arguments", "code", "remedy"), OLD)
def test_what_is_old(
    call: Call, small: Small, write: Callable[[Small], Path], arguments: list[str], code: int, remedy: str
) -> None:
    file = write(small)
    before = file.read_bytes()
    result = call(*(one.format(file=small.file) for one in arguments))
    assert (result.exit_code, result.stdout) == (code, "")
    assert remedy in " ".join(result.stderr.split())
    assert len(result.stderr.splitlines()) <= 2
    assert file.read_bytes() == before
    if write is index:
        # And what it says does it.
        call.well("index", "-c", str(small.file), "--index", "index")
