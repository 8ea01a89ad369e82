"""What a loop is: it may search again in the light of its measurements, and says which candidates to re-rank."""

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol

from fairagent.collection.exposure import ExposureMeter
from fairagent.retrieve.base import Retriever
from fairagent.search.loop.guard import Guard
from fairagent.search.rerank.base import Pool, pool_of
from fairagent.settings.parts import Part
from fairagent.settings.seam import PartCall
from fairagent.types import Exposure, Group, Query, Ranking, Step

OnStep = Callable[[Step], None]
"""Gets each step of a search once it has been made; what it raises ends the search."""


def ignore_step(step: Step) -> None:
    """The null callback."""


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """A search that has begun: `steps` are its retrievals so far, the last one the engine's own list.

    `retrieve` asks the engine for another deep list, `serve` gives what the user would get of a pool of candidates.
    `allowed` gives those of some documents that the search may have.
    `on_step` has had all of `steps` but the last, which a loop may measure otherwise: it gets that one, and those of
    the loop, from the loop.
    """

    query: Query
    steps: tuple[Step, ...]
    meter: ExposureMeter
    engine: Retriever
    n: int
    retrieve: Callable[[Query], Ranking]
    serve: Callable[[Pool], Ranking]
    on_step: OnStep = ignore_step
    allowed: Callable[[Sequence[str]], list[str]] = list

    def pool(self, ranking: Ranking, meter: ExposureMeter, unit: float = 0.0, n: int = 0) -> Pool:
        """The candidates of `ranking` with their groups, for a list of `n` (0: as many as are served)."""
        return pool_of(self.query, ranking, meter, n or self.n, unit)


@dataclass(frozen=True, slots=True, eq=False)
class LoopResult:
    """What a loop came to: all `steps`, why it ended, and the candidates for the re-ranker.

    `meter` measures as the loop did; `unit` is what a difference of 1 in relevance is on the scale of the candidates'
    scores (0: their range). `guard` compares what is served with the engine's own list; None: nobody does. `removed`
    are the documents that a filter has taken out. `served` is what `Search.serve` made of the candidates (as `pool`),
    where the loop has seen it. `entered` are the candidates that only a second search of the collection has retrieved.
    """

    candidates: Ranking
    steps: tuple[Step, ...]
    stopped: str
    meter: ExposureMeter
    unit: float = 0.0
    guard: Guard | None = None
    removed: frozenset[str] = frozenset()
    served: Ranking | None = None
    pool: Pool | None = None
    entered: frozenset[str] = frozenset()


class Loop(Protocol):
    """Any object with this method will do."""

    def run(self, search: Search) -> LoopResult:
        """Refine the search, or leave it as it is and say why."""
        ...


def looped(loop: Loop, search: Search, part: Part | None = None) -> LoopResult:
    """What the loop came to; PartError where that is none. `part` describes it."""
    with PartCall("loop", loop, search.query, part) as call:
        result = loop.run(replace(search, on_step=call.passing(search.on_step) or ignore_step))
    result = call.one_of(result, LoopResult)
    candidates = call.ranking(result.candidates, sys.maxsize)
    if not len(candidates) and len(search.steps[-1].ranking) and not result.removed:
        raise call.fault("no candidates")
    served = result.served and call.ranking(result.served, search.n, candidates.ids)
    return replace(result, candidates=candidates, served=served)


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
    lacks, place = [], count()
    for one in exposures:
        for label, share, target in zip(one.labels, one.shares.tolist(), one.target.tolist(), strict=True):
            size = one.importance * (target - share)
            lacks.append(Lack(Group(one.dimension, label), next(place), share, target, size))
    return sorted((lack for lack in lacks if lack.size > 0), key=lambda lack: -lack.size)


def without(ranking: Ranking, removed: Collection[str]) -> Ranking:
    """The ranking without these documents."""
    places = [place for place, id in enumerate(ranking.ids) if id not in removed]
    return Ranking(tuple(ranking.ids[place] for place in places), ranking.scores[places])
