"""The loop: search, measure, aim at the most under-exposed group, refine, search again, re-rank.

This is FAIR-QR (arXiv 2503.21092) with the decisions of its re-implementation spelled out. One dimension is the
special case of several: the gap is the sum over dimensions, the group to help the worst (dimension, group) pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from fairagent.candidates import select
from fairagent.collection import Collection
from fairagent.errors import UsageError
from fairagent.exposure import ExposureMeter, most_underexposed, total_gap
from fairagent.found import Found
from fairagent.query import as_query, with_terms
from fairagent.refine.base import Refiner, RefineState, new_keywords
from fairagent.rerank.base import Pool, Reranker
from fairagent.retrieve.base import Retriever, checked
from fairagent.retrieve.clock import engine_seconds
from fairagent.retrieve.relevance_model import RM3, TermSource
from fairagent.settings import Settings
from fairagent.types import AnswerResult, Query, Ranking, SearchResult, Step, Topic

if TYPE_CHECKING:
    from fairagent.answer import Answerer


@dataclass(frozen=True, slots=True)
class FairAgent:
    """Finds rankings that are relevant to a query and show groups their share. `open_agent` makes one.

    Without a refiner there is no loop, without a re-ranker the candidates stay in their order. An agent holds no state
    of a search: threads may share it. `answerer` opens what answers need, a model perhaps, for the first of them.
    """

    collection: Collection
    retriever: Retriever
    refiner: Refiner | None
    reranker: Reranker | None
    settings: Settings
    answerer: Callable[[], Answerer] | None = None

    def search(self, query: str | Query | Topic) -> SearchResult:
        """A fair ranking of `settings.n` documents, with the trace of how it came about.

        Targets and groups that depend on the topic need a `Topic`, or a `Query` with its id.
        Raises DataError where a target cannot be made or the engine's list is none, BackendUnavailable, and what the
        refiner's model raises.
        """
        found = self.find(query, self.settings.n)
        return found.result(found.pool)

    def answer(self, query: str | Query | Topic, on_text: Callable[[str], None] | None = None) -> AnswerResult:
        """An answer from the first documents of a fair ranking, with its citations and all that it came from.

        `on_text` is told the answer piece by piece while it is being written, e.g. `queue.put` or
        `sys.stdout.write`; what it raises ends the answer. Raises what `search` does, UsageError for an agent without
        an answerer, and what the filter, the generator and the attribution raise.
        """
        # Before the search, which may be paid for: whatever is missing is said now.
        answerer = self.open_answerer()
        found = self.find(query, self.settings.n)
        return answerer.answer(found.result(found.pool), found.meter, self.retriever, on_text)

    def open_answerer(self) -> Answerer:
        """What answers; UsageError where there is none."""
        if self.answerer is None:
            raise UsageError("this agent has no answerer; `open_agent` makes one that answers")
        return self.answerer()

    def find(self, query: str | Query | Topic, length: int) -> Found:
        """The algorithm: the first `length` re-ranked candidates (never fewer than `settings.n`), and their story.

        A re-ranker that looks at the whole ranking, as `exposure` does, may order the head of a longer one otherwise
        than `search` does. Raises what `search` does.
        """
        started, engine_started = perf_counter(), engine_seconds()
        asked = as_query(query)
        steps, meter = self._start(asked)
        stopped = self._refine(self.refiner, asked, meter, steps) if self.refiner else ""
        candidates, length = select(self.settings.candidates, steps), max(length, self.settings.n)
        pool = candidates.top(length)
        if self.reranker:
            targets = tuple(target.shares for target in meter.targets)
            pool = self.reranker.rerank(Pool(asked, candidates, meter.memberships(candidates.ids), targets, length))
        return Found(asked, pool, tuple(steps), stopped, meter, self.retriever, self.settings, started, engine_started)

    def _start(self, query: Query) -> tuple[list[Step], ExposureMeter]:
        """The user's words, then, where the engine can tell them, the words of the topic."""
        first = self._retrieve(query)
        rankings = [("query", query, first)]
        expansion = self.settings.expansion
        if expansion.documents and len(first) and isinstance(self.retriever, TermSource):
            rm3 = RM3(expansion.documents, expansion.terms, expansion.weight)
            expanded = rm3.expand(self.retriever, query, first)
            rankings.append(("topic words", expanded, self._retrieve(expanded)))
        meter = ExposureMeter.make(self.collection, query.id, self.settings, rankings[-1][2])
        steps = [
            _measured(meter, Step(source, asked, ranking, (), 0.0, added=asked.terms[len(query.terms) :]))
            for source, asked, ranking in rankings
        ]
        return steps, meter

    def _refine(self, refiner: Refiner, query: Query, meter: ExposureMeter, steps: list[Step]) -> str:
        """The loop; appends a step for each query tried and says why it stopped."""
        first, now = steps[0], steps[-1]
        if not len(first.ranking):
            return "the query retrieves nothing"
        dimensions = (target.dimension for target in meter.targets)
        memberships = dict(zip(dimensions, meter.memberships(first.ranking.ids), strict=True))
        tried: frozenset[str] = frozenset()
        for _ in range(self.settings.iterations):
            if now.gap <= self.settings.threshold:
                return f"the gap is not above {self.settings.threshold:g}"
            group = most_underexposed(now.exposures)
            if group is None:
                return "no group lacks exposure"

            proposed = refiner.refine(
                RefineState(query, now.query, first.ranking, memberships, now.exposures, group, tried)
            )
            added, dropped = new_keywords(proposed, tried, self.retriever)
            tried |= {term.text for term in proposed.terms}
            step = replace(now, source=proposed.source, aim=group, usage=proposed.usage, refused=proposed.refused)
            step = replace(step, added=added, dropped=dropped)
            if not added:
                steps.append(replace(step, accepted=False))
                repeated = proposed.terms and not dropped
                nothing = "repeated: no keyword is new" if repeated else "no new keyword occurs in the index"
                return proposed.note or nothing

            refined = with_terms(now.query, added)
            step = _measured(meter, replace(step, query=refined, ranking=self._retrieve(refined)))
            steps.append(replace(step, accepted=step.gap < now.gap))
            if not steps[-1].accepted:
                return "the gap did not fall"
            now = steps[-1]
        return f"{self.settings.iterations} refinements were made"

    def _retrieve(self, query: Query) -> Ranking:
        return checked(query, self.retriever.search(query, max(self.settings.depth, self.settings.n)))


def _measured(meter: ExposureMeter, step: Step) -> Step:
    exposures = meter.measure(step.ranking)
    return replace(step, exposures=exposures, gap=total_gap(exposures))
