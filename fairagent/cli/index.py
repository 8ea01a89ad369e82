"""`fairagent index`: build the index of a collection, with whatever else the settings' parts need."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairagent.cli.options import (
    AsJson,
    Assignments,
    CollectionFile,
    IndexFolder,
    SettingsFile,
    build_progress,
    console,
    echo,
    going_on,
    progress_bar,
    settings_of,
)
from fairagent.errors import IndexMismatch, UsageError

if TYPE_CHECKING:
    from fairagent.retrieve.ann import AnnManifest
    from fairagent.retrieve.bm25.build import Changes
    from fairagent.retrieve.manifest import Manifest
    from fairagent.retrieve.site import Site

JOINED_BY = "a `map` in the collection file joins them, as `fairagent init` writes it"
MEMORY = 256 << 20


@dataclass(frozen=True, slots=True)
class Indexed:
    """An index that fits its collection; `seconds` is None where it was there already, `size` is in bytes.

    `changes` are those of the documents for which it was brought up to date. `besides` says what else was built since
    the settings' parts need it, such as embeddings, `ann` what was measured of the ANN indexes that will be searched.
    """

    folder: Path
    manifest: Manifest
    seconds: float | None
    size: int = 0
    besides: tuple[str, ...] = ()
    ann: tuple[AnnManifest, ...] = ()
    changes: Changes | None = None


def index(
    collection: CollectionFile = None,
    index: IndexFolder = None,
    force: Annotated[bool, typer.Option("--force", help="Rebuild the index even if there is one.")] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="KIND",
            help="Build what this engine searches.",
        ),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", metavar="NAME", help="Where embeddings are computed: cpu, cuda, cuda:1, mps.")
    ] = "cpu",
    workers: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Processes that index, and embed on a CPU. (default: 0, one a core)"),
    ] = 0,
    memory: Annotated[
        int, typer.Option("--memory", metavar="MB", min=16, help="The memory that indexing takes, about.")
    ] = 256,
    settings: SettingsFile = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Index a collection for search, with whatever else the settings' parts need, such as embeddings.

    An index that was built from the collection as it is now is left alone; where documents were added, changed or
    removed since, that alone is done. One that was built from something else is refused, unless --force says to replace
    it. A build that was interrupted goes on from the last it finished.
    """
    from fairagent.search.pipeline import open_site

    chosen = settings_of(settings, assignments, collection=collection, index=index)
    if engine and engine not in (part.kind for part in (chosen.engine, *chosen.engine.inner)):
        assignments = [*(assignments or ()), f"engine={engine}"]
        chosen = settings_of(settings, assignments, collection=collection, index=index)
    site = replace(open_site(settings=chosen), device=device, workers=workers)
    if chosen.engine.on_server:
        raise UsageError(f"engine {chosen.engine} is searched where it is, and fairagent writes to no server")
    if chosen.engine.foreign:
        _prepare(site, as_json)
    else:
        # With --force the same command would start over.
        with nullcontext() if force else going_on("to go on from what is done, repeat the command"):
            indexed = ensure_indexes(site, force, workers, memory << 20)
        _print(indexed, site, as_json)


def ensure_indexes(given: Site, force: bool = False, workers: int = 0, memory: int = MEMORY) -> Indexed:
    """The index of the site, and whatever else its parts need, built or brought up to date by `workers` processes.

    0 `workers`: one a core. Raises IndexMismatch where there is another index (unless forced), what `build_index` and
    `update_index` raise, and what the parts find wrong, e.g. BackendUnavailable where a model is missing.
    """
    from fairagent.retrieve.vectors import ann_reports
    from fairagent.search.pipeline import parts_of, renewing_all, resolved

    with renewing_all(given, force):
        site = replace(resolved(given, preparing=True), renew=True)
        for part in parts_of(site.settings):
            # What is not installed is an error before anything is built; what an index is of, once it is there.
            with suppress(IndexMismatch):
                part.check(site)
        indexed = _ensure_index(site, force, workers, memory)
        # Anew: where Lucene's index was, which has no light vectors, another one may be now.
        site = replace(resolved(given, preparing=True), renew=True)
        besides: dict[str, None] = {}
        with progress_bar() as bar:
            show = build_progress(bar, site.collection)

            def progress(what: str, done: int) -> None:
                besides[what] = None
                show(what, done)

            for part in parts_of(site.settings):
                part.check(site)
            for part in parts_of(site.settings):
                part.prepare(site, progress)
        ann = tuple(manifest for _, manifest in ann_reports(site))
        size = sum(path.stat().st_size for path in indexed.folder.rglob("*") if path.is_file())
        return replace(indexed, besides=tuple(besides), ann=ann, size=size)


def _ensure_index(site: Site, force: bool, workers: int, memory: int) -> Indexed:
    """The word index alone; one of the documents as they were before is brought up to date."""
    from fairagent.retrieve.bm25.build import build_index, update_index
    from fairagent.retrieve.manifest import Manifest

    collection, folder, analyzer = site.collection, site.index, site.settings.analyzer
    manifest = Manifest.read(folder) if Manifest.exists(folder) and not force else None
    outdated = manifest is not None and manifest.outdated(collection, analyzer=analyzer)
    if manifest and not outdated:
        manifest.check(collection, folder, analyzer=analyzer)
        manifest.expect_whole(folder)
        return Indexed(folder, manifest, None)
    started = perf_counter()
    what = f"looking for changes in {collection.name}" if outdated else f"indexing {collection.name}"
    with progress_bar() as bar:
        progress = partial(build_progress(bar, collection), what)
        progress(0)
        if outdated:
            changes = update_index(collection, folder, analyzer, progress, workers, memory)
            return Indexed(folder, Manifest.read(folder), perf_counter() - started, changes=changes)
        manifest = build_index(collection, folder, analyzer, progress, resume=not force, workers=workers, memory=memory)
    return Indexed(folder, manifest, perf_counter() - started)


def _print(indexed: Indexed, site: Site, as_json: bool) -> None:
    from rich.filesize import decimal

    from fairagent.report.record import to_json
    from fairagent.retrieve.graph import graph_of
    from fairagent.search.document_types import TypeSource
    from fairagent.search.pipeline import resolved

    manifest, seconds, loaded = indexed.manifest, indexed.seconds, site.collection
    notes = [*_notes(site), *TypeSource.of_collection(loaded, graph_of(resolved(site)), site.memo).notes]
    if as_json:
        more = {
            "changes": indexed.changes and asdict(indexed.changes),
            "besides": list(indexed.besides),
            "ann": [asdict(one) for one in indexed.ann],
        }
        record = {
            "index": str(indexed.folder),
            "collection": loaded.name,
            "documents": manifest.documents,
            "analyzer": manifest.analyzer,
            "bytes": indexed.size,
            "built": seconds is not None,
            "seconds": seconds,
            "notes": notes,
        }
        echo(to_json(record | {name: value for name, value in more.items() if value}))
        return
    things = "passages" if loaded.chunks else "documents"
    what = f"{manifest.documents:,} {things} of {loaded.name}, analyzer {manifest.analyzer}, {decimal(indexed.size)}"
    if seconds is None:
        lines = [f"{indexed.folder} is up to date: {what}"]
    elif indexed.changes:
        lines = [f"Updated {indexed.folder} in {seconds:.1f} s: {indexed.changes}", f"it holds {what}"]
    else:
        lines = [f"Built {indexed.folder} in {seconds:.1f} s: {what}"]
    lines += [f"built besides: {', '.join(indexed.besides)}"] if indexed.besides else []
    lines += [f"ANN index of {one.model}: {one}" for one in indexed.ann]
    _print_lines(lines, notes)


def _print_lines(lines: list[str], notes: list[str]) -> None:
    for line in (*lines, *(f"note: {note}" for note in notes)):
        console().print(line, soft_wrap=True)


def _notes(site: Site) -> list[str]:
    from fairagent.collection.labels import label_notes

    collection = site.collection
    return [*collection.notes, *collection.source.notes, *label_notes(collection.groups, JOINED_BY)]


def _prepare(site: Site, as_json: bool) -> None:
    """Build what an engine with an index of somebody else's needs beside it, and what other parts do."""
    from fairagent.report.record import to_json
    from fairagent.search.pipeline import prepare

    with progress_bar() as bar:
        prepare(site, build_progress(bar, site.collection))
    part: Any = site.settings.engine.foreign[0]
    about, name = part.summary(site), site.collection.name
    if as_json:
        echo(to_json({"index": str(part.folder), "collection": name, "holds": about, "built": False}))
    else:
        console().print(f"{name} is searched where it is: {about}", soft_wrap=True)
