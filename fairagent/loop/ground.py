"""What does not change while a loop improves one search, and how its states are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairagent.exposure import ExposureMeter
from fairagent.loop.base import Search
from fairagent.loop.channels import Mix, Mixer
from fairagent.loop.control import Control, start
from fairagent.loop.evidence import Learned, learn_from, words
from fairagent.loop.kinds import KindSource
from fairagent.loop.lack import lacking
from fairagent.loop.prior import bonus, importance
from fairagent.loop.sources import Said, Sources
from fairagent.loop.state import State, sorted_by
from fairagent.types import FloatArray, Ranking

HEAD = 50
"""Documents by which it is told whether a dimension applies to a query."""


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """One `search`, measured by `meter`; `unit` is the range of the engine's own scores.

    `mixer` makes evidence scores, `sources` ask a model for evidence (None: nobody is asked); `feedback`, `prior` and
    `kinds` are the controller's.
    """

    search: Search
    meter: ExposureMeter
    unit: float
    mixer: Mixer
    feedback: int
    kinds: KindSource | None
    prior: float
    sources: Sources | None = None

    def begin(self, first: Ranking, drift: float, eta: float) -> State:
        """The state before any action: the candidates by estimated relevance."""
        added = self.bonus(first)
        learned = self.learn(first, first.scores + added)
        nothing = Ranking((), np.zeros(0))
        state = State(first, added, first.scores, nothing, (), -np.inf, learned, Control(eta))
        state = self.ranked(state, state.relevance)
        return replace(state, least=(1 - drift) * state.estimated)

    def bonus(self, found: Ranking) -> FloatArray:
        """What their kinds add to the scores of these candidates, (n,)."""
        kinds = self.kinds.of(found.ids, self.search.query.id) if self.kinds and self.prior else []
        return bonus(found.scores, kinds, self.prior)[0]

    def learn(self, found: Ranking, relevance: FloatArray) -> tuple[Learned, ...]:
        """The documents that the groups' evidence is learned from."""
        return tuple(learn_from(relevance, self.meter.memberships(found.ids), self.feedback))

    def ranked(self, state: State, scores: FloatArray) -> State:
        """The state with its candidates ranked by `scores` (n,): what would be served, and what that gives."""
        pool = self.search.pool(sorted_by(state.found, scores), self.meter, self.unit)
        served = self.search.serve(pool).top(self.search.n)
        return replace(state, scores=scores, served=served, exposures=self.meter.measure(served))

    def refined(self, state: State, weights: FloatArray) -> State:
        """The state, whose evidence is mixed, with its candidates ranked under these weights (g,)."""
        assert state.mix is not None
        return self.ranked(state, state.mix.scores(state.added, self.factor * weights))

    def mixed(self, state: State) -> State:
        """The state with its evidence as scores, and the control's next weights; a model is asked at most once."""
        if state.said is None:
            state = replace(state, said=self._said(state))
        if state.mix is None:
            state = replace(state, mix=self._mix(state))
        assert state.mix is not None
        if state.control.weights is None:
            weights = start(self.meter.targets, state.mix.has)
            state = replace(state, control=replace(state.control, weights=weights))
        return state

    @property
    def factor(self) -> FloatArray:
        """The importance of each group's dimension, side by side, (g,)."""
        sizes = [len(target.shares) for target in self.meter.targets]
        return np.repeat(np.array(self.meter.importance), sizes)

    def counts(self, ids: Sequence[str]) -> FloatArray:
        """How many of these documents each group has, dimensions side by side, (g,)."""
        return np.concatenate([rows[:, 1:].sum(axis=0) for rows in self.meter.memberships(ids)])

    def column(self, ids: Sequence[str], place: int) -> FloatArray:
        """How far these documents belong to the group at `place`, (n,)."""
        return np.hstack([rows[:, 1:] for rows in self.meter.memberships(ids)])[:, place]

    def _said(self, state: State) -> Said:
        if self.sources is None:
            return Said()
        lacks = lacking(state.exposures)
        shown = self._words(state) if "grounded" in self.sources.kinds else {}
        return self.sources.ask(self.search.query.text, lacks, shown, len(state.learned))

    def _words(self, state: State) -> dict[int, list[str]]:
        """The words that the documents of each group have in common."""
        source = self.mixer.source
        if source is None:
            return {}
        postings = source.postings(state.found.ids)
        found = {}
        for place, one in enumerate(state.learned):
            chosen = [word for word, _ in words(source, postings, one, len(state.found))] if one else []
            found[place] = [word for word in source.words(postings.vocabulary[chosen]) if word] if chosen else []
        return found

    def _mix(self, state: State) -> Mix:
        told = state.said.told if state.said else ()
        search = self.search
        return self.mixer.mix(search.engine, search.retrieve, search.query, state.found, state.learned, told)


def weighed(meter: ExposureMeter, first: Ranking) -> ExposureMeter:
    """The meter in which a dimension counts by how much it applies to what was found."""
    groups, head = meter.collection.groups, first.top(HEAD)
    weights = []
    for target, rows in zip(meter.targets, meter.memberships(head.ids), strict=True):
        if target.dimension in groups.oracle:
            weights.append(1.0)
            continue
        labeled = float((rows[:, 1:].sum(axis=1) > 0).mean())
        weights.append(importance(labeled, 1 - float(groups.shares(target.dimension)[0])))
    return replace(meter, importance=tuple(weights))
