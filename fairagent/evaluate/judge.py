"""Judging one ranking for one topic: the measures' values, and the exposure beside the target they go by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairagent.collection import Collection, make_target
from fairagent.evaluate.outcome import GroupShares, HitRecord, StepRecord
from fairagent.evaluate.plan import Plan, cutoff, of_groups
from fairagent.evaluate.topics import TARGET, evaluate_topic, judged_topics
from fairagent.exposure import ExposureMeter
from fairagent.measures import DIVERGENCES, LOG2_MAX2, Measure, parse_measure
from fairagent.types import Exposure, Hit, Ranking, Step


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Judges rankings as an experiment says; `counted` are the topics that count for each dimension."""

    collection: Collection
    measures: Mapping[str, Measure]
    counted: Mapping[str, frozenset[str]]
    n: int

    @classmethod
    def of(cls, plan: Plan, collection: Collection) -> Judge:
        """The judge of an experiment; drawn rankings have measures of their own."""
        counted = {
            dimension: frozenset(judged_topics(collection, dimension, plan.per_group).counted)
            for dimension in plan.dimensions
        }
        measures = () if plan.fair_rag else plan.measures
        return cls(collection, {text: parse_measure(text) for text in measures}, counted, plan.n)

    def values(self, topic: str, ranking: Ranking) -> dict[str, dict[str, float]]:
        """Dimension ("" for relevance alone) -> measure -> value, for what the topic counts for."""
        of_relevance = {text: m for text, m in self.measures.items() if of_groups(m) is None}
        of_group = {text: m for text, m in self.measures.items() if of_groups(m) is not None}
        found = {"": self._values(topic, None, ranking, of_relevance)} if of_relevance else {}
        for dimension in self._dimensions(topic) if of_group else ():
            found[dimension] = self._values(topic, dimension, ranking, of_group)
        return found

    def exposures(self, topic: str, ranking: Ranking) -> tuple[GroupShares, ...]:
        """The exposure in the first `n` documents beside the target of the judgment, for what the topic counts for."""
        targets = tuple(make_target(TARGET, name, self.collection, topic) for name in self._dimensions(topic))
        fairness = next(filter(None, map(of_groups, self.measures.values())), None)
        discount = fairness.discount if fairness else LOG2_MAX2
        meter = ExposureMeter(self.collection, topic, targets, self.n, discount, DIVERGENCES["kl"])
        return tuple(map(group_shares, meter.measure(ranking)))

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
            (found[text],) = evaluate_topic(self.collection, topic, dimension, ranking, cutoff(measure), [measure])
        return found

    def _dimensions(self, topic: str) -> tuple[str, ...]:
        return tuple(dimension for dimension, topics in self.counted.items() if topic in topics)

    def _groups(self, topic: str, dimension: str, ids: list[str]) -> list[dict[str, float]]:
        labels = self.collection.groups.labels(dimension)
        rows = self.collection.groups.memberships(dimension, ids, topic)[:, 1:].tolist() if ids else []
        return [{label: share for label, share in zip(labels, row, strict=True) if share > 0} for row in rows]


def step_record(step: Step) -> StepRecord:
    """A step of the loop as plain values."""
    return StepRecord(
        source=step.source,
        query=str(step.query),
        terms=tuple((term.text, term.weight) for term in step.added),
        dropped=step.dropped,
        refused=step.refused,
        aim=str(step.aim) if step.aim else None,
        gap=step.gap,
        accepted=step.accepted,
        exposures=tuple(map(group_shares, step.exposures)),
    )


def group_shares(exposure: Exposure) -> GroupShares:
    """An exposure as plain values."""
    return GroupShares(
        exposure.dimension,
        exposure.labels,
        tuple(exposure.shares.tolist()),
        tuple(exposure.target.tolist()),
        exposure.unknown,
    )
