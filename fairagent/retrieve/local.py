"""Words of texts that are at hand: BM25 among them, and their terms, for engines that offer neither.

All statistics are those of the texts given, so a value depends on nothing that was searched before.

Also: a readable word for each index term, and Okapi BM25 over a handful of texts, as the package rank_bm25 scores them
(seed_systems.md, section 1.9), for the profiles of Fair RAG, which are a corpus each.
"""

import math
import re
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import UsageError
from fairagent.retrieve.base import TextSource, shown
from fairagent.retrieve.bm25.analysis import Analyzer
from fairagent.retrieve.relevance_model import Postings
from fairagent.retrieve.site import Site
from fairagent.settings.parts import Part
from fairagent.types import FloatArray, Query

WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


def readable_words(texts: Iterable[str], terms: Sequence[str], analyzer: Analyzer) -> list[str]:
    """For each term its commonest word in the texts, of equally common ones the shortest, then by the alphabet.

    Where no word was counted that is analyzed to it alone: the term itself if that is, else "".
    """
    counts = Counter(word for text in texts for word in words_of(text))
    best: dict[str, str] = {}
    for word in sorted(counts, key=lambda word: (-counts[word], len(word), word)):
        if len(own := analyzer.terms(word)) == 1:
            best.setdefault(own[0], word)
    return [best.get(term) or (term if analyzer.terms(term) == [term] else "") for term in terms]


def words_of(text: str) -> list[str]:
    """The words of `text` in order, in lower case, as they stand (no stems, no stop words).

    >>> words_of("Lawyers' fees: the lawyer's fees, 1901")
    ['lawyers', 'fees', 'the', "lawyer's", 'fees', '1901']
    """
    return WORD.findall(text.lower())


def local_bm25(query: Query, texts: Sequence[str], k1: float = 0.9, b: float = 0.4) -> FloatArray:
    """BM25 of each text for the weighted words of `query`, (n,), with the document frequencies of `texts` alone.

    As Lucene scores it (idf = ln(1 + (n - df + .5) / (df + .5)), 0 or more), but for words as they stand.

    >>> local_bm25(Query("lawyers"), ["Lawyers, lawyers!", "A judge.", "Two lawyers of Bonn."]).round(3).tolist()
    [0.335, 0.0, 0.226]
    """
    weights: dict[str, float] = {}
    for text, weight in query.weighted:
        for word in words_of(text):
            weights[word] = weights.get(word, 0.0) + weight
    counts = [Counter(words_of(text)) for text in texts]
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
    """The terms of documents, from their texts: what relevance feedback needs, for an engine that cannot tell them.

    `document_share` of its postings is the share among the documents asked for. Threads may share it.
    """

    def __init__(self, texts: TextSource) -> None:
        self._texts = texts
        self._numbers: dict[str, int] = {}
        self._words: list[str] = []
        self._lock = threading.Lock()

    def postings(self, ids: Sequence[str]) -> Postings:
        """The terms of these documents, titles included."""
        documents = shown(ids, self._texts)
        counts = [Counter(words_of(f"{document.title} {document.text}")) for document in documents]
        numbers = [self._number(word) for count in counts for word in count]
        vocabulary, term = np.unique(np.array(numbers, dtype=np.intp), return_inverse=True)
        row = np.repeat(np.arange(len(ids)), [len(count) for count in counts])
        count = np.array([times for count in counts for times in count.values()], dtype=np.float64)
        length = np.array([count.total() for count in counts], dtype=np.float64)
        share = np.bincount(term, minlength=len(vocabulary)) / max(1, len(ids))
        return Postings(row, term, count, length, vocabulary, share)

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """The word for each term number of `postings`."""
        return [self._words[number] for number in vocabulary.tolist()]

    def analyze(self, text: str) -> list[str]:
        """The words of `text`."""
        return words_of(text)

    def _number(self, word: str) -> int:
        with self._lock:
            number = self._numbers.setdefault(word, len(self._words))
            if number == len(self._words):
                self._words.append(word)
            return number


K1, B, EPSILON = 1.5, 0.75, 0.25


def okapi_scores(
    query: str, texts: Sequence[str], k1: float = K1, b: float = B, epsilon: float = EPSILON
) -> FloatArray:
    """The score of each text for `query`, (n,); words are what stands between white space, and case counts.

    A word of the query counts as often as it occurs there. idf is ln((n - m + .5) / (m + .5)) for a word in m of the n
    texts; where that is negative, `epsilon` times the mean idf of all words of the texts is taken. That mean can be
    negative, and then scores are. Without texts there are no scores; texts without words score 0.

    >>> okapi_scores("a b zzz", ["a a", "a b", "a", "a c"]).round(3).tolist()
    [-0.057, 0.757, -0.052, -0.039]
    """
    bags = [Counter(text.split()) for text in texts]
    lengths = np.array([bag.total() for bag in bags], dtype=np.float64)
    if not lengths.sum():
        return np.zeros(len(texts))
    holding = Counter(word for bag in bags for word in bag)
    counts = np.fromiter(holding.values(), dtype=np.float64, count=len(holding))
    raw = np.log(len(texts) - counts + 0.5) - np.log(counts + 0.5)
    idf = dict(zip(holding, np.where(raw < 0, epsilon * raw.mean(), raw).tolist(), strict=True))
    saturation = k1 * (1 - b + b * lengths / lengths.mean())
    scores = np.zeros(len(texts))
    for word, times in Counter(query.split()).items():
        if word in idf:
            held = np.array([bag[word] for bag in bags], dtype=np.float64)
            scores += times * idf[word] * held * (k1 + 1) / (held + saturation)
    return scores


def descending(scores: FloatArray) -> NDArray[np.intp]:
    """The places of `scores` (n,), the highest first; of equal ones the last first, as in Fair RAG's code.

    >>> descending(np.array([0.0, 2.0, 0.0])).tolist()
    [1, 2, 0]
    """
    return np.argsort(scores, kind="stable")[::-1]


class OkapiConfig(Part):
    """Okapi over the items of each question (LaMP): experiments with `fair_rag: {lamp: ...}` alone have such."""

    kind: Literal["okapi"] = "okapi"

    def check(self, site: Site) -> None:
        """Raise UsageError: a collection is searched with bm25."""
        raise UsageError("engine okapi scores the items of LaMP's questions; a collection is searched with bm25")

    def build(self, site: Site) -> None:
        """As `check`."""
        self.check(site)
