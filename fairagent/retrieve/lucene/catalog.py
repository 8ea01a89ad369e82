"""What an index keeps of its documents beside Lucene: their ids, digests of what they say, and how Lucene counts them.

Everything that is kept is in the order of the collection: a document's number is its place there. Lucene numbers
documents in the order in which they were added, which is the same until an index is updated; from then on
`keys.npy` says which is which.
"""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.table_buffer import fixed_width
from fairagent.retrieve.lucene.strings import IdTable, encode_id, mapped

DIGESTS, KEYS = "digests.npy", "keys.npy"
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
        np.save(folder / DIGESTS, self.digests())


class Places:
    """Where Lucene has each document.

    In Lucene every document has a key, which it keeps (Lucene's own numbers change when others are removed) and which
    rises with these. `keys` (n,) has those of the documents in the order of the collection; None stands for 0, 1, 2 ...
    """

    def __init__(self, keys: NDArray[np.int32] | None) -> None:
        self._keys = keys
        if keys is not None:
            self._order = np.argsort(keys).astype(np.int32)
            self._places = np.empty_like(self._order)
            self._places[self._order] = np.arange(len(keys), dtype=np.int32)

    @classmethod
    def load(cls, folder: Path) -> Places:
        """Those of the index in `folder`; raises OSError or ValueError where they are damaged."""
        return cls(mapped(folder / KEYS) if (folder / KEYS).is_file() else None)

    def keys(self, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
        """The keys of the documents with these numbers."""
        return numbers if self._keys is None else self._keys[numbers].astype(np.intp)

    def numbers(self, lucene: NDArray[np.intp]) -> NDArray[np.intp]:
        """The numbers of the documents that have these in Lucene."""
        return lucene if self._keys is None else self._order[lucene].astype(np.intp)

    def in_lucene(self, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
        """Lucene's numbers of the documents with these."""
        return numbers if self._keys is None else self._places[numbers].astype(np.intp)
