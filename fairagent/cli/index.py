"""`fairagent index`: build the index of a collection."""

from typing import Annotated

import typer

from fairagent.cli.options import AsJson, Assignments, CollectionFile, IndexFolder, SettingsFile, settings_of
from fairagent.cli.terminal import console, echo


def index(
    collection: CollectionFile = None,
    index: IndexFolder = None,
    force: Annotated[bool, typer.Option("--force", help="Rebuild the index even if there is one.")] = False,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=0, help="Threads that index. (default: 0, one a core)")
    ] = 0,
    settings: SettingsFile = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Index a collection for search, with whatever else the settings' parts need, such as embeddings.

    The terms of documents, which feedback, topic words and text MMR read, are added once the settings ask for them.

    An index that was built from the collection as it is now is left alone; one that was built from something else is
    refused, unless --force says to replace it. A build that was interrupted goes on from
    the last it finished.
    """
    from rich.filesize import decimal

    from fairagent.cli.indexing import ensure_indexes
    from fairagent.pipeline import open_site
    from fairagent.report.record import to_json

    chosen = settings_of(settings, assignments, collection=collection, index=index)
    site = open_site(settings=chosen)
    loaded, indexed = site.collection, ensure_indexes(site, force, workers)
    manifest, seconds = indexed.manifest, indexed.seconds
    if as_json:
        record = {
            "index": str(indexed.folder),
            "collection": loaded.name,
            "documents": manifest.documents,
            "analyzer": manifest.analyzer,
            "bytes": indexed.size,
            "built": seconds is not None,
            "seconds": seconds,
            "notes": [*loaded.notes, *loaded.source.notes],
            **({"besides": list(indexed.besides)} if indexed.besides else {}),
        }
        echo(to_json(record))
        return
    things = "passages" if loaded.chunks else "documents"
    what = f"{manifest.documents:,} {things} of {loaded.name}, analyzer {manifest.analyzer}, {decimal(indexed.size)}"
    out = console()
    if seconds is None:
        out.print(f"{indexed.folder} is up to date: {what}", soft_wrap=True)
    else:
        out.print(f"Built {indexed.folder} in {seconds:.1f} s: {what}", soft_wrap=True)
    if indexed.besides:
        out.print(f"built besides: {', '.join(indexed.besides)}", soft_wrap=True)
    for note in (*loaded.notes, *loaded.source.notes):
        out.print(f"note: {note}", soft_wrap=True)
