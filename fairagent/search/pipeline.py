"""The composition root: builds pipelines from settings. No other module builds parts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

from fairagent.collection import Collection, load_collection
from fairagent.collection.exposure import dimensions_of
from fairagent.errors import IndexMismatch, SettingsError, UsageError
from fairagent.llm.models import Models
from fairagent.retrieve.bm25.part import prepare_index
from fairagent.retrieve.encoders import ENDPOINT
from fairagent.retrieve.graph import prepare_graphs
from fairagent.retrieve.manifest import MANIFEST, Manifest
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.live import LiveSite, index_folder
from fairagent.search.relevance import Weighing
from fairagent.settings import Part, Settings, lay, load_settings
from fairagent.settings.parts import Progress
from fairagent.storage.digests import RECORD
from fairagent.storage.files import remove_folder
from fairagent.storage.folders import workshop
from fairagent.storage.threads import Memo, progress

if TYPE_CHECKING:
    from fairagent.answer.answering import Answerer
    from fairagent.answer.context import Contexts
    from fairagent.llm.prompts import Calls


def open_agent(
    collection: Collection | Path | str = "",
    index: Path | str = "",
    settings: Settings | Path | str | None = None,
    **overrides: Any,
) -> FairAgent:
    """An agent for a collection and its index, or a baseline.

    `collection` is a collection or its settings file, `index` the index's folder; both default to the settings.
    `settings` are settings or their file; `overrides` beat them, section by section: `open_agent("c.yaml", n=10,
    rerank={"kind": "mmr", "relevance": 0.3})`.

    It searches the index that is there, with a note if the documents have changed since. Once `fairagent index` or
    `build_index` has made a new one, that one is searched within a second. A collection that was put together in the
    program is searched by its own index alone.

    Raises SettingsError, DataError (every error of the collection's files), IndexMismatch, BackendUnavailable.
    """
    live = open_live(collection, index, settings, **overrides)
    # Built once now, so that errors are raised here and not at the first search.
    agent = live.with_agent(lambda agent: replace(agent))
    object.__setattr__(agent, "live", live)
    return agent


def open_live(
    collection: Collection | Path | str = "",
    index: Path | str = "",
    settings: Settings | Path | str | None = None,
    **overrides: Any,
) -> LiveSite:
    """What pipelines of these settings are built from, opened again when its index is replaced; see `open_agent`."""
    chosen = resolve(settings, overrides)
    given = collection if isinstance(collection, Collection) else _collection_file(collection, chosen)

    def opened(loaded: Collection) -> Site:
        return _site(loaded, chosen, index_folder(loaded, chosen, index))

    return LiveSite(given, chosen, index, opened, build)


def open_in_memory(
    collection: Collection, settings: Settings | Path | str | None = None, **overrides: Any
) -> FairAgent:
    """An agent over a collection of `Collection.from_records`; see `FairAgent.from_records`.

    Its index is in a temporary folder, which lasts as long as the collection does, or the process.
    """
    folder = Path(mkdtemp(prefix="fairagent-"))
    finalize(collection.source, remove_folder, folder)
    # Without groups there is nothing to be fair to.
    profile = {} if collection.groups.dimensions else {"profile": "engine"}
    site = open_site(collection, folder / collection.name, settings, **{**profile, **overrides})
    prepare(site, lambda what, done: None)
    return build(site)


def build_index(
    collection: Collection | Path | str = "",
    index: Path | str = "",
    settings: Settings | Path | str | None = None,
    *,
    progress: Progress = lambda what, done: None,
    **overrides: Any,
) -> Manifest:
    """Index a collection into a folder, with all that `open_agent` of these settings needs besides: vectors, a graph.

    Arguments are those of `open_agent`; `progress` gets what is being made, and how many documents of it are done. What
    was at the folder is replaced at the end, and unchanged after an error; embeddings of texts that are the same are
    taken over. Raises what `open_agent` does; DataError with every error of the document files, UsageError where
    something else is in the way, BackendUnavailable where the disk is full or another process builds there.
    """
    return rebuild(open_site(collection, index, settings, **overrides), progress)


def rebuild(given: Site, progress: Progress = lambda what, done: None) -> Manifest:
    """Make the site's index beside the one that is there, with all that its parts need, and put it in its place.

    Raises what `build_index` does; IndexMismatch where the collection's files have changed meanwhile.
    """
    collection, before = given.collection, given.collection.fingerprint()
    with workshop(given.index, (MANIFEST, RECORD)) as shop:
        site = replace(given, index=shop.new, earlier=given.index, memo=Memo())
        # Packages that are missing are reported before anything is built.
        for part in parts_of(resolved(site, preparing=True).settings):
            part.check(site)
        try:
            prepare_index(site, progress)
            prepare(site, progress)
            site = resolved(site, preparing=True)
            for part in parts_of(site.settings):
                part.check(site)
        except IndexMismatch:
            # If the documents are the same, the error is about the index, and is raised as it is.
            if collection.fingerprint() == before:
                raise
        if collection.fingerprint() != before:
            raise IndexMismatch(
                f"the files of collection {collection.name!r} have changed while they were indexed; repeat the command"
            )
        shop.put(recorded=True)
        return Manifest.read(given.index)


def open_site(
    collection: Collection | Path | str = "",
    index: Path | str = "",
    settings: Settings | Path | str | None = None,
    **overrides: Any,
) -> Site:
    """What the pipeline of these settings is built from, of the collection as it is now; see `open_agent`."""
    chosen = resolve(settings, overrides)
    if isinstance(collection, Collection):
        loaded = collection
    else:
        with progress("reading the collection"):
            loaded = load_collection(_collection_file(collection, chosen), index or chosen.index)
    return _site(loaded, chosen, index_folder(loaded, chosen, index))


def _collection_file(given: Path | str, settings: Settings) -> Path:
    path = str(given) or settings.collection
    if not path:
        raise UsageError(
            "no collection: name its settings file (--collection FILE, FAIRAGENT_COLLECTION, or `collection:` in "
            "the settings); `fairagent demo` makes one to try"
        )
    return Path(path)


def _site(collection: Collection, settings: Settings, index: Path) -> Site:
    site = Site(collection, settings, index, Models.of(settings), settings.sampling.seed)
    return settings.engine.with_parts_of(site)  # type: ignore[no-any-return]


def build(site: Site) -> FairAgent:
    """The agent that the site's settings describe; its parts share one model and one budget.

    Raises SettingsError for parts that do not go together or with the collection, and what opening each of them raises.
    """
    site = resolved(site)
    settings, collection = site.settings, site.collection
    if settings.sees_groups or collection.groups.dimensions:
        check_groups(site)
    if site.engine is None:
        site = replace(site, engine=settings.engine.build(site))
    return FairAgent(
        collection=collection,
        retriever=site.engine,
        loop=settings.loop.build(site) if settings.loops else None,
        reranker=settings.rerank.build(site),
        settings=settings,
        answerer=cache(partial(build_answerer, site)),
        weighing=Weighing.of_site(site),
    )


def build_answerer(site: Site) -> Answerer:
    """What turns a ranking into an answer; SettingsError without a model, BackendUnavailable without its key."""
    # Imported here, since a search alone does not need it.
    from fairagent.answer.answering import Answerer

    settings = site.settings
    generator, attributor = settings.generate.build(site), settings.attribute.build(site)
    return Answerer(generator, build_contexts(site), attributor, settings.citations)


def build_contexts(site: Site) -> Contexts:
    """What makes contexts of rankings; raises as `build_answerer`."""
    from fairagent.answer.context import Contexts

    settings, context = site.settings, site.settings.context
    return Contexts(
        filter=settings.filter.build(site),
        debiasing=settings.debias.build(site),
        documents=context.documents,
        tokens=context.tokens,
        balanced=context.order == "balanced",
    )


def engine_alone(site: Site) -> FairAgent:
    """The engine of the site's settings without an agent: it ranks by the plain query, and answers are made of that."""
    plain = lay(site.settings.given, {"profile": "engine", "engine": site.settings.engine, "sampling": {"alpha": None}})
    return build(replace(site, settings=load_settings(overrides=plain, environ={})))


def resolved(site: Site, preparing: bool = False) -> Site:
    """The site, its engine's settings resolved (`auto`); `preparing`: as they will be once indexes are made."""
    if site.engine is not None:
        return site
    engine = site.settings.engine.resolved(site, preparing)
    return replace(site, settings=site.settings.model_copy(update={"engine": engine}))


def prepare(site: Site, progress: Progress) -> None:
    """Build what the pipeline's parts need and is not there: index, embeddings, corpus graph."""
    site = resolved(site, preparing=True)
    for part in parts_of(site.settings):
        part.prepare(site, progress)
    if site.settings.types and site.settings.sees_groups and site.collection.groups.dimensions:
        prepare_graphs(site, progress)


def with_settings(site: Site, settings: Settings) -> Site:
    """The site under other settings; what was opened is shared."""
    return replace(site, settings=settings, engine=site.engine if site.words is not None else None)


def check_groups(site: Site) -> None:
    """Raise UsageError for an unknown dimension, SettingsError for a part that needs groups and has none."""
    settings, collection = site.settings, site.collection
    if not collection.groups.dimensions:
        needs = "the loop" if settings.loops else f"rerank: {settings.rerank}"
        raise SettingsError(
            f"{needs} looks at groups, and collection {collection.name!r} has none, so there is nothing to be fair to; "
            "`profile: engine` searches without"
        )
    for dimension in dimensions_of(collection, settings):
        collection.groups.labels(dimension)


def searching_parts(settings: Settings) -> tuple[Part, ...]:
    """The parts that a search runs, in their order, without those that they use."""
    loop = (settings.loop,) if settings.loops else ()
    return (settings.engine, *loop, settings.rerank)


def most_calls(
    collection: Collection, settings: Settings, queries: Sequence[str], answers: bool = False
) -> list[Calls]:
    """The most calls of language models that searches for `queries` make, with `answers` those of answers as well."""
    parts = searching_parts(settings) + (answering_parts(settings) if answers else ())
    if not (asking := [part for part in parts if part.asks_with(settings)]):
        return []
    # Imported here, so that a search without a model loads no prompts.
    from fairagent.llm.prompts import Case, Prompts

    dimensions = settings.dimensions or collection.groups.dimensions
    named = [(label, name) for name in dimensions for label in collection.groups.labels(name)]
    longest = max(named, key=lambda pair: len(pair[0]) + len(pair[1]), default=("", ""))
    case = Case(settings, Prompts(settings.prompts), queries, longest)
    return [calls for part in asking for calls in part.worst_case(case)]


def answering_parts(settings: Settings) -> tuple[Part, ...]:
    """The parts that make an answer of a search's hits, in their order, without those that they use."""
    return settings.filter, settings.debias, settings.generate, settings.attribute


def parts_of(settings: Settings) -> tuple[Part, ...]:
    """The parts that a search or an answer runs, with those that they use, in their order, each once."""
    running = *searching_parts(settings), *answering_parts(settings)
    parts = (used for part in running for used in (part, *part.uses(settings)))
    return tuple({id(part): part for part in parts}.values())


def asks_model(settings: Settings, command: str) -> bool:
    """Whether a `command` (exposure, search or answer) may ask a model for text, or a server for embeddings."""
    parts = {"exposure": (settings.engine,), "search": searching_parts(settings)}.get(command, parts_of(settings))
    # Any part may name an encoder in its settings.
    return any(part.asks_with(settings) for part in parts) or f'"{ENDPOINT}' in settings.model_dump_json()


def unasked(settings: Settings) -> str:
    """That a model's key or address is set, and none is asked, since none is named; "" where that is not so."""
    keys = [name for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL") if os.environ.get(name)]
    if not keys or asks_model(settings, "answer"):
        return ""
    return f"{keys[0]} is set, but no model is named, so none is asked; --model NAME asks one"


def resolve(settings: Settings | Path | str | None, overrides: Mapping[str, Any]) -> Settings:
    """Settings from a file, the environment and the call; or from a value, which beats both, and the call."""
    if isinstance(settings, Settings):
        return load_settings(overrides=lay(settings.given, overrides), environ={})
    return load_settings(Path(settings) if settings else None, overrides)
