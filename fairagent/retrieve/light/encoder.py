"""Light vectors of texts, by a table with a row for each term: what searches them. How they are made: `build`.

Vectors of words: a table of word pieces, a mean for each word.

The table in `words.npz` (2 MB) has, of each of the 30,522 word pieces of all-MiniLM-L6-v2 (Apache-2.0, see
`words.LICENSE`), the model's mean output for it alone, in its first 64 principal components, in 8 bits a number;
`benchmarks/word_table.py` makes it. Words are cut into pieces as BERT's uncased vocabulary cuts them (Devlin et al.,
NAACL 2019): the longest piece first.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.catalog import mapped
from fairagent.retrieve.encoded import DenseManifest
from fairagent.retrieve.encoders import Embeddings
from fairagent.storage.digests import recorded
from fairagent.storage.readers import file_text, parse_json

LIGHT = "light"
"""The name of the encoder."""
TERMS, TABLE, ABOUT = "light.terms.npy", "light.table.npy", "light.json"
LARGEST = 1 << 16
"""Bytes of the last."""


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
        with DenseManifest.opening(folder) as manifest:
            terms, table, about = mapped(folder / TERMS), mapped(folder / TABLE), _about(folder)
            first, made = int(about["lsa"]), about.get("terms", "")
            if made and terms_of(engine.folder) not in ("", made):
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
        counts = Counter(engine.analyze(text))
        numbers = {number: count for term, count in counts.items() if (number := engine.number(term)) >= 0}
        wanted = np.array(sorted(numbers), np.intp)
        rows, known = places(self._terms, wanted)
        idf = idf_of(engine, wanted[known])
        weights = idf * np.array([numbers[number] for number in wanted[known].tolist()], np.float32)
        projected = (weights @ self._table[rows].astype(np.float32)).reshape(1, -1)
        return np.asarray(halved(projected, self._first)[0])


def terms_of(index: Path) -> str:
    """A hash of the terms of an index, by whose numbers light vectors know them; "" for one without a record."""
    return recorded(index, "terms.bytes.npy")


def _about(folder: Path) -> Any:
    try:
        return parse_json(file_text(folder / ABOUT, LARGEST))
    except ValueError as error:
        raise ValueError(f"{ABOUT}: {error}") from None


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
    # Of a damaged table come numbers that are not finite, which whoever compares vectors refuses.
    with np.errstate(invalid="ignore", over="ignore"):
        for half in (projected[:, :first], projected[:, first:]):
            half /= np.maximum(np.linalg.norm(half, axis=1, keepdims=True), 1e-9) * np.sqrt(2).astype(np.float32)
    return projected


WORD_TABLE = Path(__file__).with_name("words.npz")
INSIDE = "##"
"""How the pieces that do not begin a word are written."""


class WordTable:
    """Vectors of word pieces, (p, d)."""

    def __init__(self) -> None:
        with np.load(WORD_TABLE, allow_pickle=False) as file:
            self._vectors = file["vectors"].astype(np.float32) * file["scale"].astype(np.float32)
            pieces = file["pieces"].tobytes().decode().split("\n")
        self.places = {piece: place for place, piece in enumerate(pieces)}
        """The number of each piece: BERT's own, for models that have its words."""

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self._vectors.shape[1])

    def vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """The mean vector of the pieces of each word, (n, d); zeros for a word that the pieces cannot make."""
        rows = np.zeros((len(words), self.dimension), np.float32)
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
            prefix = INSIDE if start else ""
            end = next((end for end in range(len(word), start, -1) if prefix + word[start:end] in self.places), 0)
            if not end:
                return []
            pieces.append(self.places[prefix + word[start:end]])
            start = end
        return pieces


_READING = Lock()


def word_table() -> WordTable:
    """The shipped table, read by one thread at a time: NumPy reads Python literals there (`storage/arrays.py`)."""
    with _READING:
        return _shipped()


_shipped = cache(WordTable)
