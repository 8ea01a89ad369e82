"""The agent: search, measure, run the loop, re-rank, and serve the fairer ranking (or say that there is none).

`FairAgent.find` is the algorithm from top to bottom; `fairagent.search.run` serves what it comes to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Unpack

import fairagent
from fairagent.collection import Collection
from fairagent.collection.exposure import ExposureMeter
from fairagent.collection.targets import share_faults
from fairagent.errors import UsageError
from fairagent.llm.budget import in_threads
from fairagent.retrieve.base import Retriever, engine_seconds, searched
from fairagent.retrieve.relevance_model import RM3, TermSource
from fairagent.retrieve.where import Conditions, Restriction, restricted
from fairagent.search.asynchronous import Asynchronous
from fairagent.search.loop.base import Loop, LoopResult, OnStep, Search, ignore_step, looped, without
from fairagent.search.loop.fair_qr import measured, select
from fairagent.search.loop.guard import Guarded, less_fair, moved_by_types, unlabeled_off
from fairagent.search.rerank.base import (
    Pool,
    Reranker,
    account_notes,
    pool_of,
    relevance_kept,
    reranked,
    stricter,
    with_fairness,
)
from fairagent.search.run import SearchRun, engine_notes
from fairagent.settings import OptionValues, SearchOptions, Settings
from fairagent.storage.processes import cores
from fairagent.storage.spans import OPERATION, SOURCE, span
from fairagent.storage.threads import one_blas_thread, progress
from fairagent.types import AnswerResult, Draw, Query, Ranking, SearchResult, Step, Topic
from fairagent.types.common import Summarized
from fairagent.types.search import as_query

if TYPE_CHECKING:
    from fairagent.answer.answering import Answerer
    from fairagent.answer.citing import OnCited
    from fairagent.collection.bounds import Bounds
    from fairagent.collection.labels import Labeling
    from fairagent.collection.load import GroupColumns


@dataclass(frozen=True, slots=True, repr=False)
class FairAgent(Asynchronous, Summarized):
    """Finds rankings that are relevant and give groups their share of exposure. `open_agent` makes one.

    Without a loop the engine is searched once, without a re-ranker the candidates stay in their order. Threads may
    share an agent. `answerer` opens what answers need, which may be a model, at the first one. `restriction` is
    what the engine is kept to by a `where`.
    """

    collection: Collection
    retriever: Retriever
    loop: Loop | None
    reranker: Reranker | None
    settings: Settings
    answerer: Callable[[], Answerer] | None = None
    restriction: Restriction | None = None

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
        bounds: Bounds | None = None,
        **settings: Any,
    ) -> FairAgent:
        """An agent over rows, or a file of them, for small data: an index in a folder that is removed afterwards.

        See `Collection.from_records` for what `records` and its columns may be; `settings` are those of `open_agent`.
        The engine is the default one, BM25 and light vectors, unless they name another. Without `groups` it searches by
        the engine alone.
        """
        about = (records, text, id, groups, title, separator, population)
        collection = Collection.from_records(*about, labels=labels, bounds=bounds)
        return fairagent.open_in_memory(collection, **settings)

    def search(
        self, query: str | Query | Topic, on_step: OnStep = ignore_step, **options: Unpack[OptionValues]
    ) -> SearchResult:
        """A fair ranking of `n` documents, with the trace of how it came about.

        `options` are those of `SearchOptions`, e.g. `n=5, fairness=2`; what is not given is as `settings` say. Targets
        and groups that depend on the topic need a `Topic`, or a `Query` with its id. `on_step` gets every step once it
        has been made, and what it raises ends the search.
        Raises SettingsError for an option that cannot be, DataError where a target cannot be made or the engine's list
        is none, BackendUnavailable, and what the refiner's model raises.
        """
        agent = self.under(SearchOptions.of(options))
        run = agent.find(query, agent.settings.n, on_step)
        return agent.serve(run, run.pool)

    def search_many(
        self, queries: Iterable[str | Query | Topic], **options: Unpack[OptionValues]
    ) -> list[SearchResult]:
        """The results of `search` for each of the queries, in their order; the first error ends it.

        What the options need is made once. As many threads as there are cores do it, and one alone where a re-ranker
        keeps an account, in which each request depends on those before. That gains time where a model or a search
        server is waited for; the engines in this process take as long as in one thread.
        """
        agent = self.under(SearchOptions.of(options))
        return in_threads(agent.search, queries, agent.threads, "search")

    @property
    def threads(self) -> int:
        """How many threads search for many queries."""
        return 1 if getattr(self.reranker, "keeps", False) else cores()

    def answer(
        self,
        query: str | Query | Topic,
        on_text: Callable[[str], None] | None = None,
        on_step: OnStep = ignore_step,
        on_cited: OnCited | None = None,
        **options: Unpack[OptionValues],
    ) -> AnswerResult:
        """An answer from the first documents of a fair ranking, with its citations and all that it came from.

        `on_text` gets the answer piece by piece while it is being written, e.g. `queue.put` or `sys.stdout.write`; what
        it raises ends the answer. A second pass over it is not heard: where `result.revised`, the answer is another.
        `on_cited` gets what the documents that are cited so far give the groups, whenever one is added. `on_step` and
        `options` are as in `search`. Raises what `search` does, UsageError for an agent without an answerer, and what
        the filter, the generator and the attribution raise.
        """
        agent = self.under(SearchOptions.of(options))
        # Before the search, which may be paid for: whatever is missing is reported now.
        answerer = agent.open_answerer()
        run = agent.find(query, agent.settings.n, on_step)
        served = agent.serve(run, run.pool)
        with span("answer", {SOURCE: agent.collection.name, "fairagent.generate": agent.settings.generate.kind}):
            return answerer.answer(served, run.meter, agent.retriever, on_text, on_cited)

    def under(self, options: SearchOptions) -> FairAgent:
        """The agent under these options, with the parts of this one: nothing is opened or built.

        Raises SettingsError for options that do not fit, UsageError for `fairness` where no re-ranker has such a dial,
        and for `shares` of a group that is not there or that do not add up to 1.
        """
        if not options.given:
            return self
        groups = self.collection.groups
        for dimension, shares in (options.shares or {}).items():
            if dimension in groups.dimensions and (faults := share_faults(shares, groups.labels(dimension))):
                raise UsageError(f"shares of {dimension!r} cannot be used: {'; '.join(faults)}")
        reranker = self.reranker if options.fairness is None else with_fairness(self.reranker, options.fairness)
        settings = options.over(self.settings, self.collection.groups.dimensions)
        agent = replace(self, settings=settings, reranker=reranker)
        if not options.where:
            return agent
        conditions = Conditions.of(options.where, self.collection.groups)
        retriever, documents = restricted(self.retriever, conditions)
        return replace(agent, retriever=retriever, restriction=Restriction(conditions, documents))

    def reorder(self, run: SearchRun, options: SearchOptions | None = None) -> SearchResult:
        """The candidates of a search that is done in the order of these options, over the agent's own settings.

        Nobody is searched or asked; `search` under the same options may come to other candidates, since the loop looks
        at what would be served. `trace.relevance_kept` is what the order costs. The steps are measured anew where they
        are measured otherwise.
        """
        if options and options.where:
            raise UsageError("where: what a search that is done has found is not filtered; search with it")
        done = self.under(options or SearchOptions()).ordered(run)
        return done.result(done.pool)

    def ordered(self, run: SearchRun) -> SearchRun:
        """The candidates of a search that is done in this agent's order; see `reorder`."""
        clocks = perf_counter(), engine_seconds()
        with one_blas_thread():
            meter, loop = run.first_meter, replace(run.loop, served=None)
            # Where nothing but the re-ranker has another price, all that was measured stays.
            if self.settings.model_copy(update={"rerank": run.settings.rerank}) != run.settings:
                meter = ExposureMeter.make(self.collection, run.query.id, self.settings, run.own)
                meter = replace(meter, cache=run.meter.cache)
                of_loop = meter.as_adjusted(run.first_meter, run.meter)
                steps = tuple(measured(of_loop, step) for step in run.loop.steps)
                loop = replace(loop, meter=of_loop, steps=steps, pool=None)
            return self._served(run.query, self.settings.n, run.own, meter, loop, clocks)

    def find(self, query: str | Query | Topic, length: int, on_step: OnStep = ignore_step) -> SearchRun:
        """The algorithm: the first `length` re-ranked candidates (never fewer than `settings.n`), and their trace.

        A re-ranker that looks at the whole ranking, as `exposure` does, may order the head of a longer one otherwise
        than `search` does. Raises what `search` does.
        """
        clocks = perf_counter(), engine_seconds()
        query, length = as_query(query), max(length, self.settings.n)
        about = {OPERATION: "invoke_agent", "gen_ai.agent.name": "fairagent", SOURCE: self.collection.name}
        with span("invoke_agent fairagent", about), one_blas_thread(), progress("searching"):
            # 1. Retrieve: by the user's words, then by the words of the topic.
            lists = self._retrieve_first(query)
            own = lists[-1].ranking

            # 2. Measure: what these lists give the groups, and what the groups should get.
            meter = ExposureMeter.make(self.collection, query.id, self.settings, own).with_cached(own.ids)
            steps = tuple(measured(meter, step) for step in lists)
            for step in steps[:-1] if self.loop else steps:
                on_step(step)

            # 3. Loop: search again for the groups that lack exposure, and choose the candidates.
            search = Search(query, steps, meter, self.retriever, self.settings.n, self._retrieve, self._serve, on_step)
            if self.restriction:
                search = replace(search, allowed=partial(self.restriction.allowed, self.retriever, query=query))
            if self.loop:
                result = looped(self.loop, search, self.settings.loop)
            else:
                result = LoopResult(select(self.settings.candidates, steps), steps, "", meter)

            return self._served(query, length, own, meter, result, clocks)

    def _served(
        self,
        query: Query,
        length: int,
        own: Ranking,
        meter: ExposureMeter,
        result: LoopResult,
        clocks: tuple[float, float],
    ) -> SearchRun:
        """The rest of `find`; `own` is the engine's list, `meter` what measured before the loop."""
        settings = self.settings
        # 4. Re-rank the candidates; the loop may have done so.
        pool = result.pool
        if pool is None or pool.n != length:
            pool = pool_of(query, result.candidates, result.meter, length, result.unit)
        ranking = self._serve(pool) if result.served is None or length > settings.n else result.served
        result = replace(result, pool=pool)

        # 5. Guard: serve nothing that is worse than the engine's own list, unless settings say so.
        guarded = self._guarded(ranking, pool, own, result)

        # 6. Say what else is to be known.
        exposures = result.meter.measure(guarded.ranking)
        notes = (
            *filter(None, [self.collection.behind, self.restriction.note if self.restriction else ""]),
            *guarded.notes,
            *less_fair(result.meter.measure(result.steps[0].ranking), exposures),
            *moved_by_types(meter, result.meter),
            *engine_notes(self.retriever, query),
        )
        if settings.expansion.documents and not isinstance(self.retriever, TermSource):
            notes += ("no topic words were added: this engine does not tell the terms of its documents",)
        alarms = guarded.alarms + unlabeled_off(exposures)
        costs = partial(relevance_kept, self.reranker, pool, discount=result.meter.discount)
        parts = guarded.ranking, own, meter, result, self.retriever, settings, notes, alarms, costs
        return SearchRun(query, *parts, *clocks)

    def serve(self, run: SearchRun, ranking: Ranking, draw: Draw | None = None) -> SearchResult:
        """What the user gets of a search: the first `settings.n` documents of `ranking`, counted in an account, if any.

        A search that is only made for its numbers (`find`) counts nowhere.
        """

        def pools() -> tuple[Pool, Pool]:
            n, meter = self.settings.n, run.meter
            candidates = pool_of(run.query, run.loop.candidates, meter, n, run.loop.unit)
            return candidates, pool_of(run.query, ranking.top(n), meter, n)

        notes = account_notes(self.reranker, pools, run.query)
        return run.result(ranking, draw, notes)

    def _retrieve_first(self, query: Query) -> list[Step]:
        """The engine's list for `query`, then, where it tells its terms, its list with the words of the topic."""
        first = self._retrieve(query)
        lists = [Step("query", query, first, (), 0.0)]
        expansion = self.settings.expansion
        if expansion.documents and len(first) and isinstance(self.retriever, TermSource):
            rm3 = RM3(expansion.documents, expansion.terms, expansion.weight)
            expanded = rm3.expand(self.retriever, query, first)
            added = expanded.terms[len(query.terms) :]
            lists.append(Step("topic words", expanded, self._retrieve(expanded), (), 0.0, added=added))
        return lists

    def _retrieve(self, query: Query) -> Ranking:
        about = {OPERATION: "retrieval", SOURCE: self.collection.name}
        with span(f"retrieval {self.collection.name}", about) as told:
            ranking = searched(self.retriever, query, max(self.settings.depth, self.settings.n), self.settings.engine)
            told.set_attributes({"fairagent.documents": len(ranking)})
        return ranking

    def _serve(self, pool: Pool) -> Ranking:
        if not self.reranker:
            return pool.ranking.top(pool.n)
        with span(f"rerank {self.settings.rerank.kind}", {"fairagent.candidates": len(pool.ranking)}):
            return reranked(self.reranker, pool, self.settings.rerank)

    def _guarded(self, ranking: Ranking, pool: Pool, own: Ranking, result: LoopResult) -> Guarded:
        """What is served in the end: `ranking`, or what the guard puts in its place; `own` is the engine's list."""
        if result.guard is None:
            return Guarded(ranking)

        def strict() -> Ranking | None:
            reranker = stricter(self.reranker, pool.query)
            return reranked(reranker, pool, self.settings.rerank) if reranker else None

        head = without(own, result.removed).top(pool.n)
        return result.guard.choose(ranking, head, own, result.meter, strict)

    def latest(self) -> FairAgent:
        """The agent with what is open at this moment: itself, where its index is not opened again when it changes."""
        return self

    def open_answerer(self) -> Answerer:
        """What answers; UsageError where there is none."""
        if self.answerer is None:
            raise UsageError("this agent has no answerer; `open_agent` makes one that answers")
        return self.answerer()

    @property
    def _summary(self) -> str:
        chosen = self.settings
        parts = f"{chosen.engine.kind}, {chosen.loop.kind if self.loop else 'no loop'}, rerank {chosen.rerank}"
        return f"on {self.collection.name!r}: {parts}, n {chosen.n}"
