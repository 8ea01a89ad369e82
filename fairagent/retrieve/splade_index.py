"""The SPLADE weights of a collection: an inverted index, for every vocabulary entry the documents that have it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, load_npz, save_npz, vstack

from fairagent.retrieve.encoded import PROBE_TEXT, EncodedBuild, EncodedManifest
from fairagent.retrieve.encoder import Embeddings
from fairagent.retrieve.lucene.index import Indexable
from fairagent.retrieve.lucene.strings import mapped
from fairagent.retrieve.splade_encoder import SparseTextEncoder

MANIFEST = "fairagent-splade.json"
PARTS = "parts"
CHUNK = 256
"""Documents between two marks that a broken-off build can go on from."""


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

    @classmethod
    def load(cls, folder: Path) -> InvertedWeights:
        """Map what a build has written; raises OSError or ValueError where it is damaged."""
        starts, documents, weights = (mapped(folder / f"{name}.npy") for name in ("starts", "documents", "weights"))
        if not len(documents) == len(weights) == int(starts[-1]):
            raise ValueError(f"{len(documents)} documents, {len(weights)} weights, {starts[-1]} expected")
        return cls(starts, documents, weights)

    def of(self, entry: int) -> tuple[NDArray[np.integer[Any]], NDArray[np.float32]]:
        """The numbers of the documents that have this vocabulary entry, rising, and their weights."""
        part = slice(int(self.starts[entry]), int(self.starts[entry + 1]))
        return self.documents[part], self.weights[part]


def build_splade_index(
    collection: Indexable,
    folder: Path,
    encoder: SparseTextEncoder,
    progress: Callable[[int], None] = lambda done: None,
) -> SpladeManifest:
    """Weigh title and text of every document of `collection` into `folder`, which appears only when all are done.

    See `EncodedBuild.run` for what it raises, and when it is broken off. At the end memory holds all weights.
    """
    build = EncodedBuild(SpladeManifest, _ChunkFiles(), encoder.name, encoder.documents, probe_vector(encoder), CHUNK)
    return build.run(collection, folder, progress)


def probe_vector(encoder: SparseTextEncoder) -> Embeddings:
    """The weights of the test text, (d,), zeros included."""
    return np.asarray(encoder.documents([PROBE_TEXT]).toarray()[0], dtype=np.float32)


class _ChunkFiles:
    """A file for each chunk of documents, inverted together at the end."""

    def create(self, folder: Path, documents: int, dimension: int) -> None:
        (folder / PARTS).mkdir()

    def add(self, folder: Path, first: int, vectors: csr_array) -> None:
        save_npz(folder / PARTS / f"{first:012d}.npz", vectors)

    def finish(self, folder: Path) -> None:
        # Gone where a build was broken off between here and its end.
        if not (folder / PARTS).is_dir():
            return
        inverted = vstack([load_npz(path) for path in sorted((folder / PARTS).iterdir())], format="csc")
        inverted.eliminate_zeros()
        inverted.sort_indices()
        np.save(folder / "starts.npy", inverted.indptr.astype(np.int64))
        np.save(folder / "documents.npy", inverted.indices)
        np.save(folder / "weights.npy", inverted.data)
        shutil.rmtree(folder / PARTS)
