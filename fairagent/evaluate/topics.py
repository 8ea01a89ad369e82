"""Rankings judged topic by topic: the topics that count for a dimension, one topic's values, the mean of all.

The target is `trec`: half the relevant documents' shares, half the world's. Documents without a label stay out of
both sides where the measure says so (`AWRF(unknown=ignore)`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.collection import Collection, make_target
from fairagent.errors import DataError
from fairagent.measures import AWRF, NDCG, JudgedRanking, Measure, Product
from fairagent.types import FloatArray, Ranking, Topic

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
