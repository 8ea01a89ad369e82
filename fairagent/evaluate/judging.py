"""The one path by which rankings are judged, for experiments, run files, Python and ir-measures; and the baselines.

The target is that of the experiment or the call, else the collection's own, else that of TREC Fair Ranking: the
relevant documents' shares averaged with the world's, and what is unknown keeps its share (`judged_by` decides).
`AWRF(unknown=ignore)` leaves documents without a label out of both sides.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field

from fairagent.collection import Collection, Target, make_target
from fairagent.collection.exposure import ExposureMeter
from fairagent.collection.labels import under_error
from fairagent.collection.targets import TARGET, TargetKind, judged_by, read_target, target_choice
from fairagent.errors import DataError, UsageError
from fairagent.evaluate.kind import Checking, Chosen, ExperimentKind, JsonObject, Subject, choose_topics
from fairagent.evaluate.outcome import HitRecord
from fairagent.evaluate.plan import Plan
from fairagent.measures import (
    AWRF,
    LOG2_MAX2,
    NDCG,
    JudgedRanking,
    Measure,
    Product,
    Unlabeled,
    blend,
    parse_measure,
)
from fairagent.settings import Part
from fairagent.settings import Target as Targets
from fairagent.settings.faults import no_such
from fairagent.settings.parts import described
from fairagent.settings.seam import PartCall
from fairagent.types import Exposure, FloatArray, Hit, Ranking

JudgedBy = str | Part | Mapping[str, float]
"""The name of a target, or label -> share."""


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
    target: JudgedBy | None = None,
) -> float | None:
    """The value of `measure` for one topic's ranking, best document first; None where the topic does not count for it.

    `target` is the name of one, or shares (label -> share); None: the one that the collection is judged by. A topic
    counts where it has a relevant document, which a measure of groups needs for targets of judgments alone, and then
    one with a label. A topic that lists its dimensions counts for those alone. An empty ranking has a value too. Raises
    UsageError for an unknown dimension or target, and what the measure raises.
    """
    grades = collection.qrels.get(topic, {})
    relevant = [id for id, grade in grades.items() if grade > 0]
    if measure.of_relevance and not relevant:
        return None
    ids = ids if measure.n is None else ids[: measure.n]
    gains = np.array([grades.get(id, np.nan) for id in ids], dtype=np.float64)
    rows = due = of_type = None
    if measure.of_groups:
        kind = read_target(target) if isinstance(target, Mapping) else judged_by(dimension, collection, target)
        one, trec = collection.topics.get(topic), kind.kind == TARGET
        if one is not None and one.dimensions is not None and dimension not in one.dimensions:
            return None
        if kind.of_judgments:
            alignment = np.zeros(1)
            if relevant:
                alignment = collection.groups.memberships(dimension, relevant, topic).sum(axis=0)
            if not alignment[int(measure.needs_labels or not trec) :].any():
                return None
        # The shares (1 + g,) that unknown and the groups should get.
        if trec:
            known = dimension in collection.population
            world = make_target("population", dimension, collection, topic).shares if known else None
            due = blend(alignment, world)
        else:
            due = np.append(0.0, make_target(kind, dimension, collection, topic).shares)
        rows = collection.groups.memberships(dimension, ids, topic) if len(ids) else np.zeros((0, len(due)))
        if measure.needs_types and (of_type := collection.groups.of_type(dimension, ids, topic)) is None:
            return None
    judgments = np.array(list(grades.values()), dtype=np.float64)
    judged = JudgedRanking(gains > 0, len(relevant), rows, due, None, of_type, gains, judgments)
    with PartCall("measure", measure, topic) as call:
        value = measure(judged)
    return call.number(value)


def judged_topics(
    collection: Collection, dimension: str | None, per_group: int = 0, target: JudgedBy | None = None
) -> JudgedTopics:
    """Which topics have a target in the known groups of `dimension` (None: relevant documents).

    `target` is as in `judged_value`: one that is counted from judgments needs a relevant document with a label. So many
    of every group as `per_group` says are needed whatever the target is. Without any judgments all topics count.
    """
    of_judgments, judged = False, any(collection.qrels.values())
    if dimension:
        collection.groups.labels(dimension)
        kind = read_target(target) if isinstance(target, Mapping) else judged_by(dimension, collection, target)
        of_judgments = kind.of_judgments
    topics: dict[str, list[str]] = {"counted": [], "no relevant": [], "no label": []}
    for topic in collection.topics.values():
        relevant = [id for id, grade in collection.qrels.get(topic.id, {}).items() if grade > 0]
        place = "counted"
        if not relevant and (judged or not dimension):
            place = "no relevant"
        elif dimension and topic.dimensions is not None and dimension not in topic.dimensions:
            place = "no label"
        elif dimension and (of_judgments or per_group):
            of_group = collection.groups.memberships(dimension, relevant, topic.id)[:, 1:].sum(axis=0)
            place = "counted" if of_group.any() and of_group.min() >= per_group else "no label"
        topics[place].append(topic.id)
    return JudgedTopics(*map(tuple, topics.values()))


def evaluate_topic(
    collection: Collection, topic: str, dimension: str | None, ranking: Ranking, measures: Sequence[Measure]
) -> tuple[float, ...]:
    """The values of `measures` for one topic's ranking (`judged_value`); DataError where it does not count for one."""
    values = []
    for measure in measures:
        value = judged_value(measure, collection, topic, ranking.ids, dimension or "")
        if value is None:
            raise DataError(f"topic {topic!r} does not count for {measure}: no relevant document, or none with a label")
        values.append(value)
    return tuple(values)


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
    "FAIR-QR": {"profile": "fair-qr-deep", "refine": {"kind": "feedback", "weight": 1}},
    "agent": {},
}
"""What a comparison that asks no model begins with."""
LEGEND = (
    "labeled first: what has a label, in the engine's order. exposure: one pass over the engine's list (fairness .5); "
    "+labeled: which also takes .5 of relevance from what has no label. no loop: the agent's re-rankers alone. "
    "FAIR-QR: the paper's loop, with keywords from documents, all re-ranked."
)


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Judges rankings as an experiment says.

    `counted` are the topics with a target in the known groups of each dimension. Unless `strict`, measures that count
    the unknown as a group have more topics. `target` is what it is to judge by, for all dimensions or by dimension, in
    the place of what the collection is judged by.
    """

    collection: Collection
    measures: Mapping[str, Measure]
    counted: Mapping[str, frozenset[str]]
    target: Part | Mapping[str, Part] | None
    strict: bool
    n: int

    @classmethod
    def of(cls, plan: Plan, collection: Collection, measures: Sequence[str] = ()) -> Judge:
        kind = plan.experiment
        assert isinstance(kind, JudgedKind)
        counted = {name: frozenset(kind.counted(collection, name)) for name in plan.dimensions}
        parsed = {text: parse_measure(text) for text in measures}
        return cls(collection, parsed, counted, kind.target, kind.per_group > 0, plan.n)

    def values(self, topic: str, ranking: Ranking) -> dict[str, dict[str, float]]:
        """Dimension ("" for relevance alone) -> measure -> value, for what the topic counts for."""
        values: dict[str, dict[str, float]] = {}
        for text, measure in self.measures.items():
            for dimension in self.counted if measure.of_groups else ("",):
                if dimension and self.strict and topic not in self.counted[dimension]:
                    continue
                target = judged_by(dimension, self.collection, self.target) if dimension else None
                value = judged_value(measure, self.collection, topic, ranking.ids, dimension, target)
                if value is not None:
                    values.setdefault(dimension, {})[text] = value
        return values

    def exposures(self, topic: str, ranking: Ranking) -> tuple[Exposure, ...]:
        """The exposure in the first `n` documents beside the target of the judgment, for what the topic counts for."""
        single = ([one.left, one.right] if isinstance(one, Product) else [one] for one in self.measures.values())
        fairness = next((measure for factors in single for measure in factors if measure.of_groups), None)
        discount = getattr(fairness, "discount", LOG2_MAX2)
        targets, top, groups = self.targets(topic), ranking.top(self.n), self.collection.groups
        exposures = []
        meter = ExposureMeter(self.collection, topic, targets, self.n, discount, "js")
        for one, target in zip(meter.measure(top), targets, strict=True):
            missing, likely, dimension = None, None, one.dimension
            if len(top) and (of_type := groups.of_type(dimension, top.ids, topic)) is not None:
                rows = groups.memberships(dimension, top.ids, topic)
                shown = JudgedRanking(np.zeros(len(top), np.bool_), 0, rows, of_type=of_type)
                missing = Unlabeled(self.n, discount, of="type")(shown)
            predicted = dimension in groups.predicted
            if predicted:
                base = 2.0 if getattr(fairness, "log", "e") == "2" else math.e
                likely = under_error(self.collection, topic, target, top.ids, discount(len(top)), base)
            exposures.append(
                replace(one, missing=missing, predicted=predicted, target_known=target.known, likely=likely)
            )
        return tuple(exposures)

    def targets(self, topic: str) -> tuple[Target, ...]:
        """The targets of the dimensions that the topic counts for."""
        dimensions = (name for name, topics in self.counted.items() if topic in topics)
        chosen = ((judged_by(name, self.collection, self.target), name) for name in dimensions)
        return tuple(make_target(target, name, self.collection, topic) for target, name in chosen)

    def hits(self, topic: str, hits: tuple[Hit, ...], scores: FloatArray) -> tuple[HitRecord, ...]:
        """The documents with the ranking's `scores` (n,), their relevance, and their groups in every dimension."""
        grades, ids, table = self.collection.qrels.get(topic, {}), [hit.id for hit in hits], self.collection.groups
        groups: list[dict[str, dict[str, float]]] = [{} for _ in hits]
        for dimension in self.counted:
            rows = table.memberships(dimension, ids, topic)[:, 1:].tolist() if ids else []
            for of_hit, row in zip(groups, rows, strict=True):
                of_label = zip(table.labels(dimension), row, strict=True)
                of_hit[dimension] = {label: share for label, share in of_label if share > 0}
        return tuple(
            HitRecord(hit.id, hit.name, score, grades.get(hit.id, 0) > 0, of_hit, hit.snippet)
            for hit, score, of_hit in zip(hits, scores.tolist(), groups, strict=True)
        )


class JudgedKind(ExperimentKind, ABC):
    """A kind whose rankings are judged by a collection's judgments and groups."""

    exposes: ClassVar[bool] = True

    dimensions: tuple[str, ...] = ()
    """What is judged, and unless a system says otherwise, what it is to be fair in; empty: all of the collection."""
    per_group: int = Field(0, ge=0)
    """A topic counts for a dimension with so many relevant documents of every group; 0: with one that has a label.
    If it is above 0, a topic that counts for no dimension is left out altogether."""
    target: Targets = Field(None, json_schema_extra={"slot": "target"})
    """What exposure is judged against: a kind of target that needs no ranking (`trec`, `qrels`, `population`,
    `uniform`, `corpus`), or for each dimension one of these or your own shares. Where it says nothing: the collection's
    own target, else `trec`; where nothing is judged, the population, and in dimensions without one the corpus. Unless
    it is counted from judgments, systems steer by it, too, where neither they nor the collection have a target."""

    needs_judgments: ClassVar[bool] = True
    """Whether topics and groups alone are not enough."""

    @property
    def needs_groups(self) -> bool:
        """Whether it measures what groups get, so that there have to be some."""
        return True

    def unjudged(self, collection: Collection) -> bool:
        """Whether nothing is judged, and nothing has to be."""
        return not self.needs_judgments and not any(collection.qrels.values())

    def on(self, collection: Collection) -> Self:
        """With the target of every dimension, also of the systems where they and the collection have none."""
        there = collection.groups.dimensions
        judged = {name: judged_by(name, collection, self.target) for name in there}
        # Where nobody says what systems steer by: what the file says that they are judged by.
        steering = {
            name: one.model_dump()
            for name, one in judged.items()
            if target_choice(None, name, collection) is None and not one.of_judgments
            if target_choice(self.target, name, collection) is not None
        }
        shared, settings = described("target", self.settings.get("target", {})), self.settings
        if steering and isinstance(shared, Mapping) and "kind" not in shared:
            settings = {**settings, "target": {**steering, **shared}}
        # `choose` adds what is wrong with a dimension that is not there.
        chosen = self.target if isinstance(self.target, Mapping) else {}
        return self.model_copy(update={"target": {**chosen, **judged}, "settings": settings})

    def targets(self, dimensions: Sequence[str]) -> dict[str, str]:
        of = self.target if isinstance(self.target, Mapping) else dict.fromkeys(dimensions, self.target)
        named = {name: of.get(name) for name in dimensions if self.needs_groups}
        return {name: one.name for name, one in named.items() if isinstance(one, TargetKind)}

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        names = {"per_group", "target"}
        return {**super().fingerprint(plan, subject, environ), **self.model_dump(mode="json", include=names)}

    def counted(self, collection: Collection, dimension: str) -> tuple[str, ...]:
        """The topics with a target in the known groups of a dimension, in the collection's order."""
        target = judged_by(dimension, collection, self.target)
        return judged_topics(collection, dimension, self.per_group, target).counted

    def fair_in(self, checking: Checking) -> tuple[str, ...]:
        """The dimensions of the file, but for those that the collection does not have."""
        collection = checking.collection
        if collection is None:
            return self.dimensions
        there = collection.groups.dimensions
        if not there and self.needs_groups:
            message = f"collection {collection.name!r} has no groups, so there is nothing to be fair to"
            checking.problems.add(UsageError, message)
        for dimension in self.dimensions:
            checking.problems.attempt("dimensions", collection.groups.labels, dimension)
        return tuple(name for name in self.dimensions if name in there) or there

    def choose(self, checking: Checking) -> Chosen:
        collection, problems = checking.collection, checking.problems
        if collection is None:
            return Chosen()
        judged = {name: self.counted(collection, name) for name in checking.dimensions}
        chosen = choose_topics(self, list(collection.topics), checking)
        excluded: dict[str, str] = {}
        if not self.unjudged(collection):
            without_relevant = set(judged_topics(collection, None).without_relevant)
            of_any = {id for topics in judged.values() for id in topics}
            for id in chosen:
                if id in without_relevant:
                    excluded[id] = "no relevant document"
                elif self.per_group and id not in of_any:
                    excluded[id] = f"in no dimension {self.per_group} relevant documents of every group"
        counted = tuple(id for id in chosen if id not in excluded)
        if not counted:
            problems.add(DataError, f"none of {len(chosen)} topics has relevant documents to judge by")
        for dimension, topics in judged.items():
            if counted and not set(counted) & set(topics):
                message = f"{dimension!r} cannot be judged: no topic has a relevant document with a label"
                problems.add(DataError, message)
            elif topics:
                target = judged_by(dimension, collection, self.target)
                problems.attempt("target", make_target, target, dimension, collection, topics[0])
        there = collection.groups.dimensions
        for name in self.target if isinstance(self.target, Mapping) else ():
            if name not in there:
                problems.add(UsageError, f"target: {no_such('dimension', name, there)}")
        return Chosen(counted, excluded, {name: topics[0] for name, topics in judged.items() if topics})
