"""Cases 82 to 87 of docs/reliability.md: a model's file or its server that will not do, or stops in the middle."""

from __future__ import annotations

import random
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from evaluate import words
from evaluate.stereotypes import bench
from gguf_files import FULL, gguf_bytes, gguf_file
from guests.local.conftest import Library
from typer.testing import CliRunner, Result

from fairagent.cli import app
from fairagent.errors import DataError, ModelError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.run import Run, load_run
from fairagent.evaluate.workers import threads
from fairagent.guests.local.gguf import LocalServer, read_header
from fairagent.guests.testing import LoopbackServer, ServerReply, streamed
from fairagent.llm import ModelRequest, stream
from fairagent.llm.models import Models
from fairagent.settings import ModelSettings

pytestmark = pytest.mark.usefixtures("no_variables")

ASKED = ModelRequest((("user", "word " * 80),))
"""400 bytes: about 100 tokens."""


def run_of(file: Path, folder: Path) -> Run:
    with threads(1) as workers:
        return run_experiment(check_experiment(file), folder, workers)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def one_line(result: Result, exit_code: int) -> str:
    """What a command that failed has said, which is no traceback."""
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert isinstance(result.exception, SystemExit)
    return " ".join(result.stderr.split())


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """A stand-in for the server's package."""
    made = Library()
    monkeypatch.setitem(sys.modules, "xllamacpp", made)
    return made


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("FAIRAGENT_CACHE", "''")
    with LoopbackServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


# --- the file ---------------------------------------------------------------------------------------------------


def test_82_a_file_that_was_cut_off_is_one_error(library: Library, tmp_path: Path) -> None:
    file = tmp_path / "cut.gguf"
    file.write_bytes(gguf_bytes()[:-40])
    for command in (("serve", "--model", str(file)), ("convert", str(file), str(tmp_path / "new"))):
        assert f"{file} is damaged: it ends after" in one_line(call("model", *command), 4)
    assert library.started == []
    assert not (tmp_path / "new").exists()


def test_82_no_byte_of_the_header_does_more_than_an_error(tmp_path: Path) -> None:
    """Any byte changed to any value: the file is read, or it is a DataError."""
    rng, whole, file = random.Random(87), gguf_bytes(), tmp_path / "odd.gguf"
    refused = 0
    for _ in range(3000):
        place = rng.randrange(len(whole))
        file.write_bytes(whole[:place] + bytes([rng.randrange(256)]) + whole[place + 1 :])
        try:
            read_header(file)
        except DataError:
            refused += 1
    assert 300 < refused < 3000


@pytest.mark.parametrize("value", ["alignment", "context"])
def test_82_a_value_of_another_kind_is_as_good_as_none(tmp_path: Path, value: str) -> None:
    odd = {"alignment": {"general.alignment": "wide"}, "context": {"llama.context_length": "long"}}[value]
    header = read_header(gguf_file(tmp_path, {**FULL, **odd}))
    assert header.context == (0 if value == "context" else 2048)


def test_83_an_unknown_architecture_is_named(library: Library, tmp_path: Path) -> None:
    file = gguf_file(tmp_path, {**FULL, "general.architecture": "lxama"})
    library.log = "0.00.091.100 E llama_model_load: error loading model: unknown model architecture: 'lxama'\n"
    said = one_line(call("model", "serve", "--model", str(file), "--port", "0"), 4)
    assert said.endswith("error loading model: unknown model architecture: 'lxama'")


def test_83_nor_is_it_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")

    def refuses(folder: Path, **_: object) -> None:
        raise ValueError("GGUF model with architecture lxama is not supported yet.")

    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", refuses)
    # Those that the reading of weights needs beside it, and the reading of the tokenizer does not.
    for package in ("gguf", "accelerate"):
        monkeypatch.setitem(sys.modules, package, SimpleNamespace())
    file = gguf_file(tmp_path, {**FULL, "general.architecture": "lxama"})
    said = one_line(call("model", "convert", str(file), str(tmp_path / "new")), 4)
    assert "(architecture 'lxama'): GGUF model with architecture lxama is not supported yet." in said
    assert not (tmp_path / "new").exists()


def test_84_without_a_chat_template_nothing_is_started(library: Library, tmp_path: Path) -> None:
    file = gguf_file(tmp_path, {key: value for key, value in FULL.items() if key != "tokenizer.chat_template"})
    said = one_line(call("model", "serve", "--model", str(file)), 4)
    assert "has no chat template" in said
    assert "take a model that was trained for conversations" in said
    assert library.started == []


# --- the server -------------------------------------------------------------------------------------------------


def test_85_a_context_that_is_too_small_is_said_before_anything_is_sent(server: LoopbackServer) -> None:
    model = Models().open(ModelSettings(name="tiny", context=149, max_tokens=50))
    with pytest.raises(ModelError, match=r"about 100 tokens and the reply .* is 149 tokens.* nothing was sent"):
        model.complete(ASKED)
    assert server.requests == []


def test_85_items_that_do_not_fit_fail_and_the_others_are_asked(server: LoopbackServer, tmp_path: Path) -> None:
    server.script = bench.model
    systems = "systems: {small: {profile: engine, engine: none, model: {name: tiny, max_tokens: 20, context: 600}}}\n"
    file = words.write(tmp_path, f"kind: stereoset\nname: small\nquestions: {{path: benchmark.txt}}\n{systems}")
    benchmark = bench.write_stereoset(tmp_path / "benchmark.txt")
    text = benchmark.read_text(encoding="utf-8").replace('"The nurse is good."', f'"{"The nurse is good. " * 200}"')
    benchmark.write_text(text, encoding="utf-8")
    run = run_of(file, tmp_path / "run")
    failed = {one.topic: str(one.failed) for one in run.outcomes if one.failed}
    assert list(failed) == ["q4"]
    assert "the context of 'tiny' is 600 tokens" in failed["q4"]
    assert len(server.requests) == 3


def test_86_a_server_that_stops_while_it_answers(server: LoopbackServer) -> None:
    server.script = [replace(streamed("red", " and", " blue"), cut=200), streamed("green")]
    model, told = Models().open(ModelSettings(name="tiny")), list[str]()
    with pytest.raises(ModelError, match="not asked for again, since part of it was shown"):
        stream(model, ASKED, told.append)
    assert told[0] == "red"
    assert len(server.requests) == 1


def test_86_what_is_done_is_kept_and_the_same_run_goes_on(server: LoopbackServer, tmp_path: Path) -> None:
    down = [False, False, True, True]

    def answer(request: dict[str, object]) -> ServerReply:
        reply = bench.model(request)
        return replace(reply, cut=20) if down and down.pop(0) else reply

    server.script = answer
    systems = "systems: {alone: {profile: engine, engine: none, model: {name: tiny, attempts: 1}}}\n"
    file = words.write(tmp_path, f"kind: stereoset\nname: gone\nquestions: {{path: benchmark.txt}}\n{systems}")
    bench.write_stereoset(tmp_path / "benchmark.txt")
    run = run_of(file, tmp_path / "run")
    assert [bool(one.failed) for one in run.outcomes] == [False, False, True, True]
    assert len(server.requests) == 4
    again = run_of(file, tmp_path / "run")
    assert not any(one.failed for one in again.outcomes)
    assert len(server.requests) == 6
    assert load_run(tmp_path / "run").excluded == {}


def test_87_a_port_in_use_is_named_before_the_model_is_read(library: Library, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = one_line(call("model", "serve", "--model", str(gguf_file(tmp_path)), "--port", str(port)), 2)
    assert f"port {port} of this machine is in use; name another with --port, or 0 for a free one" in said
    assert library.started == []
    with LocalServer(gguf_file(tmp_path), port):
        assert len(library.started) == 1
