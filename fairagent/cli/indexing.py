"""Building indexes from the command line: reuse, replacement with --force, and progress bars."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

from fairagent.cli.options import announced, build_progress, progress_bar
from fairagent.errors import IndexMismatch
from fairagent.retrieve.ann import AnnManifest
from fairagent.retrieve.bm25.build import MEMORY, Changes, build_index, update_index
from fairagent.retrieve.bm25.manifest import MANIFEST, REMEDY, Manifest
from fairagent.retrieve.forecast import FirstBlock, Forecast, forecast_of_index, forecast_of_light
from fairagent.retrieve.graph import encoders
from fairagent.retrieve.light.encoder import LIGHT
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import ann_reports
from fairagent.search.pipeline import parts_of, resolved
from fairagent.storage.digests import expect_whole
from fairagent.storage.folders import is_there
from fairagent.storage.processes import cores


@dataclass(frozen=True, slots=True)
class Indexed:
    """An index that fits its collection; `seconds` is None where it was there already, `size` is in bytes.

    `changes` are those of the documents for which it was brought up to date, None where it was not. `besides` says what
    else was built since the settings' parts need it, such as embeddings, `forecasts` what was expected of their making
    by what was being made, `ann` what was measured of the ANN indexes that will be searched.
    """

    folder: Path
    manifest: Manifest
    seconds: float | None
    size: int
    besides: tuple[str, ...] = ()
    ann: tuple[AnnManifest, ...] = ()
    forecasts: Mapping[str, Forecast] = field(default_factory=dict)
    changes: Changes | None = None


def ensure_index(site: Site, force: bool = False, workers: int = 0, memory: int = MEMORY) -> Indexed:
    """The index of the site, built by `workers` processes (0: one a core) if there is none or `force` says so.

    One that was built of the collection's documents as they were before is brought up to date. Raises IndexMismatch
    where there is another index (unless forced), and what `build_index` and `update_index` raise.
    """
    collection, folder = site.collection, site.index
    if is_there(folder, MANIFEST) and not force:
        manifest = Manifest.read(folder)
        if manifest.outdated(collection, site.settings.analyzer):
            return _updated(site, workers, memory)
        manifest.check(collection, site.settings.analyzer, folder)
        expect_whole(folder, "the index", REMEDY)
        return Indexed(folder, manifest, None, _size(folder))
    started = perf_counter()
    what = f"indexing {collection.name}"
    forecasts: dict[str, Forecast] = {}
    with progress_bar() as bar:
        progress, announce = build_progress(bar, collection), announced(bar)
        progress(what, 0)

        def forecast(first: FirstBlock) -> None:
            # How many passages there will be is not known before.
            if documents := 0 if collection.chunks else collection.source.count():
                forecasts[what] = forecast_of_index(documents, first, workers or cores(), memory)
                announce(what, forecasts[what])
                if LIGHT in encoders(site):
                    vectors = f"then vectors of {collection.name}"
                    forecasts[vectors] = forecast_of_light(documents)
                    announce(vectors, forecasts[vectors])

        manifest = build_index(
            collection,
            folder,
            site.settings.analyzer,
            lambda done: progress(what, done),
            resume=not force,
            workers=workers,
            memory=memory,
            first=forecast,
        )
    return Indexed(folder, manifest, perf_counter() - started, _size(folder), forecasts=forecasts)


def _updated(site: Site, workers: int, memory: int) -> Indexed:
    collection, folder, started = site.collection, site.index, perf_counter()
    with progress_bar() as bar:
        progress, what = build_progress(bar, collection), f"looking for changes in {collection.name}"
        progress(what, 0)
        changes = update_index(
            collection, folder, site.settings.analyzer, lambda done: progress(what, done), workers, memory
        )
    return Indexed(folder, Manifest.read(folder), perf_counter() - started, _size(folder), changes=changes)


def ensure_indexes(site: Site, force: bool = False, workers: int = 0, memory: int = MEMORY) -> Indexed:
    """As `ensure_index`, and then whatever else the parts of the site's settings need, made or brought up to date.

    Raises what they find wrong: IndexMismatch where e.g. embeddings were made from something else, BackendUnavailable
    where a model is missing.
    """
    asked = site
    site = replace(resolved(asked, preparing=True), renew=True)
    for part in parts_of(site.settings):
        # What is not installed is said before anything is built; what an index is of, once it is there.
        with suppress(IndexMismatch):
            part.check(site)
    indexed = ensure_index(site, force, workers, memory)
    # Anew: where Lucene's index was, which has no light vectors, another one may be now.
    site = replace(resolved(asked, preparing=True), renew=True)
    parts = parts_of(site.settings)
    for part in parts:
        part.check(site)
    besides: dict[str, None] = {}
    forecasts = dict(indexed.forecasts)
    with progress_bar() as bar:
        show, announce = build_progress(bar, site.collection), announced(bar)

        def progress(what: str, done: int) -> None:
            besides[what] = None
            show(what, done)

        def forecast(what: str, found: Forecast) -> None:
            forecasts[what] = found
            announce(what, found)

        site = replace(site, forecast=forecast)
        for part in parts:
            part.prepare(site, progress)
    found = tuple(manifest for _, manifest in ann_reports(site))
    size = _size(indexed.folder)
    return replace(indexed, besides=tuple(besides), ann=found, forecasts=forecasts, size=size)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
