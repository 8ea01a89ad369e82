"""Loading a collection: its settings file and every file that it names; all errors are reported together."""

import glob
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from fairagent.collection.collection import Collection
from fairagent.collection.config import CollectionFile, TrackSection
from fairagent.collection.documents import Documents
from fairagent.collection.faults import Faults, listed
from fairagent.collection.groups import Groups, JoinedGroups
from fairagent.collection.labels import read_groups
from fairagent.collection.population import checked_population, read_population
from fairagent.collection.qrels import Qrels, read_qrels
from fairagent.collection.table import GroupTable
from fairagent.collection.topics import read_topics
from fairagent.collection.trec_fair.load import load_track, load_track_from_ir_datasets
from fairagent.errors import DataError
from fairagent.settings import read_yaml, validate


def load_collection(path: Path | str) -> Collection:
    """Load the collection that the settings file `path` describes (fairagent.collection.config says how).

    SettingsError for a wrong settings file; otherwise one DataError with all faults of all files. The
    documents are not read, only looked for.
    """
    path = Path(path)
    settings = validate(CollectionFile, read_yaml(path), str(path))
    root = path.parent / settings.root if settings.root else path.parent
    if settings.track:
        return replace(_track(settings.name, settings.track, root), chunks=settings.chunks)
    assert settings.documents is not None  # or the settings were refused
    faults = Faults()

    paths = tuple(file for name in settings.documents.path for file in _matching(root, name, path, faults))
    if isinstance(settings.population, str):
        population = read_population(root / settings.population, faults)
    else:
        population = checked_population(settings.population, path, faults)
    topics = read_topics(root / settings.topics.path, settings.topics, faults) if settings.topics else {}
    qrels = Qrels({topic: {} for topic in topics})
    if settings.qrels:
        qrels = read_qrels(root / settings.qrels.path, settings.qrels, topics, faults)
    tables = _tables(root, settings, faults)
    faults.check(f"collection {settings.name!r} ({path})")

    notes = [*qrels.notes]
    parts: list[Groups] = [_aligned(table, population, notes) for table in tables]
    if qrels.groups:
        parts.append(_aligned(qrels.groups, population, notes))
    groups = parts[0] if len(parts) == 1 else JoinedGroups(parts)
    if idle := sorted(population.keys() - set(groups.dimensions)):
        notes.append(f"the population has shares for {listed(idle)}, which is no dimension of the groups")
    return Collection(
        name=settings.name,
        topics=topics,
        qrels=qrels.grades,
        groups=groups,
        population=population,
        notes=tuple(notes),
        source=Documents(settings.name, paths, settings.documents),
        chunks=settings.chunks,
    )


def _track(name: str, track: TrackSection, root: Path) -> Collection:
    """The collection of the real track."""
    if track.folder is None:
        return load_track_from_ir_datasets(track.year, track.split, track.dimensions, track.query, name)
    keywords = root / track.keywords if track.keywords else None
    return load_track(root / track.folder, track.year, track.split, track.dimensions, track.query, keywords, name)


def _matching(root: Path, name: str, settings: Path, faults: Faults) -> Iterator[Path]:
    """The files that `name` stands for: itself, or in order those that match it as a pattern."""
    plain = root / name
    if plain.is_file():
        yield plain
    elif plain.is_dir():
        faults.add(settings, None, f"documents.path: {plain} is a folder; name the files, e.g. {name}/*.jsonl.gz")
    elif found := sorted(glob.glob(str(plain), recursive=True)):
        yield from map(Path, found)
    else:
        faults.add(plain, None, "no such file (documents)")


def _tables(root: Path, settings: CollectionFile, faults: Faults) -> list[GroupTable]:
    """One table a groups block; those with faults are left out."""
    tables: list[GroupTable] = []
    for block in settings.groups:
        path = root / block.path
        table = None
        if path.is_dir():
            try:
                table = GroupTable.load(path)
            except DataError as error:
                faults.add(path, None, str(error).removeprefix(f"{path}: "))
        elif block.dimensions:
            table = read_groups(path, block, faults)
        else:
            faults.add(path, None, "the groups block names no dimensions, and this is no saved group table")
        if table:
            before = {name for other in tables for name in other.dimensions}
            if twice := sorted(before & set(table.dimensions)):
                faults.add(path, None, f"the dimension {listed(twice)} is in another groups block already")
            tables.append(table)
    return tables


def _aligned(table: GroupTable, population: Mapping[str, Mapping[str, float]], notes: list[str]) -> GroupTable:
    """The table with the groups that only the population has, so that shares and memberships line up."""
    for dimension in table.dimensions:
        present, world = table.labels(dimension), population.get(dimension, {})
        if not present:
            notes.append(f"no document has a label of dimension {dimension!r}")
        if absent := [label for label in world if label not in present]:
            notes.append(f"no document is in these groups of {dimension!r}: {listed(absent)}")
            ordered = [*present, *absent]
            alphabetical = list(present) == sorted(present)
            table = table.relabeled(dimension, sorted(ordered) if alphabetical else ordered)
        if world and (without := [label for label in present if label not in world]):
            notes.append(f"no world share for these groups of {dimension!r}, so 0: {listed(without)}")
    return table
