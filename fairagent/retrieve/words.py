"""A readable word for each index term: the commonest of the texts' words that the analyzer turns into it."""

import re
from collections import Counter
from collections.abc import Sequence

from fairagent.retrieve.bm25.analysis import Analyzer

WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
ENOUGH = 20_000
"""Documents whose words are counted; of more than that, as many, evenly spread."""


class CommonWords:
    """Counts the words of texts."""

    def __init__(self) -> None:
        self._seen = Counter[str]()

    def add(self, text: str) -> None:
        """Count the words of a text, in lower case."""
        self._seen.update(WORD.findall(text.lower()))

    def choose(self, terms: Sequence[str], analyzer: Analyzer) -> list[str]:
        """For each term its commonest word, of equally common ones the shortest, then the first in the alphabet.

        Where no word was counted that is analyzed to it alone: the term itself if that is, else "".
        """
        words = sorted(self._seen, key=lambda word: (-self._seen[word], len(word), word))
        best: dict[str, str] = {}
        for word in words:
            if len(own := analyzer.terms(word)) == 1:
                best.setdefault(own[0], word)
        return [best.get(term) or (term if analyzer.terms(term) == [term] else "") for term in terms]
