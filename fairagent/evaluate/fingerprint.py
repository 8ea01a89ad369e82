"""What the outcomes of a run depend on, and what has changed since a run was begun."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairagent.collection.config import CollectionFile
from fairagent.collection.table import Groups, tables_of
from fairagent.collection.trec_fair import find_track_files
from fairagent.evaluate.kind import JsonObject
from fairagent.evaluate.plan import Plan, SystemPlan
from fairagent.llm.prompts import Prompts
from fairagent.llm.server import Endpoint
from fairagent.settings import ModelSettings, Part, read_yaml, validate
from fairagent.settings.parts import SLOTS
from fairagent.storage.digests import file_digest
from fairagent.storage.files import checksum
from fairagent.types import UNKNOWN

if TYPE_CHECKING:
    from fairagent.evaluate.check import CheckedExperiment

DECIDING = ("fairagent", "pyserini")
"""Packages of another version make another run."""
NOTED = ("numpy", "scipy", "openai", "sentence-transformers", "torch")
"""Packages whose version is written down, no more."""


def fingerprint(checked: CheckedExperiment, environ: Mapping[str, str] | None = None) -> JsonObject:
    """Everything that the outcome of one topic under one system depends on, as plain values."""
    environ = os.environ if environ is None else environ
    plan, kind = checked.plan, checked.plan.experiment
    # What is judged by: the collection's settings, and each of its files, but for the documents.
    judgments: JsonObject = {}
    if described := _collection_file(kind.collection):
        root = Path(kind.collection).parent / (described.root or "")
        names = [block.path for block in (described.topics, described.qrels, *described.groups) if block]
        if isinstance(described.population, str):
            names.append(described.population)
        files = {name: root / name for name in names}
        if described.track:
            track = find_track_files(
                root / described.track.folder, described.track.year, described.track.split, corpus=False
            )
            keywords = root / described.track.keywords if described.track.keywords else track.keywords
            files = {path.name: path for path in (track.topics, track.metadata, keywords) if path}
        settings = json.dumps(described.model_dump(mode="json", exclude={"root", "documents", "share"}), sort_keys=True)
        judgments = {"settings": hashlib.sha256(settings.encode()).hexdigest()}
        judgments |= {name: file_hash(path) for name, path in files.items()}
    return {
        "kind": kind.kind,
        "seed": kind.seed,
        **kind.fingerprint(plan, checked.subject, environ),
        "measures": list(plan.measures),
        "dimensions": list(plan.dimensions),
        "collection": {"documents": checked.collection.fingerprint(), **judgments},
        "packages": {name: _version(name) for name in DECIDING},
        "systems": {name: _system(system, plan, environ) for name, system in plan.all_systems.items()},
    }


def provenance(checked: CheckedExperiment, environ: Mapping[str, str] | None = None) -> JsonObject:
    """Where a run comes from, for people: versions, machine, collection and its notes, and the models by system."""
    plan, kind, collection = checked.plan, checked.plan.experiment, checked.collection
    described = _collection_file(kind.collection)
    return {
        "kind": kind.kind,
        **kind.provenance(),
        "collection": {
            "file": kind.collection,
            "name": getattr(checked.subject, "name", collection.name),
            "notes": list(collection.notes),
            "sizes": _sizes(collection.groups),
            **({"unknown": list(checked.unknown)} if checked.unknown else {}),
            "track": described.track.year if described and described.track else None,
        },
        "seed": kind.seed,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in (*DECIDING, *NOTED)},
        "models": {
            name: {"name": system.settings.model.name, "server": _server(system.settings.model, environ), "notes": []}
            for name, system in plan.systems.items()
            if system.asks
        },
    }


def _sizes(groups: Groups) -> dict[str, dict[str, float]]:
    """Dimension -> label -> how many documents have it; labels that depend on the topic are left out."""
    return {
        name: dict(
            zip((UNKNOWN, *table.labels(name)), (len(table) * table.shares(name)).round(6).tolist(), strict=True)
        )
        for table in tables_of(groups)
        for name in table.dimensions
        if len(table)
    }


def _collection_file(path: str) -> CollectionFile | None:
    return validate(CollectionFile, read_yaml(Path(path)), path) if path else None


def changes(before: JsonObject, now: JsonObject) -> list[str]:
    """What is different, value by value, but for systems that only one of both has.

    >>> changes({"seed": 1, "systems": {"A": {"n": 5}}}, {"seed": 2, "systems": {"A": {"n": 6}, "B": {}}})
    ['seed: was 1, is 2', 'systems.A.n: was 5, is 6']
    """
    both = before["systems"].keys() & now["systems"].keys()
    old, new = (
        dict(leaves({**side, "systems": {name: side["systems"][name] for name in both}})) for side in (before, now)
    )
    changed = [place for place in sorted(old.keys() | new.keys()) if old.get(place) != new.get(place)]

    def value(side: Mapping[str, object], place: str) -> str:
        text = json.dumps(side[place], ensure_ascii=False) if place in side else "not there"
        # Of two hashes it is enough to see that they differ.
        return f"{text[1:13]}..." if re.fullmatch(r'"[0-9a-f]{64}"', text) else text

    return [f"{place}: was {value(old, place)}, is {value(new, place)}" for place in changed]


def keys(made_from: JsonObject) -> dict[str, str]:
    """System -> a hash of all that its outcomes depend on, from a fingerprint as run.json has it."""
    shared = {name: value for name, value in made_from.items() if name != "systems"}
    return {
        name: checksum(json.dumps([shared, system], sort_keys=True)) for name, system in made_from["systems"].items()
    }


def of_model(model: ModelSettings, environ: Mapping[str, str] | None = None) -> JsonObject:
    """What the replies of a model depend on: its settings and its server."""
    settings: JsonObject = without_passwords(model.model_dump(mode="json", exclude=NOT_DECIDING["model"]))
    return settings | {"server": _server(model, environ)}


def without_passwords(value: Any) -> Any:
    """`value` with the user part of every address in it replaced."""
    if isinstance(value, dict):
        return {key: without_passwords(part) for key, part in value.items()}
    return re.sub(r"//[^/@\s]*@", "//***@", value) if isinstance(value, str) else value


NOT_DECIDING: Any = {
    **dict.fromkeys(("collection", "index", "cache", "budget", "prices", "prompts"), True),
    "model": dict.fromkeys(("timeout", "deadline", "attempts", "log_prompts", "context"), True),
}
"""Settings that no outcome depends on, those that are no system's own, and those whose files are hashed instead."""


def _system(system: SystemPlan, plan: Plan, environ: Mapping[str, str]) -> JsonObject:
    settings = without_passwords(system.settings.model_dump(mode="json", exclude=NOT_DECIDING))
    record: JsonObject = {"settings": settings}
    for slot in SLOTS:
        part = getattr(system.settings, slot)
        # Of a part's files the content decides, and not the place.
        for field, path in part.files.items() if isinstance(part, Part) else ():
            settings[slot].pop(field, None)
            record.setdefault("files", {})[f"{slot}.{field}"] = file_hash(path)
    if system.row:
        record["row"] = system.row
    if system.asks:
        prompts = Prompts(system.settings.prompts)
        record["prompts"] = {f"{id}.j2": prompts[id].sha256 for id in system.asks}
        record["server"] = _server(system.settings.model, environ)
        record["price"] = price_of(system.settings.model, plan)
    return record


def price_of(model: ModelSettings, plan: Plan) -> JsonObject | None:
    """The price of a model, if there is one."""
    price = plan.prices.get(model.name)
    return price.model_dump() if price else None


def _server(model: ModelSettings, environ: Mapping[str, str] | None) -> str:
    return Endpoint.find(model.base_url, environ).host


def file_hash(path: Path) -> str:
    """SHA-256 (hex) of a file, or of all files of a folder in the order of their names."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():
            digest.update(bytes.fromhex(file_digest(file)))
    return digest.hexdigest()


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, object]]:
    """Every value under its place, such as `loop.kind`; lists, and what is empty, stay whole."""
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from leaves(part, f"{place}.{key}" if place else str(key))
    else:
        yield place, value


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
