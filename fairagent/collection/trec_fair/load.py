"""The TREC Fair Ranking track as a collection: from its official files, or through ir-datasets.

    load_track("trec-fair", year=2022, split="eval", dimensions=["sub-geo", "gender"])
    load_track_from_ir_datasets(2022, "train")

Articles are streamed; judgments and groups are compact arrays.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.collection.collection import Collection
from fairagent.collection.config import TrackSection
from fairagent.collection.records import Faults, Record
from fairagent.collection.table import cached_table
from fairagent.collection.targets import TARGET, TrecEstimatedTarget
from fairagent.collection.trec_fair.corpus import ARTICLES, Articles, Corpus, PageSet, page_id
from fairagent.collection.trec_fair.metadata import (
    groups_of,
    population,
    read_relevant_pages,
    rules,
    track_groups,
)
from fairagent.collection.trec_fair.topics import (
    PageGrades,
    QueryField,
    Split,
    checked_fields,
    find_track_files,
    read_track_topics,
    topics_of,
)
from fairagent.errors import DataError, UsageError
from fairagent.measures.trec_fair import Rule, Year
from fairagent.storage.packages import installed
from fairagent.types import Document

DEFAULT_DIMENSIONS: dict[Year, tuple[str, ...]] = {2021: ("geo", "gender"), 2022: ("sub-geo", "gender")}
"""The two that 2021 measured, and 2022 again as its subset "2021"."""


def load_track_section(name: str, section: TrackSection, root: Path) -> Collection:
    """The collection that the section `track` of a settings file describes; its paths are relative to `root`."""
    about = section.year, section.split, section.dimensions, section.query
    if section.folder is None:
        return load_track_from_ir_datasets(*about, name)
    keywords = root / section.keywords if section.keywords else None
    return load_track(root / section.folder, *about, keywords, name)


def load_track(
    folder: Path | str,
    year: Year = 2022,
    split: Split = "eval",
    dimensions: Sequence[str] | None = None,
    query: QueryField = "title",
    keywords: Path | str | None = None,
    name: str = "",
) -> Collection:
    """The collection of a year and split from the official files in `folder` (fairagent.collection.trec_fair.topics).

    `dimensions` are names of the track's (default: geography of the subject, and gender); memberships are its page
    alignments, not normalized. A topic's query is its title, or its `keywords` joined, which come from the file of that
    name where the topics have none. The groups are cached beside the metadata, so that only the first load reads it.
    Raises DataError with file and line, UsageError for another year, split or dimension.
    """
    files = find_track_files(folder, year, split)
    chosen = tuple(dimensions or DEFAULT_DIMENSIONS[year])
    world = population(year, chosen)
    topics = read_track_topics(files.topics, query, Path(keywords) if keywords else files.keywords)
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


def load_track_from_ir_datasets(
    year: Year = 2022,
    split: Split = "train",
    dimensions: Sequence[str] | None = None,
    query: QueryField = "title",
    name: str = "",
) -> Collection:
    """The same through the package ir-datasets, which fetches the files itself (`trec-fair/2022/train` and so on).

    It has the metadata of 2022 and of 2021's geography only, keywords of 2021 only, and of 2022's topics only `train`.
    Raises BackendUnavailable without the package, UsageError for what it does not have.
    """
    ir_datasets = installed("ir-datasets", "a track without the folder of its official files")
    chosen = tuple(dimensions or DEFAULT_DIMENSIONS[year])
    read_by = rules(year, chosen)
    id = f"trec-fair/{year}/{split}"
    try:
        dataset = ir_datasets.load(id)
    except KeyError:
        raise UsageError(f"ir-datasets has no {id!r}; name the folder of the official files instead") from None
    absent = [rule.dimension.name for rule in read_by if rule.field not in dataset.docs_cls()._fields]
    if absent:
        raise UsageError(f"{id} of ir-datasets lacks the dimension {absent[0]!r}; name the official files' folder")
    faults, place = Faults(), Path(f"ir-datasets:{id}")
    fields = {
        topic.query_id: checked_fields({"title": topic.text, **topic._asdict()}) for topic in dataset.queries_iter()
    }
    topics = topics_of(fields, query, place, faults)
    faults.check(f"the topics of {id}")
    relevant: dict[str, list[str]] = {topic: [] for topic in topics}
    for judgment in dataset.qrels_iter():
        if judgment.relevance > 0 and judgment.query_id in relevant:
            relevant[judgment.query_id].append(judgment.doc_id)
    try:
        qrels = {topic: PageGrades(np.array(documents, np.int64)) for topic, documents in relevant.items()}
    except ValueError as error:
        raise DataError(f"{id}: a relevant page is no whole number ({error})") from None
    folder = Path(ir_datasets.util.home_path()) / "trec-fair" / "fairagent-groups" / f"{year}-{'-'.join(chosen)}"
    groups, notes = cached_table(
        folder,
        lambda: {"id": f"trec-fair/{year}", "dimensions": list(chosen)},
        lambda: groups_of(_records(dataset, read_by), place, read_by, "id", Faults()),
    )
    return Collection(
        name=name or id.replace("/", "-"),
        topics=topics,
        qrels=qrels,
        groups=groups,
        population=population(year, chosen),
        notes=notes,
        source=IrDatasetsCorpus(id, dataset),
        target=TrecEstimatedTarget(),
        judged=TARGET,
    )


class IrDatasetsCorpus(Articles):
    """The articles of a dataset of ir-datasets."""

    def __init__(self, id: str, dataset: Any) -> None:
        super().__init__(id, id)
        self._dataset = dataset

    def __iter__(self) -> Iterator[Document]:
        pages, repeated = PageSet(), list[str]()
        for article in self._dataset.docs_iter():
            if pages.add(int(article.doc_id)):
                yield Document(article.doc_id, article.text, article.title, {"url": article.url})
            else:
                repeated.append(article.doc_id)
        self._repeated = repeated

    def count(self) -> int:
        """About how many articles there are."""
        return self._dataset.docs_count() or ARTICLES

    def fingerprint(self) -> str:
        """A hash of the name: ir-datasets checks that what it fetched is what the name stands for."""
        return hashlib.sha256(f"ir-datasets {self.name.rpartition('/')[0]}".encode()).hexdigest()


def _records(dataset: Any, rules: Sequence[Rule]) -> Iterator[tuple[int, Record]]:
    """The articles' metadata, counted from 1; an article without any is no page of the track's metadata."""
    fields = [rule.field for rule in rules]
    for number, article in enumerate(dataset.docs_iter(), start=1):
        values = {field: value for field in fields if (value := getattr(article, field)) is not None}
        if values:
            yield number, {"id": page_id(int(article.doc_id), "field 'doc_id'"), **values}
