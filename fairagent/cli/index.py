"""`fairagent index`: build the index of a collection, with whatever else the settings' parts need."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
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
    progress_bar,
    settings_of,
)
from fairagent.errors import IndexMismatch, UsageError

if TYPE_CHECKING:
    from fairagent.retrieve.ann import AnnManifest
    from fairagent.retrieve.manifest import Manifest
    from fairagent.retrieve.site import Site

JOINED_BY = "a `map` in the collection file joins them, as `fairagent init` writes it"


@dataclass(frozen=True, slots=True)
class Indexed:
    """An index that fits its collection; `seconds` is None where it was there already, `size` is in bytes.

    `besides` says what else was built since the settings' parts need it, such as embeddings, `ann` what was measured of
    the ANN indexes that will be searched, `left` what the index before had besides and this one has not.
    """

    folder: Path
    manifest: Manifest
    seconds: float | None
    size: int = 0
    besides: tuple[str, ...] = ()
    ann: tuple[AnnManifest, ...] = ()
    left: tuple[str, ...] = ()


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
        int, typer.Option(metavar="N", min=0, help="Processes that embed on a CPU. (default: 0, one a core)")
    ] = 0,
    settings: SettingsFile = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Index a collection for search, with whatever else the settings' parts need, such as embeddings.

    An index of the collection as it is now is left alone; where documents have changed since, or it is of another
    version or damaged, it is made anew beside it, with the embeddings of texts that are the same, and put in its place
    at once. One that was built from something else is refused, unless --force says to replace it.
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
        _print(ensure_indexes(site, force), site, as_json)


def ensure_indexes(site: Site, force: bool = False) -> Indexed:
    """The index of the site, and whatever else its parts need, made where it is not there as it should be.

    Raises IndexMismatch where there is another index (unless forced), what `build_index` raises, and what the parts
    find wrong, e.g. BackendUnavailable where a model is missing.
    """
    from fairagent.retrieve.vectors import ann_reports
    from fairagent.search.pipeline import parts_of, prepare, rebuild, resolved
    from fairagent.storage.folders import tidy

    manifest, started = None if force else _kept(site), perf_counter()
    before, besides = _folders(site.index), dict[str, None]()
    with progress_bar() as bar:
        show = build_progress(bar, site.collection)

        def progress(what: str, done: int) -> None:
            besides[what] = None
            show(what, done)

        if manifest is None:
            indexed = Indexed(site.index, rebuild(site, progress), perf_counter() - started)
            del besides[f"indexing {site.collection.name}"]
        else:
            tidy(site.index)
            for part in parts_of(resolved(site, preparing=True).settings):
                part.check(site)
            prepare(site, progress)
            indexed = Indexed(site.index, manifest, None)
    ann = tuple(one for _, one in ann_reports(resolved(site, preparing=True)))
    size = sum(path.stat().st_size for path in site.index.rglob("*") if path.is_file())
    left = tuple(sorted(before - _folders(site.index)))
    return replace(indexed, besides=tuple(besides), ann=ann, size=size, left=left)


def _kept(site: Site) -> Manifest | None:
    """The manifest of the index that is there, of the collection as it is now; None where one is to be made.

    Raises IndexMismatch where it is of another collection or analyzer.
    """
    from fairagent.retrieve.manifest import Manifest

    collection, analyzer = site.collection, site.settings.analyzer
    if not Manifest.exists(site.index):
        return None
    try:
        return Manifest.read_checked(site.index, collection, analyzer=analyzer)
    except IndexMismatch:
        if Manifest.named(site.index) == (collection.name, analyzer):
            return None
        raise


def _folders(index: Path) -> set[str]:
    return {path.name for path in index.iterdir() if path.is_dir()} if index.is_dir() else set()


def _print(indexed: Indexed, site: Site, as_json: bool) -> None:
    from rich.filesize import decimal

    from fairagent.report.record import to_json
    from fairagent.retrieve.graph import graph_of
    from fairagent.search.document_types import TypeSource
    from fairagent.search.pipeline import resolved

    manifest, seconds, loaded = indexed.manifest, indexed.seconds, site.collection
    notes = [*_notes(site), *TypeSource.of_collection(loaded, graph_of(resolved(site)), site.memo).notes]
    if as_json:
        more = {"besides": indexed.besides, "ann": [asdict(one) for one in indexed.ann], "left": indexed.left}
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
    else:
        lines = [f"Built {indexed.folder} in {seconds:.1f} s: {what}"]
    lines += [f"built besides: {', '.join(indexed.besides)}"] if indexed.besides else []
    lines += [f"not made again, since these settings do not need it: {', '.join(indexed.left)}"] if indexed.left else []
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
