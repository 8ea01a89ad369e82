"""`fairagent index`: build the index of a collection."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairagent.cli.options import (
    AsJson,
    Assignments,
    CollectionFile,
    IndexFolder,
    SettingsFile,
    console,
    echo,
    going_on,
    settings_of,
)
from fairagent.errors import UsageError
from fairagent.settings import Settings

if TYPE_CHECKING:
    from fairagent.retrieve.site import Site

JOINED_BY = "a `map` in the collection file joins them, as `fairagent init` writes it"


def index(
    collection: CollectionFile = None,
    index: IndexFolder = None,
    force: Annotated[bool, typer.Option("--force", help="Rebuild the index even if there is one.")] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="KIND",
            help="Build what this engine searches; opensearch: load it into the settings' index on a server.",
        ),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", metavar="NAME", help="Where embeddings are computed: cpu, cuda, cuda:1, mps.")
    ] = "cpu",
    workers: Annotated[
        int,
        typer.Option(
            "--workers",
            metavar="N",
            min=0,
            help="Processes that index, and that embed on a CPU. (default: 0, one a core)",
        ),
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
    it. A build that was interrupted goes on from the last it finished. An index on a server is written to with --engine
    opensearch alone.
    """
    from rich.filesize import decimal

    from fairagent.cli.indexing import ensure_indexes
    from fairagent.collection.labels import label_notes
    from fairagent.report.record import to_json
    from fairagent.retrieve.graph import graph_of
    from fairagent.search.loop.document_types import TypeSource
    from fairagent.search.pipeline import open_site, resolved

    chosen = settings_of(settings, assignments, collection=collection, index=index)
    if engine and engine not in (part.kind for part in (chosen.engine, *chosen.engine.inner)):
        kept = {"collection": collection, "index": index}
        chosen = settings_of(settings, [*(assignments or ()), f"engine={engine}"], **kept)
    site = replace(open_site(settings=chosen), device=device, workers=workers)
    if _on_server(chosen, engine):
        _load(site, force, as_json)
        return
    if chosen.engine.foreign:
        _prepare(site, as_json)
        return
    # With --force the same command would start over.
    with nullcontext() if force else going_on("to go on from what is done, repeat the command"):
        indexed = ensure_indexes(site, force, workers, memory << 20)
    loaded = site.collection
    manifest, seconds = indexed.manifest, indexed.seconds
    types = TypeSource.of_collection(loaded, graph_of(resolved(site)), site.memo)
    notes = [*loaded.notes, *loaded.source.notes, *label_notes(loaded.groups, JOINED_BY), *types.notes]
    if as_json:
        forecasts = {what: asdict(one) for what, one in indexed.forecasts.items()}
        record = {
            "index": str(indexed.folder),
            "collection": loaded.name,
            "documents": manifest.documents,
            "analyzer": manifest.analyzer,
            "bytes": indexed.size,
            "built": seconds is not None,
            "seconds": seconds,
            "notes": notes,
            **({"changes": asdict(indexed.changes)} if indexed.changes else {}),
            **({"besides": list(indexed.besides)} if indexed.besides else {}),
            **({"forecasts": forecasts} if forecasts else {}),
            **({"ann": [asdict(one) for one in indexed.ann]} if indexed.ann else {}),
        }
        echo(to_json(record))
        return
    things = "passages" if loaded.chunks else "documents"
    what = f"{manifest.documents:,} {things} of {loaded.name}, analyzer {manifest.analyzer}, {decimal(indexed.size)}"
    out = console()
    if seconds is None:
        out.print(f"{indexed.folder} is up to date: {what}", soft_wrap=True)
    elif indexed.changes:
        out.print(f"Updated {indexed.folder} in {seconds:.1f} s: {indexed.changes}", soft_wrap=True)
        out.print(f"it holds {what}", soft_wrap=True)
    else:
        out.print(f"Built {indexed.folder} in {seconds:.1f} s: {what}", soft_wrap=True)
    if indexed.besides:
        out.print(f"built besides: {', '.join(indexed.besides)}", soft_wrap=True)
    for ann in indexed.ann:
        out.print(f"ANN index of {ann.model}: {ann}", soft_wrap=True)
    for note in notes:
        out.print(f"note: {note}", soft_wrap=True)


def _on_server(chosen: Settings, engine: str | None) -> bool:
    """Whether the index to build is one on a server; UsageError where that was not said in so many words."""
    if engine == "opensearch":
        return True
    if chosen.engine.kind != "opensearch":
        return False
    raise UsageError(
        "the engine of the settings is an index on a server, which is there already or is loaded with `fairagent index "
        "--engine opensearch`"
    )


def _load(site: Site, force: bool, as_json: bool) -> None:
    from fairagent.cli.server_index import load_index
    from fairagent.collection.labels import label_notes
    from fairagent.report.record import to_json

    loaded = load_index(site, force)
    found = label_notes(site.collection.groups, JOINED_BY)
    origin, notes = loaded.origin, [*site.collection.notes, *site.collection.source.notes, *found]
    if as_json:
        record = {
            "index": loaded.index.name,
            "server": loaded.index.server.host,
            "collection": origin.collection,
            "documents": origin.done,
            "groups": list(loaded.dimensions),
            "encoder": origin.encoder,
            "built": loaded.seconds is not None,
            "seconds": loaded.seconds,
            "notes": notes,
        }
        echo(to_json(record))
        return
    out = console()
    done = "is up to date" if loaded.seconds is None else f"was loaded in {loaded.seconds:.1f} s"
    besides = f", groups {', '.join(loaded.dimensions)}" if loaded.dimensions else ""
    vectors = f", embeddings by {origin.encoder}" if origin.encoder else ""
    out.print(
        f"{loaded.index} {done}: {origin.done:,} documents of {origin.collection}{besides}{vectors}", soft_wrap=True
    )
    for note in notes:
        out.print(f"note: {note}", soft_wrap=True)


def _prepare(site: Site, as_json: bool) -> None:
    """Build what an engine with an index of somebody else's needs beside it, and what other parts do."""
    from fairagent.cli.options import announced, build_progress, progress_bar
    from fairagent.report.record import to_json
    from fairagent.search.pipeline import prepare

    with progress_bar() as bar:
        prepare(replace(site, forecast=announced(bar)), build_progress(bar, site.collection))
    part: Any = site.settings.engine.foreign[0]
    found = part.told(site)
    if as_json:
        echo(to_json({"index": str(part.folder), "collection": site.collection.name, "found": found, "built": False}))
        return
    console().print(f"{site.collection.name} is searched where it is: {found}", soft_wrap=True)
