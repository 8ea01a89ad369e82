"""Where a loop stands: its candidates, what would be served of them, and what that gives the groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.exposure import SMOOTHING
from fairagent.loop.channels import Mix
from fairagent.loop.control import Control
from fairagent.loop.evidence import Learned
from fairagent.loop.sources import Said
from fairagent.types import Exposure, FloatArray, Ranking

NOTHING_SHOWN = float(-np.log(SMOOTHING))
"""What counts as the divergence of a dimension in which nothing labeled is shown, beside those of the others."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The candidates `found` with the engine's scores, what is `added` to these (n,), and the `scores` (n,) now.

    `added` is what a document's kind and a judge's verdict say, so `relevance` is the estimate of what it answers.
    `served` is the head of the candidates by `scores`, re-ranked, `exposures` what it gives the groups. No list whose
    estimated relevance is below `least` takes its place. `learned` are the documents of each group that evidence is
    learned from, `said` what a model says of the groups (None: not asked yet), `mix` both as scores (None: not made
    yet). `done` are the actions that were tried, `first` says that none has been accepted.
    """

    found: Ranking
    added: FloatArray
    scores: FloatArray
    served: Ranking
    exposures: tuple[Exposure, ...]
    least: float
    learned: tuple[Learned, ...]
    control: Control
    said: Said | None = None
    mix: Mix | None = None
    done: frozenset[str] = frozenset()
    first: bool = True

    @property
    def relevance(self) -> FloatArray:
        """The estimated relevance of the candidates, (n,), on the scale of the engine's scores."""
        return self.found.scores + self.added

    @property
    def gap(self) -> float:
        """What is served lacks so much, in nats."""
        return finite_gap(self.exposures)

    @property
    def estimated(self) -> float:
        """The mean estimated relevance of what is served."""
        return self.estimate(self.served.ids)

    def estimate(self, ids: Sequence[str]) -> float:
        """The mean estimated relevance of these candidates."""
        return float(self.relevance[self.places(ids)].mean()) if len(ids) else 0.0

    def places(self, ids: Sequence[str]) -> list[int]:
        """Where these documents stand among the candidates."""
        place = {id: number for number, id in enumerate(self.found.ids)}
        return [place[id] for id in ids]


def finite_gap(exposures: Sequence[Exposure]) -> float:
    """`total_gap`, but a dimension in which nothing labeled is shown does not drown the others."""
    return sum(one.importance * min(one.divergence, NOTHING_SHOWN) for one in exposures)


def sorted_by(ranking: Ranking, scores: FloatArray) -> Ranking:
    """The documents in the order of `scores` (n,), ties as they stand."""
    order = np.argsort(-scores, kind="stable")
    return Ranking(tuple(ranking.ids[place] for place in order.tolist()), scores[order])


def refusal(after: State, bar: float) -> str:
    """Why a list is not served instead of the one before: its gap is not below `bar`, or it is less relevant; else ""."""
    if after.estimated < after.least:
        return "less relevant"
    return "" if after.gap < bar else "the gap did not fall"
