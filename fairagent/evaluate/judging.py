"""The one path by which a ranking is judged: experiments, run files, Python and ir-measures all come here.

The target is that of TREC Fair Ranking: the relevant documents' shares averaged with the world's, and what is unknown
keeps its share. `AWRF(unknown=ignore)` leaves documents without a label out of both sides.

The simplest explanations of what an agent reaches: systems that stand in every table beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairagent.collection import Collection, make_target
from fairagent.errors import DataError
from fairagent.measures import AWRF, NDCG, JudgedRanking, Measure, Product, blend
from fairagent.settings import Part
from fairagent.types import FloatArray, Ranking, Topic

TARGET = "trec"
"""The kind of target (fairagent.collection.targets) that rankings are judged with, where there are judgments."""
JudgedBy = str | Part | Mapping[str, float]
"""A kind of target, or label -> share."""


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


def judged_value(
    measure: Measure,
    collection: Collection,
    topic: str,
    ids: Sequence[str],
    dimension: str = "",
    target: JudgedBy = TARGET,
) -> float | None:
    """The value of `measure` for one topic's ranking, best document first; None where the topic does not count for it.

    A topic counts where it has a relevant document, and for a measure that looks at groups where there is a target in
    `dimension`: `trec`, and any other kind of target or shares (label -> share) of one's own. A topic that lists its
    dimensions counts for those alone. Relevance does not count for a measure of groups with a target that needs none.
    An empty ranking is a bad one, and no missing value. Raises UsageError for a dimension or target that there is not,
    and what the measure raises.
    """
    grades = collection.qrels.get(topic, {})
    relevant = [id for id, grade in grades.items() if grade > 0]
    if measure.of_relevance and not relevant:
        return None
    ids = ids if measure.n is None else ids[: measure.n]
    found = np.array([grades.get(id, np.nan) for id in ids], dtype=np.float64)
    rows = due = of_type = None
    if measure.of_groups:
        due = _due(target, collection, topic, dimension, relevant, measure.needs_labels)
        if due is None:
            return None
        rows = collection.groups.memberships(dimension, ids, topic) if len(ids) else np.zeros((0, len(due)))
        if measure.needs_types and (of_type := collection.groups.of_type(dimension, ids, topic)) is None:
            return None
    judgments = np.array(list(grades.values()), dtype=np.float64)
    return measure(JudgedRanking(found > 0, len(relevant), rows, due, None, of_type, found, judgments))


def _due(
    kind: JudgedBy, collection: Collection, topic: str, dimension: str, relevant: Sequence[str], labeled: bool
) -> FloatArray | None:
    """The shares (1 + g,) that unknown and the groups should get; None where the topic has none."""
    one = collection.topics.get(topic)
    if one is not None and one.dimensions is not None and dimension not in one.dimensions:
        return None
    if kind != TARGET:
        return np.append(0.0, make_target(kind, dimension, collection, topic).shares)
    alignment = collection.groups.memberships(dimension, relevant, topic).sum(axis=0) if relevant else np.zeros(1)
    if not alignment[int(labeled) :].any():
        return None
    world = None
    if dimension in collection.population:
        world = make_target("population", dimension, collection, topic).shares
    return blend(alignment, world)


def judged_topics(collection: Collection, dimension: str | None, per_group: int = 0) -> JudgedTopics:
    """Which topics have a target in the known groups of `dimension`; None asks for relevance alone.

    In the collection's order. A topic that lists its dimensions counts for those alone. `per_group` asks for that many
    relevant documents of every group; without it, one relevant document with a label is enough.
    Raises UsageError for a dimension that there is not.
    """
    counted: list[str] = []
    without_relevant: list[str] = []
    without_label: list[str] = []
    for topic in collection.topics.values():
        relevant = [id for id, grade in collection.qrels.get(topic.id, {}).items() if grade > 0]
        if not relevant:
            without_relevant.append(topic.id)
        elif dimension and not _has_groups(collection, topic, dimension, relevant, per_group):
            without_label.append(topic.id)
        else:
            counted.append(topic.id)
    return JudgedTopics(tuple(counted), tuple(without_relevant), tuple(without_label))


def evaluate_topic(
    collection: Collection, topic: str, dimension: str | None, ranking: Ranking, measures: Sequence[Measure]
) -> tuple[float, ...]:
    """The values of `measures` for one topic's ranking (`judged_value`); without a dimension, of relevance alone.

    Raises DataError for a topic that does not count for one of them and whatever the measures raise.
    """
    values = [judged_value(measure, collection, topic, ranking.ids, dimension or "") for measure in measures]
    for measure, value in zip(measures, values, strict=True):
        if value is None:
            raise DataError(f"topic {topic!r} does not count for {measure}: no relevant document, or none with a label")
    return tuple(value for value in values if value is not None)


def mean_over_topics(
    collection: Collection, dimension: str | None, rankings: Mapping[str, Ranking], measures: Sequence[Measure]
) -> tuple[float, ...]:
    """The mean of each measure over all topics that count for it; each of them has one of the `rankings`.

    Raises DataError where no topic counts, or one that does has no ranking.
    """
    nothing = Ranking((), np.zeros(0))
    means = []
    name = collection.name
    missing: dict[str, None] = {}
    for measure in measures:
        values = []
        for topic in collection.topics:
            value = judged_value(measure, collection, topic, rankings.get(topic, nothing).ids, dimension or "")
            if value is not None:
                values.append(value)
                missing |= {} if topic in rankings else {topic: None}
        if not values:
            of = f" with a label of {dimension!r}" if dimension else ""
            raise DataError(f"no topic of {name!r} has a relevant document{of}: there is nothing to judge by")
        means.append(float(np.mean(values)))
    if missing:
        raise DataError(f"{len(missing)} judged topics have no ranking, {next(iter(missing))!r} first")
    return tuple(means)


def _has_groups(collection: Collection, topic: Topic, dimension: str, relevant: Sequence[str], per_group: int) -> bool:
    if topic.dimensions is not None and dimension not in topic.dimensions:
        return False
    of_group = collection.groups.memberships(dimension, relevant, topic.id)[:, 1:].sum(axis=0)
    return bool(of_group.any() and of_group.min() >= per_group)


PLAIN: dict[str, Any] = {"profile": "engine", "engine": "auto"}
FUSED = "BM25 + vectors"
BASELINES: dict[str, dict[str, Any]] = {
    FUSED: PLAIN,
    "labeled first": {"profile": "labeled", "engine": "auto"},
    "exposure": {**PLAIN, "rerank": {"kind": "exposure", "fairness": 0.5}},
    # Passes over what has no label: how much of a gain that alone explains.
    "exposure+labeled": {
        **PLAIN,
        "rerank": {"kind": "exposure", "fairness": 0.5, "unlabeled": 0.5},
        "unknown": "ignore",
    },
    "no loop": {"loop": "none"},
}
"""Name -> settings: the agent's engine alone, its documents with a label first, one pass of exposure, without and with
a loss of relevance for what has no label, and the agent's re-rankers without its loop."""
SYSTEMS: dict[str, dict[str, Any]] = {
    "BM25": {"profile": "engine"},
    **BASELINES,
    "FAIR-QR": {"profile": "fair-qr", "refine": {"kind": "feedback", "weight": 1}},
    "agent": {},
}
"""What a comparison that asks no model begins with."""
LEGEND = (
    "labeled first: what has a label, in the engine's order. exposure: one pass over the engine's list (fairness .5); "
    "+labeled: which also takes .5 of relevance from what has no label. no loop: the agent's re-rankers alone. "
    "FAIR-QR: the paper's loop, with keywords from documents."
)
