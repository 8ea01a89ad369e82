"""`fairagent index`: build the index of a collection, with whatever else the settings' parts need."""

from __future__ import annotations

from dataclasses import asdict, replace
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from fairagent.cli import options
from fairagent.cli.options import console, option, print_json
from fairagent.errors import IndexMismatch, UsageError

if TYPE_CHECKING:
    from fairagent.retrieve.manifest import Manifest
    from fairagent.retrieve.site import Site


@options.spread
def index(
    of: options.CollectionOptions,
    force: Annotated[bool, option("--force", "Rebuild the index even if there is one.")] = False,
    engine: Annotated[str | None, option("--engine", "Build what this engine searches.", "KIND")] = None,
    device: Annotated[
        str, option("--device", "Where embeddings are computed: cpu, cuda, cuda:1, mps.", "NAME")
    ] = "cpu",
    as_json: options.AsJson = False,
) -> None:
    """Index a collection for search, with whatever else the settings' parts need, such as embeddings.

    An index of the collection as it is now is left alone; where documents have changed since, or it is of another
    version or damaged, it is made anew beside it, with the embeddings of texts that are the same, and put in its place
    at once. One that was built from something else is refused, unless --force says to replace it.
    """
    from fairagent.search.pipeline import open_site, prepare

    chosen = of.chosen()
    if engine and engine not in (part.kind for part in (chosen.engine, *chosen.engine.inner)):
        chosen = replace(of, assignments=[*(of.assignments or ()), f"engine={engine}"]).chosen()
    site = replace(open_site(settings=chosen), device=device)
    if chosen.engine.on_server:
        raise UsageError(f"engine {chosen.engine} is searched where it is, and fairagent writes to no server")
    if not chosen.engine.foreign:
        record, lines = ensure_index(site, force)
    else:
        # An index of somebody else's, beside which other parts may need something.
        with options.progress_bar() as bar:
            prepare(site, options.build_progress(bar, site.collection))
        part: Any = site.settings.engine.foreign[0]
        about, name = part.summary(site), site.collection.name
        record = {"index": str(part.folder), "collection": name, "holds": about, "built": False}
        lines = [f"{name} is searched where it is: {about}"]
    if as_json:
        print_json(record)
    else:
        for line in lines:
            console().print(line, soft_wrap=True)


def ensure_index(site: Site, force: bool = False) -> tuple[dict[str, Any], list[str]]:
    """The index of the site, and whatever else its parts need, made where it is not there as it should be.

    Returns what came of it as a record and in lines. Raises IndexMismatch where there is an index of another collection
    or analyzer (unless forced), what `build_index` raises, and what the parts find wrong, e.g. BackendUnavailable where
    a model is missing.
    """
    from rich.filesize import decimal

    from fairagent.collection.labels import label_notes
    from fairagent.retrieve.graph import graph_of
    from fairagent.retrieve.manifest import Manifest
    from fairagent.retrieve.vectors import ann_reports
    from fairagent.search.pipeline import parts_of, prepare, rebuild, resolved
    from fairagent.search.relevance import TypeSource
    from fairagent.storage.folders import tidy

    def folders() -> set[str]:
        return {path.name for path in site.index.iterdir() if path.is_dir()} if site.index.is_dir() else set()

    collection, analyzer, started = site.collection, site.settings.analyzer, perf_counter()
    there: Manifest | None = None
    if not force and Manifest.exists(site.index):
        try:
            there = Manifest.read_checked(site.index, collection, analyzer=analyzer)
        except IndexMismatch:
            # Of the collection as it was it is made anew; of another one it is kept.
            if Manifest.named(site.index) != (collection.name, analyzer):
                raise
    before, besides, seconds = folders(), dict[str, None](), None
    with options.progress_bar() as bar:
        show = options.build_progress(bar, collection)

        def progress(what: str, done: int) -> None:
            besides[what] = None
            show(what, done)

        if there is None:
            manifest = rebuild(site, progress)
            seconds = perf_counter() - started
            del besides[f"indexing {collection.name}"]
        else:
            manifest = there
            tidy(site.index)
            for part in parts_of(resolved(site, preparing=True).settings):
                part.check(site)
            prepare(site, progress)
    ann = [one for _, one in ann_reports(resolved(site, preparing=True))]
    left = sorted(before - folders())
    joined_by = "a `map` in the collection file joins them, as `fairagent init` writes it"
    notes = [*collection.notes, *collection.source.notes, *label_notes(collection.groups, joined_by)]
    notes += TypeSource.of_collection(collection, graph_of(resolved(site)), site.memo).notes
    size = sum(path.stat().st_size for path in site.index.rglob("*") if path.is_file())
    record = {
        "index": str(site.index),
        "collection": collection.name,
        "documents": manifest.documents,
        "analyzer": manifest.analyzer,
        "bytes": size,
        "built": seconds is not None,
        "seconds": seconds,
        "notes": notes,
    }
    # What was built since the parts need it, what was measured of it, and what the index before had besides.
    more = {"besides": list(besides), "ann": [asdict(one) for one in ann], "left": left}
    record |= {name: value for name, value in more.items() if value}
    things = "passages" if collection.chunks else "documents"
    what = f"{manifest.documents:,} {things} of {collection.name}, analyzer {manifest.analyzer}, {decimal(size)}"
    up_to_date = f"{site.index} is up to date: {what}"
    lines = [up_to_date if seconds is None else f"Built {site.index} in {seconds:.1f} s: {what}"]
    lines += [f"built besides: {', '.join(besides)}"] if besides else []
    lines += [f"not made again, since these settings do not need it: {', '.join(left)}"] if left else []
    lines += [f"ANN index of {one.model}: {one}" for one in ann]
    return record, lines + [f"note: {note}" for note in notes]
