"""BM25 as a part: the Lucene index of a collection, opened once for all who search it or read its texts and terms."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from fairagent.collection.documents import Elsewhere
from fairagent.digests import expect_whole
from fairagent.doing import doing
from fairagent.errors import SettingsError
from fairagent.folders import is_there
from fairagent.retrieve.anserini.opened import AnseriniEngine
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.lucene import LuceneRetriever, Manifest, build_index
from fairagent.retrieve.lucene.index import MANIFEST, REMEDY, add_terms, has_terms
from fairagent.retrieve.passages import LucenePassages
from fairagent.retrieve.relevance_model import TermSource
from fairagent.retrieve.with_texts import RetrieverWithTexts
from fairagent.settings.parts import Part, Progress
from fairagent.site import Site


class BM25Config(Part):
    """BM25 (Lucene)."""

    kind: Literal["bm25"] = "bm25"
    k1: float = Field(0.9, ge=0)
    """How much repeated words add to a document's score: 0 counts each word once, with larger values repetitions count
    longer."""
    b: float = Field(0.4, ge=0, le=1)
    """How much long documents are held back, 0 (not at all) to 1 (in proportion to their length)."""

    def check(self, site: Site) -> None:
        """Raise IndexMismatch where there is an index that does not belong to the collection as it is now."""
        check_index(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        """Build the index where there is none, with terms where queries are expanded by them."""
        (prepare_terms if site.settings.expansion.documents else prepare_index)(site, progress)

    def build(self, site: Site) -> LuceneRetriever | LucenePassages:
        """The engine; of a collection in passages it ranks documents, by their best passage."""
        return open_index(site, self.k1, self.b)


def open_index(site: Site, k1: float = 0.9, b: float = 0.4) -> LuceneRetriever | LucenePassages:
    """The Lucene index of the site, which must have been built from the collection as it is now."""

    def opened() -> LuceneRetriever | LucenePassages:
        with doing(f"opening the index {site.index}"):
            engine = LuceneRetriever(site.index, site.collection, site.settings.analyzer, k1, b)
        return LucenePassages(engine) if site.collection.chunks else engine

    _expect_index(site)
    engine: LuceneRetriever | LucenePassages = site.memo.get(
        ("lucene", site.index, site.settings.analyzer, k1, b), opened
    )
    return engine


def check_index(site: Site) -> None:
    """Raise IndexMismatch where the site has an index of something else, or a damaged one."""
    if is_there(site.index, MANIFEST):
        Manifest.read(site.index).check(site.collection, site.settings.analyzer, site.index)
        expect_whole(site.index, "the index", REMEDY)


def prepare_index(site: Site, progress: Progress) -> None:
    """Build the Lucene index of the site where there is none."""
    if not is_there(site.index, MANIFEST):
        name = site.collection.name
        build_index(
            site.collection,
            site.index,
            site.settings.analyzer,
            lambda done: progress(f"indexing {name}", done),
            terms=False,
        )


def prepare_terms(site: Site, progress: Progress) -> None:
    """As `prepare_index`, and give the index the terms of documents where it has none."""
    prepare_index(site, progress)
    if not has_terms(site.index):
        name = site.collection.name
        add_terms(site.collection, site.index, lambda done: progress(f"terms of {name}", done))


def prepare_words(site: Site, progress: Progress) -> None:
    """Build the index whose terms a part reads, unless a guest or the engine tells them."""
    if site.words is None and not site.settings.engine.tells_words:
        prepare_terms(site, progress)


def words_of(site: Site) -> TermSource:
    """What tells the terms of documents: a guest, the engine or one of those that it fuses, or else the index.

    Raises BackendUnavailable where that is an index built without them.
    """
    told = _told(site)
    found = open_index(site) if told is None else told
    if isinstance(found, LuceneRetriever | LucenePassages):
        found.expect_terms()
    return found


def words_at_hand(site: Site) -> TermSource | None:
    """As `words_of`, but None where an index would have to be built first."""
    told = _told(site)
    if isinstance(told, LuceneRetriever | LucenePassages) or (told is None and is_there(site.index, MANIFEST)):
        return words_of(site) if has_terms(site.index) else None
    return told


def _told(site: Site) -> TermSource | None:
    if site.words is not None:
        told: TermSource = site.words
        return told
    engines = (site.engine, *getattr(site.engine, "engines", ()))
    return next((engine for engine in engines if isinstance(engine, TermSource)), None)


def beside_index(site: Site, suffix: str) -> Path:
    """The folder of another index of the same documents."""
    _expect_index(site)
    return Path(f"{site.index}-{suffix}")


def _expect_index(site: Site) -> None:
    if site.words is not None:
        raise SettingsError("it needs an index of the collection, and there is none: the engine is a guest's")
    if isinstance(site.collection.source, Elsewhere):
        raise SettingsError(_not_told(site))


def _not_told(site: Site) -> str:
    """What to do where the documents are in an engine's index, and the engine, or its terms, are not there."""
    engine = site.settings.engine
    if not engine.tells_words:
        return (
            f"collection {site.collection.name!r} names no documents, and engine {engine} searches an index that is "
            "built from these: name an engine with an index of its own (lucene, opensearch); a profile has its own "
            "engine, so that beside `profile` the engine is to be named too"
        )
    return (
        f"a part needs the terms of the documents, and engine {engine} does not tell them: its index stores neither "
        "document vectors nor texts. Build it with -storeDocvectors or -storeRaw, name a BM25 index of the same "
        "documents (`texts:` of lucene-impact and lucene-hnsw), or search without (`profile: engine`)"
    )


def with_texts(site: Site, engine: Retriever) -> Retriever:
    """An engine that keeps no texts, with those of the index where there is one; as it is in experiments."""
    if site.steady or not is_there(site.index, MANIFEST):
        return engine
    return RetrieverWithTexts(engine, open_index(site))


def engine_of(site: Site) -> Retriever:
    """The pipeline's engine."""
    engine: Retriever = site.engine
    return engine


def close_all(memo: Any) -> None:
    """Release the files of all indexes that were opened."""
    for opened in memo.values():
        if isinstance(opened, LuceneRetriever | LucenePassages | AnseriniEngine):
            opened.close()
