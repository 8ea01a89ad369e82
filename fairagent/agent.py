"""The loop: search, measure, aim at the most under-exposed group, refine, search again, re-rank.

This is FAIR-QR (arXiv 2503.21092) with the decisions of its re-implementation spelled out. One dimension is the
special case of several: the gap is the sum over dimensions, the group to help the worst (dimension, group) pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

from fairagent.candidates import select
from fairagent.collection import Collection
from fairagent.errors import ModelError, UsageError
from fairagent.exposure import ExposureMeter, most_underexposed, total_gap
from fairagent.query import as_query, with_terms
from fairagent.refine.base import Refiner, RefineState
from fairagent.rerank.base import Pool, Reranker
from fairagent.result import hits_of
from fairagent.retrieve.base import Retriever, Vocabulary, checked
from fairagent.retrieve.clock import engine_seconds
from fairagent.retrieve.plackett_luce import checked_alpha, topic_rng
from fairagent.retrieve.relevance_model import RM3, TermSource
from fairagent.retrieve.requests import Requests
from fairagent.retrieve.stochastic import Samples, draw
from fairagent.settings import Settings
from fairagent.types import (
    AnswerResult,
    Draw,
    Query,
    Ranking,
    Refinement,
    SearchResult,
    Step,
    Term,
    Topic,
    Trace,
    Usage,
)

if TYPE_CHECKING:
    from fairagent.answer import Answerer


@dataclass(frozen=True, slots=True)
class FairAgent:
    """Finds rankings that are relevant to a query and show groups their share. `open_agent` makes one.

    An agent holds no state of a search: threads may share it. `answerer` opens what answers need, which may be a
    model, when the first one is asked for.

    With `stochastic` (where it is None, with `settings.sampling.alpha`) each request gets a ranking of its own, drawn
    by Plackett-Luce with that alpha from the re-ranked candidates, so that what the loop and the re-ranker do for the
    groups and what chance does add up. Requests for one query differ; the seed and the request's number give a
    ranking again.
    """

    collection: Collection
    retriever: Retriever
    refiner: Refiner
    reranker: Reranker
    settings: Settings
    answerer: Callable[[], Answerer] | None = None
    stochastic: float | None = None
    _requests: Requests = field(default_factory=Requests, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.stochastic is not None:
            checked_alpha(self.stochastic)

    @property
    def alpha(self) -> float | None:
        """That of the draws; None where nothing is drawn."""
        return self.settings.sampling.alpha if self.stochastic is None else self.stochastic

    def search(self, query: str | Query | Topic) -> SearchResult:
        """A fair ranking of `settings.n` documents, with the trace of how it came about; drawn, where the agent draws.

        Targets and groups that depend on the topic need a `Topic`, or a `Query` with its id.
        Raises DataError where a target cannot be made or the engine's list is none, BackendUnavailable, and what the
        refiner's model raises.
        """
        return self._search(as_query(query))[0]

    def answer(self, query: str | Query | Topic, on_text: Callable[[str], None] | None = None) -> AnswerResult:
        """An answer from the first documents of a fair ranking, with its citations and all that it came from.

        `on_text` is told the answer piece by piece while it is being written, e.g. `queue.put` or
        `sys.stdout.write`; what it raises ends the answer. Raises what `search` does, UsageError for an agent without
        an answerer, and what the filter, the generator and the attribution raise.
        """
        if self.answerer is None:
            raise UsageError("this agent has no answerer; `open_agent` makes one that answers")
        # Before the search, which may be paid for: whatever is missing is said now.
        answerer = self.answerer()
        found, meter = self._search(as_query(query))
        return answerer.answer(found, meter, self.retriever, on_text)

    def candidates(self, query: str | Query | Topic, n: int) -> tuple[SearchResult, Ranking]:
        """The first `n` re-ranked candidates (never fewer than `settings.n`), and their head as an undrawn result.

        A re-ranker that looks at the whole ranking, as `exposure` does, may order the head of a longer one otherwise
        than `search` does. Raises what `search` does.
        """
        found, _, pool = self._found(as_query(query), n, None)
        return found, pool

    def sample(self, query: str | Query | Topic, n_samples: int) -> Samples:
        """`n_samples` of the rankings that this agent may serve for `query`, from one run of the loop.

        They are the same at every call, whatever is served meanwhile. Raises what `search` does, UsageError for an
        agent that draws nothing or fewer than one sample.
        """
        alpha, asked = self.alpha, as_query(query)
        if alpha is None:
            raise UsageError("this agent draws nothing: set `stochastic`, or `sampling.alpha` in its settings")
        _, pool = self.candidates(asked, self.settings.sampling.pool)
        rng = topic_rng(self.settings.sampling.seed, asked.id or asked.text)
        return draw(pool, alpha, self.settings.n, rng, n_samples)

    def _search(self, query: Query) -> tuple[SearchResult, ExposureMeter]:
        """The ranking that is served, and what measured it."""
        alpha = self.alpha
        found, meter, _ = self._found(query, self.settings.n if alpha is None else self.settings.sampling.pool, alpha)
        return found, meter

    def _found(self, query: Query, length: int, alpha: float | None) -> tuple[SearchResult, ExposureMeter, Ranking]:
        """A fair ranking (drawn, where there is an `alpha`), what measured it, and its re-ranked candidates."""
        started, engine_started = perf_counter(), engine_seconds()
        steps, meter = self._start(query)
        try:
            stopped = self._refine(query, meter, steps)
        except ModelError as error:
            # What the steps before it took was spent as well.
            error.usage = sum((step.usage for step in steps), error.usage)
            raise

        candidates = select(self.settings.candidates, steps)
        targets = tuple(target.shares for target in meter.targets)
        length = max(length, self.settings.n)
        pool = self.reranker.rerank(Pool(query, candidates, meter.memberships(candidates.ids), targets, length))
        ranking, drawn = pool.top(self.settings.n), None
        if alpha is not None:
            ranking, drawn = self._drawn(query, pool, alpha)

        exposures = meter.measure(ranking)
        hits = hits_of(ranking, meter, self.retriever)
        trace = Trace(
            query=query,
            steps=tuple(steps),
            stopped=stopped,
            candidates=self.settings.candidates,
            reranker=self.settings.reranking.kind,
            exposures=exposures,
            gap=total_gap(exposures),
            targets=tuple(target.source for target in meter.targets),
            oracle=meter.oracle,
            usage=sum((step.usage for step in steps), Usage()),
            seconds=perf_counter() - started,
            engine_seconds=engine_seconds() - engine_started,
            draw=drawn,
        )
        return SearchResult(query, ranking, hits, trace), meter, pool

    def _drawn(self, query: Query, pool: Ranking, alpha: float) -> tuple[Ranking, Draw]:
        """The ranking of this request."""
        topic, seed = query.id or query.text, self.settings.sampling.seed
        request = self._requests.number(topic)
        ranking = draw(pool, alpha, self.settings.n, topic_rng(seed, topic, request)).ranking(0)
        return ranking, Draw(alpha, len(pool), seed, request)

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

    def _refine(self, query: Query, meter: ExposureMeter, steps: list[Step]) -> str:
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

            state = RefineState(query, now.query, first.ranking, memberships, now.exposures, group, tried)
            proposed = self.refiner.refine(state)
            added, dropped = self._tried_out(proposed, tried)
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
        depth = max(self.settings.depth, self.settings.n)
        return checked(query, self.retriever.search(query, depth))

    def _tried_out(self, proposed: Refinement, tried: frozenset[str]) -> tuple[tuple[Term, ...], tuple[str, ...]]:
        """The proposed keywords that are new and occur in the index, and the words of those that do not occur."""
        new = [term for term in proposed.terms if term.text not in tried]
        if not isinstance(self.retriever, Vocabulary):
            return tuple(new), ()
        found = [self.retriever.document_frequency(term.text) > 0 for term in new]
        added = tuple(term for term, occurs in zip(new, found, strict=True) if occurs)
        return added, tuple(term.text for term, occurs in zip(new, found, strict=True) if not occurs)


def _measured(meter: ExposureMeter, step: Step) -> Step:
    exposures = meter.measure(step.ranking)
    return replace(step, exposures=exposures, gap=total_gap(exposures))
