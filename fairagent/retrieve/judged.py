"""Documents from the judgments in the place of a search engine: an oracle, and its adversary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairagent.retrieve.base import Retriever
from fairagent.retrieve.bm25.part import with_texts
from fairagent.retrieve.plackett_luce import topic_rng
from fairagent.settings.parts import Part
from fairagent.site import Site
from fairagent.types import FloatArray, Query, Ranking

Reading = Literal["drawn", "sorted"]


@dataclass(frozen=True, slots=True, eq=False)
class QrelsRetriever:
    """A `Retriever` that knows the judgments, topic -> document -> grade, and finds nothing for other queries.

    The relevant documents (`worst`: the others) in a random order, which depends on `seed` and the topic alone; or with
    the reading "sorted" all of them, the best (`worst`: the last) grade first.
    """

    grades: Mapping[str, Mapping[str, int]]
    reading: Reading
    worst: bool
    seed: int

    def search(self, query: Query, n: int) -> Ranking:
        """The first `n` documents; scores fall by 1 from rank to rank."""
        grades = self.grades.get(query.id, {})
        if self.reading == "sorted":
            ids = by_grade(grades, worst_first=self.worst)
        else:
            kept = [id for id, grade in grades.items() if (grade <= 0) == self.worst]
            ids = drawn(kept, topic_rng(self.seed, query.id))
        return Ranking(tuple(ids[:n]), np.arange(len(ids), 0, -1, dtype=np.float64)[:n])

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The documents' grades, 0 where there is none; negative for the adversary."""
        grades = self.grades.get(query.id, {})
        return np.array([float(grades.get(id, 0)) * (-1 if self.worst else 1) for id in ids])


def drawn(ids: Sequence[str], rng: np.random.Generator) -> list[str]:
    """The ids in a random order: its first k are k of them at random, and all of them where there are fewer.

    >>> sorted(drawn(["a", "b", "c"], np.random.default_rng(0)))
    ['a', 'b', 'c']
    """
    return [ids[place] for place in rng.permutation(len(ids))]


def by_grade(grades: Mapping[str, int], worst_first: bool = False) -> list[str]:
    """All judged documents, the highest grade first or last; those of one grade in the order of the judgments.

    >>> by_grade({"a": 0, "b": 3, "c": 2}), by_grade({"a": 0, "b": 3, "c": 2}, worst_first=True)
    (['b', 'c', 'a'], ['a', 'c', 'b'])
    """
    return sorted(grades, key=lambda id: grades[id] if worst_first else -grades[id])


class OracleConfig(Part):
    """The relevant documents in a random order, or all judged ones, the best first."""

    kind: Literal["oracle"] = "oracle"
    reading: Reading = "drawn"
    """drawn: the relevant documents in a random order. sorted: all judged ones, the highest grade first."""

    def build(self, site: Site) -> Retriever:
        """The engine, with the texts of the index where there is one."""
        return with_texts(site, QrelsRetriever(site.collection.qrels, self.reading, False, site.seed))


class AdversarialConfig(Part):
    """The judged documents that are not relevant in a random order, or all, the worst first."""

    kind: Literal["adversarial"] = "adversarial"
    reading: Reading = "drawn"
    """drawn: the judged documents that are not relevant, in a random order. sorted: all judged ones, the lowest grade
    first."""

    def build(self, site: Site) -> Retriever:
        """The engine, with the texts of the index where there is one."""
        return with_texts(site, QrelsRetriever(site.collection.qrels, self.reading, True, site.seed))
