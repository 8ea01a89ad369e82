"""The SPLADE weights of a collection: an inverted index, for every vocabulary entry the documents that have it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, load_npz, save_npz, vstack

from fairagent.errors import IndexMismatch
from fairagent.files import force
from fairagent.intake.arrays import write_array
from fairagent.retrieve.bm25.manifest import Indexable
from fairagent.retrieve.encoded import PROBE_TEXT, EncodedBuild, EncodedManifest, Work, no_progress
from fairagent.retrieve.encoder import Embeddings
from fairagent.retrieve.splade_encoder import SparseTextEncoder
from fairagent.retrieve.strings import IdTable, mapped

MANIFEST = "fairagent-splade.json"
PARTS, KEPT = "parts", "kept.npz"
CHUNK = 256
"""The most documents between two marks that a broken-off build can go on from."""


class SpladeManifest(EncodedManifest):
    """What the weights were made from and by; `dimension` is the size of the vocabulary."""

    __slots__ = ()

    FILE: ClassVar[str] = MANIFEST
    WHAT: ClassVar[str] = "SPLADE weights"
    BUILDER: ClassVar[str] = "build_splade_index"


@dataclass(frozen=True, slots=True, eq=False)
class InvertedWeights:
    """The postings of vocabulary entry j: `documents[starts[j]:starts[j + 1]]`, rising, with their `weights`."""

    starts: NDArray[np.int64]
    documents: NDArray[np.integer[Any]]
    weights: NDArray[np.float32]
    count: int
    seen: set[int] = field(default_factory=set)
    """The entries whose postings were looked at: they can be right."""

    @classmethod
    def load(cls, folder: Path, count: int) -> InvertedWeights:
        """Map what a build has written of `count` documents; raises OSError or ValueError where it is damaged."""
        starts, documents, weights = (mapped(folder / f"{name}.npy") for name in ("starts", "documents", "weights"))
        if starts[0] or (starts[1:] < starts[:-1]).any():
            raise ValueError("the postings do not follow one another")
        if not len(documents) == len(weights) == int(starts[-1]):
            raise ValueError(f"{len(documents)} documents, {len(weights)} weights, {starts[-1]} expected")
        return cls(starts, documents, weights, count)

    def of(self, entry: int) -> tuple[NDArray[np.integer[Any]], NDArray[np.float32]]:
        """The numbers of the documents that have this vocabulary entry, rising, and their weights.

        Raises IndexMismatch where what is found cannot be.
        """
        start, stop = int(self.starts[entry]), int(self.starts[entry + 1])
        documents, weights = self.documents[start:stop], self.weights[start:stop]
        if entry not in self.seen:
            rising = stop == start or (
                documents[0] >= 0 and documents[-1] < self.count and bool((documents[1:] > documents[:-1]).all())
            )
            if not (rising and np.isfinite(weights).all()):
                raise IndexMismatch(f"the SPLADE weights are damaged at entry {entry}; remove them, and index again")
            self.seen.add(entry)
        return documents, weights


def build_splade_index(
    collection: Indexable,
    folder: Path,
    encoder: SparseTextEncoder,
    progress: Callable[[int], None] = no_progress,
) -> SpladeManifest:
    """Weigh title and text of every document of `collection` into `folder`, which appears only when all are done.

    Weights at `folder` that this model made are taken over for documents whose texts are the same. See
    `EncodedBuild.run` for what it raises, and when it is broken off. At the end memory holds all weights.
    """
    work = Work(encoder.documents, progress=progress)
    build = EncodedBuild(SpladeManifest, _ChunkFiles(), encoder.name, probe_vector(encoder), CHUNK, work)
    return build.run(collection, folder)


def probe_vector(encoder: SparseTextEncoder) -> Embeddings:
    """The weights of the test text, (d,), zeros included."""
    return np.asarray(encoder.documents([PROBE_TEXT]).toarray()[0], dtype=np.float32)


class _ChunkFiles:
    """A file for each block of documents, inverted together at the end."""

    width = 0

    def create(self, folder: Path, documents: int, dimension: int) -> None:
        (folder / PARTS).mkdir()

    def take_over(self, folder: Path, earlier: Path, numbers: NDArray[np.intp]) -> None:
        count = len(IdTable.load(earlier))
        old = InvertedWeights.load(earlier, count)
        # Both of one width, or all indexes become the wider one.
        starts = old.starts.astype(old.documents.dtype)
        by_document = csc_array((old.weights, old.documents, starts), (count, len(starts) - 1)).tocsr()
        self._keep(folder / KEPT, by_document[numbers[numbers >= 0]])

    def add(self, folder: Path, numbers: NDArray[np.intp], vectors: csr_array) -> None:
        self._keep(folder / PARTS / f"{numbers[0]:012d}.npz", vectors)

    def finish(self, folder: Path, fresh: NDArray[np.intp]) -> None:
        parts, done = folder / PARTS, folder / f"{PARTS}.done"
        # Gone where a build was broken off between here and its end.
        if parts.is_dir():
            stacked = [load_npz(path) for path in sorted(parts.iterdir())]
            if (folder / KEPT).is_file():
                kept = load_npz(folder / KEPT)
                numbers = np.arange(kept.shape[0] + len(fresh))
                order = np.concatenate((np.setdiff1d(numbers, fresh, assume_unique=True), fresh))
                stacked = [vstack([kept, *stacked], format="csr")[np.argsort(order)]]
            inverted = vstack(stacked, format="csc")
            inverted.eliminate_zeros()
            inverted.sort_indices()
            arrays = {"starts": inverted.indptr.astype(np.int64), "documents": inverted.indices}
            for name, array in {**arrays, "weights": inverted.data}.items():
                write_array(folder / f"{name}.npy", array)
                force(folder / f"{name}.npy")
            # At once: some of the parts would pass for all of them.
            parts.rename(done)
        (folder / KEPT).unlink(missing_ok=True)
        shutil.rmtree(done, ignore_errors=True)

    @staticmethod
    def _keep(path: Path, weights: csr_array) -> None:
        save_npz(path, weights)
        for place in (path, path.parent):
            force(place)
