"""Cases 233 to 236 of docs/reliability.md: who may ask the studio by a file of users, and what they spend."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairagent.cli import app

pytest.importorskip("fastapi")

from fairagent.studio.serving import book_of
from fairagent.studio.tokens import User, UserBudget, add_user, hash_of, read_users

DYING = """
import os, signal, sys
from pathlib import Path
from fairagent.studio.serving import book_of
from fairagent.studio.tokens import read_users
path = Path(sys.argv[1])
(user,) = read_users(path)
book = book_of(path)
book.limit(user).reserve(100, 0.0).settle(50, 0.0)
book.limit(user).reserve(200, 0.0)
os.kill(os.getpid(), signal.SIGKILL)
"""


def refused(path: Path) -> str:
    """What `serve` and `token list` say of a file of users: the same, before anything else is opened."""
    served = CliRunner().invoke(app, ["serve", "--port", "0", "--collection", "nowhere.yaml", "--tokens", str(path)])
    listed = CliRunner().invoke(app, ["token", "list", "--file", str(path)])
    assert served.exit_code == listed.exit_code
    assert served.exit_code in (2, 3, 4)
    assert served.stderr == listed.stderr
    return " ".join(served.stderr.split())


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601, 0o660])
def test_233_a_file_of_users_that_others_have_rights_to(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "users.jsonl"
    add_user(path, "ada")
    path.chmod(mode)
    assert f"chmod 600 {path}" in refused(path)
    added = CliRunner().invoke(app, ["token", "add", "bob", "--file", str(path)])
    assert added.exit_code == 2
    path.chmod(0o600)
    assert [one.name for one in read_users(path)] == ["ada"]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "missing", "damaged", "large"])
def test_233_a_file_of_users_that_is_none(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "users.jsonl"
    if kind == "link":
        add_user(tmp_path / "real.jsonl", "ada")
        path.symlink_to(tmp_path / "real.jsonl")
    elif kind == "fifo":
        os.mkfifo(path, 0o600)
    elif kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes(b"\xff\x00{\n" if kind == "damaged" else b" " * 1_000_001)
        path.chmod(0o600)
    words = {"link": "is a link", "fifo": "is a FIFO", "folder": "is a folder", "missing": "token add"}
    assert words.get(kind, str(path)) in refused(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_233_a_file_of_users_that_is_another_users(tmp_path: Path) -> None:
    path = tmp_path / "users.jsonl"
    add_user(path, "ada")
    os.chown(path, 12345, 12345)
    assert "belongs to another user (12345)" in refused(path)


def test_234_a_process_that_is_killed_has_spent_what_it_had_reserved(tmp_path: Path) -> None:
    path = tmp_path / "users.jsonl"
    add_user(path, "ada", UserBudget(tokens=1000))
    died = subprocess.run([sys.executable, "-c", DYING, str(path)], capture_output=True, text=True, timeout=60)
    assert died.returncode == -signal.SIGKILL, died.stderr
    (user,) = read_users(path)
    with closing(book_of(path)) as book:
        assert (book.spent(user).calls, book.spent(user).tokens) == (2, 250)


def test_234_where_it_cannot_be_kept_no_model_is_asked(tmp_path: Path) -> None:
    """A damaged database of what was spent: an error that names it, and nothing is reset."""
    path = tmp_path / "users.jsonl"
    add_user(path, "ada", UserBudget(tokens=1000))
    spent = path.with_name("users.jsonl.spent")
    spent.write_bytes(b"no database" * 200)
    assert f"cannot be kept at {spent}" in refused(path)
    assert spent.read_bytes() == b"no database" * 200


def test_235_limits_that_are_lowered_hold_at_once(tmp_path: Path) -> None:
    path = tmp_path / "users.jsonl"
    add_user(path, "ada", UserBudget(calls=9))
    with closing(book_of(path)) as book:
        for _ in range(2):
            book.limit(read_users(path)[0]).reserve(1, 0.0).settle(1, 0.0)
        lowered = User(name="ada", sha256=hash_of("ada"), budget=UserBudget(calls=2))
        with pytest.raises(Exception, match="budget of 2 calls"):
            book.limit(lowered).reserve(1, 0.0)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_236_the_network_is_let_in_by_tokens_alone(host: str) -> None:
    result = CliRunner().invoke(app, ["serve", "--port", "0", "--host", host, "--no-token", "--collection", "no.yaml"])
    assert result.exit_code == 2
    assert "--no-token is for this machine alone" in " ".join(result.stderr.split())
