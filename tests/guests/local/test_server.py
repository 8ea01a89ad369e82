from __future__ import annotations

import importlib.util
import socket
from pathlib import Path

import pytest
from gguf_files import FULL, gguf_file

from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.guests.local.gguf import LocalServer, Queue

from .conftest import Library

LOG = """\
0.00.000.271 W srv          init: security: no API key is set
0.00.091.100 E llama_model_load: error loading model: unknown model architecture: 'lxama'
0.00.091.548 E llama_model_load_from_file_impl: failed to load model
"""


def test_it_is_served_to_this_machine_alone(tmp_path: Path, library: Library) -> None:
    with LocalServer(gguf_file(tmp_path), threads=3, slots=2) as server:
        assert (server.url, server.name, server.context) == ("http://127.0.0.1:4711/v1", "tiny-instruct", 2048)
    (wanted,) = library.started
    assert wanted.hostnames == ["127.0.0.1"]
    assert wanted.cors_origins == "http://127.0.0.1"
    assert (wanted.n_parallel, wanted.n_ctx, wanted.cpuparams.n_threads) == (2, 4096, 3)  # 2048 for each slot


@pytest.mark.parametrize(
    ("trained", "asked", "context"), [(2048, None, 2048), (131072, None, 8192), (0, None, 8192), (2048, 512, 512)]
)
def test_the_context(tmp_path: Path, library: Library, trained: int, asked: int | None, context: int) -> None:
    file = gguf_file(tmp_path, {**FULL, "llama.context_length": trained})
    assert LocalServer(file, context=asked).context == context


def test_the_queue_is_the_servers_own_count(tmp_path: Path, library: Library) -> None:
    library.counts = [(1, 3)]
    assert LocalServer(gguf_file(tmp_path)).queue() == Queue(answered=1, waiting=3)


def test_a_port_in_use(tmp_path: Path, library: Library) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} of this machine is in use"):
            LocalServer(gguf_file(tmp_path), port)
    assert library.started == []


def test_why_it_does_not_start_is_said_in_the_librarys_words(
    tmp_path: Path, library: Library, capfd: pytest.CaptureFixture[str]
) -> None:
    library.log = LOG
    with pytest.raises(DataError, match=r"cannot serve .*: error loading model: unknown model architecture: 'lxama'$"):
        LocalServer(gguf_file(tmp_path))
    assert capfd.readouterr().err == ""


def test_no_chat_template(tmp_path: Path, library: Library) -> None:
    values = {key: value for key, value in FULL.items() if key != "tokenizer.chat_template"}
    with pytest.raises(DataError, match="no chat template"):
        LocalServer(gguf_file(tmp_path, values))


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailable, match=r"pip install 'fairagent\[local\]'"):
        LocalServer(gguf_file(tmp_path))
