"""The embeddings of a collection: one array of 16-bit floats, a row a document."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fairagent.intake.arrays import read_array
from fairagent.retrieve.bm25.manifest import Indexable
from fairagent.retrieve.encoded import PROBE_TEXT, EncodedBuild, EncodedManifest, Work, no_progress
from fairagent.retrieve.encoder import Embeddings, Encoder
from fairagent.retrieve.rows import create_rows, write_rows

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
    called with the number of documents done. `work` does what `encoder` does with documents (`fairagent.retrieve.crew`)
    and is told of the progress in its place. See `EncodedBuild.run` for what happens when it is broken off and what it
    raises.
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
