"""The exposure-aware re-ranker: relevance first, then what the groups still lack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.measures import LOG2_MAX2, Discount
from fairagent.rerank.base import Pool, min_max
from fairagent.types import FloatArray, Ranking

SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class ExposureReranker:
    """Greedy: at each rank the document with the best relevance and the least harm to the groups' exposure.

    With discounts w_1..w_n of sum W, exposure E so far, and R the discounts of the ranks still open, the document
    d at rank i maximizes

        w_i rel(d) / W  -  fairness * sum over dimensions of JSD((E + w_i a(d) + R t) / W', t)

    where rel is the min-max score, a(d) the membership over the known groups, t the target and W' the sum of what is
    divided. The ranks still open are counted as filled on target, so a group is not forced in early at any price, and
    what is missing weighs more the fewer ranks are left. A document without a label helps no group: in each dimension
    that it has none in, its relevance is lowered by `unlabeled`. Ties go to the better-placed candidate.
    """

    fairness: float = 0.5
    unlabeled: float = 1.0
    discount: Discount = LOG2_MAX2

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates; scores fall strictly from 1 at rank 1, since the order is no engine's."""
        n = min(pool.n, len(pool.ranking))
        # Documents with the same groups differ in relevance alone: only the best of each kind can be next.
        rows = np.hstack([membership[:, 1:] for membership in pool.memberships])
        numbers: dict[bytes, int] = {}
        kind_of = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows], dtype=np.intp)
        kinds = rows[np.unique(kind_of, return_index=True)[1]]
        splits = np.cumsum([len(target) for target in pool.targets])[:-1]
        kind_rows = np.split(kinds, splits, axis=1)
        missing = sum((rows_of.sum(axis=1) == 0).astype(np.float64) for rows_of in kind_rows)
        relevance = min_max(pool.ranking.scores) - self.unlabeled * missing[kind_of]
        queues = _queues(relevance, kind_of, len(kinds))
        heads = np.array([relevance[queue[0]] for queue in queues])

        weights = self.discount(n)
        total = weights.sum()
        entropies = [_entropy(target) for target in pool.targets]
        exposures = [np.zeros(len(target)) for target in pool.targets]
        spent = np.zeros(len(kinds), dtype=bool)
        chosen: list[int] = []
        for rank, weight in enumerate(weights, start=1):
            # Summed anew: at the last rank it is exactly 0, and the last document is judged by what it is.
            left = weights[rank:].sum()
            value = weight * heads / total
            for rows_of, exposure, target, entropy in zip(kind_rows, exposures, pool.targets, entropies, strict=True):
                then = exposure + weight * rows_of + left * target
                value -= self.fairness * _jensen_shannon(then, target, entropy)
            value[spent] = -np.inf
            best = min(np.flatnonzero(value == value.max()).tolist(), key=lambda kind: queues[kind][0])
            chosen.append(queues[best].pop(0))
            spent[best] = not queues[best]
            heads[best] = relevance[queues[best][0]] if queues[best] else 0.0
            for rows_of, exposure in zip(kind_rows, exposures, strict=True):
                exposure += weight * rows_of[best]
        return Ranking(tuple(pool.ranking.ids[i] for i in chosen), np.linspace(1, 0, n, endpoint=False))


def _queues(relevance: FloatArray, kind_of: NDArray[np.intp], kinds: int) -> list[list[int]]:
    """The candidates of each kind, most relevant first."""
    queues: list[list[int]] = [[] for _ in range(kinds)]
    for i in np.argsort(-relevance, kind="stable").tolist():
        queues[kind_of[i]].append(i)
    return queues


def _jensen_shannon(exposure: FloatArray, target: FloatArray, entropy: FloatArray) -> FloatArray:
    """JSD (nats) of each row of `exposure` (k, g), normalized, from `target` (g,); ln 2 where a row is empty.

    Taken as H((p + t) / 2) - H(p) / 2 - H(t) / 2, with `entropy` the target's H(t): this runs at every rank.
    """
    total = exposure.sum(axis=1)
    share = exposure / np.where(total > 0, total, 1)[:, None]
    divergence = _entropy((share + target) / 2) - (_entropy(share) + entropy) / 2
    return np.where(total > 0, divergence, np.log(2))


def _entropy(shares: FloatArray) -> FloatArray:
    """- sum p ln p over the last axis (nats), with 0 ln 0 = 0."""
    products = shares * np.log(np.maximum(shares, SMALLEST))
    return np.asarray(-products.sum(axis=-1))
