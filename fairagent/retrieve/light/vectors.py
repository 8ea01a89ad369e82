"""Light vectors of an index: two halves side by side, each a projection of the BM25 matrix, in 256 numbers.

The first half is latent semantic analysis of the matrix itself (Deerwester et al. 1990), by a randomized singular value
decomposition (Halko, Martinsson & Tropp 2011): it needs no weights and knows every language, but only these documents.
The second is the mean of word vectors (`fairagent.retrieve.light.words`), weighted by idf: it knows English, and what
these documents never say of their words. In both a text is its terms times a table with a row for each term, so that
documents cost a product of matrices and a query the rows of its words.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fairagent.digests import RECORD, expect_whole
from fairagent.errors import IndexMismatch
from fairagent.files import write_whole
from fairagent.folders import workshop
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.dense_index import MANIFEST, VECTORS, DenseManifest
from fairagent.retrieve.encoded import PROBE, PROBE_TEXT, mark_done, remedy
from fairagent.retrieve.encoder import Embeddings
from fairagent.retrieve.light.words import word_table
from fairagent.retrieve.strings import ArrayWriter, mapped
from fairagent.threads import one_blas_thread

LIGHT = "light"
"""The name of the encoder."""
LSA = 192
"""Numbers of the first half at most; with few documents there are fewer."""
RARE, FREQUENT = 3, 0.2
"""Terms in fewer documents, or in a larger share of them, say nothing of what a document is about."""
SAMPLE = 50_000
"""Documents that the decomposition is made of; of more, as many, evenly spread."""
OVERSAMPLED, ROUNDS = 10, 2
"""Of the randomized decomposition: columns beyond those wanted, and power iterations."""
SEED = 20261123
BLOCK = 1 << 12
"""Documents that are projected at once."""
TERMS, TABLE, HALVES = "light.terms.npy", "light.table.npy", "light.json"


class LightEncoder:
    """The vectors of texts by the table in `folder` and the index `engine`, of which it was made. Threads may share it.

    Each half of a vector has length √½, or 0 where it knows none of a text's words.
    """

    name = LIGHT

    def __init__(
        self, engine: BM25Retriever, terms: NDArray[np.integer[Any]], table: NDArray[np.float16], first: int
    ) -> None:
        """Take the rows (t, d) of these terms, rising; the second half begins at column `first`."""
        self._engine, self._terms, self._table, self._first = engine, terms, table, first

    @classmethod
    def open(cls, engine: BM25Retriever, folder: Path) -> LightEncoder:
        """That of the vectors in `folder`; BackendUnavailable where there are none, IndexMismatch for damaged ones."""
        manifest = DenseManifest.read(folder)
        expect_whole(folder, "the light vectors", remedy(folder))
        try:
            terms, table = mapped(folder / TERMS), mapped(folder / TABLE)
            first = int(json.loads((folder / HALVES).read_text(encoding="utf-8"))["lsa"])
            if len(terms) != len(table) or terms.max(initial=-1) >= len(engine.matrix.columns):
                raise ValueError(f"{TABLE} has rows for terms that the index lacks")
            if not 0 <= first <= manifest.dimension == table.shape[1]:
                raise ValueError(f"{TABLE} has rows of {table.shape[1]} numbers")
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise IndexMismatch(f"the light vectors at {folder} are damaged; {remedy(folder)} ({error})") from None
        return cls(engine, terms, table, first)

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """Vectors of texts to be found, (n, d)."""
        return self.queries(texts)

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """Vectors of queries, (n, d): their terms, each weighted by how often it is there and by its idf."""
        rows = [self._vector(text) for text in texts]
        return np.array(rows, np.float32).reshape(len(rows), self._table.shape[1])

    def _vector(self, text: str) -> Embeddings:
        engine = self._engine
        counts = Counter(engine.analyze(text))
        numbers = {number: count for term, count in counts.items() if (number := engine.matrix.number(term)) >= 0}
        wanted = np.array(sorted(numbers), np.intp)
        rows, known = places(self._terms, wanted)
        idf = idf_of(engine, wanted[known])
        weights = idf * np.array([numbers[number] for number in wanted[known].tolist()], np.float32)
        projected = (weights @ self._table[rows].astype(np.float32)).reshape(1, -1)
        return np.asarray(halved(projected, self._first)[0])


def build_light(engine: BM25Retriever, folder: Path, progress: Callable[[int], None] = lambda done: None) -> None:
    """Make the light vectors of all documents of an index into `folder`, which appears only when all are done.

    `progress` is called with the number of documents done. What was at `folder` is replaced at the end. Raises
    UsageError where something else is there, BackendUnavailable where another process makes them, or the disk is full.
    """
    manifest = engine.manifest
    with workshop(folder, (MANIFEST, RECORD)) as shop, one_blas_thread():
        shop.begin()
        try:
            terms, table, first = _table(engine)
            np.save(shop.new / TERMS, terms)
            np.save(shop.new / TABLE, table)
            write_whole(shop.new / HALVES, json.dumps({"lsa": first}) + "\n")
            for name in ("ids.npy", "ids.order.npy"):
                shutil.copyfile(engine.folder / name, shop.new / name)
            dimension = table.shape[1]
            made = DenseManifest(manifest.collection, manifest.fingerprint, len(engine), LIGHT, dimension)
            write_whole(shop.new / MANIFEST, json.dumps(asdict(made), indent=2) + "\n")
            np.save(shop.new / PROBE, LightEncoder(engine, terms, table, first).documents([PROBE_TEXT])[0])
            rows = table.astype(np.float32)
            with ArrayWriter(shop.new / VECTORS, np.float16, dimension) as vectors:
                for start in range(0, len(engine), BLOCK):
                    documents = np.arange(start, min(start + BLOCK, len(engine)))
                    vectors.add(_projected(engine, documents, terms, rows, first))
                    progress(int(documents[-1]) + 1)
            mark_done(shop.new, len(engine))
            shop.put()
        except BaseException:
            shop.clear()
            raise


def places(terms: NDArray[np.integer[Any]], wanted: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The rows of those of the `wanted` terms that a table of these `terms` (rising) has, and which these are, (n,)."""
    at = np.minimum(np.searchsorted(terms, wanted), max(0, len(terms) - 1))
    known = terms[at] == wanted if len(terms) else np.zeros(len(wanted), np.bool_)
    return at[known], known


def idf_of(engine: BM25Retriever, terms: NDArray[np.intp]) -> NDArray[np.float32]:
    """The idf of terms by their numbers, (n,)."""
    return np.array([engine.idf(count) for count in engine.matrix.frequencies_of(terms).tolist()], np.float32)


def halved(projected: NDArray[np.float32], first: int) -> Embeddings:
    """Vectors (n, d) whose first `first` numbers, and the others, have length √½, or 0 where they are all 0."""
    for half in (projected[:, :first], projected[:, first:]):
        half /= np.maximum(np.linalg.norm(half, axis=1, keepdims=True), 1e-9) * np.sqrt(2).astype(np.float32)
    return projected


def _table(engine: BM25Retriever) -> tuple[NDArray[np.int32], NDArray[np.float16], int]:
    """The terms that count, rising, their rows (t, d), and where the second half begins."""
    frequencies, size = engine.matrix.frequencies, len(engine)
    terms = np.flatnonzero(frequencies >= min(RARE, max(1, size // 10)))
    sample = np.arange(0, size, max(1, -(-size // SAMPLE)))
    topical = frequencies[terms] <= max(FREQUENT * size, RARE)
    weights = _weights(engine, sample, terms[topical])
    components = right_singular_vectors(weights, min(LSA, *(length // 2 for length in weights.shape)))
    first = components.shape[1]
    table = word_table()
    rows = np.zeros((len(terms), first + table.dimension), np.float32)
    rows[topical, :first] = components
    words = table.vectors(engine.matrix.words(terms))
    # Of the scale of the other half, so that 16 bits suit both.
    rows[:, first:] = words / max(1e-9, float(np.abs(words).max(initial=0)))
    return terms.astype(np.int32), rows.astype(np.float16), first


def _weights(engine: BM25Retriever, documents: NDArray[np.intp], terms: NDArray[np.intp]) -> csr_array:
    """The BM25 weights of these terms in these documents, rows of length 1 (or empty)."""
    at, sizes = engine.matrix.rows.entries(documents)
    row = np.repeat(np.arange(len(documents)), sizes)
    column, known = places(terms, engine.matrix.rows.numbers[at].astype(np.intp))
    row, at = row[known], at[known]
    weights = idf_of(engine, terms)[column] * engine.saturation(documents[row], engine.matrix.rows.counts[at])
    matrix = csr_array((weights.astype(np.float64), (row, column)), shape=(len(documents), len(terms)))
    lengths = np.sqrt(np.asarray((matrix * matrix).sum(axis=1)).ravel())
    matrix.data /= np.repeat(lengths, np.diff(matrix.indptr))
    return matrix


def right_singular_vectors(matrix: csr_array, count: int) -> NDArray[np.float64]:
    """About the first `count` right singular vectors of a matrix, as columns; fewer where it has no more."""
    draw = np.random.default_rng(SEED).standard_normal((matrix.shape[1], min(count + OVERSAMPLED, *matrix.shape)))
    image = matrix @ draw
    for _ in range(ROUNDS):
        image = np.linalg.qr(image)[0]
        image = matrix @ np.linalg.qr(matrix.T @ image)[0]
    basis = np.linalg.qr(image)[0]
    _, sizes, components = np.linalg.svd((matrix.T @ basis).T, full_matrices=False)
    return components[:count][sizes[:count] > 1e-9].T


def _projected(
    engine: BM25Retriever, documents: NDArray[np.intp], terms: NDArray[np.int32], table: NDArray[np.float32], first: int
) -> Embeddings:
    """The vectors of these documents, (n, d): BM25 weights in the first half, counts times idf in the second."""
    at, sizes = engine.matrix.rows.entries(documents)
    row = np.repeat(np.arange(len(documents)), sizes)
    column, known = places(terms, engine.matrix.rows.numbers[at].astype(np.intp))
    row, at = row[known], at[known]
    counts = engine.matrix.rows.counts[at]
    idf = idf_of(engine, terms.astype(np.intp))[column]
    shape = (len(documents), len(terms))
    topical = csr_array((idf * engine.saturation(documents[row], counts), (row, column)), shape=shape)
    frequent = csr_array((idf * counts.astype(np.float32), (row, column)), shape=shape)
    return halved(np.hstack([topical @ table[:, :first], frequent @ table[:, first:]]), first)
