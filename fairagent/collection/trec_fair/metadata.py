"""The TREC Fair Ranking track's metadata (page alignments, quality) and relevant pages, 2022 and 2021.

JSON lines, gzipped or not. Millions of pages are read one by one; what stays is a few bytes a page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.collection.faults import Faults, listed, shown
from fairagent.collection.records import json_records
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

RULES: dict[Year, tuple[Rule, ...]] = {2021: RULES_2021, 2022: RULES_2022}
EVERY = 10_000
"""Lines between two calls of `progress`."""
REMEMBERED = 200_000
"""So many values of a field are kept with their rows, so that equal ones are aligned once."""


@dataclass(frozen=True, slots=True, eq=False)
class Metadata:
    """The pages of a metadata file, and what was odd in it.

    `repeated` counts lines of pages that stood in an earlier line, which alone counts; `missing` the pages that lack
    a field, by field (they are unknown there, or have no weight where a dimension knows no unknown); `strange` the
    pages with a label that a dimension does not have, by (field, label), which counts for nothing.
    """

    pages: Pages
    repeated: int
    missing: Mapping[str, int]
    strange: Mapping[tuple[str, str], int]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was odd, in words."""
        notes = [f"lines that repeat a page, whose first line counts: {self.repeated}"] if self.repeated else []
        notes += [f"pages without {field!r}: {count}" for field, count in self.missing.items()]
        fields = dict.fromkeys(field for field, _ in self.strange)
        for field in fields:
            labels = [f"{label!r} ({count})" for (of, label), count in self.strange.items() if of == field]
            notes.append(f"values of {field!r} that are no label and count for nothing: {listed(labels)}")
        return tuple(notes)


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
    reader = _Reader(RULES[year], QUALITY_FIELD[year])
    seen = _Seen()
    repeated = count = 0
    for number, record in json_records(path, faults):
        count += 1
        if not count % EVERY:
            progress(count)
        try:
            page = _page_id(record.get("page_id"), "field 'page_id'")
            if seen.before(page):
                repeated += 1
            else:
                reader.add(page, record)
        except ValueError as error:
            faults.add(path, number, str(error))
    if not count and not faults:
        faults.add(path, None, "there are no pages")
    faults.check(f"TREC Fair {year} metadata")
    progress(count)
    return Metadata(reader.builder.finish(), repeated, dict(reader.missing), dict(reader.strange))


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
            topic = str(_page_id(record.get("id"), "field 'id'"))
            pages = record.get("rel_docs")
            if not isinstance(pages, list):
                raise ValueError(f"field 'rel_docs' is {shown(pages)}, expected a list of page ids")
            if not all(type(page) is int and 0 <= page <= LARGEST_ID for page in pages):
                for page in pages:
                    _page_id(page, f"topic {topic}: a relevant page")
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


class _Reader:
    """Turns records into pages, and counts what is odd in them."""

    def __init__(self, rules: tuple[Rule, ...], quality: str) -> None:
        self.rules, self.quality = rules, quality
        self.builder = PagesBuilder([rule.dimension for rule in rules])
        self.missing: Counter[str] = Counter()
        self.strange: Counter[tuple[str, str]] = Counter()
        self._known: list[dict[str, tuple[int, Alignment]]] = [{} for _ in rules]

    def add(self, page: int, record: Mapping[str, Any]) -> None:
        """Add one page; ValueError, naming the field, where a value has another form."""
        rows = []
        for place, rule in enumerate(self.rules):
            value = record.get(rule.field)
            key, known = repr(value), self._known[place]
            if key not in known:
                if len(known) == REMEMBERED:
                    known.clear()
                try:
                    alignment = rule.align(value, rule.dimension)
                except ValueError as error:
                    raise ValueError(f"page {page}, field {rule.field!r}: {error}") from None
                known[key] = self.builder.row(place, alignment.weights), alignment
            row, alignment = known[key]
            rows.append(row)
            for label in alignment.strange:
                self.strange[rule.field, label] += 1
            if rule.field not in record or not (alignment.weights or alignment.strange):
                self.missing[rule.field] += 1
        self.builder.add(page, rows, self._quality(page, record))

    def _quality(self, page: int, record: Mapping[str, Any]) -> int:
        quality = record.get(self.quality)
        if quality in QUALITIES:
            return QUALITIES.index(quality)
        if quality is None:
            self.missing[self.quality] += 1
        elif isinstance(quality, str):
            self.strange[self.quality, quality] += 1
        else:
            raise ValueError(f"page {page}, field {self.quality!r}: expected a quality class, found {shown(quality)}")
        return -1


class _Seen:
    """The page ids met so far, a bit each: a set of millions would be the largest thing in memory."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def before(self, page: int) -> bool:
        """Whether the page was met before; from now on it was."""
        place, bit = page >> 3, 1 << (page & 7)
        if place >= len(self._bits):
            self._bits.extend(bytes(place + 1 - len(self._bits)))
        met = bool(self._bits[place] & bit)
        self._bits[place] |= bit
        return met


def _page_id(value: Any, what: str) -> int:
    if type(value) is int and 0 <= value <= LARGEST_ID:
        return value
    raise ValueError(f"{what} is {shown(value)}, expected a whole number from 0 to {LARGEST_ID}")
