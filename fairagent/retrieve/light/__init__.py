"""Light vectors of an index: two halves side by side, each a projection of the BM25 matrix, in 256 numbers.

The first half is latent semantic analysis of the matrix itself (Deerwester et al. 1990), by a randomized singular value
decomposition (Halko, Martinsson & Tropp 2011): it needs no weights and knows every language, but only these documents.
The second is the mean of word vectors, weighted by idf: it knows English, and what these documents never say of their
words. In both a text is its terms times a table with a row for each term, so that documents cost a product of matrices
and a query the rows of its words.

The word vectors in `words.npz` (2 MB) are, of each of the 30,522 word pieces of all-MiniLM-L6-v2 (Apache-2.0, see
`words.LICENSE`), the model's mean output for it alone, in its first 64 principal components, in 8 bits a number;
`benchmarks/word_table.py` makes it. Words are cut into pieces as BERT's uncased vocabulary cuts them (Devlin et al.,
NAACL 2019): the longest piece first.
"""

import json
import shutil
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairagent.retrieve.base import ignore
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.catalog import ArrayWriter, mapped
from fairagent.retrieve.dense import PROBE, PROBE_TEXT, VECTORS, DenseManifest
from fairagent.retrieve.encoders import Embeddings
from fairagent.storage.arrays import write_array
from fairagent.storage.digests import RECORD, recorded
from fairagent.storage.files import new_file, open_to_read, write_whole
from fairagent.storage.folders import workshop
from fairagent.storage.readers import file_text, parse_json
from fairagent.storage.threads import one_blas_thread

LIGHT = "light"
"""The name of the encoder."""
TERMS, TABLE, ABOUT = "light.terms.npy", "light.table.npy", "light.json"
TERMS_OF = "terms.bytes.npy"
"""The file with the terms of the index, by whose numbers light vectors know them."""
LSA = 192
"""Numbers of the first half at most; with few documents there are fewer."""
RARE, FREQUENT = 3, 0.2
"""Terms in fewer documents, or in a larger share of them, say nothing of what a document is about."""
MOST = 1 << 17
"""Terms that count at most: of more, those in the most documents."""
SAMPLE = 50_000
"""Documents that the decomposition is made of; of more, as many, evenly spread."""
BLOCK = 1 << 12
"""Documents that are projected at once."""


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
    def open(cls, engine: BM25Retriever, folder: Path) -> Self:
        """That of the vectors in `folder`; BackendUnavailable where there are none, IndexMismatch for damaged ones."""
        with DenseManifest.opening(folder) as manifest:
            terms, table = mapped(folder / TERMS), mapped(folder / TABLE)
            about = parse_json(file_text(folder / ABOUT, 1 << 16))
            first, made = int(about["lsa"]), about.get("terms", "")
            if made and recorded(engine.folder, TERMS_OF) not in ("", made):
                raise ValueError(f"made of another index than that at {engine.folder}")
            if (terms[1:] <= terms[:-1]).any() or terms.min(initial=0) < 0:
                raise ValueError(f"{TERMS}: terms are not in their order")
            if len(terms) != len(table) or terms.max(initial=-1) >= len(engine.matrix.columns):
                raise ValueError(f"{TABLE} has rows for terms that the index lacks")
            if not 0 <= first <= manifest.dimension == table.shape[1]:
                raise ValueError(f"{TABLE} has rows of {table.shape[1]} numbers")
        return cls(engine, terms, table, first)

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """Vectors of texts, (n, d): their terms, each weighted by how often it is there and by its idf."""
        return np.array([self._vector(text) for text in texts], np.float32).reshape(-1, self._table.shape[1])

    documents = queries

    def _vector(self, text: str) -> Embeddings:
        engine = self._engine
        numbers = Counter(number for term in engine.analyze(text) if (number := engine.number(term)) >= 0)
        wanted = np.array(sorted(numbers), np.intp)
        rows, known = _places(self._terms, wanted)
        counts = np.array([numbers[number] for number in wanted[known].tolist()], np.float32)
        weights = _idf_of(engine, wanted[known]) * counts
        projected = (weights @ self._table[rows].astype(np.float32)).reshape(1, -1)
        return np.asarray(_halved(projected, self._first)[0])


def _places(terms: NDArray[np.integer[Any]], wanted: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The rows of those of the `wanted` terms that a table of these `terms` (rising) has, and which these are, (n,)."""
    at = np.minimum(np.searchsorted(terms, wanted), max(0, len(terms) - 1))
    known = terms[at] == wanted if len(terms) else np.zeros(len(wanted), np.bool_)
    return at[known], known


def _idf_of(engine: BM25Retriever, terms: NDArray[np.intp]) -> NDArray[np.float32]:
    """The idf of terms by their numbers, (n,)."""
    return np.array([engine.idf(count) for count in engine.matrix.frequencies_of(terms).tolist()], np.float32)


def _halved(projected: NDArray[np.float32], first: int) -> Embeddings:
    """Vectors (n, d) whose first `first` numbers, and the others, have length √½, or 0 where they are all 0."""
    # Of a damaged table come numbers that are not finite, which whoever compares vectors refuses.
    with np.errstate(invalid="ignore", over="ignore"):
        for half in (projected[:, :first], projected[:, first:]):
            half /= np.maximum(np.linalg.norm(half, axis=1, keepdims=True), 1e-9) * np.sqrt(2).astype(np.float32)
    return projected


def build_light(engine: BM25Retriever, folder: Path, progress: Callable[[int], None] = ignore) -> None:
    """Make the light vectors of all documents of an index into `folder`, which appears only when all are done.

    `progress` is called with the number of documents done; it raises what `build_index` does.
    """
    of, size = engine.manifest, len(engine)
    with workshop(folder, (DenseManifest.FILE, RECORD)) as shop, one_blas_thread():
        terms, table, first = _table(engine)
        write_array(shop.new / TERMS, terms)
        write_array(shop.new / TABLE, table)
        write_whole(shop.new / ABOUT, json.dumps({"lsa": first, "terms": recorded(engine.folder, TERMS_OF)}) + "\n")
        for name in ("ids.npy", "ids.order.npy"):
            with open_to_read(engine.folder / name) as old, new_file(shop.new / name) as new:
                shutil.copyfileobj(old, new)
        dimension = table.shape[1]
        DenseManifest(of.collection, of.fingerprint, size, LIGHT, dimension).save(shop.new)
        write_array(shop.new / PROBE, LightEncoder(engine, terms, table, first).documents([PROBE_TEXT])[0])
        rows, idf = table.astype(np.float32), _idf_of(engine, terms.astype(np.intp))
        topical, frequent = np.ascontiguousarray(rows[:, :first]), np.ascontiguousarray(rows[:, first:])
        with ArrayWriter(shop.new / VECTORS, np.float16, dimension) as vectors:
            for start in range(0, size, BLOCK):
                documents = np.arange(start, min(start + BLOCK, size))
                weights, counts = _weights(engine, documents, terms, idf)
                vectors.add(_halved(np.hstack([weights @ topical, counts @ frequent]), first))
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
    weights, _ = _weights(engine, sample, terms[topical], _idf_of(engine, terms[topical]))
    matrix = weights.astype(np.float64)
    lengths = np.sqrt(np.asarray((matrix * matrix).sum(axis=1)).ravel())
    matrix.data /= np.repeat(lengths, np.diff(matrix.indptr))
    components = right_singular_vectors(matrix, min(LSA, *(length // 2 for length in matrix.shape)))
    first = components.shape[1]
    words = word_table().vectors(engine.matrix.words(terms))
    rows = np.zeros((len(terms), first + words.shape[1]), np.float32)
    rows[topical, :first] = components
    # Of the scale of the other half, so that 16 bits suit both.
    rows[:, first:] = words / max(1e-9, float(np.abs(words).max(initial=0)))
    return terms.astype(np.int32), rows.astype(np.float16), first


def _weights(
    engine: BM25Retriever, documents: NDArray[np.intp], terms: NDArray[np.integer], idf: NDArray[np.float32]
) -> tuple[Any, Any]:
    """The BM25 weights of these terms in these documents, and their counts times `idf`, (n, t)."""
    # Who searches alone needs no scipy.
    from scipy.sparse import csr_array

    at, sizes = engine.matrix.rows.entries(documents)
    row = np.repeat(np.arange(len(documents)), sizes)
    column, known = _places(terms, engine.matrix.rows.numbers[at].astype(np.intp))
    row, counts = row[known], engine.matrix.rows.counts[at[known]]
    saturated, shape = engine.saturation(documents[row], counts), (len(documents), len(terms))
    repeated = counts.astype(np.float32)
    weighted, counted = (csr_array((idf[column] * one, (row, column)), shape=shape) for one in (saturated, repeated))
    return weighted, counted


def right_singular_vectors(matrix: Any, count: int) -> NDArray[np.float64]:
    """About the first `count` right singular vectors of a matrix, as columns; fewer where it has no more."""
    draw = np.random.default_rng(20261123).standard_normal((matrix.shape[1], min(count + 10, *matrix.shape)))
    image = matrix @ draw
    # Power iterations.
    for _ in range(2):
        image = np.linalg.qr(image)[0]
        image = matrix @ np.linalg.qr(matrix.T @ image)[0]
    basis = np.linalg.qr(image)[0]
    _, sizes, components = np.linalg.svd((matrix.T @ basis).T, full_matrices=False)
    return components[:count][sizes[:count] > 1e-9].T


class WordTable:
    """Vectors of word pieces, (p, d)."""

    def __init__(self) -> None:
        with np.load(Path(__file__).with_name("words.npz"), allow_pickle=False) as file:
            self._vectors = file["vectors"].astype(np.float32) * file["scale"].astype(np.float32)
            pieces = file["pieces"].tobytes().decode().split("\n")
        self.places = {piece: place for place, piece in enumerate(pieces)}
        """The number of each piece: BERT's own, for models that have its words."""

    def vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """The mean vector of the pieces of each word, (n, d); zeros for a word that the pieces cannot make."""
        rows = np.zeros((len(words), self._vectors.shape[1]), np.float32)
        for number, word in enumerate(words):
            if pieces := self._pieces(word):
                rows[number] = self._vectors[pieces].mean(axis=0)
        return rows

    def _pieces(self, word: str) -> list[int]:
        word = word.lower()
        if not word.isascii():
            # BERT's uncased vocabulary has no accents.
            word = "".join(one for one in unicodedata.normalize("NFD", word) if unicodedata.category(one) != "Mn")
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            end = next((end for end in range(len(word), start, -1) if prefix + word[start:end] in self.places), 0)
            if not end:
                return []
            pieces.append(self.places[prefix + word[start:end]])
            start = end
        return pieces


_shipped, _READING = cache(WordTable), Lock()


def word_table() -> WordTable:
    """The shipped table, read by one thread at a time: NumPy reads Python literals there (`storage/readers.py`)."""
    with _READING:
        return _shipped()
