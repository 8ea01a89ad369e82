"""`LiveSite`: what searches are built from, opened again once an index is replaced; and the agent that searches so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from fairagent.collection import Collection, load_collection
from fairagent.collection.collection import Source
from fairagent.collection.config import Chunks
from fairagent.collection.origin import IndexedState, State, states_of
from fairagent.errors import BackendUnavailable, DataError, IndexMismatch
from fairagent.llm.models import Models
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.earlier import IndexStamp, as_indexed, behind, serving, stamp_of
from fairagent.retrieve.site import Site
from fairagent.retrieve.where import Restriction
from fairagent.search.agent import FairAgent
from fairagent.search.loop.base import Loop, OnStep, ignore_step
from fairagent.search.rerank.base import Reranker
from fairagent.search.run import SearchRun
from fairagent.settings import OptionValues, SearchOptions, Settings
from fairagent.storage.threads import progress
from fairagent.types import AnswerResult, Query, SearchResult, Topic, Usage

if TYPE_CHECKING:
    from fairagent.answer.answering import Answerer
    from fairagent.answer.citing import OnCited

T = TypeVar("T")

LOOK = 0.5
"""Seconds after which whoever searches looks whether the index is still the one that is open."""
TRIES = 5
"""So often work is begun whose index is replaced meanwhile."""
ENCODER = "encoder"
"""What the keys of opened encoders begin with."""


class LiveSite:
    """The site of a collection's settings file, and of the last index that is whole; opened again when that changes.

    `open` makes a site of the collection that it is given, and of the folder that it was indexed in (None: as settings
    say). Threads may share it; `clock` gives seconds. The models, and with them the budget, are the same all the time.
    `openings` is how often it was opened.
    """

    def __init__(
        self,
        given: Collection | Path,
        settings: Settings,
        index: Path | str,
        open: Callable[[Collection, Path | None], Site],
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._given, self._settings, self._index, self._open = given, settings, index, open
        self._clock = clock or monotonic
        self._lock = RLock()
        self._site: Site | None = None
        self._models: Models | None = None
        self._named: tuple[Path, str, str] | None = None
        self._stamp: IndexStamp = ()
        self._looked = 0.0
        self.openings = 0
        self.now()

    def now(self) -> Site:
        """The site as it is now, by a look that is at most half a second old.

        Raises what opening it does: what was removed from an index is not served because the new one cannot be opened.
        """
        with self._lock:
            if self._site is None or self._clock() - self._looked >= LOOK:
                self._looked = self._clock()
                if self._site is None or self._moved():
                    self._site = self._opened(self._site)
                else:
                    self._site = self._noted(self._site)
            return self._site

    def use(self, work: Callable[[Site], T]) -> T:
        """What `work` makes of the site; begun again where its index was replaced under it."""
        for left in reversed(range(TRIES)):
            site = self.now()
            try:
                return work(site)
            except (IndexMismatch, BackendUnavailable, DataError):
                with self._lock:
                    if not left or not (self._moved() or self._site is not site):
                        raise
                    self._looked = float("-inf")
        raise AssertionError

    def close(self) -> None:
        """Close the connections to models, and the cache."""
        if self._models:
            self._models.close()

    @property
    def usage(self) -> Usage:
        """What its models were paid since it was first opened; it waits for nothing."""
        return self._models.usage if self._models else Usage()

    def _moved(self) -> bool:
        return self._named is not None and stamp_of(*self._named) != self._stamp

    def _opened(self, before: Site | None) -> Site:
        """The site anew; those encoders stay that no index was made for."""
        self._site = None
        for left in reversed(range(TRIES)):
            try:
                site = self._open(*self._collection())
                break
            except (IndexMismatch, BackendUnavailable, DataError):
                if not left or not self._moved():
                    raise
        if before is not None:
            site.memo.take_over(before.memo, lambda key: ENCODER in key and before.index not in key)
        if self._models is not None:
            site.models.close()
            site = replace(site, models=self._models)
        self._models = site.models
        self.openings += 1
        return site

    def _collection(self) -> tuple[Collection, Path | None]:
        """The collection as it was indexed, and the folder of that index."""
        given = self._given
        if isinstance(given, Collection) and not (given.origin and given.origin.is_of(given)):
            return given, None
        place: Path | None = None

        def indexed(
            name: str, source: Source, chunks: Chunks | None, states: Mapping[Path, State]
        ) -> IndexedState | None:
            nonlocal place
            folder = Path(str(self._index) or self._settings.index or Path("indexes") / name)
            self._named = folder, name, self._settings.analyzer
            # First: what comes in between is noticed.
            self._stamp = stamp_of(*self._named)
            place = serving(*self._named)
            return as_indexed(place, name, self._settings.analyzer, source, chunks, states)

        with progress("reading the collection"):
            file = given.origin.file if isinstance(given, Collection) and given.origin else given
            assert isinstance(file, Path)
            loaded = load_collection(file, self._index or self._settings.index, indexed)
        if isinstance(given, Collection):
            own = {name: getattr(given, name) for name in ("topics", "qrels", "population", "target")}
            loaded = replace(loaded, **own)
        return loaded, place

    def _noted(self, site: Site) -> Site:
        """The site with a note where the files have changed since it was opened."""
        collection = site.collection
        if collection.behind or not collection.origin or not collection.origin.documents_changed():
            return site
        with suppress(OSError):
            note = behind(site.index, states_of(collection.origin.documents))
            site = replace(site, collection=replace(collection, behind=note))
        return site


class LiveAgent(FairAgent):
    """An agent whose index and groups are those that are whole now, whenever it is asked; see `LiveSite`.

    A copy with other parts (`dataclasses.replace`) is a `FairAgent` of what is open at that moment.
    """

    __slots__ = ("_build", "_live")
    _live: LiveSite
    _build: Callable[[Site], FairAgent]

    def __new__(cls, *given: Any, **fields: Any) -> Any:
        """An agent of fixed parts where these are given by name, as `dataclasses.replace` does."""
        return FairAgent(**fields) if fields else object.__new__(cls)

    def __init__(self, live: LiveSite, build: Callable[[Site], FairAgent]) -> None:
        object.__setattr__(self, "_live", live)
        object.__setattr__(self, "_build", build)

    def latest(self) -> FairAgent:
        """The agent of what is open now."""
        return self._agent(self._live.now())

    def find(self, query: str | Query | Topic, length: int, on_step: OnStep = ignore_step) -> SearchRun:
        """As `FairAgent.find`."""
        return self._live.use(lambda site: self._agent(site).find(query, length, on_step))

    def search(
        self, query: str | Query | Topic, on_step: OnStep = ignore_step, **options: Unpack[OptionValues]
    ) -> SearchResult:
        """As `FairAgent.search`."""
        return self._live.use(lambda site: self._agent(site).search(query, on_step, **options))

    def search_many(
        self, queries: Iterable[str | Query | Topic], **options: Unpack[OptionValues]
    ) -> list[SearchResult]:
        """As `FairAgent.search_many`; all of them in one index."""
        texts = list(queries)
        return self._live.use(lambda site: self._agent(site).search_many(texts, **options))

    def answer(
        self,
        query: str | Query | Topic,
        on_text: Callable[[str], None] | None = None,
        on_step: OnStep = ignore_step,
        on_cited: OnCited | None = None,
        **options: Unpack[OptionValues],
    ) -> AnswerResult:
        """As `FairAgent.answer`."""
        return self._live.use(lambda site: self._agent(site).answer(query, on_text, on_step, on_cited, **options))

    def under(self, options: SearchOptions) -> FairAgent:
        """As `FairAgent.under`, of what is open now."""
        return self.latest().under(options)

    def reorder(self, run: SearchRun, options: SearchOptions | None = None) -> SearchResult:
        """As `FairAgent.reorder`."""
        return self.latest().reorder(run, options)

    def open_answerer(self) -> Answerer:
        """As `FairAgent.open_answerer`."""
        return self.latest().open_answerer()

    def _agent(self, site: Site) -> FairAgent:
        agent: FairAgent = site.memo.get(("agent", site.collection.behind), partial(self._build, site))
        return agent

    @property
    def collection(self) -> Collection:
        """Of the moment, as the other parts."""
        return self.latest().collection

    @property
    def retriever(self) -> Retriever:
        """The engine."""
        return self.latest().retriever

    @property
    def loop(self) -> Loop | None:
        """The loop."""
        return self.latest().loop

    @property
    def reranker(self) -> Reranker | None:
        """The re-ranker."""
        return self.latest().reranker

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.latest().settings

    @property
    def answerer(self) -> Callable[[], Answerer] | None:
        """What opens what answers need."""
        return self.latest().answerer

    @property
    def restriction(self) -> Restriction | None:
        """What the engine is kept to."""
        return self.latest().restriction
