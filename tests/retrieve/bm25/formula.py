"""BM25 as Lucene's documentation defines it, in plain Python: the reference that the engine is compared with."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence


def kept_length(length: int) -> int:
    """A document's length as Lucene keeps it in one byte: exact below 40, then cut to four significant bits."""
    over = length - 24
    if over < 16:
        return length
    shift = over.bit_length() - 4
    return 24 + (over >> shift << shift)


def bm25(
    query: Mapping[str, float], documents: Sequence[Sequence[str]], k1: float = 0.9, b: float = 0.4
) -> list[float]:
    """The score of each document (a sequence of terms) for the weighted terms of `query`."""
    holding = [terms for terms in documents if terms]
    mean = sum(len(terms) for terms in holding) / len(holding)
    scores = []
    for terms in documents:
        counts = Counter(terms)
        norm = k1 * (1 - b + b * kept_length(len(terms)) / mean)
        score = 0.0
        for term, weight in query.items():
            df = sum(term in other for other in map(set, holding))
            if counts[term]:
                idf = math.log(1 + (len(holding) - df + 0.5) / (df + 0.5))
                score += weight * idf * counts[term] / (counts[term] + norm)
        scores.append(score)
    return scores
