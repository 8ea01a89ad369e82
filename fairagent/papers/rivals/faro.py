"""Relevance less a quadratic price on position-weighted bias, AFTER THE ABSTRACT of FARO.

Zhao, Efthymiou, Nummenmaa, Stefanidis: Fairness-Aware Retrieval Optimization for Retrieval-Augmented Generation (arXiv
2605.15790, 2026). Only the abstract could be read: bias comes through the documents by a model that knows their
positions, an optimization weighs relevance against fairness, and "Quadratic Fairness via Dual Hyperplane Approximation"
makes it separate per document. OURS is all that is not in these words: the bias is the difference between the groups'
exposure (with the settings' discount) and the target; the price is the sum of its squares; and the hyperplanes are
tangents: of a linear price the best ranking is a sorting, and the tangent is laid anew at the mean exposure of the
rankings so far (Frank and Wolfe 1956). How bias reaches an answer, which the paper measures on generators, is not here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.extend import (
    LOG2_MAX2,
    Discount,
    FloatArray,
    Part,
    Pool,
    Ranking,
    Site,
    UsageError,
    min_max,
    parse_discount,
    placed,
)
from fairagent.papers.rivals.aspects import DECIMALS, aspects

TANGENTS = 50
"""How many rankings are tried."""


@dataclass(frozen=True, slots=True)
class FAROReranker:
    """The best of the rankings tried by sum_k w_k rel_k - fairness * sum_g (E_g - t_g)^2, the weights w adding up to 1.

    rel is the min-max score, E the groups' exposure and t their target; with several dimensions the squares are summed
    over all. `fairness` of 0 is the order of the scores. Ties go to the better-placed candidate. Raises UsageError for
    a negative `fairness`.
    """

    fairness: float = 1.0
    discount: Discount = LOG2_MAX2

    def __post_init__(self) -> None:
        """Check the number."""
        if self.fairness < 0:
            raise UsageError(f"FARO: fairness is a price of 0 or more, not {self.fairness}")

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates; scores fall in equal steps, since the order is no engine's."""
        n = min(pool.n, len(pool.ranking))
        if not n:
            return pool.ranking.top(0)
        of, weights = aspects(pool), self.discount(n)
        order = by_tangents(min_max(pool.ranking.scores), of.rows, of.due, weights / weights.sum(), self.fairness)
        return placed(pool.ranking.ids, order)

    def with_fairness(self, fairness: float) -> FAROReranker:
        """The same at this price."""
        return replace(self, fairness=fairness)

    def relevance(self, pool: Pool) -> Ranking:
        """All candidates by their min-max scores."""
        return Ranking(pool.ranking.ids, min_max(pool.ranking.scores))


def by_tangents(
    relevance: FloatArray, rows: FloatArray, due: FloatArray, weights: FloatArray, fairness: float
) -> list[int]:
    """The indices of len(weights) documents, in the order with the largest value of those that the tangents give.

    `relevance` (m,), `rows` (m, c) what each has of each group, `due` (c,) the groups' shares, `weights` (n,) of the
    ranks, n <= m, which fall and add up to 1.

    Of ten documents of a group and ten worse ones of another, at even weights, half each are served, not the best ten:

    >>> rows = np.repeat(np.eye(2), 10, axis=0)
    >>> order = by_tangents(np.linspace(1, 0, 20), rows, np.array([0.5, 0.5]), np.full(10, 0.1), fairness=10)
    >>> sum(place >= 10 for place in order)
    5
    """
    exposure, best, highest = due, list(range(len(weights))), -np.inf
    for number in range(TANGENTS):
        values = relevance - 2 * fairness * rows @ (exposure - due)
        order: NDArray[np.intp] = np.argsort(-np.round(values, DECIMALS), kind="stable")[: len(weights)]
        shown = weights @ rows[order]
        value = float(weights @ relevance[order] - fairness * ((shown - due) ** 2).sum())
        if value > highest + 10**-DECIMALS:
            best, highest = order.tolist(), value
        # At first the target itself, so the first ranking is by relevance alone.
        exposure = shown if not number else exposure + 2 / (number + 2) * (shown - exposure)
    return best


class FAROConfig(Part):
    """After the abstract of FARO: relevance less a quadratic price on the groups' exposure off target."""

    of_groups: ClassVar[bool] = True
    kind: Literal["faro"] = "faro"
    fairness: float = Field(1.0, ge=0)
    """What a squared difference of 1 from the target costs, in units of mean relevance (0 to 1). The paper's value
    could not be read. 0 keeps the candidates' order."""

    def build(self, site: Site) -> FAROReranker:
        """The re-ranker."""
        return FAROReranker(self.fairness, parse_discount(site.settings.discount))
