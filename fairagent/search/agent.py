"""The agent: search, measure, run the loop, re-rank, and serve the fairer ranking (or say that there is none).

`FairAgent.find` is the algorithm from top to bottom; `fairagent.search.run` has what it comes to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack

import fairagent
from fairagent.collection import Collection
from fairagent.collection.exposure import ExposureMeter
from fairagent.collection.targets import shares_of
from fairagent.errors import UsageError
from fairagent.llm.budget import Ledger, in_threads, ledger
from fairagent.llm.exchange import one_search
from fairagent.retrieve.base import Retriever, as_query, engine_seconds, searched
from fairagent.retrieve.relevance_model import RM3, TermSource
from fairagent.retrieve.stochastic import RequestCounter, Samples, draw, topic_rng
from fairagent.retrieve.where import Conditions, Restriction, restricted
from fairagent.search.loop.base import FinalList, Loop, LoopResult, OnStep, Search, ignore_step, run_with
from fairagent.search.loop.fair_qr import measured, select
from fairagent.search.relevance import Weighed, Weighing
from fairagent.search.rerank.base import Pool, Reranker, account_notes, pool_of, with_dial
from fairagent.search.run import SearchRun, alarms_of, engine_notes, notes_of
from fairagent.settings import OptionValues, SearchOptions, Settings
from fairagent.storage.telemetry import OPERATION, SOURCE, span
from fairagent.storage.threads import Cancellation, cancelled_by, cores, one_blas_thread, progress
from fairagent.types import AnswerResult, Draw, Query, Ranking, SearchResult, Step, Topic
from fairagent.types.clean import shown
from fairagent.types.common import Summarized

if TYPE_CHECKING:
    from fairagent.answer.answering import Answerer, OnCited
    from fairagent.collection.labels import Labeling
    from fairagent.collection.load import GroupColumns
    from fairagent.collection.rows import Bounds
    from fairagent.search.live import LiveSite

P = ParamSpec("P")
T = TypeVar("T")


def on_latest(method: Callable[Concatenate[FairAgent, P], T]) -> Callable[Concatenate[FairAgent, P], T]:
    """The method of the agent that is current, where its index is opened again once it is replaced."""

    @wraps(method)
    def on_agent(agent: FairAgent, /, *given: P.args, **named: P.kwargs) -> T:
        if agent.live is None:
            return method(agent, *given, **named)
        return agent.live.with_agent(lambda latest: method(latest, *given, **named))

    return on_agent


@dataclass(frozen=True, slots=True, repr=False)
class FairAgent(Summarized):
    """Finds rankings that are relevant and give groups their share of exposure. `open_agent` makes one.

    Without a loop the engine is searched once, without a re-ranker the candidates stay in their order. Threads may
    share an agent. `answerer` opens what answers need, which may be a model, at the first one. `restriction` is what a
    `where` keeps the engine to, `weighing` how its documents are weighed.

    With `settings.sampling.alpha` each request gets a ranking of its own, drawn from the candidates by Plackett-Luce
    (Fair RAG, ICTIR 2025): the seed and the request's number, which `requests` counts (also for copies), give it again.
    The effects of the loop, of the re-ranker and of chance add up.

    `live` opens the index again when it is replaced: searches are then those of `live.agent()`. A copy with other parts
    (`dataclasses.replace`) has none, and stays with what it was made of.
    """

    collection: Collection
    retriever: Retriever
    loop: Loop | None
    reranker: Reranker | None
    settings: Settings
    answerer: Callable[[], Answerer] | None = None
    restriction: Restriction | None = None
    weighing: Weighing | None = None
    requests: RequestCounter = field(default_factory=RequestCounter, repr=False, compare=False)
    live: LiveSite | None = field(default=None, init=False, repr=False, compare=False)

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
        collection = Collection.from_records(
            records,
            text=text,
            id=id,
            groups=groups,
            title=title,
            separator=separator,
            population=population,
            labels=labels,
            bounds=bounds,
        )
        return fairagent.open_in_memory(collection, **settings)

    @on_latest
    @one_search()
    def search(
        self, query: str | Query | Topic, on_step: OnStep = ignore_step, **options: Unpack[OptionValues]
    ) -> SearchResult:
        """A fair ranking of `n` documents, with the trace of how it came about.

        `options` are those of `SearchOptions`, e.g. `n=5, fairness=2`; what is not given is as `settings` say. Targets
        and groups that depend on the topic need a `Topic`, or a `Query` with its id. `on_step` gets every step once it
        has been made, and what it raises ends the search.
        Raises UsageError for what is no query, SettingsError for an option that cannot be, DataError where a target
        cannot be made or the engine's list is none, BackendUnavailable, and what the refiner's model raises.
        """
        agent = self.under(SearchOptions.of(options))
        return agent.result_of(agent.find(query, agent.pool_size, on_step))

    def search_many(
        self, queries: Iterable[str | Query | Topic], **options: Unpack[OptionValues]
    ) -> list[SearchResult]:
        """The results of `search` for each of the queries, in their order; the first error ends it.

        Raises UsageError, before anything is searched, where one is no query, or where a single text stands for the
        list. As many threads as there are cores search, or one where a re-ranker keeps an account, in which each
        request depends on those before. That saves time where a model or a search server is waited for; engines in this
        process take as long as in one thread.
        """
        if isinstance(queries, str) or not isinstance(queries, Iterable):
            raise UsageError(f"search_many takes a list of queries, and not {shown(queries)}; search takes one")
        texts = list(map(as_query, queries))
        if self.live:
            # All queries are searched in the same index.
            return self.live.with_agent(lambda agent: agent.search_many(texts, **options))
        agent = self.under(SearchOptions.of(options))
        if not agent.draws or agent.threads == 1:
            return in_threads(agent.search, texts, agent.threads, "search")
        runs = in_threads(lambda query: agent.find(query, agent.pool_size), texts, agent.threads, "search")
        # Requests are numbered in the order of the queries.
        return [agent.result_of(run) for run in runs]

    @property
    def threads(self) -> int:
        """How many threads search for many queries."""
        return 1 if getattr(self.reranker, "keeps", False) else cores()

    @property
    def draws(self) -> bool:
        """Whether rankings are drawn at random."""
        return self.settings.sampling.alpha is not None

    @property
    def pool_size(self) -> int:
        """How many candidates a search finds at least, to serve some of them."""
        return self.settings.sampling.pool if self.draws else self.settings.n

    @on_latest
    @one_search()
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
        agent, query = self.under(SearchOptions.of(options)), as_query(query)
        # Opened before the search, which may cost money, so that what is missing is reported first.
        answerer = agent.open_answerer()
        run = agent.find(query, agent.pool_size, on_step)
        result = agent.result_of(run, answers=True)
        with span("answer", {SOURCE: agent.collection.name, "fairagent.generate": agent.settings.generate.kind}):
            return run.with_least_gap(answerer.answer(result, run.meter, agent.retriever, on_text, on_cited))

    async def asearch(
        self, query: str | Query | Topic, on_step: OnStep = ignore_step, **options: Unpack[OptionValues]
    ) -> SearchResult:
        """As `search`, for an event loop: in a thread, which a task that is cancelled ends where it waits.

        `on_step` is called in the thread, as is whatever `aanswer` is given.
        """
        return await _in_thread(lambda: self.search(query, on_step, **options))

    async def aanswer(
        self,
        query: str | Query | Topic,
        on_text: Callable[[str], None] | None = None,
        on_step: OnStep = ignore_step,
        on_cited: OnCited | None = None,
        **options: Unpack[OptionValues],
    ) -> AnswerResult:
        """As `answer`, for an event loop; see `asearch`."""
        return await _in_thread(lambda: self.answer(query, on_text, on_step, on_cited, **options))

    @on_latest
    def sample(self, query: str | Query | Topic, n_samples: int) -> Samples:
        """`n_samples` of the rankings that may be served for `query`, from one run of the loop.

        They are the same at every call, whatever is served meanwhile. Raises what `search` does, UsageError for fewer
        than one sample, and where nothing is drawn.
        """
        run, sampling = self.find(query, self.pool_size), self.settings.sampling
        if sampling.alpha is None:
            raise UsageError("sampling.alpha is not set, so no ranking is drawn")
        rng = topic_rng(sampling.seed, run.query.id or run.query.text)
        return draw(run.pool, sampling.alpha, self.settings.n, rng, n_samples)

    @on_latest
    def under(self, options: SearchOptions) -> FairAgent:
        """The agent under these options, with the parts of this one: nothing is opened or built.

        Raises SettingsError for options that do not fit, UsageError for `fairness` where no re-ranker has such a dial,
        and for `shares` of a group that is not there or that do not add up to 1.
        """
        if not options.given:
            return self
        groups = self.collection.groups
        for dimension, shares in (options.shares or {}).items():
            if dimension in groups.dimensions and (faults := shares_of(shares, groups.labels(dimension))[1]):
                raise UsageError(f"shares of {dimension!r} cannot be used: {'; '.join(faults)}")
        reranker = self.reranker if options.dial is None else with_dial(self.reranker, options.dial)
        settings = options.over(self.settings, self.collection.groups.dimensions)
        agent = replace(self, settings=settings, reranker=reranker)
        if not options.where:
            return agent
        conditions = Conditions.of(options.where, self.collection.groups)
        retriever, documents = restricted(self.retriever, conditions)
        return replace(agent, retriever=retriever, restriction=Restriction(conditions, documents))

    def reorder(self, run: SearchRun, options: SearchOptions | None = None) -> SearchResult:
        """The candidates of a finished search in another order, by these options over the agent's own settings.

        No engine is searched and no model asked; `search` under the same options may come to other candidates, since
        the loop looks at what would be served. `trace.relevance_kept` is what the order costs.
        """
        if options and options.where:
            raise UsageError("where: what a search that is done has found is not filtered; search with it")
        done = self.under(options or SearchOptions()).reordered(run)
        return done.result(done.pool)

    def reordered(self, run: SearchRun) -> SearchRun:
        """The candidates of a finished search in the order of the agent's own settings, before it is served."""
        started = perf_counter(), engine_seconds()
        with one_blas_thread():
            pool = run.loop.reranked.pool if run.loop.reranked else None
            again = replace(run, loop=replace(run.loop, reranked=None), retriever=self.retriever, started=started)
            # If only the dial has changed, everything measured so far stays valid.
            if self.settings.model_copy(update={"rerank": run.settings.rerank}) != run.settings:
                first = ExposureMeter.make(self.collection, run.query.id, self.settings, run.engine_list)
                first = replace(first, cache=run.meter.cache)
                meter = first.as_adjusted(run.first_meter, run.meter)
                loop = replace(again.loop, steps=tuple(measured(meter, step) for step in run.loop.steps))
                pool, again = None, replace(again, first_meter=first, meter=meter, loop=loop)
            return self._finished(replace(again, settings=self.settings), self.settings.n, pool)

    @on_latest
    def find(self, query: str | Query | Topic, length: int, on_step: OnStep = ignore_step) -> SearchRun:
        """The algorithm: the first `length` re-ranked candidates (never fewer than `settings.n`), and their trace.

        A re-ranker that looks at the whole ranking, as `exposure` does, may order the head of a longer one otherwise
        than `search` does. Raises what `search` does.
        """
        started = perf_counter(), engine_seconds()
        query, length = as_query(query), max(length, self.settings.n)
        about = {OPERATION: "invoke_agent", "gen_ai.agent.name": "fairagent", SOURCE: self.collection.name}
        with span("invoke_agent fairagent", about), one_blas_thread(), progress("searching"):
            # 1. Retrieve: by the user's words, then by the words of the topic.
            lists, expansion = [Step("query", query, self._retrieve(query), (), 0.0)], self.settings.expansion
            if expansion.documents and len(lists[0].ranking) and isinstance(self.retriever, TermSource):
                rm3 = RM3(expansion.documents, expansion.terms, expansion.weight)
                expanded = rm3.expand(self.retriever, query, lists[0].ranking)
                added = expanded.terms[len(query.terms) :]
                lists.append(Step("topic words", expanded, self._retrieve(expanded), (), 0.0, added=added))
            engine_list = lists[-1].ranking

            # 2. Measure: what these lists give the groups, and what the groups should get.
            first = ExposureMeter.make(self.collection, query.id, self.settings, engine_list)
            first = first.with_cached(engine_list.ids)

            # 3. Weigh: how relevant its documents are, by the engine and by whether the query asks for their type.
            weighed = Weighed(self.retriever, query, engine_list, engine_list, first)
            if self.weighing:
                weighed = self.weighing.of(self.retriever, query, engine_list, first)
            meter = weighed.meter
            steps = tuple(measured(meter, step) for step in lists)
            for step in steps[:-1] if self.loop else steps:
                on_step(step)

            # 4. Loop: search again for the groups that lack candidates, and choose the candidates.
            reranking = Ledger()
            if self.loop:
                result = run_with(self.loop, self._search(weighed, steps, on_step, reranking), self.settings.loop)
            elif self.settings.candidates == "best" or len(steps) == 1:
                result = LoopResult(weighed.candidates, steps, "", engine_list)
            else:
                result = LoopResult(select(self.settings.candidates, steps), steps, "")

            # 5. Re-rank the candidates, and add the notes and alarms.
            run = SearchRun(
                query=query,
                pool=engine_list,
                engine_list=engine_list,
                first_meter=first,
                meter=meter,
                loop=result,
                retriever=self.retriever,
                settings=self.settings,
                started=started,
                reranking=reranking,
            )
            return self._finished(run, length)

    def _search(self, weighed: Weighed, steps: tuple[Step, ...], on_step: OnStep, reranking: Ledger) -> Search:
        """What the loop is given; its re-ranking is charged to `reranking`."""
        query, n = weighed.query, self.settings.n

        def joined(candidates: Ranking, ids: Sequence[str]) -> Ranking:
            if self.restriction:
                ids = self.restriction.allowed(self.retriever, ids, query)
            return weighed.joined(candidates, ids)

        def rerank(candidates: Ranking, others: Sequence[Ranking]) -> FinalList:
            pool = pool_of(query, candidates, weighed.meter, n, weighed.engine_list)
            with (
                ledger(reranking),
                span(f"rerank {self.settings.rerank.kind}", {"fairagent.candidates": len(candidates)}),
            ):
                return FinalList.of(pool, weighed.meter, self.reranker, self.settings.rerank, others)

        return Search(
            query=query,
            steps=steps,
            meter=weighed.meter,
            engine=self.retriever,
            n=n,
            candidates=weighed.candidates,
            retrieve=self._retrieve,
            joined=joined,
            rerank=rerank,
            on_step=on_step,
        )

    def _finished(self, run: SearchRun, length: int, pool: Pool | None = None) -> SearchRun:
        """The run with its candidates re-ranked, unless the loop has done so; `pool` has them if they were before."""
        result, meter = run.loop, run.meter
        reranked = result.reranked
        if reranked is None or length > self.settings.n:
            if pool is None or pool.n != length:
                pool = pool_of(run.query, result.candidates, meter, length, result.engine_list)
            with ledger(run.reranking):
                reranked = FinalList.of(pool, meter, self.reranker, self.settings.rerank)
        notes = [
            *filter(None, [self.collection.behind, self.restriction.note if self.restriction else ""]),
            *notes_of(reranked, result, run.first_meter, meter),
            *engine_notes(self.retriever, run.query, run.engine_list),
        ]
        if self.settings.expansion.documents and not isinstance(self.retriever, TermSource):
            notes.append("no topic words were added: this engine does not tell the terms of its documents")
        return replace(
            run,
            pool=reranked.ranking,
            loop=replace(result, reranked=reranked),
            notes=tuple(notes),
            alarms=alarms_of(reranked, result, run.engine_list, meter),
        )

    def result_of(self, run: SearchRun, answers: bool = False) -> SearchResult:
        """What the user gets of a search: the first `settings.n` candidates, or some that are drawn for this request.

        They are counted in an account, if any; a search that is only made for its numbers (`find`) counts nowhere.
        `answers`: an answer is made of them.
        """
        ranking, drawn = run.pool, None
        if (alpha := self.settings.sampling.alpha) is not None:
            seed, topic = self.settings.sampling.seed, run.query.id or run.query.text
            drawn = Draw(alpha, len(run.pool), seed, self.requests.number(topic))
            rng = topic_rng(seed, topic, drawn.request)
            ranking = draw(run.pool, alpha, run.settings.n, rng).ranking(0)

        def pools() -> tuple[Pool, Pool]:
            n, meter = self.settings.n, run.meter
            candidates = pool_of(run.query, run.loop.candidates, meter, n, run.loop.engine_list)
            return candidates, pool_of(run.query, ranking.top(n), meter, n)

        return run.result(ranking, drawn, account_notes(self.reranker, pools, run.query), answers)

    def _retrieve(self, query: Query) -> Ranking:
        about = {OPERATION: "retrieval", SOURCE: self.collection.name}
        with span(f"retrieval {self.collection.name}", about) as retrieval:
            ranking = searched(self.retriever, query, max(self.settings.depth, self.settings.n), self.settings.engine)
            retrieval.set_attributes({"fairagent.documents": len(ranking)})
        return ranking

    @on_latest
    def open_answerer(self) -> Answerer:
        """What answers; UsageError where there is none."""
        if self.answerer is None:
            raise UsageError("this agent has no answerer; `open_agent` makes one that answers")
        return self.answerer()

    @property
    def _summary(self) -> str:
        chosen = self.settings
        parts = f"{chosen.engine.kind}, {chosen.loop.kind if self.loop else 'no loop'}, rerank {chosen.rerank}"
        return f"on {self.collection.name!r}: {parts}, n {chosen.n}, {chosen.model.name or 'no'} model"


async def _in_thread(work: Callable[[], T]) -> T:
    """What `work` returns, done in a thread; when the task is cancelled, the work is as well."""
    # Imported here, since searching without an event loop does not need it.
    import asyncio

    cancellation = Cancellation()

    def working() -> T:
        with cancelled_by(cancellation):
            return work()

    future = asyncio.get_running_loop().run_in_executor(None, copy_context().run, working)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        cancellation.cancel()
        # The task is gone, so nobody else takes the thread's result or error.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise
