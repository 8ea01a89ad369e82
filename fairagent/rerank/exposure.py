"""The exposure-aware re-ranker: relevance first, then what the groups still lack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.measures import LOG2_MAX2, Discount, min_max, parse_discount
from fairagent.rerank.base import Pool
from fairagent.settings.parts import Part
from fairagent.site import Site
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
        # The dimensions' columns side by side: their divergences are summed, so one pass serves all.
        rows = np.hstack([membership[:, 1:] for membership in pool.memberships])
        target = np.concatenate(pool.targets)
        dimension_of = np.repeat(np.arange(len(pool.targets)), [len(shares) for shares in pool.targets])
        # Documents with the same groups differ in relevance alone: only the best of each kind can be next.
        numbers: dict[bytes, int] = {}
        kind_of = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows], dtype=np.intp)
        kinds = rows[np.unique(kind_of, return_index=True)[1]]
        labeled = kinds @ (dimension_of[:, None] == np.arange(len(pool.targets)))
        missing = (labeled == 0).sum(axis=1)
        relevance = min_max(pool.ranking.scores) - self.unlabeled * missing[kind_of]
        queues = _queues(relevance, kind_of, len(kinds))
        heads = np.array([relevance[queue[0]] for queue in queues])

        weights = self.discount(n)
        total = weights.sum()
        entropy = _entropy(target)
        exposure, mass = np.zeros(len(target)), np.zeros(len(pool.targets))
        spent = np.zeros(len(kinds), dtype=bool)
        chosen: list[int] = []
        for rank, weight in enumerate(weights, start=1):
            # Summed anew: at the last rank it is exactly 0, and the last document is judged by what it is.
            left = weights[rank:].sum()
            masses = mass + weight * labeled + left
            empty = masses == 0 if left == 0 else None
            if empty is not None:
                masses[empty] = 1
            share = (exposure + weight * kinds + left * target) / masses[:, dimension_of]
            # JSD = H((p + t) / 2) - H(p) / 2 - H(t) / 2, both of the first in one pass.
            entropies = _entropy(np.concatenate(((share + target) / 2, share)))
            divergence = entropies[: len(kinds)] - (entropies[len(kinds) :] + entropy) / 2
            if empty is not None:
                # No exposure at all would come out as ln 2 / 2; it is as far from the target as can be, ln 2.
                divergence += empty.sum(axis=1) * (np.log(2) / 2)
            value = weight * heads / total - self.fairness * divergence
            value[spent] = -np.inf
            best = min(np.flatnonzero(value == value.max()).tolist(), key=lambda kind: queues[kind][0])
            chosen.append(queues[best].pop(0))
            spent[best] = not queues[best]
            heads[best] = relevance[queues[best][0]] if queues[best] else 0.0
            exposure += weight * kinds[best]
            mass += weight * labeled[best]
        return Ranking(tuple(pool.ranking.ids[i] for i in chosen), np.linspace(1, 0, n, endpoint=False))


def _queues(relevance: FloatArray, kind_of: NDArray[np.intp], kinds: int) -> list[list[int]]:
    """The candidates of each kind, most relevant first."""
    queues: list[list[int]] = [[] for _ in range(kinds)]
    for i in np.argsort(-relevance, kind="stable").tolist():
        queues[kind_of[i]].append(i)
    return queues


def _entropy(shares: FloatArray) -> FloatArray:
    """- sum p ln p over the last axis (nats), with 0 ln 0 = 0."""
    products = shares * np.log(np.maximum(shares, SMALLEST))
    return np.asarray(-products.sum(axis=-1))


class ExposureConfig(Part):
    """Greedy: relevance, weighed against what each group still lacks."""

    kind: Literal["exposure"] = "exposure"
    fairness: float = Field(0.5, ge=0)
    """What a divergence of 1 nat costs, in units of mean relevance."""
    unlabeled: float = Field(1.0, ge=0)
    """What a document without a label loses, in units of relevance (0 to 1), for each dimension."""

    @property
    def sees_groups(self) -> bool:
        """Always."""
        return True

    def build(self, site: Site) -> ExposureReranker:
        """The re-ranker."""
        return ExposureReranker(self.fairness, self.unlabeled, parse_discount(site.settings.discount))
