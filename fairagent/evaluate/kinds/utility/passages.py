"""The texts of judged passages and of those that run files name: one pass over a collection's documents."""

from __future__ import annotations

from collections.abc import Collection as Ids
from collections.abc import Iterable, Mapping

from fairagent.collection import Collection
from fairagent.collection.faults import listed
from fairagent.errors import DataError
from fairagent.retrieve.run_file import RunFile
from fairagent.types import Document, Topic


def grades_of(collection: Collection, topic: str, meaning: Mapping[int, int]) -> dict[str, int]:
    """The topic's judgments, document -> grade, with the grades that `meaning` names replaced."""
    return {id: meaning.get(grade, grade) for id, grade in collection.qrels.get(topic, {}).items()}


def read_passages(collection: Collection, ids: Ids[str]) -> dict[str, Document]:
    """Those of the documents that have one of the `ids`; they alone are kept in memory.

    Raises DataError for faults of the files.
    """
    return {document.id: document for document in collection.source if document.id in ids}


def judged_ids(collection: Collection, topics: Iterable[str]) -> set[str]:
    """All documents that were judged for any of `topics`."""
    return {id for topic in topics for id in collection.qrels.get(topic, {})}


def ranked_ids(run: RunFile, topics: Iterable[Topic], n: int) -> set[str]:
    """The first `n` documents of each topic in a run file."""
    return {id for topic in topics if topic.id in run.rankings for id in run.rankings[topic.id].top(n).ids}


def check_texts(collection: Collection, wanted: Ids[str], there: Mapping[str, Document], what: str) -> None:
    """Raise DataError where the collection lacks documents that are wanted."""
    if missing := sorted(id for id in wanted if id not in there):
        raise DataError(
            f"{what}: {len(missing):,} of {len(wanted):,} passages are not among the documents of "
            f"{collection.name!r}: {listed(missing)}; give it the documents that they belong to"
        )
