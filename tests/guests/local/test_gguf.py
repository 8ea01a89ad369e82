"""GGUF files: what one says of its model, the server, and conversion."""

from __future__ import annotations

from pathlib import Path

import pytest
from gguf_files import FULL, gguf_bytes, gguf_file

from fairagent.errors import DataError
from fairagent.guests.local.gguf import PLAIN, GgufHeader, LocalServer, read_header

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


def test_why_it_does_not_start_is_said_in_the_librarys_words(
    tmp_path: Path, library: Library, capfd: pytest.CaptureFixture[str]
) -> None:
    library.log = LOG
    with pytest.raises(DataError, match=r"cannot serve .*: error loading model: unknown model architecture: 'lxama'$"):
        LocalServer(gguf_file(tmp_path))
    assert capfd.readouterr().err == ""


def test_no_chat_template(tmp_path: Path, library: Library) -> None:
    values = {key: value for key, value in FULL.items() if key != "tokenizer.chat_template"}
    file = gguf_file(tmp_path, values)
    with pytest.raises(DataError, match="no chat template"):
        LocalServer(file)
    assert library.started == []
    LocalServer(file, plain=True)
    assert library.started[0].chat_template == PLAIN


@pytest.mark.parametrize(
    ("values", "header"),
    [
        (FULL, GgufHeader("llama", "Tiny", 2048, True)),
        ({}, GgufHeader("", "tiny-instruct", 0, False)),
        # The length is that of its own architecture.
        ({**FULL, "general.architecture": "qwen2"}, GgufHeader("qwen2", "Tiny", 0, True)),
    ],
)
def test_what_a_file_says_of_its_model(tmp_path: Path, values: dict[str, object], header: GgufHeader) -> None:
    assert read_header(gguf_file(tmp_path, values)) == header


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"PK\3\4 and more", "no GGUF file"),
        (gguf_bytes()[:-33], "is damaged: it ends after"),
        (gguf_bytes().replace(b"\x09\0\0\0\x08", b"\x63\0\0\0\x08", 1), "no value of type 99"),
    ],
)
def test_a_damaged_file_is_one_error(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "bad.gguf"
    file.write_bytes(data)
    with pytest.raises(DataError, match=said):
        read_header(file)


def test_no_shorter_file_passes_for_whole(tmp_path: Path) -> None:
    file = tmp_path / "short.gguf"
    whole = gguf_bytes()
    for size in range(1, len(whole) - 32):  # the header does not say how long the last tensor is
        file.write_bytes(whole[:size])
        with pytest.raises(DataError):
            read_header(file)
