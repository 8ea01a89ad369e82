"""The TREC Fair Ranking track's metadata (page alignments, quality) and relevant pages, 2022 and 2021.

JSON lines, gzipped or not. Millions of pages are read one by one; what stays is a few bytes a page.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from fairagent.collection.faults import Faults, listed, shown
from fairagent.collection.records import Record, json_records
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
from fairagent.measures.trec_fair.lookup import distinct

T = TypeVar("T")

RULES: dict[Year, tuple[Rule, ...]] = {2021: RULES_2021, 2022: RULES_2022}
EVERY = 10_000
"""Lines between two calls of `progress`."""
REMEMBERED = 200_000
"""So many values of a field are kept with their rows, so that equal ones are aligned once."""


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

    `progress` is called with the number of lines read, now and then. Raises one DataError with every fault by file
    and line: no JSON, no `page_id`, an id outside 0 .. 2^31 - 1, and fields of another form than the track's.
    """
    if year not in RULES:
        raise UsageError(f"year {year!r}: there are 2021 and 2022")
    path, faults = Path(path), Faults()
    builder = PagesBuilder([rule.dimension for rule in RULES[year]])
    aligner = RecordAligner(RULES[year], lambda place, alignment: builder.row(place, alignment.weights))
    quality, seen = QUALITY_FIELD[year], PageSet()
    repeated = count = 0
    for number, record in json_records(path, faults):
        count += 1
        if not count % EVERY:
            progress(count)
        try:
            page = page_id(record.get("page_id"), "field 'page_id'")
            if not seen.add(page):
                repeated += 1
                continue
            rows, found = aligner.align(page, record), record.get(quality)
            if found is None:
                aligner.missing[quality] += 1
            elif not isinstance(found, str):
                raise ValueError(f"page {page}, field {quality!r}: expected a quality class, found {shown(found)}")
            elif found not in QUALITIES:
                aligner.unrecognized[quality, found] += 1
            builder.add(page, rows, QUALITIES.index(found) if found in QUALITIES else -1)
        except ValueError as error:
            faults.add(path, number, str(error))
    if not count and not faults:
        faults.add(path, None, "there are no pages")
    faults.check(f"TREC Fair {year} metadata")
    progress(count)
    return Metadata(builder.finish(), repeated, dict(aligner.missing), dict(aligner.unrecognized))


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

    `made` turns the alignment of a dimension (by its place) into what a page keeps of it.
    """

    def __init__(self, rules: Sequence[Rule], made: Callable[[int, Alignment], T]) -> None:
        self.missing: Counter[str] = Counter()
        self.unrecognized: Counter[tuple[str, str]] = Counter()
        self._rules, self._made = rules, made
        self._known: list[dict[str, tuple[T, Alignment]]] = [{} for _ in rules]

    def align(self, page: int, record: Record) -> list[T]:
        """What a page keeps in each dimension; ValueError, naming the field, where a value has another form."""
        found = []
        for place, (rule, known) in enumerate(zip(self._rules, self._known, strict=True)):
            value = record.get(rule.field)
            key = repr(value)
            if key not in known:
                if len(known) == REMEMBERED:
                    known.clear()
                try:
                    alignment = rule.align(value, rule.dimension)
                except ValueError as error:
                    raise ValueError(f"page {page}, field {rule.field!r}: {error}") from None
                known[key] = self._made(place, alignment), alignment
            kept, alignment = known[key]
            found.append(kept)
            for label in alignment.unrecognized:
                self.unrecognized[rule.field, label] += 1
            # A null is an empty list, and no missing field, where a dimension has a label for unknown.
            if rule.field not in record or not (alignment.weights or alignment.unrecognized):
                self.missing[rule.field] += 1
        return found


def oddities(repeated: int, missing: Mapping[str, int], unrecognized: Mapping[tuple[str, str], int]) -> tuple[str, ...]:
    """What is odd in a metadata file, in words."""
    notes = [f"lines that repeat a page, whose first line counts: {repeated}"] if repeated else []
    notes += [f"pages without {field!r}: {count}" for field, count in missing.items()]
    for field in dict.fromkeys(field for field, _ in unrecognized):
        labels = [f"{label!r} ({count})" for (of, label), count in unrecognized.items() if of == field]
        notes.append(f"values of {field!r} that are no label and count for nothing: {listed(labels)}")
    return tuple(notes)
