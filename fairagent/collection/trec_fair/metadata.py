"""The TREC Fair Ranking track's metadata (page alignments, quality) and relevant pages, 2022 and 2021.

JSON lines, gzipped or not. Millions of pages are read one by one; what stays is a few bytes a page. In the group tables
nothing is normalized: alignments are used as the track makes them, so a page about a woman and a man has a gender row
that sums to 2, and 2021's continents count 1 each.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from fairagent.collection.records import Faults, Record, json_records, listed, shown
from fairagent.collection.table import GroupTable, Made, cached_table
from fairagent.collection.table_buffer import Labels
from fairagent.collection.trec_fair.corpus import PageSet, page_id
from fairagent.errors import DataError, UsageError
from fairagent.measures.trec_fair import (
    LARGEST_ID,
    QUALITIES,
    QUALITY_FIELD,
    RULES_2021,
    RULES_2022,
    Alignment,
    IntArray,
    Pages,
    PagesBuilder,
    Rule,
    Year,
)
from fairagent.measures.trec_fair.pages import distinct
from fairagent.settings.faults import no_such
from fairagent.storage.digests import file_digest
from fairagent.types import UNKNOWN

T = TypeVar("T")

RULES: dict[Year, tuple[Rule, ...]] = {2021: RULES_2021, 2022: RULES_2022}
EVERY = 10_000
"""Lines between two calls of `progress`."""
CACHED = 200_000
"""So many values of a field are cached with their rows, so that equal ones are aligned once."""


@dataclass(frozen=True, slots=True, eq=False)
class Metadata:
    """The pages of a metadata file, and what was odd in it.

    `repeated` counts lines of pages that stood in an earlier line, which alone counts; `missing` the pages that lack
    a field, by field (they are unknown there, or have no weight where a dimension knows no unknown); `unrecognized` the
    pages with a label that a dimension does not have, by (field, label), which counts for nothing.
    """

    pages: Pages
    repeated: int
    missing: Mapping[str, int]
    unrecognized: Mapping[tuple[str, str], int]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was odd, in words."""
        return oddities(self.repeated, self.missing, self.unrecognized)


@dataclass(frozen=True, slots=True, eq=False)
class RelevantPages:
    """Topic id -> ids of its relevant pages, distinct and rising, and what was odd in the file."""

    qrels: Mapping[str, IntArray]
    notes: tuple[str, ...]


def read_metadata(
    path: Path | str, year: Year = 2022, progress: Callable[[int], None] = lambda lines: None
) -> Metadata:
    """The pages of a metadata file (2022: trec_2022_articles_discrete..., 2021: trec_metadata...).

    `progress` is called with the number of lines read, now and then. Raises one DataError with every error by file
    and line: no JSON, no `page_id`, an id outside 0 .. 2^31 - 1, fields of another form than the track's.
    """
    if year not in RULES:
        raise UsageError(f"year {year!r}: there are 2021 and 2022")
    path, faults = Path(path), Faults()
    builder = PagesBuilder([rule.dimension for rule in RULES[year]])
    aligner = RecordAligner(RULES[year], lambda place, alignment: builder.row(place, alignment.weights))
    quality, count = QUALITY_FIELD[year], 0

    def counted() -> Iterator[tuple[int, Record]]:
        nonlocal count
        for count, row in enumerate(json_records(path, faults), start=1):
            if not count % EVERY:
                progress(count)
            yield row

    for number, page, record, rows in aligner.pages(counted(), "page_id", path, faults):
        value = record.get(quality)
        if value is None:
            aligner.missing[quality] += 1
        elif not isinstance(value, str):
            faults.add(path, number, f"page {page}, field {quality!r}: expected a quality class, got {shown(value)}")
            continue
        elif value not in QUALITIES:
            aligner.unrecognized[quality, value] += 1
        builder.add(page, rows, QUALITIES.index(value) if value in QUALITIES else -1)
    if not count and not faults:
        faults.add(path, None, "there are no pages")
    faults.check(f"TREC Fair {year} metadata")
    progress(count)
    return Metadata(builder.finish(), aligner.repeated, dict(aligner.missing), dict(aligner.unrecognized))


def read_relevant_pages(path: Path | str) -> RelevantPages:
    """The relevant pages of a topics file with `id` and `rel_docs` (..._reldocs.jsonl, 2021: ...-with-qrels).

    Ids that a topic lists twice count once and are noted, as are topics without any. Raises one DataError with every
    fault by file and line: no JSON, an `id` that is missing or taken, `rel_docs` that are no list of page ids.
    """
    path, faults = Path(path), Faults()
    qrels: dict[str, IntArray] = {}
    lines: dict[str, int] = {}
    repeated = 0
    for number, record in json_records(path, faults):
        try:
            topic = str(page_id(record.get("id"), "field 'id'"))
            pages = record.get("rel_docs")
            if not isinstance(pages, list):
                raise ValueError(f"field 'rel_docs' is {shown(pages)}, expected a list of page ids")
            if not all(type(page) is int and 0 <= page <= LARGEST_ID for page in pages):
                for page in pages:
                    page_id(page, f"topic {topic}: a relevant page")
        except ValueError as error:
            faults.add(path, number, str(error))
            continue
        if topic in qrels:
            faults.add(path, number, f"topic {topic} is that of line {lines[topic]} already")
            continue
        qrels[topic], lines[topic] = distinct(np.array(pages, np.int64)), number
        repeated += len(pages) - qrels[topic].size
    if not qrels and not faults:
        faults.add(path, None, "there are no topics")
    faults.check("TREC Fair relevant pages")
    notes = [f"relevant pages that are listed again, which count once: {repeated}"] if repeated else []
    if without := [topic for topic, pages in qrels.items() if not pages.size]:
        notes.append(f"topics without a relevant page: {len(without)} of {len(qrels)} ({listed(without)})")
    return RelevantPages(qrels, tuple(notes))


class RecordAligner(Generic[T]):
    """Aligns records by `rules`, each distinct value once, and counts what is odd in them.

    `row_of` turns the alignment of a dimension (by its place) into what a page has of it.
    """

    def __init__(self, rules: Sequence[Rule], row_of: Callable[[int, Alignment], T]) -> None:
        self.repeated = 0
        self.missing: Counter[str] = Counter()
        self.unrecognized: Counter[tuple[str, str]] = Counter()
        self._rules, self._row_of = rules, row_of
        self._cache: list[dict[str, tuple[T, Alignment]]] = [{} for _ in rules]

    def pages(
        self, records: Iterable[tuple[int, Record]], id_field: str, path: Path, faults: Faults
    ) -> Iterator[tuple[int, int, Record, list[T]]]:
        """The line, id, record and rows of each page; of its lines the first counts."""
        seen = PageSet()
        for number, record in records:
            try:
                page = page_id(record.get(id_field), f"field {id_field!r}")
                if seen.add(page):
                    yield number, page, record, self._align(page, record)
                else:
                    self.repeated += 1
            except ValueError as error:
                faults.add(path, number, str(error))

    def _align(self, page: int, record: Record) -> list[T]:
        """What a page has in each dimension; ValueError, naming the field, where a value has another form."""
        rows = []
        for place, (rule, cache) in enumerate(zip(self._rules, self._cache, strict=True)):
            value = record.get(rule.field)
            key = repr(value)
            if key not in cache:
                if len(cache) == CACHED:
                    cache.clear()
                try:
                    alignment = rule.align(value, rule.dimension)
                except ValueError as error:
                    raise ValueError(f"page {page}, field {rule.field!r}: {error}") from None
                cache[key] = self._row_of(place, alignment), alignment
            row, alignment = cache[key]
            rows.append(row)
            for label in alignment.unrecognized:
                self.unrecognized[rule.field, label] += 1
            # A null is an empty list, and no missing field, where a dimension has a label for unknown.
            if rule.field not in record or not (alignment.weights or alignment.unrecognized):
                self.missing[rule.field] += 1
        return rows


def oddities(repeated: int, missing: Mapping[str, int], unrecognized: Mapping[tuple[str, str], int]) -> tuple[str, ...]:
    """What is odd in a metadata file, in words."""
    notes = [f"lines that repeat a page, whose first line counts: {repeated}"] if repeated else []
    notes += [f"pages without {field!r}: {count}" for field, count in missing.items()]
    for field in dict.fromkeys(field for field, _ in unrecognized):
        labels = [f"{label!r} ({count})" for (of, label), count in unrecognized.items() if of == field]
        notes.append(f"values of {field!r} that are no label and count for nothing: {listed(labels)}")
    return tuple(notes)


def rules(year: Year, dimensions: Sequence[str]) -> tuple[Rule, ...]:
    """How the dimensions are read; UsageError for a dimension or a year that is none of the track's."""
    if year not in RULES:
        raise UsageError(f"year {year!r}: there are 2021 and 2022")
    known = {rule.dimension.name: rule for rule in RULES[year]}
    if unknown := [name for name in dimensions if name not in known]:
        raise UsageError(f"TREC Fair {year} has {no_such('dimension', listed(unknown), known)}")
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


def groups_of(
    records: Iterable[tuple[int, Record]], path: Path, rules: Sequence[Rule], id_field: str, faults: Faults
) -> Made:
    """The table of (line, record) pairs, of which the first of a page counts; DataError with all errors."""
    aligner = RecordAligner[Labels](rules, lambda place, alignment: alignment.weights)
    labels = {rule.dimension.name: [one for one in rule.dimension.labels if one != UNKNOWN] for rule in rules}
    rows = (
        (str(page), dict(zip(labels, weights, strict=True)))
        for _, page, _, weights in aligner.pages(records, id_field, path, faults)
    )
    try:
        table = GroupTable.from_rows(rows, labels, unnormalized=labels)
    except DataError:
        # The rows are well formed: that there are none is all that can be wrong with them.
        if not faults:
            faults.add(path, None, "there are no pages")
        faults.check("TREC Fair metadata")
        raise
    faults.check("TREC Fair metadata")
    return table, oddities(aligner.repeated, aligner.missing, aligner.unrecognized)


def track_groups(path: Path, year: Year, dimensions: Sequence[str]) -> Made:
    """The table of a metadata file, and notes on what is odd in it; cached in the folder `fairagent-groups` beside it.

    Raises one DataError with every error by file and line: no JSON, no `page_id`, fields of another form.
    """
    read_by = rules(year, dimensions)

    def read() -> Made:
        faults = Faults()
        return groups_of(json_records(path, faults), path, read_by, "page_id", faults)

    if not path.is_file():
        return read()
    place = path.parent / "fairagent-groups" / f"{year}-{'-'.join(dimensions)}"
    return cached_table(place, lambda: {"file": path.name, "sha256": file_digest(path)}, read)
