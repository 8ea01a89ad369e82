"""The TREC Fair Ranking track as a collection, from its official files.

    load_track("trec-fair", year=2022, split="eval", dimensions=["sub-geo", "gender"])

Articles are streamed; judgments and groups are compact arrays.
"""

from collections.abc import Sequence
from pathlib import Path

from fairagent.collection.collection import Collection
from fairagent.collection.targets import TARGET, TrecEstimatedTarget
from fairagent.collection.trec_fair.corpus import Corpus
from fairagent.collection.trec_fair.metadata import population, read_relevant_pages, track_groups
from fairagent.collection.trec_fair.topics import PageGrades, QueryField, Split, find_track_files, read_track_topics
from fairagent.measures.trec_fair import Year

DEFAULT_DIMENSIONS: dict[Year, tuple[str, ...]] = {2021: ("geo", "gender"), 2022: ("sub-geo", "gender")}
"""The two that 2021 measured, and 2022 again as its subset "2021"."""


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
