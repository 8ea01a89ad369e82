"""The agent: search, measure, run the loop, re-rank, and serve the fairer ranking (or say that none was found).

`SearchRun`: the outcome of a search before it is served: the re-ranked candidates and their trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import fairagent
from fairagent.collection import Collection
from fairagent.collection.exposure import ExposureMeter, total_gap
from fairagent.collection.target_choice import below_corpus, following
from fairagent.errors import UsageError
from fairagent.retrieve.base import Retriever, TextSource, checked, shown
from fairagent.retrieve.clock import engine_seconds
from fairagent.retrieve.fused import FusedRetriever
from fairagent.retrieve.relevance_model import RM3, TermSource
from fairagent.search.loop.base import Loop, LoopResult, OnStep, Search, ignore_step
from fairagent.search.loop.controller import without
from fairagent.search.loop.fair_qr import measured, select
from fairagent.search.loop.guard import Guarded, less_fair, moved_by_kinds, unlabeled_off
from fairagent.search.rerank.base import Pool, Reranker
from fairagent.search.rerank.exposure import stricter
from fairagent.settings import Settings
from fairagent.storage.threads import one_blas_thread, progress
from fairagent.types import AnswerResult, Draw, Hit, Query, Ranking, SearchResult, Step, Topic, Trace, Usage, common
from fairagent.types.common import Alarm, Summarized
from fairagent.types.search import as_query

if TYPE_CHECKING:
    from fairagent.answer.answering import Answerer
    from fairagent.collection.labels import Labeling
    from fairagent.collection.load import GroupColumns


@dataclass(frozen=True, slots=True, eq=False)
class SearchRun:
    """The candidates of `query` in their final order (`pool`), of which `result` serves the first.

    `started` and `engine_started` are the clocks' readings when the search began, `retrieved` is as in `SearchResult`;
    `entered` are the documents that only a second search has retrieved.
    """

    query: Query
    pool: Ranking
    steps: tuple[Step, ...]
    stopped: str
    meter: ExposureMeter
    retriever: Retriever
    settings: Settings
    notes: tuple[str, ...]
    alarms: tuple[Alarm, ...]
    started: float
    engine_started: float
    retrieved: tuple[str, ...] = ()
    entered: frozenset[str] = frozenset()

    def result(self, ranking: Ranking, draw: Draw | None = None) -> SearchResult:
        """The first `settings.n` documents of `ranking`, with their titles and groups, and the trace."""
        served = ranking.top(self.settings.n)
        exposures = self.meter.measure(served)
        hits = hits_of(served, self.meter, self.retriever)
        usage = sum((step.usage for step in self.steps), Usage())
        trace = Trace(
            query=self.query,
            profile=self.settings.profile,
            engine=str(self.settings.engine),
            steps=self.steps,
            stopped=self.stopped,
            candidates=self.settings.candidates,
            reranker=str(self.settings.rerank),
            exposures=exposures,
            gap=total_gap(exposures),
            targets=tuple(target.source for target in self.meter.targets),
            oracle=self.meter.oracle,
            usage=usage,
            seconds=perf_counter() - self.started,
            engine_seconds=engine_seconds() - self.engine_started,
            draw=draw,
            entered=sum(id in self.entered for id in served.ids),
            notes=(*self.notes, *following(self.meter.targets), *unused_refiner(self.settings)),
            alarms=(
                *self.alarms,
                *below_corpus(self.meter.targets, self.meter.collection),
                *(alarm for step in self.steps for alarm in step.alarms),
                *common.of_usage(usage),
            ),
        )
        return SearchResult(self.query, served, hits, trace, self.retrieved)


def engine_notes(engine: Retriever, query: Query) -> tuple[str, ...]:
    """What is to be known about the engine: which of several failed at `query`."""
    failures = engine.failures(query) if isinstance(engine, FusedRetriever) else {}
    return tuple(f"engine {name} failed, the others serve: {error}" for name, error in failures.items())


def unused_refiner(settings: Settings) -> tuple[str, ...]:
    """That a refiner was set which no loop asks, and what to set; nothing where none was set, or one is asked."""
    asked = any(part is settings.refine for part in settings.loop.uses(settings))
    if "refine" not in settings.model_fields_set or asked or not settings.loops:
        return ()
    also = f", or loop.evidence={settings.refine}" if settings.refine.templates else ""
    return (f"refine: {settings.refine} was not asked, since loop: {settings.loop} asks none; set loop=fair-qr{also}",)


def hits_of(ranking: Ranking, meter: ExposureMeter, retriever: Retriever) -> tuple[Hit, ...]:
    """The documents with their titles (where the engine keeps texts) and the known groups they belong to."""
    labels = [(target.dimension, target.labels) for target in meter.targets]
    memberships = [rows[:, 1:].tolist() for rows in meter.memberships(ranking.ids)]
    documents = shown(ranking.ids, retriever) if isinstance(retriever, TextSource) else None
    hits = []
    for i, (id, score) in enumerate(zip(ranking.ids, ranking.scores.tolist(), strict=True)):
        title, snippet = (documents[i].title, documents[i].snippet) if documents else ("", "")
        groups = {
            dimension: {label: share for label, share in zip(names, rows[i], strict=True) if share > 0}
            for (dimension, names), rows in zip(labels, memberships, strict=True)
        }
        hits.append(Hit(i + 1, id, score, title, groups, snippet))
    return tuple(hits)


@dataclass(frozen=True, slots=True, repr=False)
class FairAgent(Summarized):
    """Finds rankings that are relevant and give groups their share of exposure. `open_agent` makes one.

    Without a loop the engine is asked once, without a re-ranker the candidates stay in their order. An agent holds no
    state of a search: threads may share it. `answerer` opens what answers need, which may be a model, when the first
    one is asked for.
    """

    collection: Collection
    retriever: Retriever
    loop: Loop | None
    reranker: Reranker | None
    settings: Settings
    answerer: Callable[[], Answerer] | None = None

    @property
    def summary(self) -> str:
        """What it searches, and how."""
        chosen = self.settings
        parts = f"{chosen.engine.kind}, {chosen.loop.kind if self.loop else 'no loop'}, rerank {chosen.rerank}"
        return f"on {self.collection.name!r}: {parts}, n {chosen.n}"

    @classmethod
    def from_records(
        cls,
        records: Any,
        text: str | Sequence[str] = "text",
        id: str | None = None,
        groups: GroupColumns = (),
        title: str | None = None,
        separator: str | None = None,
        population: Mapping[str, Mapping[str, float]] | None = None,
        labels: Labeling | None = None,
        **settings: Any,
    ) -> FairAgent:
        """An agent over rows, or a file of them, for small data: an index in a folder that is removed afterwards.

        See `Collection.from_records` for what `records` and its columns may be; `settings` are those of `open_agent`.
        The engine is the default one, BM25 and light vectors, unless they name another. Without `groups` it searches by
        the engine alone.
        """
        collection = Collection.from_records(records, text, id, groups, title, separator, population, labels=labels)
        return fairagent.open_in_memory(collection, **settings)

    def search(self, query: str | Query | Topic, on_step: OnStep = ignore_step) -> SearchResult:
        """A fair ranking of `settings.n` documents, with the trace of how it came about.

        Targets and groups that depend on the topic need a `Topic`, or a `Query` with its id. `on_step` is told every
        step when it has been made, and what it raises ends the search.
        Raises DataError where a target cannot be made or the engine's list is none, BackendUnavailable, and what the
        refiner's model raises.
        """
        found = self.find(query, self.settings.n, on_step)
        return found.result(found.pool)

    def answer(
        self,
        query: str | Query | Topic,
        on_text: Callable[[str], None] | None = None,
        on_step: OnStep = ignore_step,
    ) -> AnswerResult:
        """An answer from the first documents of a fair ranking, with its citations and all that it came from.

        `on_text` is told the answer piece by piece while it is being written, e.g. `queue.put` or
        `sys.stdout.write`; what it raises ends the answer. `on_step` is as in `search`. Raises what `search` does,
        UsageError for an agent without an answerer, and what the filter, the generator and the attribution raise.
        """
        # Before the search, which may be paid for: whatever is missing is said now.
        answerer = self.open_answerer()
        found = self.find(query, self.settings.n, on_step)
        return answerer.answer(found.result(found.pool), found.meter, self.retriever, on_text)

    def open_answerer(self) -> Answerer:
        """What answers; UsageError where there is none."""
        if self.answerer is None:
            raise UsageError("this agent has no answerer; `open_agent` makes one that answers")
        return self.answerer()

    def find(self, query: str | Query | Topic, length: int, on_step: OnStep = ignore_step) -> SearchRun:
        """The algorithm: the first `length` re-ranked candidates (never fewer than `settings.n`), and their story.

        A re-ranker that looks at the whole ranking, as `exposure` does, may order the head of a longer one otherwise
        than `search` does. Raises what `search` does.
        """
        with one_blas_thread(), progress("searching"):
            return self._search_run(query, length, on_step)

    def _search_run(self, query: str | Query | Topic, length: int, on_step: OnStep) -> SearchRun:
        started, engine_started = perf_counter(), engine_seconds()
        asked, length = as_query(query), max(length, self.settings.n)
        begun, meter = self._start(asked)
        for step in begun[:-1] if self.loop else begun:
            on_step(step)
        search = Search(asked, begun, meter, self.retriever, self.settings.n, self._retrieve, self._serve, on_step)
        if self.loop:
            looped = self.loop.run(search)
        else:
            looped = LoopResult(select(self.settings.candidates, begun), begun, "", meter)
        pool = replace(search.pool(looped.candidates, looped.meter, looped.unit), n=length)
        deep = begun[-1].ranking
        guarded = self._guarded(pool, looped, deep)
        served = looped.meter.measure(guarded.ranking)
        worse = less_fair(looped.meter.measure(begun[0].ranking), served)
        notes = guarded.notes + worse + moved_by_kinds(meter, looped.meter) + engine_notes(self.retriever, asked)
        alarms = guarded.alarms + unlabeled_off(served)
        if self.settings.expansion.documents and not isinstance(self.retriever, TermSource):
            notes += ("no topic words were added: this engine does not tell the terms of its documents",)
        clocks = (started, engine_started)
        found = asked, guarded.ranking, looped.steps, looped.stopped, looped.meter
        candidates = looped.candidates.ids
        return SearchRun(*found, self.retriever, self.settings, notes, alarms, *clocks, candidates, looped.entered)

    def _serve(self, pool: Pool) -> Ranking:
        return self.reranker.rerank(pool) if self.reranker else pool.ranking.top(pool.n)

    def _guarded(self, pool: Pool, looped: LoopResult, deep: Ranking) -> Guarded:
        """What is served, and whether that, or what the loop had come to, is worse than the engine's list `deep`."""
        seen = looped.served
        ranking = seen if seen is not None and pool.n == self.settings.n else self._serve(pool)
        if looped.guard is None:
            return Guarded(ranking)

        def strict() -> Ranking | None:
            reranker = stricter(self.reranker) if self.reranker else None
            return reranker.rerank(pool) if reranker else None

        own = without(deep, looped.removed).top(pool.n)
        return looped.guard.choose(ranking, own, deep, looped.meter, strict)

    def _start(self, query: Query) -> tuple[tuple[Step, ...], ExposureMeter]:
        """The user's words, then, where the engine can tell them, the words of the topic."""
        first = self._retrieve(query)
        rankings = [("query", query, first)]
        expansion = self.settings.expansion
        if expansion.documents and len(first) and isinstance(self.retriever, TermSource):
            rm3 = RM3(expansion.documents, expansion.terms, expansion.weight)
            expanded = rm3.expand(self.retriever, query, first)
            rankings.append(("topic words", expanded, self._retrieve(expanded)))
        deep = rankings[-1][2]
        meter = ExposureMeter.make(self.collection, query.id, self.settings, deep).knowing(deep.ids)
        steps = (
            measured(meter, Step(source, asked, ranking, (), 0.0, added=asked.terms[len(query.terms) :]))
            for source, asked, ranking in rankings
        )
        return tuple(steps), meter

    def _retrieve(self, query: Query) -> Ranking:
        return checked(query, self.retriever.search(query, max(self.settings.depth, self.settings.n)))
