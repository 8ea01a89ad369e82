"""Group tables from the page alignments in the track's metadata.

Nothing is normalized: alignments are used as the track makes them, so a page about a woman and a man has a gender row
that sums to 2, and 2021's continents count 1 each.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fairagent.collection.faults import Faults, listed
from fairagent.collection.kept import kept_table
from fairagent.collection.records import Record, json_records
from fairagent.collection.table import GroupTable
from fairagent.collection.table_buffer import Labels
from fairagent.collection.trec_fair.corpus import PageSet, page_id
from fairagent.collection.trec_fair.metadata import RULES, RecordAligner, oddities
from fairagent.errors import DataError, UsageError
from fairagent.measures.trec_fair import Rule, Year
from fairagent.remembered import file_digest
from fairagent.types import UNKNOWN


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
    """The same as `read_track_groups`, kept in the folder `fairagent-groups` beside the file."""
    rules(year, dimensions)
    if not path.is_file():
        return read_track_groups(path, year, dimensions)
    return kept_table(
        path.parent / "fairagent-groups" / f"{year}-{'-'.join(dimensions)}",
        lambda: {"file": path.name, "sha256": file_digest(path)},
        lambda: read_track_groups(path, year, dimensions),
    )


def _known(rule: Rule) -> list[str]:
    """The labels of a dimension but for unknown."""
    return [label for label in rule.dimension.labels if label != UNKNOWN]
