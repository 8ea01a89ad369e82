"""`LiveSite`: what searches are built from, opened again once an index is replaced; and the agent that is current."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import RLock
from time import monotonic
from typing import TypeVar

from fairagent.collection import Collection, load_collection
from fairagent.errors import BackendUnavailable, DataError, IndexMismatch
from fairagent.llm.models import Models
from fairagent.retrieve.manifest import MANIFEST, as_indexed, behind, state_of
from fairagent.retrieve.site import Site
from fairagent.retrieve.stochastic import RequestCounter
from fairagent.search.agent import FairAgent
from fairagent.settings import Settings
from fairagent.storage.threads import progress
from fairagent.types import Usage

T = TypeVar("T")

LOOK = 0.5
"""Seconds after which whoever searches looks whether the index is still the one that is open."""
TRIES = 5
"""So often work is begun whose index is replaced meanwhile."""


def index_folder(collection: Collection, settings: Settings, given: Path | str = "") -> Path:
    """Where the collection's index is: from the call, the settings, or indexes/<name>."""
    return Path(str(given) or settings.index or Path("indexes") / collection.name)


class LiveSite:
    """The site of a collection's settings file and of its index; opened again when the index's manifest changes.

    `open` makes a site of a collection, `build` the agent of a site. Threads may share it. Models and budget stay the
    same through all openings; `openings` counts them.
    """

    def __init__(
        self,
        given: Collection | Path,
        settings: Settings,
        index: Path | str,
        open: Callable[[Collection], Site],
        build: Callable[[Site], FairAgent],
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._given, self._settings, self._index = given, settings, index
        self._open, self._build, self._requests = open, build, RequestCounter()
        self._clock = clock or monotonic
        self._lock = RLock()
        self._site: Site | None = None
        self._models: Models | None = None
        self._folder: Path | None = None
        self._state = 0, 0
        self._looked = 0.0
        self.openings = 0
        self.now()

    def now(self) -> Site:
        """The site as it is now, by a look that is at most half a second old; raises what opening it does."""
        return self.use(lambda site: site)

    def _now(self) -> Site:
        with self._lock:
            if self._site is None or self._clock() - self._looked >= LOOK:
                self._looked = self._clock()
                if self._site is None or self._moved():
                    self._site = self._opened(self._site)
                elif (
                    not (loaded := self._site.collection).behind and loaded.origin and loaded.origin.documents_changed()
                ):
                    # A note where the files have changed since it was opened.
                    with suppress(OSError):
                        noted = replace(loaded, behind=behind(loaded, self._site.index))
                        self._site = replace(self._site, collection=noted)
            return self._site

    def use(self, work: Callable[[Site], T]) -> T:
        """The result of `work` on the site; it is called again if the index was replaced meanwhile."""
        for left in reversed(range(TRIES)):
            site = None
            try:
                site = self._now()
                return work(site)
            except (IndexMismatch, BackendUnavailable, DataError):
                with self._lock:
                    if not left or not (self._moved() or self._site is not site):
                        raise
                    self._looked = float("-inf")
        raise AssertionError

    def agent(self) -> FairAgent:
        """The agent that is current: of what `now` returns. Requests are counted on from one to the next."""
        return self.with_agent(lambda agent: agent)

    def with_agent(self, work: Callable[[FairAgent], T]) -> T:
        """As `use`, with the agent that is current."""

        def on_site(site: Site) -> T:
            key = ("agent", site.collection.behind)
            return work(site.memo.get(key, lambda: replace(self._build(site), requests=self._requests)))

        return self.use(on_site)

    def close(self) -> None:
        """Close the connections to models, and the cache."""
        if self._models:
            self._models.close()

    @property
    def usage(self) -> Usage:
        """What its models cost since it was first opened; does not wait."""
        return self._models.usage if self._models else Usage()

    def _moved(self) -> bool:
        return self._folder is not None and state_of(self._folder / MANIFEST) != self._state

    def _opened(self, before: Site | None) -> Site:
        """The site opened anew; encoders that do not depend on the index are kept."""
        self._site = None
        site = self._open(self._collection())
        if before is not None:
            site.memo.take_over(before.memo, lambda key: "encoder" in key and before.index not in key)
        if self._models is not None:
            site.models.close()
            site = replace(site, models=self._models)
        self._models = site.models
        self.openings += 1
        return site

    def _collection(self) -> Collection:
        """The collection as its index knows it."""
        given = self._given
        if isinstance(given, Collection) and not (given.origin and given.origin.is_of(given)):
            return given
        with progress("reading the collection"):
            file = given.origin.file if isinstance(given, Collection) and given.origin else given
            assert isinstance(file, Path)
            loaded = load_collection(file, self._index or self._settings.index)
        if isinstance(given, Collection):
            loaded = replace(
                loaded, topics=given.topics, qrels=given.qrels, population=given.population, target=given.target
            )
        self._folder = index_folder(loaded, self._settings, self._index)
        # Read before the index is opened, so that a change in between is noticed.
        self._state = state_of(self._folder / MANIFEST)
        return as_indexed(loaded, self._folder, self._settings.analyzer)
