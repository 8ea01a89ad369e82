"""`Desk`: one collection, opened once, and searched under many settings; the requests of the API and of agents.

Whoever may search may not choose files or servers: of the settings only those stand in `Choices` that name neither.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from fairagent.answer.answering import CitedSoFar
from fairagent.collection import Collection
from fairagent.collection.exposure import ExposureMeter, total_gap
from fairagent.collection.known import compare_ids
from fairagent.errors import DataError, IndexMismatch, UsageError
from fairagent.llm.prompts.template import LARGEST_TEMPLATE
from fairagent.report.record import PlainRecord, answer_record, exposure_record, hit_record, result_record, step_record
from fairagent.retrieve.base import TextSource, texts_for
from fairagent.retrieve.manifest import indexed_documents
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.loop.base import ignore_step
from fairagent.search.loop.policy import GivenCalls, groups_lacking, steered
from fairagent.search.loop.widen import State
from fairagent.search.pipeline import asks_model, build, open_live, unasked, with_settings
from fairagent.search.run import SearchRun, hits_of
from fairagent.settings import SearchOptions, Settings, load_settings
from fairagent.settings.faults import no_such
from fairagent.settings.section import meanings
from fairagent.storage.readers import parse_json
from fairagent.studio.contents import contents_record, document_count, frontier_record
from fairagent.studio.lanes import Listener, NothingThere, ignore_event
from fairagent.types import Query, Ranking, SearchResult, Step
from fairagent.types.clean import LONGEST_QUERY, name_of, printable

MOST_IDS = 1000
"""Documents in a list whose exposure is measured."""
MOST_SERVED = 100
"""Documents in a ranking."""


class RequestModel(BaseModel):
    """Values of strangers: unknown keys, nan and infinity are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Choices(RequestModel):
    """Settings for one request, laid over those that the server was started with; null leaves those as they are."""

    profile: Literal["offline", "agent", "engine", "fair-qr", "fair-filter", "debias-rag"] | None = None
    n: Annotated[int, Field(ge=1, le=MOST_SERVED)] | None = None
    depth: Annotated[int, Field(ge=1, le=2000)] | None = None
    dimensions: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=20)] | None = None
    target: Literal["population", "uniform", "corpus", "estimated", "trec-estimated", "qrels", "trec"] | None = None
    divergence: Literal["kl", "kl-reverse", "js", "tv"] | None = None
    engine: Literal["auto", "bm25", "rm3", "dense", "fused"] | None = None
    loop: Literal["widen", "fair-qr", "none"] | None = None
    rerank: Literal["original", "fused", "exposure", "mmr", "graph", "fa-star-ir", "none"] | None = None
    filter: Literal["none", "fair"] | None = None
    generate: Literal["extractive", "llm"] | None = None


QueryText = Annotated[str, Field(max_length=LONGEST_QUERY, description="What is searched for.")]
Topic = Annotated[str, Field(max_length=500, description="A topic of the collection; its query is used without one.")]


class SearchRequest(RequestModel):
    """A query, or a topic of the collection, and settings for it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "lawyers", "settings": {"n": 5}}]})

    query: QueryText = ""
    topic: Topic = ""
    settings: Choices = Choices()


class ListRequest(SearchRequest, SearchOptions):
    """A search, and what this one search asks for beside the settings."""

    # Whole from the start: routes are made of it.
    model_config = ConfigDict(defer_build=False)
    n: Annotated[int, Field(ge=1, le=MOST_SERVED)] | None = Field(
        None, description=SearchOptions.model_fields["n"].description
    )

    @property
    def options(self) -> SearchOptions:
        """What it asks for; SettingsError where that cannot be."""
        return SearchOptions.of(self.model_dump(include=set(SearchOptions.model_fields), exclude_none=True))


class SteeredRequest(ListRequest):
    """A search whose loop another agent steers: the calls so far, each carried out in its turn."""

    calls: GivenCalls = Field((), description="Calls of tools so far, in their order, each with name and arguments.")


class TracedRequest(ListRequest):
    """A search whose reply may tell how its list came about."""

    trace: bool = Field(False, description="Reply also with the steps, the texts, the engine's own list, the frontier.")


Ids = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=500)], ...],
    Field(min_length=1, description="Ids of documents as a search gives them, best first; at least one."),
]


class ExposureRequest(SearchRequest):
    """A list of documents, best first, whose exposure is measured; the query is what targets are estimated from."""

    ids: Ids


MOST_TOPICS = 10
"""Topics on which a template is tried at once: each asks the model twice."""
MOST_DOCUMENTS = 20
"""Documents that a template is filled with."""

Id = Annotated[str, Field(max_length=100, description="A shipped template's id.")]
Text = Annotated[str, Field(max_length=LARGEST_TEMPLATE, description="The template's text, head included.")]


class Draft(RequestModel):
    """A template's text that is in no file yet."""

    id: Id
    template: Text


class FilledDraft(Draft):
    """A draft, and what it is filled with: what a query or a topic finds, examples without one."""

    query: QueryText = ""
    topic: Topic = ""
    group: Annotated[str, Field(max_length=500, description="The group to refine for; that which lacks most.")] = ""
    documents: Annotated[int, Field(ge=1, le=MOST_DOCUMENTS)] = 3


class TrialRequest(FilledDraft):
    """A draft that is tried against another version: on a query, a topic, or several topics."""

    against: Annotated[
        str, Field(max_length=LARGEST_TEMPLATE, description="The other version's text; the shipped one's without it.")
    ] = ""
    topics: Annotated[tuple[Topic, ...], Field(max_length=MOST_TOPICS)] = ()


class SaveRequest(Draft):
    """A draft for the user's folder, whose file had the SHA-256 `was` when it was read ("": there was none)."""

    was: Annotated[str, Field(max_length=64)] = ""


WORDS: dict[str, dict[str, Any]] = parse_json((Path(__file__).parent / "pages" / "words.json").read_text("utf-8"))
"""Of a setting: its `label`, and `words` for its values."""


def controls(settings: Settings) -> list[dict[str, Any]]:
    """Each setting of `Choices` for a page: its meaning, what may be chosen, and what it is in `settings`.

    Those of `WORDS`, which come first, have a `label` and `words` for their values.
    """
    schema, meaning = Choices.model_json_schema()["properties"], meanings(Settings)
    rows = []
    for name in (*WORDS, *(name for name in Choices.model_fields if name not in WORDS)):
        value, form = getattr(settings, name), schema[name]["anyOf"][0]
        # A part by its kind, what is not set as "".
        plain = "" if value is None else value if isinstance(value, str | int | tuple) else str(value)
        choices = {key: form[key] for key in ("enum", "type", "minimum", "maximum") if key in form}
        about = {"name": name, "label": "", "words": {}, **WORDS.get(name, {})}
        rows.append({**about, "meaning": " ".join(meaning[name].split()), "value": plain, **choices})
    return rows


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
        # As `asks_model` of the pipeline, of choices and a command; raises SettingsError.
        self.asks_model = lru_cache(maxsize=AGENTS_OPEN)(
            lambda choices, command: asks_model(self.settings_of(choices), command)
        )
        self.documents = 0
        self.live = open_live(settings=self.settings)
        self.live.use(lambda site: self._opened(site).agent(Choices()))

    def settings_of(self, choices: Choices) -> Settings:
        """The settings of a request, whose choices each take the place of what was set; SettingsError."""
        return load_settings(self._file, {**self._overrides, **choices.model_dump(exclude_none=True)})

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
            "unasked": unasked(self.settings),
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
    def steer(self, opened: OpenedDesk, request: SteeredRequest) -> PlainRecord:
        """As `search`, with these calls in the loop, and the groups that lack exposure then; UsageError."""
        query, agent = self.query_of(request), opened.agent(request.settings).under(request.options)
        agent = replace(agent, loop=steered(agent.loop, request.calls))
        run = agent.find(query, agent.pool_size)
        groups = groups_lacking(State(run.loop.candidates, run.loop.reranked)) if run.loop.reranked else []
        return {**_search_record(agent.result_of(run), agent, opened.site.collection), "groups": groups}

    @on_what_is_open
    def reorder(self, opened: OpenedDesk, request: ListRequest, search: bool = True, trace: bool = True) -> PlainRecord:
        """The results of a search in another order: as `search` has it, without the steps.

        Neither the engine nor a model is called where the search was made a while ago from the index as it is; else it
        is made now, or without `search` NotFinished is raised. UsageError for rankings that are drawn, and for a dial
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
        key = (query, request.settings, kept_to)
        run = opened.finished.keep(key, opened.finished.runs.get(key) or make())
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
        # None: not in the other list.
        "hits": [{**hit_record(hit), "engine_rank": before.get(hit.id)} for hit in result.hits],
        "engine_hits": [{**hit_record(hit), "agent_rank": now.get(hit.id)} for hit in engine_hits],
        "frontier": run and frontier_record(run, result, before),
        "order": {"n": agent.settings.n, "most": MOST_SERVED, "unknown": agent.settings.unknown},
    }


ALONE = "the targets are estimated from the list itself; with a query they come from what the engine finds for it"


def _steps(listen: Listener) -> Callable[[Step], None]:
    return ignore_step if listen is ignore_event else lambda step: listen("step", step_record(step))
