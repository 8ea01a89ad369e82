"""Vectors of words: a table of word pieces, a mean for each word.

The table in `words.npz` (2 MB) has, of each of the 30,522 word pieces of all-MiniLM-L6-v2 (Apache-2.0, see
`words.LICENSE`), the model's mean output for it alone, in its first 64 principal components, in 8 bits a number;
`benchmarks/word_table.py` makes it. Words are cut into pieces as BERT's uncased vocabulary cuts them (Devlin et al.,
NAACL 2019): the longest piece first.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

TABLE = Path(__file__).with_name("words.npz")
INSIDE = "##"
"""How the pieces that do not begin a word are written."""


class WordTable:
    """Vectors of word pieces, (p, d)."""

    def __init__(self, path: Path = TABLE) -> None:
        with np.load(path, allow_pickle=False) as file:
            self._vectors = file["vectors"].astype(np.float32) * file["scale"].astype(np.float32)
            pieces = file["pieces"].tobytes().decode().split("\n")
        self._places = {piece: place for place, piece in enumerate(pieces)}

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self._vectors.shape[1])

    def vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """The mean vector of the pieces of each word, (n, d); zeros for a word that the pieces cannot make."""
        found = np.zeros((len(words), self.dimension), np.float32)
        for number, word in enumerate(words):
            if pieces := self._pieces(word):
                found[number] = self._vectors[pieces].mean(axis=0)
        return found

    def _pieces(self, word: str) -> list[int]:
        word = word.lower()
        if not word.isascii():
            # BERT's uncased vocabulary has no accents.
            word = "".join(one for one in unicodedata.normalize("NFD", word) if unicodedata.category(one) != "Mn")
        found: list[int] = []
        start = 0
        while start < len(word):
            prefix = INSIDE if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._places), 0)
            if not end:
                return []
            found.append(self._places[prefix + word[start:end]])
            start = end
        return found


@cache
def _shipped() -> WordTable:
    return WordTable()


_READING = Lock()


def word_table() -> WordTable:
    """The shipped table, read by one thread at a time: NumPy reads Python literals there (`intake/arrays.py`)."""
    with _READING:
        return _shipped()
