"""What a loop is: it may search again in the light of what was found, and says which candidates to re-rank.

Which groups lack exposure, and by how much.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fairagent.collection.exposure import ExposureMeter
from fairagent.retrieve.base import Retriever
from fairagent.search.loop.guard import Guard
from fairagent.search.rerank.base import Pool, pool_of
from fairagent.types import Exposure, Group, Query, Ranking, Step

OnStep = Callable[[Step], None]
"""Is told each step of a search when it has been made; what it raises ends the search."""


def ignore_step(step: Step) -> None:
    """An `OnStep` for those whom nobody listens to."""


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """A search that has begun: `steps` are its retrievals so far, the last one the engine's own list.

    `retrieve` asks the engine for another deep list, `serve` gives what the user would get of a pool of candidates.
    `on_step` has been told all of `steps` but the last, which a loop may measure otherwise: the loop tells it that one
    and its own.
    """

    query: Query
    steps: tuple[Step, ...]
    meter: ExposureMeter
    engine: Retriever
    n: int
    retrieve: Callable[[Query], Ranking]
    serve: Callable[[Pool], Ranking]
    on_step: OnStep = ignore_step

    def pool(self, ranking: Ranking, meter: ExposureMeter, unit: float = 0.0) -> Pool:
        """The candidates of `ranking` with their groups, for a served list of `n`."""
        return pool_of(self.query, ranking, meter, self.n, unit)


@dataclass(frozen=True, slots=True, eq=False)
class LoopResult:
    """What a loop came to: all `steps`, why it ended, and the candidates for the re-ranker.

    `meter` measures as the loop did; `unit` is what a difference of 1 in relevance is on the scale of the candidates'
    scores (0: their range). `guard` compares what is served with the engine's own list; None: nobody does. `removed`
    are the documents that a filter has taken out. `served` is what `Search.serve` made of the candidates, where the
    loop has seen it. `entered` are the candidates that only a second search of the collection has retrieved.
    """

    candidates: Ranking
    steps: tuple[Step, ...]
    stopped: str
    meter: ExposureMeter
    unit: float = 0.0
    guard: Guard | None = None
    removed: frozenset[str] = frozenset()
    served: Ranking | None = None
    entered: frozenset[str] = frozenset()


class Loop(Protocol):
    """Any object with this method will do."""

    def run(self, search: Search) -> LoopResult:
        """Refine the search, or leave it as it is and say why."""
        ...


@dataclass(frozen=True, slots=True)
class Lack:
    """A group that has less exposure than its share; `place` is its place among the groups of all dimensions."""

    group: Group
    place: int
    share: float
    target: float
    size: float

    def __str__(self) -> str:
        return f"{self.group} has {self.share:.0%} of the exposure, its share is {self.target:.0%}"


def lacking(exposures: Sequence[Exposure]) -> list[Lack]:
    """The groups that lack exposure, the one that lacks most first; by the importance of their dimensions."""
    found, place = [], 0
    for one in exposures:
        for label, share, target in zip(one.labels, one.shares.tolist(), one.target.tolist(), strict=True):
            size = one.importance * (target - share)
            if size > 0:
                found.append(Lack(Group(one.dimension, label), place, share, target, size))
            place += 1
    return sorted(found, key=lambda lack: -lack.size)
