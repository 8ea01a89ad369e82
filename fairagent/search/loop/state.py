"""Where a loop stands: its candidates, what would be served of them, and what that gives the groups.

The control law: weights of the groups' evidence that follow what each group lacks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fairagent.collection import Target
from fairagent.collection.exposure import finite_gap
from fairagent.search.loop.candidates import Candidates, Mix
from fairagent.search.loop.evidence import EvidenceDocuments
from fairagent.search.loop.sources import GroupText, ModelEvidence
from fairagent.search.rerank.base import Pool
from fairagent.types import Exposure, FloatArray, Ranking

Reached = tuple[FloatArray, tuple[Exposure, ...]]
"""The weights (g,) of a step, and the exposures that came of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    """How far refinement has come: `made` steps, the last of them halved `halved` times.

    `part` is how much of the evidence's share (beta) this query bears: half as much after each first step that led too
    far from it. `reached` is what the next step starts from: the last step that was accepted, or that changed
    nothing, None before there is one; `ended` says why there is no next step.
    """

    made: int = 0
    halved: int = 0
    part: float = 1.0
    reached: Reached | None = None
    ended: str = ""


def start(targets: Sequence[Target], has: FloatArray) -> FloatArray:
    """The targets' shares over the groups that have evidence (`has` is 1), dimensions side by side, (g,)."""
    ends = np.cumsum([len(target.shares) for target in targets])
    return np.concatenate(
        [_normalized(target.shares * part) for target, part in zip(targets, np.split(has, ends[:-1]), strict=True)]
    )


def moved(weights: FloatArray, exposures: Sequence[Exposure], eta: float, smoothing: float) -> FloatArray:
    """The weights (g,) after one step: w ((t + smoothing) / (e + smoothing))^eta, normalized in each dimension.

    A group that has half of its share gains on one that has more than its share:

    >>> shown = Exposure("gender", ("f", "m"), np.array([0.25, 0.75]), np.array([0.5, 0.5]), 0.0, 0.1)
    >>> moved(np.array([0.5, 0.5]), [shown], 1.0, 1e-9).round(3).tolist()
    [0.75, 0.25]
    """
    ends = np.cumsum([len(exposure.shares) for exposure in exposures])
    parts = []
    for old, exposure in zip(np.split(weights, ends[:-1]), exposures, strict=True):
        lack = (exposure.target + smoothing) / (exposure.shares + smoothing)
        parts.append(_normalized(old * lack**eta))
    return np.concatenate(parts)


def _normalized(shares: FloatArray) -> FloatArray:
    return shares / shares.sum() if shares.sum() > 0 else shares


@dataclass(frozen=True, slots=True)
class JudgedDocuments:
    """Documents that a judge has read: the `chance` that each is relevant, and the places of the `groups` judged."""

    chance: Mapping[str, float] = field(default_factory=dict)
    groups: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The candidates, and the `scores` (n,) that rank them now.

    `added` (n,) is what a document's type adds to the engine's scores after relevance feedback, `lost` (n,) what it
    loses by a judge's verdict, so `relevance` is the estimate of how well it answers. `served` is the head of the
    candidates by `scores` (`pool`), re-ranked, `exposures` what it gives the groups. `own` is the list before any
    action; none whose estimated relevance is below `least` takes its place. `own_gap` is that of the engine's list.
    `learned` are the documents of each group that evidence is learned from, `model_evidence` what a model says of the
    groups (None: not yet), `mix` both as scores (None: not yet). `tried` are the actions that were tried,
    `again` says that the collection was searched again, which brought in the documents `entered`.
    """

    candidates: Candidates
    added: FloatArray
    lost: FloatArray
    scores: FloatArray
    learned: tuple[EvidenceDocuments, ...] = ()
    pool: Pool | None = None
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
        return self.candidates.fed + self.added - self.lost

    @property
    def gap(self) -> float:
        """What the groups lack in what would be served, in nats."""
        return finite_gap(self.exposures)

    @property
    def bar(self) -> float:
        """What the gap of another list has to be below: that of what would be served, and of the engine's own list."""
        return min(self.gap, self.own_gap)

    @property
    def texts(self) -> tuple[tuple[GroupText, ...], ...]:
        """What a model says of each group, for each source."""
        return self.model_evidence.texts if self.model_evidence else ()

    @property
    def weights(self) -> FloatArray | None:
        """The weights (g,) of the groups' evidence that a step has reached."""
        return self.control.reached[0] if self.control.reached else None

    def estimate(self, ids: Sequence[str]) -> float:
        """The mean estimated relevance of those of these documents that are candidates; 0 where none is."""
        place = {id: number for number, id in enumerate(self.candidates.ids)}
        places = [place[id] for id in ids if id in place]
        return float(self.relevance[places].mean()) if places else 0.0

    def refusal(self, bar: float) -> str:
        """Why its list is not to be served: it is less relevant than it may be, or its gap not below `bar`; else ""."""
        if self.estimate(self.served.ids) < self.least:
            return "less relevant"
        return "" if self.gap < bar else f"the gap is not below {bar:.4f}"


def sorted_by(ranking: Ranking, scores: FloatArray) -> Ranking:
    """The documents in the order of `scores` (n,), ties as they stand."""
    order = np.argsort(-scores, kind="stable")
    return Ranking(tuple(ranking.ids[place] for place in order.tolist()), scores[order])
