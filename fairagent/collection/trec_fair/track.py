"""The TREC Fair Ranking track as a collection, from its official files.

    load_track("trec-fair", year=2022, split="eval", dimensions=["sub-geo", "gender"])

Articles are streamed; judgments and groups are compact arrays. Runs are in the track's own formats, or in those of
other tools; topics and pages are whole numbers, best page first, separated by tabs, commas or spaces:

    Task 1   topic, page             one ranking a topic; or a run of any form of `fairagent.collection.run_lines`
    Task 2   topic, ranking, page    a sequence of rankings a topic
"""

import re
from collections.abc import Collection as AnyCollection
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fairagent.collection.collection import Collection
from fairagent.collection.known import warn_once
from fairagent.collection.records import Faults, json_records, listed, read_text, shown
from fairagent.collection.run_lines import RunLine, by_score, order_note, rows_of, run_lines
from fairagent.collection.targets import TARGET, TrecEstimatedTarget
from fairagent.collection.trec_fair.corpus import Corpus
from fairagent.collection.trec_fair.metadata import population, read_relevant_pages, track_groups
from fairagent.errors import UsageError
from fairagent.measures.trec_fair import LARGEST_ID, LONGEST, IntArray, Repeated, Task, TrackRun, Year
from fairagent.storage.readers import SUFFIXES, unpacked_name
from fairagent.types import Topic

_ID = re.compile(r"[0-9]{1,10}", re.ASCII)
QueryField = Literal["title", "keywords"]
Split = Literal["train", "eval"]
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
    chosen = tuple(dimensions or DEFAULT_DIMENSIONS[year])
    world = population(year, chosen)
    topics = _read_topics(files.topics, query, Path(keywords) if keywords else files.keywords)
    judged = read_relevant_pages(files.topics)
    groups, notes = track_groups(files.metadata, year, chosen)
    name = name or f"trec-fair-{year}-{split}"
    assert files.corpus is not None
    return Collection(
        name=name,
        topics=topics,
        qrels={topic: PageGrades(judged.qrels[topic]) for topic in topics},
        groups=groups,
        population=world,
        notes=(*judged.notes, *notes),
        source=Corpus(name, files.corpus),
        target=TrecEstimatedTarget(),
        judged=TARGET,
    )


def _read_topics(path: Path, query: QueryField, keywords: Path | None) -> dict[str, Topic]:
    """Topic id -> Topic from a file of topics, in its order; `keywords` is a file with more fields of the same topics.

    Raises one DataError with every error by file and line: fields of another form, topics that occur twice, no keywords
    where they are searched.
    """
    faults = Faults()
    more = dict(_fields(keywords, faults)) if keywords else {}
    topics, without = dict[str, Topic](), list[str]()
    for id, of_topic in _fields(path, faults):
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


def _fields(path: Path, faults: Faults) -> Iterator[tuple[str, dict[str, Any]]]:
    """The id of each topic, its title and other fields."""
    lines: dict[str, int] = {}
    for number, record in json_records(path, faults):
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
            faults.add(path, number, str(error))


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
    read = _task1(path, faults) if task == 1 else _task2(path, faults)
    rankings: dict[int, dict[int, list[int]]] = {}
    lines: dict[tuple[int, ...], int] = {}
    for line, cells in read:
        if not (ids := _ids(path, line, cells, faults)):
            continue
        topic, ranking, page = ids[0], sum(ids[1:-1]), ids[-1]
        if topics is not None and str(topic) not in topics and topic not in rankings:
            faults.add(path, line, f"topic {topic} is none of the {len(topics)} judged ones")
        if (before := lines.setdefault(tuple(ids), line)) != line and repeated == "error":
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


def _ids(path: Path, line: int, cells: Sequence[str], faults: Faults) -> list[int]:
    names = ("topic", "page") if len(cells) == 2 else ("topic", "ranking", "page")
    wrong = [
        f"the {name} {shown(id)}"
        for name, id in zip(names, cells, strict=True)
        if not _ID.fullmatch(id) or int(id) > LARGEST_ID
    ]
    if wrong:
        what = "is no whole number" if len(wrong) == 1 else "are no whole numbers"
        faults.add(path, line, f"{' and '.join(wrong)} {what} from 0 to {LARGEST_ID}")
    return [] if wrong else [*map(int, cells)]
