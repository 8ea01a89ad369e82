"""What an index keeps of its documents: their ids and digests, in the order of the collection."""

from __future__ import annotations

import json
from array import array
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.table_buffer import fixed_width
from fairagent.errors import DataError
from fairagent.intake.arrays import write_array
from fairagent.retrieve.strings import IdTable, encode_id
from fairagent.types import Document

DIGESTS = "digests.npy"
DIGEST = 16
"""Bytes of the digest of a document."""


class Catalog:
    """The ids and digests of documents in the order of the collection, as they are read."""

    def __init__(self) -> None:
        self._names, self._lengths, self._digests = bytearray(), array("B"), bytearray()

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, id: str, digest: bytes) -> None:
        """Note one more document; raises DataError where its id is none."""
        name = encode_id(id)
        self._names += name
        self._lengths.append(len(name))
        self._digests += digest

    def digests(self, start: int = 0) -> NDArray[np.uint64]:
        """The digests of the documents from number `start` on, (n, 2)."""
        return np.frombuffer(self._digests[DIGEST * start :], np.uint64).reshape(-1, 2)

    def save(self, folder: Path) -> None:
        """Write them into `folder`; raises DataError where an id is repeated."""
        widths = np.frombuffer(self._lengths, np.uint8)
        IdTable.save(folder, fixed_width(np.frombuffer(self._names, np.uint8), widths, int(widths.max())))
        write_array(folder / DIGESTS, self.digests())


def digest(document: Document) -> bytes:
    """16 bytes that change whenever a field of the document does.

    Raises DataError where it holds half of a surrogate pair.
    """
    extra = json.dumps(dict(document.extra), ensure_ascii=False) if document.extra else ""
    text = f"{len(document.title)} {len(document.text)} {document.title}{document.text}{extra}"
    try:
        return blake2b(text.encode(), digest_size=DIGEST).digest()
    except UnicodeEncodeError as error:
        near = text[max(0, error.start - 20) : error.start + 20]
        raise DataError(
            f"document {document.id!r}: half of a surrogate pair (not valid Unicode) in the text, near {near!r}"
        ) from None
