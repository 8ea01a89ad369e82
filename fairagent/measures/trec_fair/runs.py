"""Relevance judgments, matched with pages and runs.

`TrackRun`: the rankings that a system submitted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.measures.discounts import LOG2_MAX2
from fairagent.measures.trec_fair.pages import LARGEST_ID, IntArray, Pages, find
from fairagent.measures.trec_fair.targets import grouped
from fairagent.types import FloatArray

Repeated = Literal["error", "count"]
"""What becomes of a page that a ranking lists twice: a fault, or each of its lines counts, as in the track's code."""


@dataclass(frozen=True, slots=True, eq=False)
class TrackRun:
    """The rankings of a run: one a topic in Task 1, a sequence of them in Task 2.

    `topics` are the distinct topic ids. Ranking r belongs to topic number `topic[r]` and lists
    `pages[bounds[r] : bounds[r + 1]]`, best first; a page that it lists twice counts twice. Build it by `TrackRun.of`
    or by `fairagent.collection.trec_fair.read_run`, which refuse such pages unless `repeated` says that they count.
    """

    name: str
    topics: tuple[str, ...]
    topic: IntArray
    bounds: IntArray
    pages: IntArray

    @classmethod
    def of(cls, name: str, rankings: Mapping[str, Sequence[Sequence[int]]], repeated: Repeated = "error") -> TrackRun:
        """The run with these rankings: topic -> rankings (in Task 1 a single one) -> page ids, best first.

        Raises DataError where an id is no number from 0 to 2^31 - 1 and, unless `repeated` is "count", where a ranking
        lists a page twice.

        >>> run = TrackRun.of("mine", {"12": [[7, 9]], "3": [[9, 7, 8]]})
        >>> run.ranks().tolist()
        [1, 2, 1, 2, 3]
        """
        flat = [ranking for of_topic in rankings.values() for ranking in of_topic]
        lengths = [len(ranking) for ranking in flat]
        pages = np.array([page for ranking in flat for page in ranking])
        if pages.size and (pages.dtype.kind not in "iu" or not 0 <= pages.min() <= pages.max() <= LARGEST_ID):
            raise DataError(f"run {name!r}: page ids are whole numbers from 0 to {LARGEST_ID}")
        for topic, of_topic in rankings.items() if repeated == "error" else ():
            for ranking in of_topic:
                if len(set(ranking)) < len(ranking):
                    page = next(page for place, page in enumerate(ranking) if page in ranking[:place])
                    raise DataError(f"run {name!r}, topic {topic}: page {page} is listed twice in a ranking")
        topic_of = np.repeat(np.arange(len(rankings)), [len(of_topic) for of_topic in rankings.values()])
        bounds = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        return cls(name, tuple(rankings), topic_of, bounds, pages.astype(np.int64))

    @property
    def lengths(self) -> IntArray:
        """How many pages each ranking lists, (r,)."""
        return np.diff(self.bounds)

    def ranks(self) -> IntArray:
        """The rank of every line, from 1 in each ranking, (n,)."""
        return np.arange(1, self.pages.size + 1) - np.repeat(self.bounds[:-1], self.lengths)

    def discounts(self) -> FloatArray:
        """The attention of every line, 1 / log2(max(rank, 2)), (n,)."""
        return LOG2_MAX2(int(self.lengths.max(initial=0)))[self.ranks() - 1]

    def line_topics(self) -> IntArray:
        """The number of every line's topic, (n,)."""
        return np.repeat(self.topic, self.lengths)


class Judgments:
    """The relevant pages of t topics, each once, topic by topic in the order of page ids.

    Judgment j says that page `ids[j]`, which has `row[j]` in `pages` (-1: it has no metadata), is relevant to topic
    number `topic[j]`. `relevant` (t,) counts a topic's relevant pages, known or not.
    """

    def __init__(self, pages: Pages, qrels: Mapping[str, Collection[int]]) -> None:
        """Take topic -> ids of relevant pages, repeated ones counting once; DataError for what is no id."""
        if not qrels:
            raise DataError("the qrels have no topics")
        self.pages, self.topics = pages, tuple(qrels)
        listed = [_ids(topic, pages) for topic, pages in qrels.items()]
        topics = np.repeat(np.arange(len(listed)), [ids.size for ids in listed])
        ids = np.concatenate(listed)
        self._beyond = int(ids.max(initial=0)) + 1  # stands for all ids that are relevant to no topic
        self._known = np.unique(self._keys(topics, ids))
        self.topic, self.ids = np.divmod(self._known, self._beyond + 1)
        self.row = find(pages.ids, self.ids)
        self.relevant = np.bincount(self.topic, minlength=len(listed))

    def numbers(self, run: TrackRun) -> IntArray:
        """The number here of each topic of a run; DataError, naming them, for topics that are not judged."""
        numbers = {topic: number for number, topic in enumerate(self.topics)}
        if unjudged := [topic for topic in run.topics if topic not in numbers]:
            raise DataError(
                f"run {run.name!r}: {len(unjudged)} of its {len(run.topics)} topics are not in the qrels "
                f"({', '.join(unjudged[:10])}{' ...' if len(unjudged) > 10 else ''}); is it for another set of topics?"
            )
        return np.array([numbers[topic] for topic in run.topics], np.int64)

    def shown_by(self, run: TrackRun, depth: int | None = None) -> ShownPages:
        """What a run shows in its first `depth` ranks (None: in all); raises DataError as `numbers` does."""
        ids, discounts, topics = run.pages, run.discounts(), self.numbers(run)[run.line_topics()]
        if depth is not None and run.lengths.max(initial=0) > depth:
            within = run.ranks() <= depth
            ids, discounts, topics = ids[within], discounts[within], topics[within]
        lines = np.ones(ids.size, np.int64)
        if run.topic.size > len(run.topics):
            pairs, discounts, lines = grouped(topics * (LARGEST_ID + 1) + ids, discounts)
            topics, ids = np.divmod(pairs, LARGEST_ID + 1)
        relevant = find(self._known, self._keys(topics, ids)) >= 0
        return ShownPages(topics, discounts, lines, find(self.pages.ids, ids), relevant)

    def _keys(self, topics: IntArray, ids: IntArray) -> IntArray:
        """A number for each pair, rising with the topic and then the id."""
        return topics * (self._beyond + 1) + np.minimum(ids, self._beyond)


@dataclass(frozen=True, slots=True, eq=False)
class ShownPages:
    """The pages that a run shows for its topics, each pair of page and topic once; all arrays are (m,).

    `attention` is the sum of the discounts 1 / log2(max(rank, 2)) of the `lines` that list the page for the topic
    with this number; `row` is the page's place in `pages` (-1: it has no metadata).
    """

    topic: IntArray
    attention: FloatArray
    lines: IntArray
    row: IntArray
    relevant: NDArray[np.bool_]


def _ids(topic: str, pages: Collection[int]) -> IntArray:
    ids = np.asarray(pages if isinstance(pages, np.ndarray) else list(pages))
    if ids.size and (ids.dtype.kind not in "iu" or not 0 <= ids.min() <= ids.max() <= LARGEST_ID):
        raise DataError(f"qrels, topic {topic}: page ids are whole numbers from 0 to {LARGEST_ID}")
    return ids.astype(np.int64)
