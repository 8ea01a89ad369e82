"""The exposure-aware re-ranker: of the lists on the frontier of relevance and fairness, the one that the dial says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from fairagent.measures import LOG2_MAX2, Discount, parse_discount
from fairagent.measures.objective import GapColumns, GapTarget, gap_rows
from fairagent.retrieve.site import Site
from fairagent.search.rerank.base import Pool, UnlabeledColumns, relevance_of
from fairagent.search.rerank.frontier import Frontier, Walk
from fairagent.settings.parts import Part
from fairagent.types import Dial, FloatArray, Ranking

TOLERANCE = 0.04
"""How far the exposure of documents without a label may move from their share, whatever the dial."""

DEFAULT = Dial()


@dataclass(frozen=True, slots=True)
class ExposureReranker:
    """The list of the frontier that the `dial` says; R and G are those of `fairagent.measures.objective`.

    A document without a label helps no group: for each dimension in which it has none, its relevance falls by
    `unlabeled`. The exposure of all documents without a label stays within `margin` of its share, and no known group
    falls that has less than its own.
    """

    dial: Dial = DEFAULT
    unlabeled: float = 0.0
    discount: Discount = LOG2_MAX2
    divergence: str = "js"
    margin: float = TOLERANCE

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates; scores fall strictly from 1 at rank 1, since the order is no engine's."""
        if not len(pool.ranking):
            return pool.ranking
        lists = self.frontier(pool)
        return lists.ranking(lists.choose(self.dial))

    def with_dial(self, dial: Dial) -> ExposureReranker:
        return replace(self, dial=dial)

    def relevance(self, pool: Pool) -> FloatArray:
        return relevance_of(pool, self.unlabeled)

    def frontier(self, pool: Pool, others: Sequence[Ranking] = ()) -> Frontier:
        """The lists that there are to choose from; `others` are lists of these candidates that are to be among them."""
        key = self.unlabeled, self.discount, self.divergence, self.margin
        if (known := pool.frontiers.get(key)) and not others:
            return known
        weights = self.discount(min(pool.n, len(pool.ranking)))
        targets = list(pool.unlabeled)
        if not targets:
            # The pool does not say what the unlabeled should get: they have no part in the gap, and keep their share.
            of_first = [weights / weights.sum() @ rows[: len(weights)] for rows in pool.memberships]
            targets = [
                UnlabeledColumns(rows[:, :1], before[:1], before, counts=False)
                for rows, before in zip(pool.memberships, of_first, strict=True)
            ]
        pairs = [(of[:, 1:], due.rows) for of, due in zip(pool.memberships, targets, strict=True)]
        rows = gap_rows(*pairs) if pairs else np.zeros((len(pool.ranking), 0))
        counts = pool.importance or (1.0,) * len(pool.targets)
        columns = GapColumns(
            [
                GapTarget(target, due.shares, due.counts, count)
                for target, due, count in zip(pool.targets, targets, counts, strict=True)
            ],
            self.divergence,
        )
        bounds = [_bounds(target, due, self.margin) for target, due in zip(pool.targets, targets, strict=True)]
        least, most = (np.concatenate([pair[side] for pair in bounds] or [np.zeros(0)]) for side in (0, 1))
        walk = Walk(columns, rows, relevance_of(pool, self.unlabeled), weights, least, most)
        place = {id: number for number, id in enumerate(pool.ranking.ids)}
        engine = [place[id] for id in pool.engine_list.ids if id in place][: len(weights)]
        more = [[place[id] for id in other.ids] for other in others]
        lists = walk.frontier(pool.ranking.ids, engine if len(engine) == len(weights) else None, more)
        pool.frontiers[key] = lists
        return lists


def _bounds(target: FloatArray, due: UnlabeledColumns, margin: float) -> tuple[FloatArray, FloatArray]:
    """The least and the most of all exposure that the columns of a dimension get, (g + u + 1,) each."""
    none, labeled = due.shares, 1 - float(due.shares.sum())
    # With two columns each moves by half the margin at most, times the share that can have a label.
    margin = margin if len(none) == 1 else margin / 2 * (1 - none[0])
    least = np.concatenate([np.minimum(due.before[len(none) :], labeled * target), none - margin, [labeled - margin]])
    most = np.concatenate([np.ones(len(target)), none + margin, [1.0]])
    return np.maximum(least, 0.0), most


class ExposureConfig(Part):
    """The frontier of relevance and fairness, and the point on it that is served; set one of the three dials."""

    of_groups: ClassVar[bool] = True
    kind: Literal["exposure"] = "exposure"
    fairness: float | None = Field(None, ge=0)
    """What a gap of 1 costs, in units of mean relevance (0 to 1): the list with the largest relevance - fairness x gap.
    Larger values are fairer and less relevant. Where none of the three is set, it is 1."""
    keep: float | None = Field(None, ge=0, le=1)
    """The share of the relevance to keep, 0 to 1: the fairest list that keeps as much of that of the most relevant."""
    gap: float | None = Field(None, ge=0)
    """The gap that is small enough, in the unit of `divergence`: the most relevant list within it, else the fairest."""
    unlabeled: float = Field(0.0, ge=0)
    """How much relevance (0 to 1) a document loses for each dimension in which it has no label. Larger values put
    labeled documents first."""

    @model_validator(mode="after")
    def _one_dial(self) -> Self:
        self.dial.check()
        return self

    @property
    def dial(self) -> Dial:
        """Which list is served."""
        return Dial(keep=self.keep, gap=self.gap, fairness=self.fairness)

    def build(self, site: Site) -> ExposureReranker:
        settings = site.settings
        return ExposureReranker(self.dial, self.unlabeled, parse_discount(settings.discount), settings.divergence)
