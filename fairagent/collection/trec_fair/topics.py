"""The track's topics: a title, the relevant pages, and in some files keywords, scope and homepage."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fairagent.collection.faults import Faults, listed, shown
from fairagent.collection.records import Record, json_records, read_text
from fairagent.errors import DataError
from fairagent.measures.trec_fair import IntArray
from fairagent.types import Topic

QueryField = Literal["title", "keywords"]
EXTRA = ("keywords", "scope", "homepage", "url")
"""Fields that stay with a topic beside its title."""


class RelevantPages(Mapping[str, int]):
    """The relevant pages of one topic as document id -> grade 1, in 8 bytes a page: topics have 40,000 of them.

    >>> relevant = RelevantPages(np.array([12, 7, 12]))
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


def read_track_topics(path: Path, query: QueryField, keywords: Path | None = None) -> dict[str, Topic]:
    """Topic id -> Topic from a file of topics, in its order; `keywords` is a file with more fields of the same topics.

    The title is searched, or with `query="keywords"` the keywords. Raises one DataError with every fault by file and
    line: fields of another form, topics that occur twice, no keywords where they are searched.
    """
    faults = Faults()
    more = dict(_fields(keywords, faults)) if keywords else {}
    fields: dict[str, dict[str, Any]] = {}
    for id, found in _fields(path, faults):
        fields[id] = {**more.get(id, {}), **found}
    if not fields and not faults:
        faults.add(path, None, "there are no topics")
    topics = topics_of(fields, query, path, faults)
    faults.check("TREC Fair topics")
    return topics


def topics_of(
    fields: Mapping[str, Mapping[str, Any]], query: QueryField, path: Path, faults: Faults
) -> dict[str, Topic]:
    """The topics with these fields; what is wrong is added to `faults`."""
    without = [id for id, found in fields.items() if not found.get(query)]
    if without:
        where = "; name a file that has them: `keywords: FILE`" if query == "keywords" else ""
        faults.add(path, None, f"{len(without)} of {len(fields)} topics have no {query} ({listed(without)}){where}")
        return {}
    topics = {}
    for id, found in fields.items():
        text = found["title"] if query == "title" else " ".join(found["keywords"])
        topics[id] = Topic(id, text, {name: value for name, value in found.items() if query != name})
    return topics


def checked_fields(record: Record) -> dict[str, Any]:
    """Title and other fields of a topic; ValueError where one has another form."""
    fields: dict[str, Any] = {name: record[name] for name in EXTRA if record.get(name) is not None}
    listed_words = fields.get("keywords", [])
    if not isinstance(listed_words, list | tuple) or not all(isinstance(word, str) for word in listed_words):
        raise ValueError(f"field 'keywords' is {shown(listed_words)}, expected a list of words")
    return {"title": read_text(record, "title").strip(), **fields}


def _fields(path: Path, faults: Faults) -> Iterator[tuple[str, dict[str, Any]]]:
    lines: dict[str, int] = {}
    for number, record in json_records(path, faults):
        try:
            # The track's files say `id`, its keyword lists `topic_id`.
            id = read_text(record, "topic_id" if "topic_id" in record and "id" not in record else "id")
            if id in lines:
                raise ValueError(f"topic {id} is that of line {lines[id]} already")
            lines[id] = number
            yield id, checked_fields(record)
        except ValueError as error:
            faults.add(path, number, str(error))


def pages_of(topic: str, documents: Iterable[str]) -> RelevantPages:
    """Relevant pages from document ids as text; DataError where one is no number."""
    try:
        return RelevantPages(np.array([int(document) for document in documents], np.int64))
    except ValueError as error:
        raise DataError(f"topic {topic}: a relevant page is no whole number ({error})") from None
