"""Okapi BM25 over a handful of texts, as the package rank_bm25 scores them, for profiles, which are a corpus each."""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from fairagent.errors import UsageError
from fairagent.retrieve.site import Site
from fairagent.settings import Part
from fairagent.types import FloatArray

K1, B, EPSILON = 1.5, 0.75, 0.25


def okapi_scores(
    query: str, texts: Sequence[str], k1: float = K1, b: float = B, epsilon: float = EPSILON
) -> FloatArray:
    """The score of each text for `query`, (n,), as the package rank_bm25 has it: each profile is a corpus.

    Words are what stands between white space, and case counts. idf is ln((n - m + .5) / (m + .5)) for a word in m of
    the n texts; where that is negative, `epsilon` times the mean idf of all words of the texts is taken, which can be
    negative, too. Without words the scores are 0. Source: "Towards Fair RAG" (ICTIR 2025), the retrieval of LaMP
    profiles.

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


class OkapiConfig(Part):
    """Okapi over the items of each question (LaMP): experiments with `fair_rag: {lamp: ...}` alone have such."""

    scores_items: ClassVar[bool] = True
    kind: Literal["okapi"] = "okapi"

    def check(self, site: Site) -> None:
        raise UsageError("engine okapi scores the items of LaMP's questions; a collection is searched with bm25")

    def build(self, site: Site) -> None:
        self.check(site)
