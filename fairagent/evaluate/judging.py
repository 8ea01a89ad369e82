"""Rankings judged on a collection: which topics count, one topic's values, and the keys of kinds that judge so.

The target is `trec`: half the relevant documents' shares, half the world's. Documents without a label stay out of
both sides where the measure says so (`AWRF(unknown=ignore)`).
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import Field

from fairagent.collection import Collection, make_target
from fairagent.errors import DataError, UsageError
from fairagent.evaluate.engine.kind import Checking, Chosen, ExperimentKind, choose_topics
from fairagent.evaluate.engine.outcome import HitRecord
from fairagent.evaluate.engine.plan import Plan
from fairagent.exposure import ExposureMeter
from fairagent.measures import AWRF, DIVERGENCES, LOG2_MAX2, NDCG, JudgedRanking, Measure, Product, parse_measure
from fairagent.types import Exposure, FloatArray, Hit, Ranking, Topic

TARGET = "trec"
"""The kind of target (fairagent.collection.targets) that rankings are judged with."""


@dataclass(frozen=True, slots=True)
class JudgedTopics:
    """The topic ids that count, and those that do not: no relevant document, or too few of them with a label."""

    counted: tuple[str, ...]
    without_relevant: tuple[str, ...]
    without_label: tuple[str, ...] = ()


def standard_measures(n: int) -> tuple[NDCG, AWRF, Product]:
    """nDCG, AWRF over the known groups, and their product, all at cut-off `n`.

    >>> [str(measure) for measure in standard_measures(20)][:2]
    ['nDCG(discount=log2-max2)@20', 'AWRF(discount=log2-max2, log=e, unknown=ignore)@20']
    """
    relevance, fairness = NDCG(n), AWRF(n, unknown="ignore")
    return relevance, fairness, Product(relevance, fairness)


def judged_topics(collection: Collection, dimension: str | None, per_group: int = 0) -> JudgedTopics:
    """Which topics count for `dimension`; None asks for relevance alone. In the collection's order.

    A topic that lists its dimensions counts for those alone. `per_group` asks for that many relevant documents of
    every group; without it, one relevant document with a label is enough.
    Raises UsageError for a dimension that there is not.
    """
    counted: list[str] = []
    without_relevant: list[str] = []
    without_label: list[str] = []
    for topic in collection.topics.values():
        relevant = _relevant(collection, topic.id)
        if not relevant:
            without_relevant.append(topic.id)
        elif dimension and not _has_groups(collection, topic, dimension, list(relevant), per_group):
            without_label.append(topic.id)
        else:
            counted.append(topic.id)
    return JudgedTopics(tuple(counted), tuple(without_relevant), tuple(without_label))


def evaluate_topic(
    collection: Collection,
    topic: str,
    dimension: str | None,
    ranking: Ranking,
    n: int,
    measures: Sequence[Measure],
) -> tuple[float, ...]:
    """The values of `measures`, all of cut-off `n`, for one topic's ranking; without a dimension, of relevance alone.

    A ranking whose first `n` documents have no label at all (an empty one too) gives the groups nothing: its exposure
    counts as that of a group without a target, which is AWRF's lowest value, 1 - ln 2 (or 0 with log 2).
    Raises DataError for a topic that does not count (`judged_topics`) and whatever the measures raise.
    """
    relevant = _relevant(collection, topic)
    top = ranking.top(n)
    found = np.array([id in relevant for id in top.ids] or [False])
    if dimension is None:
        return _values(measures, JudgedRanking(found, len(relevant)))
    target = make_target(TARGET, dimension, collection, topic).shares
    rows = collection.groups.memberships(dimension, top.ids, topic) if len(top) else np.zeros((1, 1 + len(target)))
    judged = JudgedRanking(found, len(relevant), _with_nobody(rows), np.concatenate(([0.0], target, [0.0])))
    return _values(measures, judged)


def mean_over_topics(
    collection: Collection,
    dimension: str | None,
    rankings: Mapping[str, Ranking],
    n: int,
    measures: Sequence[Measure],
) -> tuple[float, ...]:
    """The mean of each measure over all topics that count; `rankings` has one for each of them (it may be empty).

    Raises DataError where no topic counts, or one that does has no ranking.
    """
    topics = judged_topics(collection, dimension).counted
    if not topics:
        of = f" with a label of {dimension!r}" if dimension else ""
        raise DataError(f"no topic of {collection.name!r} has a relevant document{of}: there is nothing to judge by")
    if missing := [topic for topic in topics if topic not in rankings]:
        raise DataError(f"{len(missing)} judged topics have no ranking, {missing[0]!r} first")
    values = [evaluate_topic(collection, topic, dimension, rankings[topic], n, measures) for topic in topics]
    return tuple(np.mean(values, axis=0).tolist())


def _has_groups(collection: Collection, topic: Topic, dimension: str, relevant: Sequence[str], per_group: int) -> bool:
    if topic.dimensions is not None and dimension not in topic.dimensions:
        return False
    of_group = collection.groups.memberships(dimension, relevant, topic.id)[:, 1:].sum(axis=0)
    return bool(of_group.any() and of_group.min() >= per_group)


def _relevant(collection: Collection, topic: str) -> dict[str, int]:
    return {id: grade for id, grade in collection.qrels.get(topic, {}).items() if grade > 0}


def _values(measures: Sequence[Measure], judged: JudgedRanking) -> tuple[float, ...]:
    return tuple(measure(judged) for measure in measures)


def _with_nobody(rows: FloatArray) -> FloatArray:
    """One more column, the share of a group without a target: 0, or all where no row has a label."""
    nobody = float(not rows[:, 1:].any())
    return np.hstack([rows * (1 - nobody), np.full((len(rows), 1), nobody)])


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Judges rankings as an experiment says; `counted` are the topics that count for each dimension."""

    collection: Collection
    measures: Mapping[str, Measure]
    counted: Mapping[str, frozenset[str]]
    n: int

    @classmethod
    def of(cls, plan: Plan, collection: Collection, per_group: int, measures: Sequence[str] = ()) -> Judge:
        """The judge of an experiment, by these `measures`."""
        counted = {
            dimension: frozenset(judged_topics(collection, dimension, per_group).counted)
            for dimension in plan.dimensions
        }
        return cls(collection, {text: parse_measure(text) for text in measures}, counted, plan.n)

    def values(self, topic: str, ranking: Ranking) -> dict[str, dict[str, float]]:
        """Dimension ("" for relevance alone) -> measure -> value, for what the topic counts for."""
        of_relevance = {text: m for text, m in self.measures.items() if not m.of_groups}
        of_group = {text: m for text, m in self.measures.items() if m.of_groups}
        found = {"": self._values(topic, None, ranking, of_relevance)} if of_relevance else {}
        for dimension in self._dimensions(topic) if of_group else ():
            found[dimension] = self._values(topic, dimension, ranking, of_group)
        return found

    def exposures(self, topic: str, ranking: Ranking) -> tuple[Exposure, ...]:
        """The exposure in the first `n` documents beside the target of the judgment, for what the topic counts for."""
        targets = tuple(make_target(TARGET, name, self.collection, topic) for name in self._dimensions(topic))
        fairness = (part for measure in self.measures.values() for part in _factors(measure) if part.of_groups)
        discount = getattr(next(fairness, None), "discount", LOG2_MAX2)
        return ExposureMeter(self.collection, topic, targets, self.n, discount, DIVERGENCES["kl"]).measure(ranking)

    def hits(self, topic: str, found: tuple[Hit, ...]) -> tuple[HitRecord, ...]:
        """The documents with their relevance and their groups in every dimension of the experiment."""
        grades, ids = self.collection.qrels[topic], [hit.id for hit in found]
        groups = {dimension: self._groups(topic, dimension, ids) for dimension in self.counted}
        return tuple(
            HitRecord(hit.id, hit.title, hit.score, grades.get(hit.id, 0) > 0, {d: groups[d][i] for d in groups})
            for i, hit in enumerate(found)
        )

    def _values(
        self, topic: str, dimension: str | None, ranking: Ranking, measures: Mapping[str, Measure]
    ) -> dict[str, float]:
        found = {}
        for text, measure in measures.items():
            (found[text],) = evaluate_topic(self.collection, topic, dimension, ranking, measure.n, [measure])
        return found

    def _dimensions(self, topic: str) -> tuple[str, ...]:
        return tuple(dimension for dimension, topics in self.counted.items() if topic in topics)

    def _groups(self, topic: str, dimension: str, ids: list[str]) -> list[dict[str, float]]:
        labels = self.collection.groups.labels(dimension)
        rows = self.collection.groups.memberships(dimension, ids, topic)[:, 1:].tolist() if ids else []
        return [{label: share for label, share in zip(labels, row, strict=True) if share > 0} for row in rows]


def _factors(measure: Measure) -> tuple[Measure, ...]:
    return (measure.left, measure.right) if isinstance(measure, Product) else (measure,)


class JudgedKind(ExperimentKind, ABC):
    """A kind whose rankings are judged by a collection's judgments and groups."""

    exposes: ClassVar[bool] = True

    dimensions: tuple[str, ...] = ()
    """What is judged, and unless a system says otherwise, what it is to be fair in; empty: all of the collection."""
    per_group: int = Field(0, ge=0)
    """A topic counts for a dimension with so many relevant documents of every group; 0: with one that has a label.
    If it is above 0, a topic that counts for no dimension is left out altogether."""

    def fair_in(self, checking: Checking) -> tuple[str, ...]:
        """The dimensions of the file, but for those that the collection does not have."""
        collection = checking.collection
        if collection is None:
            return self.dimensions
        there = collection.groups.dimensions
        if not there:
            message = f"collection {collection.name!r} has no groups, so there is nothing to be fair to"
            checking.problems.add(UsageError, message)
        for dimension in self.dimensions:
            checking.problems.attempt("dimensions", collection.groups.labels, dimension)
        return tuple(name for name in self.dimensions if name in there) or there

    def choose(self, checking: Checking) -> Chosen:
        """The topics with relevant documents."""
        collection, problems = checking.collection, checking.problems
        if collection is None:
            return Chosen()
        judged = {name: judged_topics(collection, name, self.per_group) for name in checking.dimensions}
        chosen = choose_topics(self, list(collection.topics), checking)
        without_relevant = set(judged_topics(collection, None).without_relevant)
        of_any = {id for topics in judged.values() for id in topics.counted}
        excluded: dict[str, str] = {}
        for id in chosen:
            if id in without_relevant:
                excluded[id] = "no relevant document"
            elif self.per_group and id not in of_any:
                excluded[id] = f"in no dimension {self.per_group} relevant documents of every group"
        counted = tuple(id for id in chosen if id not in excluded)
        if not counted:
            problems.add(DataError, f"none of {len(chosen)} topics has relevant documents to judge by")
        for dimension, topics in judged.items():
            if counted and not set(counted) & set(topics.counted):
                message = f"{dimension!r} cannot be judged: no topic has a relevant document with a label"
                problems.add(DataError, message)
        return Chosen(counted, excluded, {name: topics.counted[0] for name, topics in judged.items() if topics.counted})
