"""Words of texts that are at hand: BM25 among them, and their terms, for engines that offer neither.

All statistics are those of the texts given, so a value depends on nothing that was searched before.
"""

import math
import threading
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairagent.retrieve.base import TextSource
from fairagent.retrieve.bm25.analysis import plain_words
from fairagent.retrieve.relevance_model import Postings
from fairagent.types import FloatArray, Query


def local_bm25(query: Query, texts: Sequence[str], k1: float = 0.9, b: float = 0.4) -> FloatArray:
    """BM25 of each text for the weighted words of `query`, (n,), with the document frequencies of `texts` alone.

    As Lucene scores it (idf = ln(1 + (n - df + .5) / (df + .5)), 0 or more), but for words as they stand.

    >>> local_bm25(Query("lawyers"), ["Lawyers, lawyers!", "A judge.", "Two lawyers of Bonn."]).round(3).tolist()
    [0.335, 0.0, 0.226]
    """
    weights: dict[str, float] = {}
    for text, weight in query.weighted:
        for word in plain_words(text):
            weights[word] = weights.get(word, 0.0) + weight
    counts = [Counter(plain_words(text)) for text in texts]
    lengths = np.array([count.total() for count in counts], dtype=np.float64)
    norm = k1 * (1 - b + b * lengths / max(1.0, lengths.mean())) if len(lengths) else lengths
    scores = np.zeros(len(texts))
    for word, weight in weights.items():
        held = np.array([count[word] for count in counts], dtype=np.float64)
        holding = np.count_nonzero(held)
        if holding:
            idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            scores += weight * idf * held / (held + norm)
    return scores


class LocalTerms:
    """The terms of documents, from their texts: what relevance feedback needs, for an engine without terms.

    `document_share` of its postings is the share among these documents. Threads may share it.
    """

    def __init__(self, texts: TextSource) -> None:
        self._texts = texts
        self._numbers: dict[str, int] = {}
        self._words: list[str] = []
        self._lock = threading.Lock()

    def postings(self, ids: Sequence[str]) -> Postings:
        """The terms of these documents, titles included."""
        documents = [self._texts.document(id) for id in ids]
        counts = [Counter(plain_words(f"{document.title} {document.text}")) for document in documents]
        with self._lock:
            for word in (word for count in counts for word in count if word not in self._numbers):
                self._numbers[word] = len(self._words)
                self._words.append(word)
            numbers = [self._numbers[word] for count in counts for word in count]
        vocabulary, term = np.unique(np.array(numbers, dtype=np.intp), return_inverse=True)
        row = np.repeat(np.arange(len(ids)), [len(count) for count in counts])
        count = np.array([times for count in counts for times in count.values()], dtype=np.float64)
        length = np.array([count.total() for count in counts], dtype=np.float64)
        share = np.bincount(term, minlength=len(vocabulary)) / max(1, len(ids))
        return Postings(row, term, count, length, vocabulary, share)

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        return [self._words[number] for number in vocabulary.tolist()]

    def analyze(self, text: str) -> list[str]:
        return plain_words(text)
