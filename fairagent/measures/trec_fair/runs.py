"""Relevance judgments, matched with pages and runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.measures.trec_fair.lookup import IntArray, Lookup, distinct
from fairagent.measures.trec_fair.pages import LARGEST_ID, Pages
from fairagent.measures.trec_fair.run import Run
from fairagent.measures.trec_fair.space import grouped
from fairagent.types import FloatArray


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
        keys = distinct(self._keys(topics, ids))
        self.topic, self.ids = np.divmod(keys, self._beyond + 1)
        self._page_places, self._places = Lookup(pages.ids), Lookup(keys)
        self.row = self._page_places.find(self.ids)
        self.relevant = np.bincount(self.topic, minlength=len(listed))

    def numbers(self, run: Run) -> IntArray:
        """The number here of each topic of a run; DataError, naming them, for topics that are not judged."""
        numbers = {topic: number for number, topic in enumerate(self.topics)}
        if unjudged := [topic for topic in run.topics if topic not in numbers]:
            raise DataError(
                f"run {run.name!r}: {len(unjudged)} of its {len(run.topics)} topics are not in the qrels "
                f"({', '.join(unjudged[:10])}{' ...' if len(unjudged) > 10 else ''}); is it for another set of topics?"
            )
        return np.array([numbers[topic] for topic in run.topics], np.int64)

    def shown_by(self, run: Run, depth: int | None = None) -> ShownPages:
        """What a run shows in its first `depth` ranks (None: in all); raises DataError as `numbers` does."""
        ids, discounts, topics = run.pages, run.discounts(), self.numbers(run)[run.line_topics()]
        if depth is not None and run.lengths.max(initial=0) > depth:
            within = run.ranks() <= depth
            ids, discounts, topics = ids[within], discounts[within], topics[within]
        lines = np.ones(ids.size, np.int64)
        if run.topic.size > len(run.topics):
            pairs, discounts, lines = grouped(topics * (LARGEST_ID + 1) + ids, discounts)
            topics, ids = np.divmod(pairs, LARGEST_ID + 1)
        relevant = self._places.find(self._keys(topics, ids)) >= 0
        return ShownPages(topics, discounts, lines, self._page_places.find(ids), relevant)

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
