"""The embeddings of a collection: one array of 16-bit floats, a row a document.

16-bit floats, as embeddings are stored, as 32-bit floats.
"""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fairagent.retrieve.bm25.manifest import Indexable
from fairagent.retrieve.encoded import (
    PROBE_TEXT,
    EncodedBuild,
    EncodedManifest,
    Work,
    create_rows,
    no_progress,
    write_rows,
)
from fairagent.retrieve.encoders import Embeddings, Encoder
from fairagent.storage.arrays import read_array

MANIFEST = "fairagent-dense.json"
VECTORS = "vectors.npy"
CHUNK = 4096
"""The most documents between two marks that a broken-off build can go on from. Within them encoders batch by length."""
COPIED = 1 << 15
"""Rows that are taken over at once."""


class DenseManifest(EncodedManifest):
    """What the embeddings were made from and by; `dimension` is the length of a vector."""

    __slots__ = ()

    FILE: ClassVar[str] = MANIFEST
    WHAT: ClassVar[str] = "embeddings"
    BUILDER: ClassVar[str] = "build_dense_index"


def build_dense_index(
    collection: Indexable,
    folder: Path,
    encoder: Encoder,
    progress: Callable[[int], None] = no_progress,
    work: Work[Embeddings] | None = None,
) -> DenseManifest:
    """Encode title and text of every document of `collection` into `folder`, which appears only when all are done.

    Embeddings at `folder` that this model made are taken over for documents whose texts are the same. `progress` is
    called with the number of documents done. `work` does what `encoder` does with documents
    (`retrieve.sentence_encoder`) and is told of the progress in its place. See `EncodedBuild.run` for what happens
    when it is broken off and what it raises.
    """
    probe = encoder.documents([PROBE_TEXT])[0]
    work = work or Work(encoder.documents, progress=progress)
    return EncodedBuild(DenseManifest, _Rows(), encoder.name, probe, CHUNK, work).run(collection, folder)


class _Rows:
    """An array with a row for every document; those not done yet are zeros."""

    width = 2

    def create(self, folder: Path, documents: int, dimension: int) -> None:
        create_rows(folder / VECTORS, np.float16, (documents, dimension))

    def take_over(self, folder: Path, earlier: Path, numbers: NDArray[np.intp]) -> None:
        old = read_array(earlier / VECTORS, mapped=True)
        for start in range(0, len(numbers), COPIED):
            kept = start + np.flatnonzero(numbers[start : start + COPIED] >= 0)
            write_rows(folder / VECTORS, kept, old[numbers[kept]])

    def add(self, folder: Path, numbers: NDArray[np.intp], vectors: Embeddings) -> None:
        write_rows(folder / VECTORS, numbers, vectors)

    def finish(self, folder: Path, fresh: NDArray[np.intp]) -> None:
        pass


WIDER = 13
"""Bits that the fraction of a 32-bit float has more."""
KEPT = np.int32(-0x70002000)
"""The bits of a 16-bit float in their new places (0x8fffe000): the sign, which the widening has copied, once."""
RAISED = np.float32(2.0**112)
"""The exponents of the two count from 127 and from 15: so much is lost where the bits alone are moved."""
FINITE = 65536.0
"""What infinity, the first number after the largest one, comes out as."""


def floats(rows: NDArray[np.float16]) -> Embeddings:
    """The same numbers as 32-bit floats, bit for bit but for the payload of NaN.

    numpy's own conversion takes three times as long for a few hundred rows, which stay in a processor's cache.
    """
    bits = np.ascontiguousarray(rows).view(np.int16).astype(np.int32)
    np.left_shift(bits, WIDER, out=bits)
    np.bitwise_and(bits, KEPT, out=bits)
    numbers = bits.view(np.float32)
    numbers *= RAISED
    if numbers.size and (numbers.max() >= FINITE or numbers.min() <= -FINITE):
        return np.asarray(rows, dtype=np.float32)
    return numbers
