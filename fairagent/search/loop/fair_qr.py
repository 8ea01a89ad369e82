"""FAIR-QR's loop (arXiv 2503.21092): keywords for the most under-exposed group, as long as the gap falls.

One dimension is the special case of several: the gap is the sum over dimensions, the group to help the worst
(dimension, group) pair. Candidate selection: which of the lists that the loop retrieved the re-ranker sees.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fairagent.collection.exposure import ExposureMeter, most_underexposed, total_gap, worse_dimensions
from fairagent.measures import min_max
from fairagent.retrieve.base import Vocabulary
from fairagent.search.loop.base import LoopResult, Search
from fairagent.search.refine import Refiner, RefineState, refined
from fairagent.search.rerank.base import ordered
from fairagent.types import Ranking, Step
from fairagent.types.search import with_terms

ListPolicy = Literal["best", "last", "union"]


def select(policy: ListPolicy, steps: Sequence[Step]) -> Ranking:
    """The candidates for the re-ranker.

    `best`: the last accepted list, whose gap is the smallest since the loop began. `last`: the list of the last query
    tried. `union`: all accepted lists, the first among them: re-ranked by the user's own query alone, it comes back.
    """
    accepted = [step.ranking for step in steps if step.accepted]
    if policy == "union":
        return union(accepted)
    return accepted[-1] if policy == "best" else steps[-1].ranking


def union(rankings: Sequence[Ranking]) -> Ranking:
    """All documents of the rankings, scored by the mean of their min-max scores (0 where a ranking lacks one)."""
    total: dict[str, float] = {}
    for ranking in rankings:
        for id, score in zip(ranking.ids, min_max(ranking.scores).tolist(), strict=True):
            total[id] = total.get(id, 0.0) + score / len(rankings)
    return ordered(tuple(total), np.array(list(total.values())), len(total))


@dataclass(frozen=True, slots=True)
class FairQR:
    """`refiner` proposes keywords, `iterations` times at most; `candidates` says which lists are re-ranked.

    With a `depth` the list is cut to it before it is re-ranked, but never to fewer documents than are shown: the paper
    leaves it open, and at the depth of the whole list the original query's order comes back.
    """

    refiner: Refiner
    iterations: int = 5
    threshold: float = 0.0
    candidates: ListPolicy = "best"
    depth: int = 0

    def run(self, search: Search) -> LoopResult:
        steps = list(search.steps)
        search.on_step(steps[-1])
        stopped = self._refine(search, steps)
        candidates = select(self.candidates, steps)
        if self.depth:
            candidates = candidates.top(max(self.depth, search.n))
        if 0 < self.depth < search.n:
            note = f"{search.n} documents are re-ranked, as many as are shown: rerank_depth is {self.depth}"
            steps[-1] = replace(steps[-1], notes=(*steps[-1].notes, note))
        return LoopResult(candidates, tuple(steps), stopped)

    def _refine(self, search: Search, steps: list[Step]) -> str:
        """Append a step for each query tried, and say why it stopped."""
        first, now, meter = steps[0], steps[-1], search.meter
        if not len(first.ranking):
            return "the query retrieves nothing"
        dimensions = (target.dimension for target in meter.targets)
        memberships = dict(zip(dimensions, meter.memberships(first.ranking.ids), strict=True))
        tried: frozenset[str] = frozenset()
        for _ in range(self.iterations):
            if now.gap <= self.threshold:
                return f"the gap is not above {self.threshold:g}"
            group = most_underexposed(now.exposures)
            if group is None:
                return "no group lacks exposure"

            proposed = refined(
                self.refiner,
                RefineState(search.query, now.query, first.ranking, memberships, now.exposures, group, tried),
            )
            # New keywords that no document has are dropped, where the engine tells.
            known = search.engine.document_frequency if isinstance(search.engine, Vocabulary) else None
            new = [term for term in proposed.terms if term.text not in tried]
            added = tuple(term for term in new if known is None or known(term.text) > 0)
            dropped = tuple(term.text for term in new if term not in added)
            tried |= {term.text for term in proposed.terms}
            step = replace(
                now,
                source=proposed.source,
                aim=group,
                added=added,
                dropped=dropped,
                usage=proposed.usage,
                refused=proposed.refused,
                proposals=proposed.proposals,
                notes=(proposed.note,) if proposed.terms and proposed.note else (),
            )
            if not added:
                steps.append(replace(step, accepted=False))
                search.on_step(steps[-1])
                repeated = proposed.terms and not dropped
                nothing = "repeated: no keyword is new" if repeated else "no new keyword occurs in the index"
                return proposed.note or nothing

            query = with_terms(now.query, added)
            step = measured(meter, replace(step, query=query, ranking=search.retrieve(query)))
            accepted = step.gap < now.gap
            worse = worse_dimensions(now.exposures, step.exposures) if accepted else ()
            now = replace(step, accepted=accepted, worse=worse)
            steps.append(now)
            search.on_step(now)
            if not accepted:
                return "the gap did not fall"
        return f"the limit of {self.iterations} refinements is reached"


def measured(meter: ExposureMeter, step: Step) -> Step:
    """The step with what its list gives the groups."""
    exposures = meter.measure(step.ranking)
    return replace(step, exposures=exposures, gap=total_gap(exposures))
