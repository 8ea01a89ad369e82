"""`fairagent model serve`: it starts and ends, and refuses what it cannot serve, each in one line."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import python

from fairagent.llm import ModelRequest

from .conftest import Served, start

pytestmark = [pytest.mark.llm, pytest.mark.slow]

STORY = ModelRequest((("user", "Tell me a story."),), max_tokens=60, whole=False)


def failed(code: int, *options: str) -> str:
    """The one line that a server says which should not start."""
    done = python("-m", "fairagent", "model", "serve", *options, code=code)
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    return done.stderr


@pytest.fixture
def changed(gguf: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the model's file, to be damaged."""
    file = tmp_path / "changed.gguf"
    file.write_bytes(gguf.read_bytes())
    yield file
    file.unlink()


def exchange(file: Path, old: bytes, new: bytes, count: int = -1) -> None:
    assert len(old) == len(new)
    file.write_bytes(file.read_bytes().replace(old, new, count))


def test_a_port_in_use(served: Served) -> None:
    port = served.url.rpartition(":")[2].removesuffix("/v1")
    said = failed(2, "--port", port)
    assert said == f"fairagent: port {port} of this machine is in use; name another with --port, or 0 for a free one\n"


def test_an_architecture_that_nobody_knows(changed: Path) -> None:
    exchange(changed, b"llama", b"lxama", 1)
    exchange(changed, b"llama.", b"lxama.")
    assert "unknown model architecture: 'lxama'" in failed(4, "--model", str(changed), "--port", "0")


@pytest.mark.parametrize("kept", [0.9999, 0.5, 0.01])
def test_a_file_that_was_cut_off(changed: Path, kept: float) -> None:
    os.truncate(changed, int(changed.stat().st_size * kept))
    failed(4, "--model", str(changed), "--port", "0")


def test_it_ends_with_ctrl_c(gguf: Path, tmp_path: Path) -> None:
    other = start(tmp_path, "--context", "512", "--slots", "2")
    assert other.context == 512
    with urllib.request.urlopen(f"{other.url.removesuffix('/v1')}/slots") as answer:
        assert [slot["n_ctx"] for slot in json.load(answer)] == [512, 512]
    assert other.interrupt() == 0
    assert "stopped" in other.said.read_text(encoding="utf-8")
