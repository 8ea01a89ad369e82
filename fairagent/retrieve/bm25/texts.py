"""The documents as an index stores them: a JSON object each, one after the other in one mapped array of bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairagent.errors import IndexMismatch
from fairagent.intake.arrays import write_array
from fairagent.intake.json_text import parse_json
from fairagent.retrieve.bm25.manifest import REMEDY
from fairagent.retrieve.strings import ArrayWriter, mapped
from fairagent.types import Document

BYTES, STARTS = "texts.bytes.npy", "texts.starts.npy"


def stored(document: Document) -> bytes:
    """A document as it is stored."""
    fields = [document.id, document.title, document.text, dict(document.extra)]
    return json.dumps(fields, ensure_ascii=False).encode()


class Texts:
    """The stored documents of an index by their numbers."""

    def __init__(self, folder: Path) -> None:
        """Map what `join` wrote; raises OSError or ValueError where it is damaged."""
        self._folder = folder
        self._bytes, self._starts = mapped(folder / BYTES), mapped(folder / STARTS)
        if not len(self._starts) or self._starts[0] or self._starts[-1] != len(self._bytes):
            raise ValueError(f"{BYTES} has {len(self._bytes):,} bytes, which {STARTS} says otherwise")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def document(self, number: int) -> Document:
        """The document of this number; IndexMismatch where what is there is none."""
        start, stop = self._starts[number : number + 2].tolist()
        try:
            id, title, text, extra = parse_json(self._bytes[start:stop].tobytes().decode())
            return Document(id, text, title, extra)
        except (ValueError, TypeError) as error:
            raise IndexMismatch(f"the index at {self._folder} is damaged; {REMEDY} ({BYTES}: {error})") from None

    @staticmethod
    def save(folder: Path, lines: Sequence[bytes]) -> None:
        """Write the stored documents of a block into its folder."""
        starts = np.zeros(len(lines) + 1, np.int64)
        np.cumsum([len(line) for line in lines], out=starts[1:])
        write_array(folder / BYTES, np.frombuffer(b"".join(lines), np.uint8))
        write_array(folder / STARTS, starts)

    @staticmethod
    def join(blocks: Sequence[Path], folder: Path) -> None:
        """Write the documents of all blocks, in their order, into the folder of an index."""
        with ArrayWriter(folder / BYTES, np.uint8) as contents, ArrayWriter(folder / STARTS, np.int64) as starts:
            starts.add(np.zeros(1, np.int64))
            at = 0
            for block in blocks:
                own, ends = mapped(block / BYTES), mapped(block / STARTS)
                contents.add(own)
                starts.add(ends[1:] + at)
                at += len(own)
