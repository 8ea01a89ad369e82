"""`Desk`: one collection, opened once, and searched under many settings."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import islice
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from fairagent.answer.answering import CitedSoFar
from fairagent.collection import Collection
from fairagent.collection.exposure import ExposureMeter, total_gap
from fairagent.collection.known import compare_ids
from fairagent.errors import DataError, IndexMismatch, UsageError
from fairagent.report.record import PlainRecord, answer_record, exposure_record, hit_record, result_record, step_record
from fairagent.retrieve.base import TextSource, texts_for
from fairagent.retrieve.manifest import indexed_documents
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.loop.base import ignore_step
from fairagent.search.pipeline import asks_model, build, open_live, with_settings
from fairagent.search.run import SearchRun, hits_of
from fairagent.settings import SearchOptions, Settings, load_settings
from fairagent.settings.faults import no_such
from fairagent.studio.calls import (
    MOST_IDS,
    MOST_SERVED,
    Choices,
    ExposureRequest,
    ListRequest,
    SearchRequest,
)
from fairagent.studio.contents import contents_record, document_count
from fairagent.studio.controls import controls
from fairagent.studio.frontier import frontier_record
from fairagent.studio.lanes import Listener, NothingThere, ignore_event
from fairagent.types import Hit, Query, Ranking, SearchResult, Step
from fairagent.types.clean import name_of, printable

P = ParamSpec("P")
T = TypeVar("T")

OF_THE_SEARCH = frozenset(("steps", "stopped", "entered", "usage", "seconds"))
"""What another order leaves as it is."""

OF_A_LIST = (
    *("collection", "query", "hits", "targets", "oracle", "exposure", "changes", "gap", "relevance_kept", "fairness"),
    *("stopped", "notes", "alarms", "draw", "usage", "seconds"),
)
"""What a reply has without a trace."""

AGENTS_OPEN = 64
KEPT = 32
"""Searches; each has about a thousand candidates with their groups."""
Key = tuple[Query, Choices, SearchOptions]
"""Of the options what the engine looks at: `where`."""
WARMING = 5
"""Topics that are searched for before anybody asks."""
SHOWN_TOPICS = 200


class NotFinished(UsageError):
    """There is no such search any more, or it was never made."""


class FinishedRuns:
    """The last `most` searches by query, settings and filter, to be put in another order; threads may share it."""

    def __init__(self, most: int = KEPT) -> None:
        self._most, self._lock = most, threading.Lock()
        self.runs: OrderedDict[Key, SearchRun] = OrderedDict()

    def keep(self, key: Key, run: SearchRun) -> SearchRun:
        """Keep a search, and drop that which was not looked at for longest where there are too many."""
        with self._lock:
            self.runs[key] = run
            self.runs.move_to_end(key)
            while len(self.runs) > self._most:
                self.runs.popitem(last=False)
        return run

    def get(self, key: Key, make: Callable[[], SearchRun]) -> SearchRun:
        """A search that was kept, or else what `make` gives, kept from now on."""
        return self.keep(key, self.runs.get(key) or make())


@dataclass(frozen=True, slots=True)
class OpenedDesk:
    """What one request is answered from: a site, and the agents of it by the choices of requests."""

    site: Site
    agent: Callable[[Choices], FairAgent]
    finished: FinishedRuns


def on_what_is_open(work: Callable[Concatenate[Desk, OpenedDesk, P], T]) -> Callable[Concatenate[Desk, P], T]:
    """`work` on what is open; begun again where an index was replaced under it."""

    @wraps(work)
    def done(desk: Desk, /, *given: P.args, **named: P.kwargs) -> T:
        return desk.live.use(lambda site: work(desk, desk._opened(site), *given, **named))

    return done


class Desk:
    """Searches, answers and measures for many at once; all share the indexes, the cache and one budget.

    Each request is answered from the index that is the last whole one when it comes; what was opened of an earlier one
    is dropped. Raises what `open_live` and `build` do.
    """

    def __init__(self, file: Path | None, overrides: Mapping[str, Any]) -> None:
        """Open what the settings of a file say, under what a command sets."""
        self._file, self._overrides = file, overrides
        self.settings = self.settings_of(Choices())
        self._asks_model = lru_cache(maxsize=AGENTS_OPEN)(
            lambda choices, command: asks_model(self.settings_of(choices), command)
        )
        self.documents = 0
        self.live = open_live(settings=self.settings)
        self.live.use(lambda site: self._opened(site).agent(Choices()))

    def settings_of(self, choices: Choices) -> Settings:
        """The settings of a request, whose choices each take the place of what was set; SettingsError."""
        return load_settings(self._file, {**self._overrides, **choices.overrides})

    @property
    def site(self) -> Site:
        """What is open now."""
        return self.live.now()

    @property
    def collection(self) -> Collection:
        """That of the site."""
        return self.site.collection

    def _opened(self, site: Site) -> OpenedDesk:
        def agent(choices: Choices) -> FairAgent:
            return build(with_settings(site, self.settings_of(choices)))

        def opened() -> OpenedDesk:
            self.documents = document_count(site.collection, site.index)[0]
            return OpenedDesk(site, lru_cache(maxsize=AGENTS_OPEN)(agent), FinishedRuns())

        desk: OpenedDesk = site.memo.get(("desk", site.collection.behind), opened)
        return desk

    @on_what_is_open
    def warm(self, opened: OpenedDesk) -> None:
        """Search a little, which starts what is slow at first; no model is called."""
        topics = islice(opened.site.collection.topics.values(), WARMING)
        agent = opened.agent(Choices())
        for query in [Query(one.query, one.id) for one in topics] or [Query(opened.site.collection.name)]:
            agent.retriever.search(query, self.settings.depth)
            # Draws are numbered, and the first belongs to the first who asks.
            if not self.settings.model.name and not agent.draws:
                # A target that this topic has not is for those to hear who ask for the topic.
                with suppress(DataError):
                    run = agent.find(query, self.settings.n)
                    run.result(run.pool)

    def asks_model(self, choices: Choices, command: str) -> bool:
        """As `asks_model` of the pipeline, with the settings of these choices; raises SettingsError."""
        return self._asks_model(choices, command)

    def close(self) -> None:
        """Close the connections to models, and the cache."""
        self.live.close()

    def about(self) -> PlainRecord:
        """The collection, its groups and topics, and what can be chosen."""
        collection = self.collection
        groups = collection.groups
        return {
            "collection": collection.name,
            "dimensions": {name: list(groups.labels(name)) for name in groups.dimensions},
            "topics": [{"id": one.id, "query": one.query} for one in islice(collection.topics.values(), SHOWN_TOPICS)],
            "model": self.settings.model.name or None,
            "controls": controls(self.settings),
        }

    @on_what_is_open
    def contents(self, opened: OpenedDesk) -> PlainRecord:
        """What the collection holds, counted once for each index."""
        site = opened.site
        contents: PlainRecord = site.memo.get("contents", lambda: contents_record(site.collection, site.index))
        return contents

    @on_what_is_open
    def search(
        self, opened: OpenedDesk, request: ListRequest, listen: Listener = ignore_event, trace: bool = True
    ) -> PlainRecord:
        """The agent's ranking as `fairagent search --json` has it, with the engine's own list; less without a trace."""
        query, options = self.query_of(request), request.options
        agent = opened.agent(request.settings).under(options)
        run = agent.find(query, agent.pool_size, _steps(listen))
        if set(options.given) <= {"where"} and not agent.draws:
            opened.finished.keep((query, request.settings, options), run)
        return _search_record(agent.result_of(run), agent, opened.site.collection, run, trace)

    @on_what_is_open
    def reorder(self, opened: OpenedDesk, request: ListRequest, search: bool = True, trace: bool = True) -> PlainRecord:
        """What a search has found, in another order: as `search` has it, without the steps.

        Nothing is searched and nobody asked where the search was made a while ago from the index as it is; else it is
        made now, or without `search` NotFinished is raised. UsageError for rankings that are drawn, and for a dial
        that the re-ranker does not have.
        """
        query, agent = self.query_of(request), opened.agent(request.settings)
        if agent.draws:
            raise UsageError("rankings are drawn at random here (`sampling.alpha`): no one order is there to change")

        def make() -> SearchRun:
            if not search:
                raise NotFinished("this search was not made, or a while ago")
            return agent.under(kept_to).find(query, agent.settings.n)

        kept_to = SearchOptions(where=request.options.where)
        run = opened.finished.get((query, request.settings, kept_to), make)
        ordered = agent.under(request.options.model_copy(update={"where": None}))
        done = ordered.reordered(run)
        record = _search_record(done.result(done.pool), ordered, opened.site.collection, done, trace)
        return {name: value for name, value in record.items() if name not in OF_THE_SEARCH}

    @on_what_is_open
    def answer(
        self, opened: OpenedDesk, request: ListRequest, listen: Listener = ignore_event, trace: bool = True
    ) -> PlainRecord:
        """The answer as `fairagent answer --json` has it, its search as `search` has it; raises the same and more."""
        pieces = None if listen is ignore_event else lambda piece: listen("text", {"text": printable(piece)})

        def cited(so_far: CitedSoFar) -> None:
            exposure = [exposure_record(one) for one in so_far.exposures]
            listen("cited", {"cited": list(so_far.cited), "exposure": exposure, "gap": so_far.gap})

        query, agent, options = self.query_of(request), opened.agent(request.settings), request.options
        heard = None if listen is ignore_event else cited
        result = agent.answer(query, pieces, _steps(listen), heard, **options.given)
        searched = _search_record(result.search, agent.under(options), opened.site.collection, trace=trace)
        return {**answer_record(result), "search": searched}

    @on_what_is_open
    def exposure(self, opened: OpenedDesk, request: ExposureRequest) -> PlainRecord:
        """What a list of documents, best first, gives the groups, with their targets."""
        if len(request.ids) > MOST_IDS or len(set(request.ids)) < len(request.ids):
            raise UsageError(f"`ids` are at most {MOST_IDS:,} documents, each of them once")
        ids, agent = request.ids, opened.agent(request.settings)
        settings = agent.settings.model_copy(update={"n": len(ids)})
        given = Ranking(ids, np.arange(len(ids), 0, -1, dtype=np.float64))
        query = self.query_of(request) if request.query or request.topic else Query("")
        ranking = agent.retriever.search(query, settings.depth) if query.text else given
        meter = ExposureMeter.make(opened.site.collection, query.id, settings, ranking)
        exposures = meter.measure(given)
        site = opened.site
        known = site.memo.get("known documents", lambda: indexed_documents(site.collection, site.index))
        unknown = compare_ids("documents of `ids`", ids, known) if known and ids else ""
        unlabeled = np.all([rows[:, 0] >= 1 for rows in meter.memberships(ids)], axis=0)
        targets = {target.dimension: target.source for target in meter.targets}
        alone = "" if query.text or not any("estimated" in source for source in targets.values()) else ALONE
        return {
            "exposure": [exposure_record(one) for one in exposures],
            "gap": total_gap(exposures),
            "targets": targets,
            "oracle": meter.oracle,
            "unlabeled": [id for id, none in zip(ids, unlabeled, strict=True) if none],
            "notes": [*filter(None, [opened.site.collection.behind, alone, unknown])],
        }

    @on_what_is_open
    def document(self, opened: OpenedDesk, id: str) -> PlainRecord:
        """A document's title and text; UsageError where the engine stores none, NothingThere where it is not there."""
        engine = opened.agent(Choices()).retriever
        if not isinstance(engine, TextSource):
            raise UsageError("this engine stores no texts of its documents")
        try:
            document = engine.document(id)
        except IndexMismatch:
            raise
        except DataError as error:
            raise NothingThere(str(error)) from None
        return {"id": id, "title": name_of(document.title, "", id), "text": document.text}

    @on_what_is_open
    def texts(self, opened: OpenedDesk, request: SearchRequest, ids: tuple[str, ...], length: int) -> list[str]:
        """The first `length` characters of what each of these documents says on the query."""
        engine = opened.agent(request.settings).retriever
        return [one.text[:length] for one in texts_for(self.query_of(request), ids, engine)]

    def query_of(self, request: SearchRequest) -> Query:
        """The query of a request, or its topic's; UsageError where there is neither, or no such topic."""
        text, topics = request.query.strip(), self.collection.topics
        if request.topic and request.topic not in topics:
            raise UsageError(no_such("topic", request.topic, topics))
        if not text and not request.topic:
            raise UsageError("the query is empty; give at least one word, or a topic")
        return Query(text or topics[request.topic].query, request.topic)


def _search_record(
    result: SearchResult, agent: FairAgent, collection: Collection, run: SearchRun | None = None, trace: bool = True
) -> PlainRecord:
    """The result's record, with the engine's list and each document's rank in the other list (None: not in it).

    Without a `trace`: what is served, and what it gives the groups; texts are had by `document`.
    """
    if not trace:
        whole = result_record(result, steps=False)
        hits = [{name: value for name, value in hit.items() if name != "text"} for hit in whole["hits"]]
        return {**{name: whole[name] for name in OF_A_LIST}, "hits": hits}
    deep = result.trace.steps[0].ranking
    own = deep.top(agent.settings.n)
    meter = ExposureMeter.make(collection, result.query.id, agent.settings, result.trace.steps[-1].ranking)
    engine_hits = hits_of(own, meter, agent.retriever, result.query)
    before = {id: rank for rank, id in enumerate(deep.ids, start=1)}
    now = {hit.id: hit.rank for hit in result.hits}
    return {
        **result_record(result),
        "hits": [ranked_hit(hit, "engine_rank", before) for hit in result.hits],
        "engine_hits": [ranked_hit(hit, "agent_rank", now) for hit in engine_hits],
        "frontier": run and frontier_record(run, result, before),
        "order": {"n": agent.settings.n, "most": MOST_SERVED, "unknown": agent.settings.unknown},
    }


ALONE = "the targets are estimated from the list itself; with a query they come from what the engine finds for it"


def ranked_hit(hit: Hit, name: str, ranks: Mapping[str, int]) -> PlainRecord:
    """A line of a ranking with its rank in another list as `name`; None: not in it."""
    return {**hit_record(hit), name: ranks.get(hit.id)}


def _steps(listen: Listener) -> Callable[[Step], None]:
    return ignore_step if listen is ignore_event else lambda step: listen("step", step_record(step))
