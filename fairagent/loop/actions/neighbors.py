"""Supply: documents near the best ones of a group come into the pool where it holds too few of the group."""

from dataclasses import dataclass

from fairagent.loop.actions.base import Attempt, Offer
from fairagent.loop.environment import Environment
from fairagent.loop.lack import Lack, lacking
from fairagent.loop.state import State
from fairagent.retrieve.graph import Graph

SEEDS = 10
"""Documents of a group whose neighbors are looked at, the best first."""


@dataclass(frozen=True, slots=True, eq=False)
class NeighborsAction:
    """By the corpus `graph`; a document that comes in has the engine's own score for the query."""

    graph: Graph
    name: str = "neighbors"

    def offer(self, environment: Environment, state: State) -> Offer:
        """Open once, if a group that lacks exposure has fewer documents in the pool than places it should have."""
        if self.name in state.tried:
            return Offer(False, "it was tried")
        short = _short(environment, state)
        if state.gap <= environment.tolerance or not short:
            return Offer(False, "no group lacks documents")
        return Offer(True, f"{short[0]}, and too few of its documents were found for so many places")

    def act(self, environment: Environment, state: State) -> Attempt:
        """Let the group's own among the neighbors in, and refine with what is now the groups' evidence."""
        state = environment.informed(state)
        entering: dict[str, None] = {}
        notes = []
        for lack in _short(environment, state):
            near = self._near(environment, state, lack)
            notes.append(f"{lack.group}: {len(near)} of its documents come in")
            entering |= dict.fromkeys(near)
        if not entering:
            return Attempt(state, state, state.gap, tuple(notes), failure="no neighbor is new")
        after = environment.learned_anew(state, environment.joined(state.found, list(entering)), state.judged)
        weights = after.control.reached[0] if after.control.reached else None
        return Attempt(after, state, state.bar, tuple(notes), weights=weights)

    def _near(self, environment: Environment, state: State, lack: Lack) -> list[str]:
        """The group's documents near its best ones, or where it has none near what is served, that were not found."""
        around = self.graph.neighbors(environment.best_of(state, lack, SEEDS) or state.served.ids[:SEEDS])
        found = set(state.found.ids)
        near = [id for id in dict.fromkeys(id for ids in around for id in ids) if id not in found]
        return [id for id, part in zip(near, environment.of_group(near, lack).tolist(), strict=True) if part > 0]


def _short(environment: Environment, state: State) -> list[Lack]:
    """The groups that have fewer documents in the pool than places they should have, the one that lacks most first."""
    ids, n = state.found.ids, environment.search.n
    return [lack for lack in lacking(state.exposures) if environment.of_group(ids, lack).sum() < round(lack.target * n)]
