"""`fairagent index --engine opensearch`: load a collection into the index on a server that the settings name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from fairagent.cli.options import build_progress, progress_bar
from fairagent.collection import Groups
from fairagent.errors import SettingsError
from fairagent.guests.opensearch.bulk import LoadPlan, LoadRecord, load
from fairagent.guests.opensearch.config import OpenSearchConfig
from fairagent.guests.opensearch.index import LOADED, ServerIndex
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import encoder
from fairagent.settings import Settings


@dataclass(frozen=True, slots=True)
class Loaded:
    """An index on a server that holds the collection; `seconds` is None where it did already."""

    index: ServerIndex
    origin: LoadRecord
    dimensions: tuple[str, ...]
    seconds: float | None


def server_parts(settings: Settings) -> tuple[OpenSearchConfig, ...]:
    """The engines of the settings that are indexes on a server."""
    engine = settings.engine
    return tuple(part for part in (engine, *engine.inner) if isinstance(part, OpenSearchConfig))


def load_index(site: Site, force: bool) -> Loaded:
    """Load the site's collection, with its groups, and embeddings where an engine searches them.

    Raises SettingsError where the settings name no such engine, several indexes, or fields of their own.
    """
    parts = server_parts(site.settings)
    if not parts:
        raise SettingsError(
            "no engine of the settings is an index on a server: engine: {kind: opensearch, index: NAME}"
        )
    if len({(part.url, part.index, part.load) for part in parts}) > 1:
        raise SettingsError("the engines name different indexes, or different `load`; a collection is loaded into one")
    part = parts[0]
    if any(one.fields != LOADED or one.groups for one in parts):
        raise SettingsError(
            "an index that fairagent makes has fields of its own: leave out engine.fields and engine.groups (the "
            "collection's groups go into fields of their names)"
        )
    wanted = next((one.encoder for one in parts if one.by == "embeddings"), "")
    settings = part.load
    plan = LoadPlan(
        settings.analyzer,
        settings.k1,
        settings.b,
        settings.shards,
        settings.replicas,
        settings.documents,
        encoder(site, wanted) if wanted else None,
    )
    index, groups = part.opened(site), site.collection.groups
    # What depends on a topic is no property of a document.
    dimensions = tuple(name for name in groups.dimensions if name not in groups.oracle)
    started = perf_counter()
    with progress_bar() as bar:
        progress = build_progress(bar, site.collection)
        what = f"loading {site.collection.name}"
        origin, made = load(
            index,
            site.collection,
            plan,
            lambda ids: labels_of(groups, dimensions, ids),
            dimensions,
            lambda done: progress(what, done),
            force,
        )
    return Loaded(index, origin, dimensions, perf_counter() - started if made else None)


def labels_of(groups: Groups, dimensions: Sequence[str], ids: Sequence[str]) -> list[Mapping[str, Sequence[str]]]:
    """The labels of each document in each dimension, those of any weight above 0."""
    found: list[dict[str, Sequence[str]]] = [{} for _ in ids]
    for dimension in dimensions:
        labels = groups.labels(dimension)
        for one, row in zip(found, groups.memberships(dimension, ids)[:, 1:].tolist(), strict=True):
            one[dimension] = [label for label, share in zip(labels, row, strict=True) if share > 0]
    return list(found)
