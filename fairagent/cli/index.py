"""`fairagent index`: build the index of a collection, with whatever else the settings' parts need."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from fairagent.cli import options
from fairagent.cli.options import console, echo, option
from fairagent.errors import IndexMismatch, UsageError

if TYPE_CHECKING:
    from fairagent.retrieve.ann import AnnManifest
    from fairagent.retrieve.manifest import Manifest
    from fairagent.retrieve.site import Site


@dataclass(frozen=True, slots=True)
class Indexed:
    """An index that fits its collection; `seconds` is None where it was there already.

    `besides` says what else was built since the settings' parts need it, such as embeddings, `ann` what was measured of
    the ANN indexes that will be searched, `left` what the index before had besides and this one has not.
    """

    manifest: Manifest
    seconds: float | None
    besides: tuple[str, ...] = ()
    ann: tuple[AnnManifest, ...] = ()
    left: tuple[str, ...] = ()


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
    from fairagent.search.pipeline import open_site

    chosen = of.chosen()
    if engine and engine not in (part.kind for part in (chosen.engine, *chosen.engine.inner)):
        chosen = replace(of, assignments=[*(of.assignments or ()), f"engine={engine}"]).chosen()
    site = replace(open_site(settings=chosen), device=device)
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

    def folders() -> set[str]:
        return {path.name for path in site.index.iterdir() if path.is_dir()} if site.index.is_dir() else set()

    manifest, started = None if force else _current(site), perf_counter()
    before, besides = folders(), dict[str, None]()
    with options.progress_bar() as bar:
        show = options.build_progress(bar, site.collection)

        def progress(what: str, done: int) -> None:
            besides[what] = None
            show(what, done)

        if manifest is None:
            indexed = Indexed(rebuild(site, progress), perf_counter() - started)
            del besides[f"indexing {site.collection.name}"]
        else:
            tidy(site.index)
            for part in parts_of(resolved(site, preparing=True).settings):
                part.check(site)
            prepare(site, progress)
            indexed = Indexed(manifest, None)
    ann = tuple(one for _, one in ann_reports(resolved(site, preparing=True)))
    return replace(indexed, besides=tuple(besides), ann=ann, left=tuple(sorted(before - folders())))


def _current(site: Site) -> Manifest | None:
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


def _print(indexed: Indexed, site: Site, as_json: bool) -> None:
    from rich.filesize import decimal

    from fairagent.collection.labels import label_notes
    from fairagent.report.record import to_json
    from fairagent.retrieve.graph import graph_of
    from fairagent.search.document_types import TypeSource
    from fairagent.search.pipeline import resolved

    manifest, seconds, collection = indexed.manifest, indexed.seconds, site.collection
    joined_by = "a `map` in the collection file joins them, as `fairagent init` writes it"
    notes = [*collection.notes, *collection.source.notes, *label_notes(collection.groups, joined_by)]
    notes += TypeSource.of_collection(collection, graph_of(resolved(site)), site.memo).notes
    size = sum(path.stat().st_size for path in site.index.rglob("*") if path.is_file())
    if as_json:
        more = {"besides": indexed.besides, "ann": [asdict(one) for one in indexed.ann], "left": indexed.left}
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
        echo(to_json(record | {name: value for name, value in more.items() if value}))
        return
    things = "passages" if collection.chunks else "documents"
    what = f"{manifest.documents:,} {things} of {collection.name}, analyzer {manifest.analyzer}, {decimal(size)}"
    up_to_date = f"{site.index} is up to date: {what}"
    lines = [up_to_date if seconds is None else f"Built {site.index} in {seconds:.1f} s: {what}"]
    lines += [f"built besides: {', '.join(indexed.besides)}"] if indexed.besides else []
    lines += [f"not made again, since these settings do not need it: {', '.join(indexed.left)}"] if indexed.left else []
    lines += [f"ANN index of {one.model}: {one}" for one in indexed.ann]
    for line in (*lines, *(f"note: {note}" for note in notes)):
        console().print(line, soft_wrap=True)


def _prepare(site: Site, as_json: bool) -> None:
    """Build what an engine with an index of somebody else's needs beside it, and what other parts do."""
    from fairagent.report.record import to_json
    from fairagent.search.pipeline import prepare

    with options.progress_bar() as bar:
        prepare(site, options.build_progress(bar, site.collection))
    part: Any = site.settings.engine.foreign[0]
    about, name = part.summary(site), site.collection.name
    if as_json:
        echo(to_json({"index": str(part.folder), "collection": name, "holds": about, "built": False}))
    else:
        console().print(f"{name} is searched where it is: {about}", soft_wrap=True)
