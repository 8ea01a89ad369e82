"""Supply: documents near the best ones of a group come into the pool where it has too few of the group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairagent.loop.actions.base import Attempt
from fairagent.loop.ground import Ground
from fairagent.loop.lack import Lack, lacking
from fairagent.loop.state import State
from fairagent.retrieve.graph import Graph
from fairagent.types import Ranking

SEEDS = 10
"""Documents of a group whose neighbours are looked at, the best first."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """By the corpus `graph`; a document that comes in has the engine's own score for the query."""

    graph: Graph
    name: str = "neighbours"

    def offer(self, ground: Ground, state: State) -> str:
        """Where a group that lacks exposure has fewer documents in the pool than places it should have."""
        counts = ground.counts(state.found.ids)
        short = self._short(ground, state)
        if self.name in state.done or not short:
            return ""
        lack = short[0]
        places = lack.target * ground.search.n
        return f"{lack}, and {counts[lack.place]:.3g} documents were found for {places:.3g} places"

    def act(self, ground: Ground, state: State) -> Attempt:
        """Let the group's own among the neighbours in, and refine with what is now the groups' evidence."""
        entering: dict[str, None] = {}
        notes = []
        for lack in self._short(ground, state):
            found = self._near(ground, state, lack)
            notes.append(f"{lack.group}: {len(found)} documents come in")
            entering |= dict.fromkeys(found)
        if not entering:
            return Attempt(state, state, state.gap, tuple(notes), failure="no neighbour is new")
        search = ground.search
        ids = (*state.found.ids, *entering)
        scores = np.concatenate([state.found.scores, search.engine.score(search.query, list(entering))])
        # Ties as the engine's lists have them.
        order = np.lexsort((np.array(ids, dtype=str), -scores))
        found_ = Ranking(tuple(ids[place] for place in order.tolist()), scores[order])
        after = ground.enlarged(state, found_)
        return Attempt(after, state, state.gap, tuple(notes), weights=after.weights)

    def _short(self, ground: Ground, state: State) -> list[Lack]:
        counts = ground.counts(state.found.ids)
        return [lack for lack in lacking(state.exposures) if counts[lack.place] < lack.target * ground.search.n]

    def _near(self, ground: Ground, state: State, lack: Lack) -> list[str]:
        """The group's documents near its best ones, or near what is served where it has none, that are not found yet."""
        order = np.argsort(-state.relevance, kind="stable")
        belongs = ground.column(state.found.ids, lack.place)
        seeds = [state.found.ids[place] for place in order[belongs[order] > 0][:SEEDS].tolist()]
        around = self.graph.neighbours(seeds or state.served.ids[:SEEDS])
        known = set(state.found.ids)
        near = [id for id in dict.fromkeys(id for ids in around for id in ids) if id not in known]
        return [id for id, part in zip(near, ground.column(near, lack.place).tolist(), strict=True) if part > 0]
