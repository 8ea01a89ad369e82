"""The TREC Fair Ranking track, 2022 and 2021, from its official files: topics, metadata, corpus and runs.

    load_track("trec-fair", year=2022, split="eval", dimensions=["sub-geo", "gender"])

Files are JSON lines, packed or not. Millions of articles and pages are read one by one; judgments and groups are
compact arrays. In the group tables nothing is normalized: alignments are used as the track makes them, so a page about
a woman and a man has a gender row that sums to 2, and 2021's continents count 1 each. Runs are in the track's own
formats, or in those of other tools; topics and pages are whole numbers, best page first, separated by tabs, commas or
spaces:

    Task 1   topic, page             one ranking a topic; or a run of any form of `fairagent.collection.run_lines`
    Task 2   topic, ranking, page    a sequence of rankings a topic
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Collection as AnyCollection
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fairagent.collection.collection import Collection
from fairagent.collection.known import warn_once
from fairagent.collection.records import Faults, Record, json_records, lines, listed, read_text, shown
from fairagent.collection.run_lines import RunLine, by_score, order_note, rows_of, run_lines
from fairagent.collection.table import GroupTable, Made, cached_table
from fairagent.collection.targets import TARGET, TrecEstimatedTarget
from fairagent.errors import DataError, UsageError
from fairagent.measures.trec_fair import (
    LARGEST_ID,
    LONGEST,
    QUALITIES,
    QUALITY_FIELD,
    RULES_2021,
    RULES_2022,
    Alignment,
    IntArray,
    Pages,
    PagesBuilder,
    Repeated,
    Rule,
    Task,
    TrackRun,
    Year,
)
from fairagent.settings.faults import no_such
from fairagent.storage.digests import file_digest
from fairagent.storage.readers import SUFFIXES, unpacked_name
from fairagent.types import UNKNOWN, Document, Topic

QueryField = Literal["title", "keywords"]
Split = Literal["train", "eval"]
RULES: dict[Year, tuple[Rule, ...]] = {2021: RULES_2021, 2022: RULES_2022}
EXTRA = ("keywords", "scope", "homepage", "url")
"""Fields that stay with a topic beside its title."""
DEFAULT_DIMENSIONS: dict[Year, tuple[str, ...]] = {2021: ("geo", "gender"), 2022: ("sub-geo", "gender")}
"""The two that 2021 measured, and 2022 again as its subset "2021"."""
CORPUS: dict[Year, tuple[str, ...]] = {
    2021: ("trec_corpus.json",),
    2022: tuple(f"trec_corpus_20220301_{form}.json" for form in ("plain", "text")),
}
METADATA: dict[Year, tuple[str, ...]] = {
    2021: ("trec_metadata_eval.json", "trec_metadata.json"),
    2022: ("trec_2022_articles_discrete_assessed.json", "trec_2022_articles_discrete.json"),
}
"""2022: the official evaluation used the `assessed` file. 2021: gender came with the evaluation."""
TOPICS: dict[tuple[Year, Split], tuple[str, ...]] = {
    (2021, "train"): ("trec_topics.json",),
    (2021, "eval"): ("2021-eval-topics-with-qrels.json", "eval-topics-with-qrels.json"),
    (2022, "train"): ("trec_2022_train_reldocs.jsonl",),
    (2022, "eval"): ("trec_2022_eval_reldocs.jsonl",),
}
KEYWORDS: dict[tuple[Year, Split], tuple[str, ...]] = {
    (2021, "train"): (),
    (2021, "eval"): ("eval-topics.json",),
    (2022, "train"): ("train_topics_meta.jsonl", "topics_keywords.jsonl"),
    (2022, "eval"): ("eval_topics_meta.jsonl", "topics_keywords.jsonl"),
}
"""Files with more about the topics; they may be missing."""


def load_track(
    folder: Path | str,
    year: Year = 2022,
    split: Split = "eval",
    dimensions: Sequence[str] | None = None,
    query: QueryField = "title",
    keywords: Path | str | None = None,
    name: str = "",
) -> Collection:
    """The collection of a year and split from the official files in `folder` (this module's lists).

    `dimensions` are names of the track's (default: geography of the subject, and gender); memberships are its page
    alignments, not normalized. A topic's query is its title, or its `keywords` joined, which come from the file of that
    name where the topics have none. The groups are cached beside the metadata, so that only the first load reads it.
    Raises DataError with file and line, UsageError for another year, split or dimension.
    """
    files = find_track_files(folder, year, split)
    assert files.corpus is not None
    chosen = tuple(dimensions or DEFAULT_DIMENSIONS[year])
    read_by = _rules(year, chosen)
    topics = _read_topics(files.topics, query, Path(keywords) if keywords else files.keywords)
    judged = read_relevant_pages(files.topics)
    groups, notes = track_groups(files.metadata, year, chosen)
    name = name or f"trec-fair-{year}-{split}"
    return Collection(
        name=name,
        topics=topics,
        qrels={topic: PageGrades(judged.qrels[topic]) for topic in topics},
        groups=groups,
        # World shares of the dimensions that the track averages with them.
        population={
            rule.dimension.name: dict(zip(rule.dimension.labels[1:], rule.dimension.background, strict=True))
            for rule in read_by
            if rule.dimension.background
        },
        notes=(*judged.notes, *notes),
        source=Corpus(name, files.corpus),
        target=TrecEstimatedTarget(),
        judged=TARGET,
    )


@dataclass(frozen=True, slots=True)
class TrackFiles:
    """Where the files of a year and split are; `corpus` is None where it is not needed, `keywords` where absent."""

    corpus: Path | None
    metadata: Path
    topics: Path
    keywords: Path | None


def find_track_files(folder: Path | str, year: Year = 2022, split: Split = "eval", corpus: bool = True) -> TrackFiles:
    """The track's files in `folder`, packed or not; of several forms the first (see this module's lists).

    Raises one DataError naming every file that is not there, UsageError for another year or split.
    """
    if (year, split) not in TOPICS:
        raise UsageError(f"year {year!r}, split {split!r}: there are the years 2021 and 2022, and train and eval")
    folder, faults = Path(folder), Faults()

    def there(names: Sequence[str], what: str = "") -> Path | None:
        places = (folder / f"{name}{end}" for name in names for end in (*SUFFIXES, ""))
        path = next((path for path in places if path.is_file()), None)
        if what and path is None:
            faults.add(folder, None, f"no {what}: {' or '.join(names)} (or with .gz) is expected here")
        return path

    articles = there(CORPUS[year], "corpus") if corpus else None
    metadata, topics = there(METADATA[year], "metadata"), there(TOPICS[year, split], "topics with relevant pages")
    faults.check(f"the files of TREC Fair {year}, {split}")
    assert metadata
    assert topics
    return TrackFiles(articles, metadata, topics, there(KEYWORDS[year, split]))


def _read_topics(path: Path, query: QueryField, keywords: Path | None) -> dict[str, Topic]:
    """Topic id -> Topic of a file, in its order; `keywords` is a file with more fields of the same topics."""
    faults, topics, without = Faults(), dict[str, Topic](), list[str]()

    def fields_of(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        """The id of each topic, its title and other fields."""
        lines: dict[str, int] = {}
        for number, record in json_records(file, faults):
            try:
                # The track's files say `id`, its keyword lists `topic_id`.
                id = read_text(record, "topic_id" if "topic_id" in record and "id" not in record else "id")
                if id in lines:
                    raise ValueError(f"topic {id} is that of line {lines[id]} already")
                lines[id] = number
                words = record.get("keywords") or []
                if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                    raise ValueError(f"field 'keywords' is {shown(words)}, expected a list of words")
                more = {name: record[name] for name in EXTRA if record.get(name) is not None}
                yield id, {"title": read_text(record, "title").strip(), **more}
            except ValueError as error:
                faults.add(file, number, str(error))

    more = dict(fields_of(keywords)) if keywords else {}
    for id, of_topic in fields_of(path):
        fields = {**more.get(id, {}), **of_topic}
        if words := fields.pop(query, None):
            topics[id] = Topic(id, words if isinstance(words, str) else " ".join(words), fields)
        else:
            without.append(id)
    if without:
        where = "; name a file that has them: `keywords: FILE`" if query == "keywords" else ""
        count = f"{len(without)} of {len(without) + len(topics)}"
        faults.add(path, None, f"{count} topics have no {query} ({listed(without)}){where}")
    elif not topics and not faults:
        faults.add(path, None, "there are no topics")
    faults.check("TREC Fair topics")
    return topics


@dataclass(frozen=True, slots=True, eq=False)
class RelevantPages:
    """Topic id -> ids of its relevant pages, distinct and rising, and what was odd in the file."""

    qrels: Mapping[str, IntArray]
    notes: tuple[str, ...]


def read_relevant_pages(path: Path | str) -> RelevantPages:
    """The relevant pages of a topics file with `id` and `rel_docs` (..._reldocs.jsonl, 2021: ...-with-qrels).

    Ids that a topic lists twice count once and are noted, as are topics without any. Raises one DataError with every
    fault by file and line: no JSON, an `id` that is missing or taken, `rel_docs` that are no list of page ids.
    """
    path, faults, repeated = Path(path), Faults(), 0
    qrels, lines = dict[str, IntArray](), dict[str, int]()
    for number, record in json_records(path, faults):
        try:
            topic = str(page_id(record.get("id"), "field 'id'"))
            pages = record.get("rel_docs")
            if not isinstance(pages, list):
                raise ValueError(f"field 'rel_docs' is {shown(pages)}, expected a list of page ids")
            what = f"topic {topic}: a relevant page"
            for page in pages:
                page_id(page, what)
            if topic in qrels:
                raise ValueError(f"topic {topic} is that of line {lines[topic]} already")
        except ValueError as error:
            faults.add(path, number, str(error))
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


class PageGrades(Mapping[str, int]):
    """The relevant pages of one topic as document id -> grade 1, in 8 bytes a page: topics have 40,000 of them.

    >>> relevant = PageGrades(np.array([12, 7, 12]))
    >>> dict(relevant), relevant.get("12"), relevant.get("012", 0)
    ({'7': 1, '12': 1}, 1, 0)
    """

    def __init__(self, pages: IntArray) -> None:
        """Take page ids in any order; repeated ones count once."""
        self._pages = np.unique(pages)

    def __getitem__(self, id: str) -> int:
        if id.isascii() and id.isdigit() and str(page := int(id)) == id:
            place = int(self._pages.searchsorted(page))
            if place < len(self) and self._pages[place] == page:
                return 1
        raise KeyError(id)

    def __iter__(self) -> Iterator[str]:
        return map(str, self._pages.tolist())

    def __len__(self) -> int:
        return int(self._pages.size)


class PageSet:
    """A set of page ids, one bit each: 9 MB for the ids of Wikipedia."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, page: int) -> bool:
        """Add a page id; return whether it is new."""
        byte, bit = page >> 3, 1 << (page & 7)
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1 - len(self._bits) + (byte >> 3)))
        new = not self._bits[byte] & bit
        self._bits[byte] |= bit
        return new


def page_id(value: Any, what: str) -> int:
    """A page's id, a whole number; ValueError, naming `what` holds it, for anything else."""
    if type(value) is not int or not 0 <= value <= LARGEST_ID:
        raise ValueError(f"{what} is {shown(value)}, expected a whole number from 0 to {LARGEST_ID}")
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Metadata:
    """The pages of a metadata file, and what was odd in it, in words."""

    pages: Pages
    notes: tuple[str, ...]


def read_metadata(
    path: Path | str,
    year: Year = 2022,
    progress: Callable[[int], None] = lambda lines: None,
    dimensions: Sequence[str] | None = None,
) -> Metadata:
    """The pages of a metadata file (2022: trec_2022_articles_discrete..., 2021: trec_metadata...).

    In all dimensions, or in these, and then without quality classes. Of lines that repeat a page the first counts. A
    page that lacks a field is unknown there, or has no weight where a dimension knows no unknown; a label that a
    dimension does not have counts for nothing; all that is counted in the notes. `progress` is called with the number
    of lines read, now and then. Raises one DataError with every error by file and line: no JSON, no `page_id`, an id
    outside 0 .. 2^31 - 1, fields of another form than the track's; UsageError for a year or a dimension that is none.
    """
    read_by = _rules(year, [rule.dimension.name for rule in RULES.get(year, ())] if dimensions is None else dimensions)
    path, faults, seen = Path(path), Faults(), PageSet()
    builder, quality = PagesBuilder([rule.dimension for rule in read_by]), QUALITY_FIELD[year]
    count, repeated, missing, unrecognized = 0, 0, Counter[str](), Counter[tuple[str, str]]()
    # Equal values are aligned once.
    caches: list[dict[str, tuple[int, Alignment]]] = [{} for _ in read_by]
    for count, (number, record) in enumerate(json_records(path, faults), start=1):
        if not count % 10_000:
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
    notes = [f"lines that repeat a page, whose first line counts: {repeated}"] if repeated else []
    notes += [f"pages without {field!r}: {count}" for field, count in missing.items() if count]
    for field in dict.fromkeys(field for field, _ in unrecognized):
        labels = [f"{label!r} ({count})" for (of, label), count in unrecognized.items() if of == field]
        notes.append(f"values of {field!r} that are no label and count for nothing: {listed(labels)}")
    return Metadata(builder.finish(), tuple(notes))


def _rules(year: Year, dimensions: Sequence[str]) -> tuple[Rule, ...]:
    """How the dimensions are read; UsageError for a dimension or a year that is none of the track's."""
    if year not in RULES:
        raise UsageError(f"year {year!r}: there are 2021 and 2022")
    known = {rule.dimension.name: rule for rule in RULES[year]}
    if unknown := [name for name in dimensions if name not in known]:
        raise UsageError(f"TREC Fair {year} has {no_such('dimension', listed(unknown), known)}")
    if not dimensions or len(set(dimensions)) < len(dimensions):
        raise UsageError(f"expected one or more distinct dimensions, not {listed(dimensions) or 'none'}")
    return tuple(known[name] for name in dimensions)


def track_groups(path: Path, year: Year, dimensions: Sequence[str]) -> Made:
    """The table of a metadata file, and notes on what is odd in it; cached in the folder `fairagent-groups` beside it.

    Raises what `read_metadata` does.
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


class Corpus:
    """The articles of a corpus file, Wikipedia's as JSON lines; iterating reads them.

    `id` (a whole number), `title`, `url`, and the article in `plain` or `text` (wikitext). Of articles that repeat an
    id the first counts, the others are counted and named. A pass that meets an error yields nothing from there on,
    reads to the end and raises one DataError with all of them.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.paths = name, (path,)
        self.notes: tuple[str, ...] = ()
        """What was odd in the last complete pass: the ids that came again."""

    def __iter__(self) -> Iterator[Document]:
        faults, pages, repeated, count = Faults(), PageSet(), list[str](), 0
        path = self.paths[0]
        for number, record in json_records(path, faults):
            count += 1
            try:
                page = page_id(record.get("id"), "field 'id'")
                if not pages.add(page):
                    repeated.append(str(page))
                    continue
                # Made even where it is not used any more, for the errors in it.
                document = _article(page, record)
            except ValueError as error:
                faults.add(path, number, str(error))
                continue
            if not faults:
                yield document
        if not count and not faults:
            faults.add(path, None, "there are no articles")
        faults.check(f"the corpus of {self.name!r}")
        again = f"articles of {path.name} that repeat an id, of which the first counts: {len(repeated)}"
        self.notes = (f"{again} ({listed(repeated)})",) if repeated else ()

    def count(self) -> int:
        """About how many documents there are: by its size in a large file, lines in a small one."""
        path = self.paths[0]
        size = path.stat().st_size if path.is_file() else 0
        # The mean of 2022's plain texts, packed.
        return size // 1_186 if size > 1 << 26 else sum(1 for _ in lines(path, Faults()))

    def fingerprint(self) -> str:
        """SHA-256 (hex) of the file, noted for as long as the file is the same."""
        try:
            return file_digest(self.paths[0])
        except FileNotFoundError:
            raise DataError(f"{self.paths[0]}: the corpus is gone") from None


def _article(page: int, record: Record) -> Document:
    there = [name for name in ("plain", "text") if name in record]
    if len(there) != 1:
        those = f"got {' and '.join(there)}" if there else f"there are: {listed(list(record))}"
        raise ValueError(f"article {page}: expected the article in one of the fields plain, text; {those}")
    text = read_text(record, there[0])
    return Document(
        id=str(page),
        text=wikitext_to_text(text) if there == ["text"] else text,
        title=read_text(record, "title") if record.get("title") is not None else "",
        extra={"url": record["url"]} if "url" in record else {},
    )


DEEPEST = 20
"""Templates and links within each other are resolved this many times."""
_MARKS = re.compile(r"'{2,}|^=+|(?<!=)=+[ \t]*$|^[*#:;]+|__[A-Z]+__", re.MULTILINE)


def wikitext_to_text(source: str) -> str:
    """The words of a page's wikitext, in one line, by simple rules.

    What is dropped: comments, references, templates (and with them infoboxes), tables, files and categories, tags,
    styles and scripts. What stays: running text, the shown text of links, headings, lists, and of formulas and code the
    source. Text that templates would have produced is lost, so counts of terms differ a little from the track's own
    plain text: prefer its plain corpus. Time grows with the length of the text, whatever is in it.
    """

    def without(text: str, start: str, end: str) -> str:
        """The text without what stands from each `start` to the next `end`; what is never closed stays."""
        begin, stop, pieces, place = re.compile(start, re.I), re.compile(end, re.I), list[str](), 0
        while opening := begin.search(text, place):
            # <ref name="x"/> has no content.
            closing = opening if opening.groups() and opening[1] else stop.search(text, opening.end())
            if closing is None:
                break
            pieces.append(text[place : opening.start()])
            place = closing.end()
        return "".join([*pieces, text[place:]])

    def link_text(link: re.Match[str]) -> str:
        target, _, label = link[1].rpartition("|")
        return " " if re.match(r"\s*(?:file|image|category):", target or label, re.IGNORECASE) else label

    text = without(without(source, "<!--", "-->"), r"<ref\b[^<>]*?(/?)>", r"</ref\s*>")
    for _ in range(DEEPEST):
        text, count = re.subn(r"\{\{[^{}]*\}\}", " ", text)
        if not count:
            break
    text = without(text, r"\{\|", r"\|\}")
    for _ in range(DEEPEST):
        text, count = re.subn(r"\[\[([^\[\]]*)\]\]", link_text, text)
        if not count:
            break
    text = re.sub(r"\[(?:https?:)?//[^\s\[\]]*(?:\s([^\[\]]*))?\]", lambda link: link[1] or " ", text)
    text = _MARKS.sub(" ", re.sub(r"</?[a-zA-Z][^<>]*>", " ", text))
    # A number of no character, however long it is, stands for U+FFFD.
    text = html.unescape(re.sub(r"&#[xX]?[0-9a-fA-F]{9,}+;?", "\N{REPLACEMENT CHARACTER}", text))
    return re.sub(r" ([,.;:)])", r"\1", re.sub(r"\s+", " ", text)).strip()


def read_run(
    path: Path | str, year: Year, task: Task, topics: AnyCollection[str] | None = None, repeated: Repeated = "error"
) -> TrackRun:
    """The rankings of a run file; its name is the file's without `.gz`.

    The lines of a ranking need not stand together: rank is their order, or that of the scores or ranks where there are
    some; a warning says where ranks contradict scores. Raises one DataError with every error by file and line: lines
    of another form, cells that are no whole numbers, ids above 2^31 - 1, no lines at all, a page that a ranking lists
    twice (unless `repeated` is "count") and, where `topics` are given, topics that are none of them. UsageError for
    another year or task.
    """
    if year not in LONGEST or task not in (1, 2):
        raise UsageError(f"year {year!r}, task {task!r}: there are the years 2021 and 2022, and tasks 1 and 2")
    path, faults = Path(path), Faults()
    names = ("topic", "page") if task == 1 else ("topic", "ranking", "page")
    rankings: dict[int, dict[int, list[int]]] = {}
    lines: dict[tuple[int, ...], int] = {}
    for line, cells in (_task1 if task == 1 else _task2)(path, faults):
        if wrong := [
            f"the {name} {shown(id)}"
            for name, id in zip(names, cells, strict=True)
            if not re.fullmatch(r"[0-9]{1,10}", id, re.ASCII) or int(id) > LARGEST_ID
        ]:
            what = "is no whole number" if len(wrong) == 1 else "are no whole numbers"
            faults.add(path, line, f"{' and '.join(wrong)} {what} from 0 to {LARGEST_ID}")
            continue
        ids = tuple(map(int, cells))
        topic, ranking, page = ids[0], sum(ids[1:-1]), ids[-1]
        if topics is not None and str(topic) not in topics and topic not in rankings:
            faults.add(path, line, f"topic {topic} is none of the {len(topics)} judged ones")
        if (before := lines.setdefault(ids, line)) != line and repeated == "error":
            message = f"page {page} is in line {before} of the same ranking already"
            faults.add(path, line, f"{message}; the track's own code would count both (--repeated count)")
        rankings.setdefault(topic, {}).setdefault(ranking, []).append(page)
    faults.check(f"run {str(path)!r} (TREC Fair {year}, Task {task})")
    ordered = {str(topic): [of[ranking] for ranking in sorted(of)] for topic, of in sorted(rankings.items())}
    return TrackRun.of(unpacked_name(path), ordered, repeated)


def _task1(path: Path, faults: Faults) -> Iterator[tuple[int, Sequence[str]]]:
    of_topic: dict[str, list[RunLine]] = {}
    for one in run_lines(path, faults):
        of_topic.setdefault(one.topic, []).append(one)
    ordered = {topic: by_score(entries) for topic, entries in of_topic.items()}
    if contradicting := [topic for topic, (_, wrong) in ordered.items() if wrong]:
        warn_once(order_note(path, contradicting))
    return ((one.line, (one.topic, one.document)) for of_one, _ in ordered.values() for one in of_one)


def _task2(path: Path, faults: Faults) -> Iterator[tuple[int, Sequence[str]]]:
    for place, (number, cells) in enumerate(rows_of(path, faults)[1]):
        if len(cells) == 3:
            yield number, cells
            continue
        hint = "; is this a run of Task 1?" if len(cells) in (2, 6) else ""
        faults.add(path, number, f"expected topic, ranking and page, got {len(cells)}: {shown(' '.join(cells))}{hint}")
        if not place:
            return  # every further line would say the same
