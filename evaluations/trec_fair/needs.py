"""What the walk needs: the organizers' files, whole, and about how much time, disk and memory."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from fairagent import DataError, Document
from fairagent.collection.trec_fair import Corpus, Split, TrackFiles, find_track_files, read_relevant_pages
from fairagent.evaluate.tables import aligned
from fairagent.measures.trec_fair import Year
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import TermMatrix
from fairagent.storage.files import write_whole

FROM = """\
The track's site is https://fair-trec.github.io, its files are at
https://data.boisestate.edu/library/Ekstrand/TRECFairRanking/: the corpus in corpus/, the rest in 2021/ and 2022/;
evaluations/trec_fair/README.md has a table of them."""
UNPACKED = 3e8
"""Bytes that one core unpacks in a second."""
PACKED = 3.0
"""By how much packed text grows when unpacked."""
METADATA = 2.4e-5
"""Seconds to read a line of the metadata, once for the groups and once for each task's official measures."""
SEARCH, SEARCH_EACH = 0.03, 1e-6
"""Seconds for a topic and a system of systems.yaml, in the mean, and more for each article."""
PROCESS, PROCESS_EACH = 880e6, 900.0
"""Bytes of memory of a process that searches, and more for each article; without the mapped files of the index."""
OF_TOPIC = 60_000
"""Bytes that the runs of a topic and system take on the disk."""
SAMPLED = 4_000_000
"""Characters of the first articles, which are indexed to reckon by them."""
GROWTH = 0.6
"""The power of the text with which its vocabulary grows (Heaps' law)."""
OF_TERM, OF_DOCUMENT, OF_ENTRY, BESIDES = 250, 60, 6, 250e6
"""Bytes of memory for a term, a document and each distinct term of a document, and for all else."""
LIGHT_SAMPLE, LIGHT_SECONDS, LIGHT_MEMORY = 50_000, 25.0, 1_600_000_000
"""Of light vectors: documents of which they are learned, and what that takes; of fewer, in proportion."""
LIGHT_EACH, LIGHT_BYTES, LIGHT_HELD = 0.0008, 820, 400
"""With their ANN index and graph: seconds, bytes on the disk, bytes of memory of a document."""


SLICE = "docs.jsonl.gz"
"""A file of evaluations/collections/trec22_biographies.yaml, the public slice of the track, that the track has not."""
PUBLISHED: dict[Year, tuple[int, int, float]] = {2022: (6_480_000, 50, 7.95e9), 2021: (6_280_000, 50, 16e9)}
"""Articles, topics and packed bytes of a year, about: what is reckoned by before the files are there."""
OF_ARTICLE, OF_ARTICLE_BYTES, TERMS_EACH = 5.9e-4, 7_100, 250
"""What the BM25 index of made-up articles took: seconds, bytes on the disk, and an article's distinct terms."""
VOCABULARY = 12_000_000
"""Terms of all articles, about."""


@dataclass(frozen=True)
class Files:
    """The files of a year: those of the topics that are searched, and of the other split, which is learned from.

    Of the slice, and where files are missing, there are none of either.
    """

    folder: Path
    year: Year
    split: Split
    searched: TrackFiles | None = None
    learned: TrackFiles | None = None

    @property
    def is_slice(self) -> bool:
        """Whether the folder has the public slice."""
        return (self.folder / SLICE).is_file()

    @property
    def corpus(self) -> Path | None:
        """The articles' file."""
        return self.searched and self.searched.corpus

    @property
    def other(self) -> Split:
        """The split that is learned from."""
        return "train" if self.split == "eval" else "eval"

    @property
    def all(self) -> list[Path]:
        """All that is read, each once."""
        if self.is_slice:
            return sorted(path for path in self.folder.iterdir() if path.name != "README.md")
        splits = [one for one in (self.searched, self.learned) if one]
        of_splits = [(one.corpus, one.metadata, one.topics, one.keywords) for one in splits]
        return list(dict.fromkeys(path for some in of_splits for path in some if path))


def find_files(folder: Path, year: Year, split: Split) -> Files:
    """The organizers' files; one DataError that names every missing one, and where they come from."""
    other: Split = "train" if split == "eval" else "eval"
    found, missing = [], list[str]()
    for of_split, corpus in ((split, True), (other, False)):
        try:
            found.append(find_track_files(folder, year, of_split, corpus))
        except DataError as error:
            missing += str(error).splitlines()
    if missing:
        raise DataError("\n".join([*dict.fromkeys(missing), FROM]))
    return Files(folder, year, split, *found)


def check_whole(paths: Sequence[Path], noted: Path) -> None:
    """Unpack every gzipped file to its end, unless `noted` says that it was whole; one DataError for all damaged ones.

    A download that broke off would else be found after an hour of indexing.
    """
    known: dict[str, list[int]] = json.loads(noted.read_text(encoding="utf-8")) if noted.is_file() else {}
    damaged = []
    for path in paths:
        state = [path.stat().st_size, path.stat().st_mtime_ns]
        if path.suffix != ".gz" or known.get(str(path)) == state:
            continue
        try:
            with gzip.open(path) as file:
                while file.read(1 << 20):
                    pass
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            damaged.append(f"{path}: {error}: the file is damaged or not all there, fetch it again")
        else:
            known[str(path)] = state
    write_whole(noted, json.dumps(known, indent=1) + "\n")
    if damaged:
        raise DataError("\n".join([*damaged, FROM]))


@dataclass(frozen=True)
class Need:
    """What a step takes, about: seconds, bytes on the disk, bytes of memory."""

    step: str
    seconds: float
    disk: float = 0.0
    memory: float = 0.0


def needs(files: Files, searches: Mapping[str, int], workers: int) -> list[Need]:
    """A line a step; `searches` is step -> systems that search every topic once.

    BM25 is reckoned by the first articles, which are indexed now for it, the rest by what made-up articles took; all of
    it where the articles are not there.
    """
    articles, topics, packed = PUBLISHED[files.year]
    if files.is_slice:
        articles, topics = (lines_in(files.folder / name) for name in (SLICE, "topics.jsonl"))
    elif files.searched and files.corpus:
        corpus = Corpus("sample", files.corpus)
        articles, topics = corpus.count(), len(read_relevant_pages(files.searched.topics).qrels)
    if files.all:
        packed = sum(path.stat().st_size for path in files.all if path.suffix == ".gz")
    bm25, light = of_index(corpus if files.corpus else None, articles)
    memory, each = PROCESS + PROCESS_EACH * articles, topics * (SEARCH + SEARCH_EACH * articles)
    steps = [
        Need("files unpacked once, to see that they are whole", PACKED * packed / UNPACKED),
        Need("groups, from the metadata", METADATA * articles, 60.0 * articles, memory=memory),
        bm25,
        replace(light, memory=light.memory + memory),
    ]
    for step, systems in searches.items():
        # Task 2 is drawn by one process.
        shared, processes = (1, 1) if step.startswith("Task 2") else (workers, workers + 1)
        disk = topics * systems * OF_TOPIC
        steps.append(Need(f"{step}: {systems} systems", systems * each / shared, disk, memory=processes * memory))
    if files.is_slice:
        return steps
    return [*steps, Need("official measures of both tasks", 2 * METADATA * articles, memory=memory)]


def lines_in(path: Path) -> int:
    """How many lines a file has."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return sum(1 for _ in file)


def of_index(corpus: Corpus | None, articles: int) -> tuple[Need, Need]:
    """The BM25 index by the first articles, which are indexed for it; the rest by what made-up articles took."""
    part = min(1.0, articles / LIGHT_SAMPLE)
    seconds = part * LIGHT_SECONDS + LIGHT_EACH * articles
    memory = max(part * LIGHT_MEMORY, LIGHT_HELD * articles)
    light = Need("light vectors, corpus graph", seconds, LIGHT_BYTES * articles, memory)
    if corpus is None:
        terms = VOCABULARY * (articles / PUBLISHED[2022][0]) ** GROWTH
        return of_bm25(
            OF_ARTICLE * articles, OF_ARTICLE_BYTES * articles, articles, terms, TERMS_EACH * articles
        ), light
    with tempfile.TemporaryDirectory() as folder:
        index, began = Path(folder) / "index", monotonic()
        share = articles / build_index(Sample(corpus), index).documents
        seconds, matrix = share * (monotonic() - began), TermMatrix(index)
        size = share * sum(path.stat().st_size for path in index.rglob("*") if path.is_file())
    terms, entries = len(matrix.columns) * share**GROWTH, len(matrix.rows.numbers) * share
    return of_bm25(seconds, size, articles, terms, entries), light


def of_bm25(seconds: float, size: float, articles: int, terms: float, entries: float) -> Need:
    """The index's need; `entries` are the distinct terms of all articles."""
    return Need("BM25 index", seconds, size, BESIDES + articles * OF_DOCUMENT + terms * OF_TERM + entries * OF_ENTRY)


@dataclass(frozen=True)
class Sample:
    """Of a corpus the first `SAMPLED` characters, to the end of their last article."""

    corpus: Corpus
    name: str = "sample"

    def fingerprint(self) -> str:
        """Its name: the index of it is thrown away."""
        return self.name

    def documents(self) -> Iterator[Document]:
        """The articles."""
        size = 0
        for document in self.corpus:
            yield document
            size += len(document.title) + len(document.text)
            if size >= SAMPLED:
                return


def table_of(steps: Sequence[Need], disk: Path) -> Iterator[str]:
    """The steps as lines, their sum, and whether the disk has room."""
    rows = [["step", "time", "disk", "memory"]]
    for one in steps:
        room = [size(amount) for amount in (one.disk, one.memory)]
        rows.append([one.step, in_words(one.seconds), *room])
    kept = sum(one.disk for one in steps)
    total = [
        in_words(sum(one.seconds for one in steps)),
        size(kept),
        size(max(one.memory for one in steps)),
    ]
    yield from aligned([*rows, ["all", *total]])
    place = next(parent for parent in (disk, *disk.parents) if parent.is_dir())
    free = shutil.disk_usage(place).free
    yield f"{disk}: {size(free)} are free{'' if free > kept else ', WHICH IS TOO LITTLE'}"


def size(bytes: float) -> str:
    """Bytes in words; "" for none."""
    return f"{bytes / 1e9:,.1f} GB" if bytes >= 1e9 else f"{bytes / 1e6:,.0f} MB" if bytes else ""


def in_words(seconds: float) -> str:
    """A time to be waited, to two digits.

    >>> in_words(0.04), in_words(75), in_words(5400), in_words(180_000)
    ('1 s', '75 s', '90 min', '50 h')
    """
    for unit, length, most in (("s", 1, 120), ("min", 60, 7200)):
        if seconds <= most:
            return f"{max(1, round(seconds / length))} {unit}"
    return f"{round(seconds / 3600):,} h"
