"""Light vectors of an index: two halves side by side, each a projection of the BM25 matrix, in 256 numbers.

The first half is latent semantic analysis of the matrix itself (Deerwester et al. 1990), by a randomized singular value
decomposition (Halko, Martinsson & Tropp 2011): it needs no weights and knows every language, but only these documents.
The second is the mean of word vectors (`fairagent.retrieve.light.encoder`), weighted by idf: it knows English, and what
these documents never say of their words. In both a text is its terms times a table with a row for each term, so that
documents cost a product of matrices and a query the rows of its words.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fairagent.retrieve.base import ignore
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.catalog import ArrayWriter
from fairagent.retrieve.encoded import PROBE, PROBE_TEXT, VECTORS, DenseManifest
from fairagent.retrieve.light.encoder import (
    ABOUT,
    LIGHT,
    TABLE,
    TERMS,
    LightEncoder,
    halved,
    idf_of,
    places,
    terms_of,
    word_table,
)
from fairagent.storage.arrays import write_array
from fairagent.storage.digests import RECORD
from fairagent.storage.files import write_whole
from fairagent.storage.folders import workshop
from fairagent.storage.regular import new_file, open_to_read
from fairagent.storage.threads import one_blas_thread

LSA = 192
"""Numbers of the first half at most; with few documents there are fewer."""
RARE, FREQUENT = 3, 0.2
"""Terms in fewer documents, or in a larger share of them, say nothing of what a document is about."""
MOST = 1 << 17
"""Terms that count at most: of more, those in the most documents."""
SAMPLE = 50_000
"""Documents that the decomposition is made of; of more, as many, evenly spread."""
OVERSAMPLED, ROUNDS = 10, 2
"""Of the randomized decomposition: columns beyond those wanted, and power iterations."""
SEED = 20261123
BLOCK = 1 << 12
"""Documents that are projected at once."""


def build_light(engine: BM25Retriever, folder: Path, progress: Callable[[int], None] = ignore) -> None:
    """Make the light vectors of all documents of an index into `folder`, which appears only when all are done.

    `progress` is called with the number of documents done. What was at `folder` is replaced at the end. Raises
    UsageError where something else is there, BackendUnavailable where another process makes them, or the disk is full.
    """
    of, size = engine.manifest, len(engine)
    with workshop(folder, (DenseManifest.FILE, RECORD)) as shop, one_blas_thread():
        terms, table, first = _table(engine)
        write_array(shop.new / TERMS, terms)
        write_array(shop.new / TABLE, table)
        write_whole(shop.new / ABOUT, json.dumps({"lsa": first, "terms": terms_of(engine.folder)}) + "\n")
        for name in ("ids.npy", "ids.order.npy"):
            with open_to_read(engine.folder / name) as old, new_file(shop.new / name) as new:
                shutil.copyfileobj(old, new)
        dimension = table.shape[1]
        DenseManifest(of.collection, of.fingerprint, size, LIGHT, dimension).save(shop.new)
        write_array(shop.new / PROBE, LightEncoder(engine, terms, table, first).documents([PROBE_TEXT])[0])
        rows, idf = table.astype(np.float32), idf_of(engine, terms.astype(np.intp))
        topical, frequent = np.ascontiguousarray(rows[:, :first]), np.ascontiguousarray(rows[:, first:])
        with ArrayWriter(shop.new / VECTORS, np.float16, dimension) as vectors:
            for start in range(0, size, BLOCK):
                documents = np.arange(start, min(start + BLOCK, size))
                weights, counts = _weights(engine, documents, terms, idf)
                vectors.add(halved(np.hstack([weights @ topical, counts @ frequent]), first))
                progress(int(documents[-1]) + 1)
        shop.put()


def _table(engine: BM25Retriever) -> tuple[NDArray[np.int32], NDArray[np.float16], int]:
    """The terms that count, rising, their rows (t, d), and where the second half begins."""
    frequencies, size = engine.matrix.frequencies, len(engine)
    least = min(RARE, max(1, size // 10))
    if np.count_nonzero(frequencies >= least) > MOST:
        least = int(np.partition(frequencies, -MOST - 1)[-MOST - 1]) + 1
    terms = np.flatnonzero(frequencies >= least)
    sample = np.arange(0, size, max(1, -(-size // SAMPLE)))
    topical = frequencies[terms] <= max(FREQUENT * size, RARE)
    weights, _ = _weights(engine, sample, terms[topical], idf_of(engine, terms[topical]))
    matrix = weights.astype(np.float64)
    lengths = np.sqrt(np.asarray((matrix * matrix).sum(axis=1)).ravel())
    matrix.data /= np.repeat(lengths, np.diff(matrix.indptr))
    components = right_singular_vectors(matrix, min(LSA, *(length // 2 for length in matrix.shape)))
    first = components.shape[1]
    table = word_table()
    rows = np.zeros((len(terms), first + table.dimension), np.float32)
    rows[topical, :first] = components
    words = table.vectors(engine.matrix.words(terms))
    # Of the scale of the other half, so that 16 bits suit both.
    rows[:, first:] = words / max(1e-9, float(np.abs(words).max(initial=0)))
    return terms.astype(np.int32), rows.astype(np.float16), first


def _weights(
    engine: BM25Retriever, documents: NDArray[np.intp], terms: NDArray[np.integer], idf: NDArray[np.float32]
) -> tuple[csr_array, csr_array]:
    """The BM25 weights of these terms in these documents, and their counts times `idf`, (n, t)."""
    at, sizes = engine.matrix.rows.entries(documents)
    row = np.repeat(np.arange(len(documents)), sizes)
    column, known = places(terms, engine.matrix.rows.numbers[at].astype(np.intp))
    row, counts = row[known], engine.matrix.rows.counts[at[known]]
    saturated, shape = engine.saturation(documents[row], counts), (len(documents), len(terms))
    repeated = counts.astype(np.float32)
    weighted, counted = (csr_array((idf[column] * one, (row, column)), shape=shape) for one in (saturated, repeated))
    return weighted, counted


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
