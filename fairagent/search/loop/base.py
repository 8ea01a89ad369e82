"""What a loop is: it may search again in the light of its measurements, and says which candidates to re-rank."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol

import numpy as np

from fairagent.collection.exposure import ExposureMeter, total_gap
from fairagent.measures.objective import list_relevance
from fairagent.retrieve.base import Retriever
from fairagent.search.rerank.base import Pool, Reranker, dialed, relevance_of, rerank_with
from fairagent.search.rerank.frontier import Frontier
from fairagent.settings.parts import Part
from fairagent.settings.seam import PartCall
from fairagent.types import Dial, Exposure, Group, Query, Ranking, Step

OnStep = Callable[[Step], None]
"""Gets each step of a search once it has been made; what it raises ends the search."""


def ignore_step(step: Step) -> None:
    """The null callback."""


@dataclass(frozen=True, slots=True, eq=False)
class FinalList:
    """What the user would get of the candidates of `pool`: a `ranking` with its `relevance` R and its `gap` G.

    The `dial` chose it among the lists of `frontier` (None: the re-ranker has none). `estimates` are the relevance of
    each candidate, `exposures` what the ranking gives the groups.
    """

    pool: Pool
    ranking: Ranking
    relevance: float
    gap: float
    exposures: tuple[Exposure, ...]
    frontier: Frontier | None
    dial: Dial
    estimates: Mapping[str, float]

    @property
    def objective(self) -> float:
        """J: the relevance less the dial's price of the gap."""
        return self.relevance - self.dial.price * self.gap

    @classmethod
    def of(
        cls,
        pool: Pool,
        meter: ExposureMeter,
        reranker: Reranker | None,
        part: Part | None = None,
        others: Sequence[Ranking] = (),
    ) -> FinalList:
        """What the `reranker` makes of the pool (None: its first `n`); the `others` are more lists to choose among."""
        choosing, frontier = dialed(reranker), None
        relevance = relevance_of(pool) if len(pool.ranking) else np.zeros(0)
        if choosing and len(pool.ranking):
            with PartCall("rerank", choosing, pool.query, part):
                frontier, relevance = choosing.frontier(pool, others), choosing.relevance(pool)
        ranking = rerank_with(reranker, pool, part) if reranker else pool.ranking.top(pool.n)
        exposures = meter.measure(ranking)
        estimates = dict(zip(pool.ranking.ids, relevance.tolist(), strict=True))
        return cls(
            pool=pool,
            ranking=ranking,
            relevance=relevance_in(estimates, ranking, meter),
            gap=total_gap(exposures),
            exposures=exposures,
            frontier=frontier,
            dial=choosing.dial if choosing else Dial(),
            estimates=estimates,
        )


def relevance_in(estimates: Mapping[str, float], ranking: Ranking, meter: ExposureMeter) -> float:
    """R of the first `n` documents of a ranking; one that is no candidate counts 0."""
    top = ranking.top(meter.n)
    if not len(top):
        return 0.0
    return float(list_relevance(np.array([estimates.get(id, 0.0) for id in top.ids]), meter.discount(len(top))))


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """A search that has begun; the last of its `steps` so far is the engine's own deep list.

    `candidates` are the documents of that list by estimated relevance, on the scale of its scores. `retrieve` asks the
    engine for another deep list; `joined` adds documents to candidates, each as relevant as it is for the user's own
    query; `rerank` gives what the user would get of candidates, with more lists to choose from. `on_step` has been
    given all `steps` but the last: the loop passes that one on, as it measures it, and then its own.
    """

    query: Query
    steps: tuple[Step, ...]
    meter: ExposureMeter
    engine: Retriever
    n: int
    candidates: Ranking
    retrieve: Callable[[Query], Ranking]
    joined: Callable[[Ranking, Sequence[str]], Ranking]
    rerank: Callable[[Ranking, Sequence[Ranking]], FinalList]
    on_step: OnStep = ignore_step

    @property
    def engine_list(self) -> Ranking:
        """The engine's own deep list."""
        return self.steps[-1].ranking


@dataclass(frozen=True, slots=True, eq=False)
class LoopResult:
    """What a loop came to: all `steps`, why it ended, and the candidates for the re-ranker.

    `engine_list` is the list on whose scale their scores are (None: their own). `removed` are the documents that a
    filter took out, `entered` the candidates that only a further search retrieved. `reranked` is the last result of
    `Search.rerank`.
    """

    candidates: Ranking
    steps: tuple[Step, ...]
    stopped: str
    engine_list: Ranking | None = None
    removed: frozenset[str] = frozenset()
    reranked: FinalList | None = None
    entered: frozenset[str] = frozenset()


class Loop(Protocol):
    """Any object with this method will do."""

    def run(self, search: Search) -> LoopResult:
        """Refine the search, or leave it as it is and say why."""
        ...


def run_with(loop: Loop, search: Search, part: Part | None = None) -> LoopResult:
    """What the loop came to; PartError where that is none. `part` describes it."""
    with PartCall("loop", loop, search.query, part) as call:
        result = loop.run(replace(search, on_step=call.passing(search.on_step) or ignore_step))
    result = call.one_of(result, LoopResult)
    candidates = call.ranking(result.candidates, sys.maxsize)
    if not len(candidates) and len(search.engine_list) and not result.removed:
        raise call.fault("no candidates")
    return replace(result, candidates=candidates)


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
