"""xQuAD over groups: explicit query aspect diversification, with a query's groups in the place of its aspects.

Source: Santos, Macdonald, Ounis: Exploiting Query Reformulations for Web Search Result Diversification, WWW 2010,
Equation 5 for the greedy choice. An aspect's importance P(a|q) is the group's target share; with several dimensions
each has an equal part. What the paper estimates by retrieving for each sub-query has no equal here, so it is OURS that
P(d|q) is the min-max score of a candidate, as in our MMR, and P(d|a) that score for the groups it belongs to.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fairagent.extend import FloatArray, Part, Pool, Ranking, Site, UsageError, min_max, placed
from fairagent.papers.rivals.aspects import DECIMALS, aspects


@dataclass(frozen=True, slots=True)
class XQuADReranker:
    """Greedy: relevance, and how much of the aspects that the documents above leave open a document covers.

    `diversity` in [0, 1] is the paper's lambda: 0 is the order of the scores. Ties go to the better-placed candidate.
    Raises UsageError for a `diversity` outside.
    """

    diversity: float = 0.5

    def __post_init__(self) -> None:
        """Check the number."""
        if not 0 <= self.diversity <= 1:
            raise UsageError(f"xQuAD: the weight of diversity is from 0 to 1, not {self.diversity}")

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates; scores fall in equal steps, since the order is no engine's."""
        relevance, of = min_max(pool.ranking.scores), aspects(pool)
        weights = of.due / max(of.dimensions, 1)
        order = xquad(relevance, relevance[:, None] * of.rows, weights, self.diversity, pool.n)
        return placed(pool.ranking.ids, order)


def xquad(relevance: FloatArray, coverage: FloatArray, weights: FloatArray, diversity: float, n: int) -> list[int]:
    """The indices of the min(n, m) documents that xQuAD picks, in order; ties go to the lower index.

    Each maximizes (1 - diversity) P(d|q) + diversity sum_a P(a|q) P(d|a) prod_s (1 - P(s|a)), s being what is picked
    already: P(d|q) is `relevance` (m,), P(d|a) `coverage` (m, c), both in [0, 1], and P(a|q) `weights` (c,).

    After the first, which covers the first aspect for good, the second document of it brings relevance alone:

    >>> covers = np.array([[1.0, 0.0], [0.8, 0.0], [0.0, 0.6]])
    >>> xquad(np.array([1.0, 0.8, 0.6]), covers, np.array([0.5, 0.5]), diversity=0.5, n=3)
    [0, 2, 1]
    """
    open_of, picked = np.ones(len(weights)), np.zeros(len(relevance), dtype=np.bool_)
    order: list[int] = []
    for _ in range(min(n, len(relevance))):
        value = (1 - diversity) * relevance + diversity * (coverage @ (weights * open_of))
        best = int(np.where(picked, -np.inf, np.round(value, DECIMALS)).argmax())
        order.append(best)
        picked[best] = True
        open_of *= 1 - coverage[best]
    return order


class XQuADConfig(Part):
    """xQuAD: relevance, and what the groups of the documents above leave uncovered."""

    of_groups: ClassVar[bool] = True
    kind: Literal["xquad"] = "xquad"
    diversity: float = Field(0.5, ge=0, le=1)
    """The weight of diversity, 0 to 1, the paper's lambda; relevance has the rest. 0 keeps the candidates' order."""

    def build(self, site: Site) -> XQuADReranker:
        """The re-ranker."""
        return XQuADReranker(self.diversity)
