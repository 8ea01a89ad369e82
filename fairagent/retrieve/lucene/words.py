"""A readable word for each index term: the commonest of the texts' words that the analyzer turns into it."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import repeat

from fairagent.retrieve.lucene.analysis import Analyzer

WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
MOST = 2_000_000
"""Distinct words that are counted at a time, some 250 MB."""


class CommonWords:
    """Counts the words of texts; of more than MOST distinct ones the rarest are forgotten as often as need be.

    That is lossy counting (Manku & Motwani 2002): what is forgotten is rarer than about one in MOST of all words.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._seen = Counter[str]()
        self._few = 0

    def add(self, text: str) -> None:
        """Count the words of a text, in lower case."""
        self._seen.update(WORD.findall(text.lower()))
        while len(self._seen) > self._most:
            self._few += 1
            self._seen = Counter({word: count for word, count in self._seen.items() if count > self._few})

    def choose(self, terms: Sequence[str], analyzer: Analyzer) -> list[str]:
        """For each term its commonest word, of equally common ones the shortest, then the first in the alphabet.

        Where no word was counted that is analyzed to it alone: the term itself if that is, else "".
        """
        words = sorted(self._seen, key=lambda word: (-self._seen[word], len(word), word))
        best: dict[str, str] = {}
        for word, term in zip(words, analyzer.each(words), strict=True):
            best.setdefault(term, word)
        bare = [term for term in terms if term not in best]
        best.update((term, term) for term, own in zip(bare, analyzer.each(bare), strict=True) if term == own)
        return list(map(best.get, terms, repeat("")))  # type: ignore[arg-type]
