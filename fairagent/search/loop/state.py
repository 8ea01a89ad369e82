"""Where a loop stands: its candidates, what would be served of them, and what that gives the groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fairagent.exposure import finite_gap
from fairagent.loop.channels import Mix
from fairagent.loop.control import Control
from fairagent.loop.evidence import EvidenceDocuments
from fairagent.loop.sources import ModelEvidence
from fairagent.types import Exposure, FloatArray, Ranking


@dataclass(frozen=True, slots=True)
class JudgedDocuments:
    """Documents that a judge has read: the `chance` that each is relevant, and the places of the `groups` judged."""

    chance: Mapping[str, float] = field(default_factory=dict)
    groups: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The candidates `found` with the engine's scores, and the `scores` (n,) now.

    `fed` (n,) are the engine's scores after relevance feedback, `added` (n,) is what a document's kind adds to them,
    `lost` (n,) what it loses by a judge's verdict, on the engine's scale, so `relevance` is the estimate of how well it
    answers. `served` is the head of the candidates by `scores`, re-ranked, `exposures` what it gives the groups. `own`
    is the list before any action; none whose estimated relevance is below `least` takes its place. `own_gap` is the gap
    of the engine's list as it is. `learned` are the documents of each group that evidence is learned from,
    `model_evidence` what a model says of the groups (None: not asked yet), `mix` both as scores (None: not made yet).
    `tried` are the actions that were tried, `again` says that the collection was searched again, which found the
    documents `entered`.
    """

    found: Ranking
    fed: FloatArray
    added: FloatArray
    lost: FloatArray
    scores: FloatArray
    learned: tuple[EvidenceDocuments, ...]
    served: Ranking = field(default_factory=lambda: Ranking((), np.zeros(0)))
    exposures: tuple[Exposure, ...] = ()
    own: tuple[str, ...] = ()
    least: float = -np.inf
    own_gap: float = np.inf
    control: Control = field(default_factory=Control)
    model_evidence: ModelEvidence | None = None
    mix: Mix | None = None
    judged: JudgedDocuments = field(default_factory=JudgedDocuments)
    tried: frozenset[str] = frozenset()
    again: bool = False
    entered: frozenset[str] = frozenset()

    @property
    def relevance(self) -> FloatArray:
        """The estimated relevance of the candidates, (n,), on the scale of the engine's scores."""
        return self.fed + self.added - self.lost

    @property
    def gap(self) -> float:
        """What the groups lack in what would be served, in nats."""
        return finite_gap(self.exposures)

    @property
    def bar(self) -> float:
        """What the gap of another list has to be below: that of what would be served, and of the engine's own list."""
        return min(self.gap, self.own_gap)

    @property
    def estimated(self) -> float:
        """The mean estimated relevance of what would be served."""
        return self.estimate(self.served.ids)

    def estimate(self, ids: Sequence[str]) -> float:
        """The mean estimated relevance of those of these documents that are candidates; 0 where none is."""
        place = {id: number for number, id in enumerate(self.found.ids)}
        places = [place[id] for id in ids if id in place]
        return float(self.relevance[places].mean()) if places else 0.0


def refusal(after: State, bar: float) -> str:
    """Why a list is not to be served: it is less relevant than it may be, or its gap not below `bar`; else ""."""
    if after.estimated < after.least:
        return "less relevant"
    return "" if after.gap < bar else f"the gap is not below {bar:.4f}"


def sorted_by(ranking: Ranking, scores: FloatArray) -> Ranking:
    """The documents in the order of `scores` (n,), ties as they stand."""
    order = np.argsort(-scores, kind="stable")
    return Ranking(tuple(ranking.ids[place] for place in order.tolist()), scores[order])
