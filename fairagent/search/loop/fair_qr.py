"""FAIR-QR's loop (arXiv 2503.21092): keywords for the most under-exposed group, as long as the gap falls.

With the decisions of its re-implementation spelled out. One dimension is the special case of several: the gap is the
sum over dimensions, the group to help the worst (dimension, group) pair.
"""

from dataclasses import dataclass, replace

from fairagent.candidates import ListPolicy, select
from fairagent.exposure import ExposureMeter, most_underexposed, total_gap, worse_dimensions
from fairagent.loop.base import LoopResult, Search
from fairagent.loop.guard import Guard
from fairagent.query import with_terms
from fairagent.refine.refiner import Refiner, RefineState, new_keywords
from fairagent.types import Step


@dataclass(frozen=True, slots=True)
class FairQR:
    """`refiner` proposes keywords, `iterations` times at most; `candidates` says which lists are re-ranked.

    With a `depth` the list is cut to it before it is re-ranked: the paper does not say how deep it re-ranks, and at
    the depth of the whole list the original query's order comes back. `guard` is as in `LoopResult`.
    """

    refiner: Refiner
    iterations: int = 5
    threshold: float = 0.0
    candidates: ListPolicy = "best"
    depth: int = 0
    guard: Guard | None = None

    def run(self, search: Search) -> LoopResult:
        """See `Loop.run`."""
        steps = list(search.steps)
        search.on_step(steps[-1])
        stopped = self._refine(search, steps)
        found = select(self.candidates, steps)
        found = found.top(self.depth) if self.depth else found
        return LoopResult(found, tuple(steps), stopped, search.meter, guard=self.guard)

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

            proposed = self.refiner.refine(
                RefineState(search.query, now.query, first.ranking, memberships, now.exposures, group, tried)
            )
            added, dropped = new_keywords(proposed, tried, search.engine)
            tried |= {term.text for term in proposed.terms}
            step = replace(now, source=proposed.source, aim=group, usage=proposed.usage, refused=proposed.refused)
            notes = (proposed.note,) if proposed.terms and proposed.note else ()
            step = replace(step, added=added, dropped=dropped, notes=notes)
            if not added:
                steps.append(replace(step, accepted=False))
                search.on_step(steps[-1])
                repeated = proposed.terms and not dropped
                nothing = "repeated: no keyword is new" if repeated else "no new keyword occurs in the index"
                return proposed.note or nothing

            refined = with_terms(now.query, added)
            step = measured(meter, replace(step, query=refined, ranking=search.retrieve(refined)))
            accepted = step.gap < now.gap
            worse = worse_dimensions(now.exposures, step.exposures) if accepted else ()
            steps.append(replace(step, accepted=accepted, worse=worse))
            search.on_step(steps[-1])
            if not steps[-1].accepted:
                return "the gap did not fall"
            now = steps[-1]
        return f"{self.iterations} refinements were made"


def measured(meter: ExposureMeter, step: Step) -> Step:
    """The step with what its list gives the groups."""
    exposures = meter.measure(step.ranking)
    return replace(step, exposures=exposures, gap=total_gap(exposures))
