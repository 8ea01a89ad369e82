"""Group tables from the page alignments in the track's metadata, and their cache on disk.

Nothing is normalized: alignments are used as the track makes them, so a page about a woman and a man has a gender row
that sums to 2, and 2021's continents count 1 each.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fairagent.clean import logger
from fairagent.collection.faults import Faults, listed
from fairagent.collection.records import Record, json_records
from fairagent.collection.table import GroupTable
from fairagent.collection.table_buffer import Labels
from fairagent.collection.trec_fair.corpus import PageSet, page_id
from fairagent.collection.trec_fair.metadata import RULES, RecordAligner, oddities
from fairagent.errors import DataError, UsageError
from fairagent.intake.json_text import parse_json
from fairagent.intake.text import file_text
from fairagent.measures.trec_fair import Rule, Year
from fairagent.types import UNKNOWN

log = logger(__name__)
FORMAT = 1
STAMP = "metadata.json"
LARGEST_STAMP = 1 << 20
"""Bytes."""


def rules(year: Year, dimensions: Sequence[str]) -> tuple[Rule, ...]:
    """How the dimensions are read; UsageError for a dimension or a year that the track has not."""
    if year not in RULES:
        raise UsageError(f"year {year!r}: there are 2021 and 2022")
    known = {rule.dimension.name: rule for rule in RULES[year]}
    if unknown := [name for name in dimensions if name not in known]:
        raise UsageError(f"TREC Fair {year} has no dimension {listed(unknown)}; there are: {', '.join(known)}")
    if not dimensions or len(set(dimensions)) < len(dimensions):
        raise UsageError(f"expected one or more distinct dimensions, not {listed(dimensions) or 'none'}")
    return tuple(known[name] for name in dimensions)


def population(year: Year, dimensions: Sequence[str]) -> dict[str, dict[str, float]]:
    """The world shares of the dimensions that the track averages with them."""
    return {
        rule.dimension.name: dict(zip(rule.dimension.labels[1:], rule.dimension.background, strict=True))
        for rule in rules(year, dimensions)
        if rule.dimension.background
    }


def read_track_groups(path: Path, year: Year, dimensions: Sequence[str]) -> tuple[GroupTable, tuple[str, ...]]:
    """The table of a metadata file, and notes on what is odd in it.

    Raises one DataError with every fault by file and line: no JSON, no `page_id`, fields of another form.
    """
    faults = Faults()
    return groups_of(json_records(path, faults), path, rules(year, dimensions), "page_id", faults)


def groups_of(
    records: Iterable[tuple[int, Record]], path: Path, rules: Sequence[Rule], id_field: str, faults: Faults
) -> tuple[GroupTable, tuple[str, ...]]:
    """The table of (line, record) pairs, of which the first of a page counts; DataError with all faults."""
    aligner = RecordAligner[Labels](rules, lambda place, alignment: alignment.weights)
    names = [rule.dimension.name for rule in rules]
    repeated = 0

    def rows() -> Iterator[tuple[str, dict[str, Labels]]]:
        nonlocal repeated
        pages = PageSet()
        for number, record in records:
            try:
                page = page_id(record.get(id_field), f"field {id_field!r}")
                if pages.add(page):
                    yield str(page), dict(zip(names, aligner.align(page, record), strict=True))
                else:
                    repeated += 1
            except ValueError as error:
                faults.add(path, number, str(error))

    try:
        table = GroupTable.from_rows(rows(), {rule.dimension.name: _known(rule) for rule in rules}, names)
    except DataError:
        # Its rows are ours: that there are none is all that can be wrong with them.
        if not faults:
            faults.add(path, None, "there are no pages")
        faults.check("TREC Fair metadata")
        raise
    faults.check("TREC Fair metadata")
    return table, oddities(repeated, aligner.missing, aligner.unrecognized)


def cached_track_groups(path: Path, year: Year, dimensions: Sequence[str]) -> tuple[GroupTable, tuple[str, ...]]:
    """The same as `read_track_groups`, kept in the folder `fairagent-groups` beside the file.

    It is made anew when the file's size or time has changed.
    """
    rules(year, dimensions)
    if not path.is_file():
        return read_track_groups(path, year, dimensions)
    status = path.stat()
    stamp = {"file": path.name, "size": status.st_size, "modified": status.st_mtime_ns}
    folder = path.parent / "fairagent-groups" / f"{year}-{'-'.join(dimensions)}"
    return kept(folder, stamp, lambda: read_track_groups(path, year, dimensions))


def kept(
    folder: Path, stamp: Mapping[str, object], make: Callable[[], tuple[GroupTable, tuple[str, ...]]]
) -> tuple[GroupTable, tuple[str, ...]]:
    """The table and notes in `folder`, if they bear the same stamp; else those made now, and kept where that works."""
    stamp = {"format": FORMAT, **stamp}
    try:
        head = parse_json(file_text(folder / STAMP, LARGEST_STAMP))
        if head["stamp"] == stamp:
            return GroupTable.load(folder), tuple(head["notes"])
    except (OSError, ValueError, KeyError, TypeError, DataError):
        log.debug("no usable groups at %s", folder)
    table, notes = make()
    try:
        (folder / STAMP).unlink(missing_ok=True)
        table.save(folder)
        (folder / STAMP).write_text(json.dumps({"stamp": stamp, "notes": notes}) + "\n", encoding="utf-8")
    except OSError as error:
        log.warning("the groups are read anew each time, since %s cannot be written (%s)", folder, error)
    return table, notes


def _known(rule: Rule) -> list[str]:
    """The labels of a dimension but for unknown."""
    return [label for label in rule.dimension.labels if label != UNKNOWN]
