from __future__ import annotations

from pathlib import Path

import pytest
from gguf_files import FULL, gguf_bytes, gguf_file

from fairagent.errors import BackendUnavailable, DataError
from fairagent.guests.local.gguf import GgufHeader, read_header


def test_what_a_file_says_of_its_model(tmp_path: Path) -> None:
    assert read_header(gguf_file(tmp_path)) == GgufHeader("llama", "Tiny", 2048, True)


def test_what_it_does_not_say(tmp_path: Path) -> None:
    assert read_header(gguf_file(tmp_path, {})) == GgufHeader("", "tiny-instruct", 0, False)


def test_the_length_is_that_of_its_own_architecture(tmp_path: Path) -> None:
    assert read_header(gguf_file(tmp_path, {**FULL, "general.architecture": "qwen2"})).context == 0


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="No such file"):
        read_header(tmp_path / "none.gguf")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"PK\3\4 and more", "no GGUF file"),
        (gguf_bytes(version=1), "version 1"),
        (gguf_bytes()[:-33], "is damaged: it ends after"),
        (gguf_bytes()[:60], "is damaged: it ends after 60 bytes"),
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
