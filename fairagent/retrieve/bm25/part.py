"""BM25 as a part: the index of a collection, opened once for all who search it or read its texts and terms."""

from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from fairagent.collection.collection import NoDocuments
from fairagent.errors import SettingsError
from fairagent.retrieve.base import FusedEngine, Retriever, ignore, lend_texts
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.manifest import Manifest
from fairagent.retrieve.passages import BM25Passages
from fairagent.retrieve.relevance_model import TermSource
from fairagent.retrieve.site import Site
from fairagent.settings.parts import Part, Progress
from fairagent.storage.threads import progress


class BM25Config(Part):
    """BM25, as Lucene scores it."""

    kind: Literal["bm25"] = "bm25"
    k1: float = Field(0.9, ge=0)
    """How much repeated words add to a document's score: 0 counts each word once, with larger values repetitions count
    longer."""
    b: float = Field(0.4, ge=0, le=1)
    """How much long documents are held back, 0 (not at all) to 1 (in proportion to their length)."""

    def check(self, site: Site) -> None:
        check_index(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        prepare_index(site, progress)

    def build(self, site: Site) -> Any:
        """The engine; of a collection in passages it ranks documents, by their best passage."""
        return open_index(site, self.k1, self.b)


def open_index(site: Site, k1: float = 0.9, b: float = 0.4) -> Any:
    """The index of the site, which must have been built from the collection as it is now; of passages, by documents."""
    engine = open_matrix(site, k1, b)
    if not site.collection.chunks:
        return engine
    return site.memo.get(("passages", site.index, site.settings.analyzer, k1, b), lambda: BM25Passages(engine))


def open_matrix(site: Site, k1: float = 0.9, b: float = 0.4) -> Any:
    """What the index holds, documents or passages: a `BM25Retriever`."""

    def opened() -> Any:
        with progress(f"opening the index {site.index}"):
            return BM25Retriever(site.index, site.collection, site.settings.analyzer, k1, b)

    _expect_index(site)
    return site.memo.get(("bm25", site.index, site.settings.analyzer, k1, b), opened)


def check_index(site: Site) -> None:
    """Raise IndexMismatch where the site has an index of something else, or a damaged one."""
    if Manifest.exists(site.index):
        Manifest.read_checked(site.index, site.collection, analyzer=site.settings.analyzer)


def prepare_index(site: Site, progress: Progress) -> None:
    """Build the index of the site where there is none."""
    if not Manifest.exists(site.index):
        # Imported here, since a search needs no scipy.
        from fairagent.retrieve.bm25.build import build_index

        what = f"indexing {site.collection.name}"
        build_index(site.collection, site.index, site.settings.analyzer, partial(progress, what))


def prepare_words(site: Site, progress: Progress) -> None:
    """Build the index whose terms a part reads, unless a guest or the engine tells them."""
    if site.words is None and not site.settings.engine.tells_words:
        prepare_index(site, progress)


def words_of(site: Site) -> TermSource:
    """What knows the terms of documents: a guest, the engine or one of those that it fuses, or else the index."""
    engine = _term_engine(site)
    return open_index(site) if engine is None else engine


def words_at_hand(site: Site) -> TermSource | None:
    """As `words_of`, but None where an index would have to be built first."""
    engine = _term_engine(site)
    return open_index(site) if engine is None and Manifest.exists(site.index) else engine


def _term_engine(site: Site) -> TermSource | None:
    fused = site.engine.engines if isinstance(site.engine, FusedEngine) else ()
    return next((one for one in (site.words, site.engine, *fused) if isinstance(one, TermSource)), None)


def index_sibling(site: Site, name: str) -> Path:
    """The folder of what else is made of the index's documents: it is in that of the index."""
    _expect_index(site)
    return site.index / name


def _expect_index(site: Site) -> None:
    """Raise SettingsError, saying what to do, where there is nothing that an index could be built from."""
    engine = site.settings.engine
    if site.words is not None:
        raise SettingsError("it needs an index of the collection, and there is none: the engine is a guest's")
    if not isinstance(site.collection.source, NoDocuments):
        return
    if not engine.tells_words:
        raise SettingsError(
            f"collection {site.collection.name!r} names no documents, and engine {engine.kind} searches an index that "
            "is built from these: name an engine with an index of its own (lucene, opensearch); a profile has its own "
            "engine, so that beside `profile` the engine is to be named too"
        )
    raise SettingsError(
        f"a part needs the terms of the documents, and engine {engine.kind} does not tell them: its index stores "
        "neither document vectors nor texts. Build it with -storeDocvectors or -storeRaw, name a BM25 index of the "
        "same documents (`texts:` of lucene-impact and lucene-hnsw), or search without (`profile: engine`)"
    )


def with_texts(site: Site, engine: Retriever) -> Retriever:
    """An engine without texts, with those of the index where there is one; as it is in experiments."""
    if site.stateless or not Manifest.exists(site.index):
        return engine
    return lend_texts(engine, open_index(site))


def close_all(memo: Any) -> None:
    """Release the files of all indexes that were opened."""
    for opened in memo.values():
        getattr(opened, "close", ignore)()
