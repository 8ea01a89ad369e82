"""GGUF files of a few bytes: headers with what a test wants in them, and no model behind."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
FULL = {
    "general.architecture": "llama",
    "general.name": "Tiny",
    "llama.context_length": 2048,
    "tokenizer.ggml.tokens": ["a", "bc"],
    "tokenizer.ggml.scores": [0.5, 1.5],
    "tokenizer.chat_template": TEMPLATE,
}

Value = str | int | list[str] | list[float]


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def pair(key: str, value: Value) -> bytes:
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    if isinstance(value, int):
        return text(key) + struct.pack("<II", 4, value)
    words = [one for one in value if isinstance(one, str)]
    if words:
        return text(key) + struct.pack("<IIQ", 9, 8, len(words)) + b"".join(map(text, words))
    numbers = [float(one) for one in value]
    return text(key) + struct.pack(f"<IIQ{len(numbers)}f", 9, 6, len(numbers), *numbers)


def gguf_bytes(values: Mapping[str, Value] = FULL, version: int = 3) -> bytes:
    """A file with two tensors of 32 bytes each."""
    head = b"GGUF" + struct.pack("<IQQ", version, 2, len(values))
    head += b"".join(pair(key, value) for key, value in values.items())
    for number in (0, 1):
        head += text(f"t{number}") + struct.pack("<IQIQ", 1, 8, 0, 32 * number)
    return head + bytes(-len(head) % 32) + bytes(64)


def gguf_file(folder: Path, values: Mapping[str, Value] = FULL) -> Path:
    file = folder / "tiny-instruct.gguf"
    file.write_bytes(gguf_bytes(values))
    return file
