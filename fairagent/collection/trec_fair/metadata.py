"""The TREC Fair Ranking track's metadata (page alignments, quality) and relevant pages, 2022 and 2021.

JSON lines, packed or not. Millions of pages are read one by one; what stays is a few bytes a page. In the group tables
nothing is normalized: alignments are used as the track makes them, so a page about a woman and a man has a gender row
that sums to 2, and 2021's continents count 1 each.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from fairagent.collection.records import Faults, json_records, listed, shown
from fairagent.collection.table import GroupTable, Made, cached_table
from fairagent.collection.trec_fair.corpus import PageSet, page_id
from fairagent.errors import UsageError
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
from fairagent.settings.faults import no_such
from fairagent.storage.digests import file_digest
from fairagent.types import UNKNOWN

RULES: dict[Year, tuple[Rule, ...]] = {2021: RULES_2021, 2022: RULES_2022}
EVERY = 10_000
"""Lines between two calls of `progress`."""


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
        notes = [f"lines that repeat a page, whose first line counts: {self.repeated}"] if self.repeated else []
        notes += [f"pages without {field!r}: {count}" for field, count in self.missing.items()]
        for field in dict.fromkeys(field for field, _ in self.unrecognized):
            labels = [f"{label!r} ({count})" for (of, label), count in self.unrecognized.items() if of == field]
            notes.append(f"values of {field!r} that are no label and count for nothing: {listed(labels)}")
        return tuple(notes)


@dataclass(frozen=True, slots=True, eq=False)
class RelevantPages:
    """Topic id -> ids of its relevant pages, distinct and rising, and what was odd in the file."""

    qrels: Mapping[str, IntArray]
    notes: tuple[str, ...]


def read_metadata(
    path: Path | str,
    year: Year = 2022,
    progress: Callable[[int], None] = lambda lines: None,
    dimensions: Sequence[str] | None = None,
) -> Metadata:
    """The pages of a metadata file (2022: trec_2022_articles_discrete..., 2021: trec_metadata...).

    In all dimensions, or in these, and then without quality classes. `progress` is called with the number of lines
    read, now and then. Raises one DataError with every error by file and line: no JSON, no `page_id`, an id outside
    0 .. 2^31 - 1, fields of another form than the track's; UsageError for a year or a dimension that is none.
    """
    read_by = rules(year, [rule.dimension.name for rule in RULES.get(year, ())] if dimensions is None else dimensions)
    path, faults, seen = Path(path), Faults(), PageSet()
    builder, quality = PagesBuilder([rule.dimension for rule in read_by]), QUALITY_FIELD[year]
    count, repeated, missing, unrecognized = 0, 0, Counter[str](), Counter[tuple[str, str]]()
    # Equal values are aligned once.
    caches: list[dict[str, tuple[int, Alignment]]] = [{} for _ in read_by]
    for count, (number, record) in enumerate(json_records(path, faults), start=1):
        if not count % EVERY:
            progress(count)
        try:
            page, rows = page_id(record.get("page_id"), "field 'page_id'"), []
            if not seen.add(page):
                repeated += 1
                continue
            for place, (rule, cache) in enumerate(zip(read_by, caches, strict=True)):
                key = repr(value := record.get(rule.field))
                if key not in cache:
                    if len(cache) == 200_000:
                        cache.clear()
                    try:
                        alignment = rule.align(value, rule.dimension)
                    except ValueError as error:
                        raise ValueError(f"page {page}, field {rule.field!r}: {error}") from None
                    cache[key] = builder.row(place, alignment.weights), alignment
                row, alignment = cache[key]
                rows.append(row)
                unrecognized.update((rule.field, label) for label in alignment.unrecognized)
                # A null is an empty list, and no missing field, where a dimension has a label for unknown.
                missing[rule.field] += rule.field not in record or not (alignment.weights or alignment.unrecognized)
            value = record.get(quality) if dimensions is None else ""
            if not isinstance(value, str | None):
                raise ValueError(f"page {page}, field {quality!r}: expected a quality class, got {shown(value)}")
            missing[quality] += value is None
            unrecognized.update([(quality, value)] if value and value not in QUALITIES else ())
            builder.add(page, rows, QUALITIES.index(value) if value in QUALITIES else -1)
        except ValueError as error:
            faults.add(path, number, str(error))
    if not count and not faults:
        faults.add(path, None, "there are no pages")
    faults.check(f"TREC Fair {year} metadata")
    progress(count)
    return Metadata(builder.finish(), repeated, dict(+missing), dict(unrecognized))


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
        qrels[topic], lines[topic] = np.unique(np.array(pages, np.int64)), number
        repeated += len(pages) - qrels[topic].size
    if not qrels and not faults:
        faults.add(path, None, "there are no topics")
    faults.check("TREC Fair relevant pages")
    notes = [f"relevant pages that are listed again, which count once: {repeated}"] if repeated else []
    if without := [topic for topic, pages in qrels.items() if not pages.size]:
        notes.append(f"topics without a relevant page: {len(without)} of {len(qrels)} ({listed(without)})")
    return RelevantPages(qrels, tuple(notes))


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


def track_groups(path: Path, year: Year, dimensions: Sequence[str]) -> Made:
    """The table of a metadata file, and notes on what is odd in it; cached in the folder `fairagent-groups` beside it.

    Raises one DataError with every error by file and line: no JSON, no `page_id`, fields of another form.
    """

    def read() -> Made:
        metadata, names = read_metadata(path, year, dimensions=dimensions), dict[str, list[str]]()
        of_page: list[Iterator[dict[str, float]]] = []
        for dimension, rows in zip(metadata.pages.dimensions, metadata.pages.rows, strict=True):
            names[dimension.name] = [label for label in dimension.labels if label != UNKNOWN]
            entries = zip([dimension.labels[code] for code in rows.codes], rows.weights.tolist(), strict=True)
            weights = [dict(islice(entries, count)) for count in rows.counts.tolist()]
            of_page.append(map(weights.__getitem__, rows.of_page.tolist()))
        labels = (dict(zip(names, of_one, strict=True)) for of_one in zip(*of_page, strict=True))
        pages = zip(map(str, metadata.pages.ids.tolist()), labels, strict=True)
        return GroupTable.from_rows(pages, names, unnormalized=names), metadata.notes

    if not path.is_file():
        return read()
    place = path.parent / "fairagent-groups" / f"{year}-{'-'.join(dimensions)}"
    return cached_table(place, lambda: {"file": path.name, "sha256": file_digest(path)}, read)
