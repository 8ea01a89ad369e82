"""`Run`: the rankings that a system submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairagent.errors import DataError
from fairagent.measures.discounts import LOG2_MAX2
from fairagent.measures.trec_fair.lookup import IntArray
from fairagent.measures.trec_fair.pages import LARGEST_ID
from fairagent.types import FloatArray

Repeated = Literal["error", "count"]
"""What becomes of a page that a ranking lists twice: a fault, or each of its lines counts, as in the track's code."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The rankings of a run: one a topic in Task 1, a sequence of them in Task 2.

    `topics` are the distinct topic ids. Ranking r belongs to topic number `topic[r]` and lists
    `pages[bounds[r] : bounds[r + 1]]`, best first; a page that it lists twice counts twice. Build it by `Run.of` or by
    `fairagent.collection.trec_fair.read_run`, which refuse such pages unless they are asked to count them.
    """

    name: str
    topics: tuple[str, ...]
    topic: IntArray
    bounds: IntArray
    pages: IntArray

    @classmethod
    def of(cls, name: str, rankings: Mapping[str, Sequence[Sequence[int]]], repeated: Repeated = "error") -> Run:
        """The run with these rankings: topic -> rankings (in Task 1 a single one) -> page ids, best first.

        Raises DataError where an id is no number from 0 to 2^31 - 1 and, unless `repeated` is "count", where a ranking
        lists a page twice.

        >>> run = Run.of("mine", {"12": [[7, 9]], "3": [[9, 7, 8]]})
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
