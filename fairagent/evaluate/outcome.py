"""What one topic came to under one system: plain values that survive JSON, one line of the journal each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, TypeAdapter

from fairagent.types import Debiased, Exposure, Filtered, Proposals, Removal, SearchResult, Step, Topic, Usage
from fairagent.types.common import Alarm, of_usage

NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class GroupShares:
    """Exposure and target of a dimension's known groups, 0 where nothing has a label; the rest as in `Exposure`."""

    dimension: str
    labels: tuple[str, ...]
    shares: tuple[float, ...]
    target: tuple[float, ...]
    unknown: float
    missing: float | None = None
    predicted: bool = False
    target_known: tuple[float, ...] | None = None
    unknown_target: float | None = None
    likely: tuple[float, float, float, float] | None = None

    @classmethod
    def of(cls, exposure: Exposure) -> GroupShares:
        values = (getattr(exposure, field.name) for field in fields(cls))
        plain: list[Any] = [tuple(one.tolist()) if isinstance(one, np.ndarray) else one for one in values]
        return cls(*plain)


@dataclass(frozen=True, slots=True)
class GroupRecall:
    """How many of the relevant documents of each group were `retrieved`, (1 + g,) each, first those without a label."""

    dimension: str
    labels: tuple[str, ...]
    retrieved: tuple[float, ...]
    relevant: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One retrieval of the loop (`fairagent.types.Step`); `gap` is in nats, null in JSON where it is infinite.

    A model has `proposed` that many keywords, passages or sentences, `usable` of them.
    """

    source: str
    query: str
    terms: tuple[tuple[str, float], ...]
    dropped: tuple[str, ...]
    aim: str | None
    gap: Annotated[float, BeforeValidator(lambda value: math.inf if value is None else value)]
    accepted: bool
    exposures: tuple[GroupShares, ...]
    refused: tuple[str, ...] = ()
    why: str = ""
    reason: str = ""
    worse: tuple[str, ...] = ()
    entered: int = 0
    proposed: int = 0
    usable: int = 0

    @property
    def proposals(self) -> Proposals:
        return Proposals(self.proposed, self.usable)

    @classmethod
    def of(cls, step: Step) -> StepRecord:
        same = ("source", "dropped", "refused", "gap", "accepted", "why", "reason", "worse", "entered")
        return cls(
            query=str(step.query),
            terms=tuple((term.text, term.weight) for term in step.added),
            aim=str(step.aim) if step.aim else None,
            exposures=tuple(map(GroupShares.of, step.exposures)),
            proposed=step.proposals.made,
            usable=step.proposals.usable,
            **{name: getattr(step, name) for name in same},
        )


@dataclass(frozen=True, slots=True)
class HitRecord:
    """One document of the final ranking, by rank, and its `score` there; `groups`: dimension -> label -> share.

    `snippet` is how it begins.
    """

    id: str
    title: str
    score: float
    relevant: bool
    groups: Mapping[str, Mapping[str, float]]
    snippet: str = ""


@dataclass(frozen=True, slots=True)
class DebiasRecord:
    """How many counterfactual contexts DebiasRAG made, how many survived and won a place, and how far theta `moved`."""

    made: int
    survived: int
    placed: int
    moved: float


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """An answer, who graded it, and the ids of the documents that the filter removed from its context.

    `graded_by` is "rule" or "model", or "preference" where the answer is the sentence that a model chose.
    """

    text: str
    graded_by: str
    removed: tuple[str, ...] = ()
    debiased: DebiasRecord | None = None

    @classmethod
    def of(cls, text: str, graded_by: str, filtered: Filtered | None, debiased: Debiased | None) -> AnswerRecord:
        verdicts = filtered.verdicts if filtered else ()
        removed = tuple(verdict.id for verdict in verdicts if not verdict.kept)
        if debiased is None:
            return cls(text, graded_by, removed)
        moved = round(debiased.theta_after[0] - debiased.theta_before[0], 6)
        made = DebiasRecord(len(debiased.made), len(debiased.survived), len(debiased.placed), moved)
        return cls(text, graded_by, removed, made)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One topic under one system.

    `values`: dimension -> measure -> value, "" being the dimension of measures of relevance alone; a dimension that
    the topic does not count for is absent. `exposures` are those of the final ranking, in the dimensions that the topic
    counts for, beside the target that all systems are judged by. `failed` is the message of what went wrong; the other
    fields but the cost are empty then. Calls, tokens and `cost` (US dollars, None where a price is not known) are what
    the model's replies took, paid for now or cached; `notes` say what had to be done to get them. `seconds` stand in no
    file that must be the same in every run. Where there is an `answer`, `hits` are the documents retrieved for it, and
    there are no `exposures`. `tail` has the ids and scores of the documents below the hits, for run files. `record` has
    what a kind of experiment records besides, as plain values. `group` is that of the topic, "" where it has none;
    `cited` is the exposure in what answers rest on. `alarms` are those of the search and the answer, `removals` what a
    filter took from each group; `unusable` of the calls came to nothing. `recall` is that of what was retrieved for a
    ranking, `entered` the number of documents in it that the engine's own list lacks.
    """

    topic: str
    query: str
    system: str
    values: Mapping[str, Mapping[str, float]]
    hits: tuple[HitRecord, ...]
    exposures: tuple[GroupShares, ...]
    steps: tuple[StepRecord, ...]
    stopped: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    oracle: bool
    seconds: float
    failed: str | None
    notes: tuple[str, ...] = ()
    answer: AnswerRecord | None = None
    tail: tuple[tuple[str, float], ...] = ()
    record: Mapping[str, Any] | None = None
    group: str = ""
    cited: tuple[GroupShares, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    removals: tuple[Removal, ...] = ()
    unusable: int = 0
    recall: tuple[GroupRecall, ...] = ()
    entered: int = 0

    @property
    def usage(self) -> Usage:
        return Usage(self.calls, self.input_tokens, self.output_tokens, self.cost, unusable=self.unusable)

    @property
    def scored(self) -> tuple[tuple[str, float], ...]:
        """Every document of the ranking, best first, with its score."""
        return (*((hit.id, hit.score) for hit in self.hits), *self.tail)

    @classmethod
    def of(
        cls,
        topic: Topic,
        system: str,
        values: Mapping[str, Mapping[str, float]],
        usage: Usage,
        *,
        search: SearchResult | None = None,
        hits: tuple[HitRecord, ...] | None = None,
        exposures: Iterable[Exposure] = (),
        cited: Iterable[Exposure] = (),
        alarms: tuple[Alarm, ...] = (),
        **more: Any,
    ) -> Outcome:
        """The outcome of a topic, which took `usage`, with `more` of its fields; the runner adds missing `seconds`."""
        trace = search.trace if search else None
        if hits is None:
            # Nobody has judged what is relevant.
            scored = zip(search.hits, search.ranking.scores.tolist(), strict=True) if search else ()
            hits = tuple(HitRecord(hit.id, hit.name, score, False, hit.groups, hit.snippet) for hit, score in scored)
        raised = (*(trace.alarms if trace else ()), *alarms, *of_usage(usage))
        return cls(
            topic=topic.id,
            query=search.query.text if search else topic.query,
            system=system,
            values=values,
            hits=hits,
            exposures=tuple(map(GroupShares.of, exposures)),
            steps=tuple(map(StepRecord.of, trace.steps)) if trace else (),
            stopped=trace.stopped if trace else "",
            **took(usage),
            failed=None,
            group=topic.group,
            cited=tuple(map(GroupShares.of, cited)),
            alarms=tuple(dict.fromkeys(raised)),
            **{"oracle": False, "seconds": 0.0, **more},
        )

    @classmethod
    def failure(
        cls, topic: str, query: str, system: str, message: str, seconds: float, usage: Usage = NOTHING
    ) -> Outcome:
        """The outcome of a topic that `system` could not answer; `usage` is what it took all the same."""
        return cls(
            topic, query, system, {}, (), (), (), "", **took(usage), oracle=False, seconds=seconds, failed=message
        )


def took(usage: Usage) -> dict[str, Any]:
    """What a model's replies took, paid for or cached; dollars to 12 places, so that no order changes their sum."""
    whole = usage.whole
    return {
        "calls": whole.calls,
        "input_tokens": whole.input_tokens,
        "output_tokens": whole.output_tokens,
        "cost": None if whole.cost is None else round(whole.cost, 12),
        "notes": whole.notes,
        "unusable": whole.unusable,
    }


def to_line(outcome: Outcome) -> str:
    """The outcome as one line of JSON in ASCII; numbers keep every digit."""
    return json.dumps(outcome, default=_plain, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> dict[str, Any]:
    """The fields of a dataclass; `json` converts those within, which is faster than `asdict`."""
    record = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, StepRecord) and not math.isfinite(value.gap):
        record["gap"] = None
    return record


def from_value(value: Any) -> Outcome:
    """The outcome that a line's JSON holds; ValueError where it is none."""
    return _OUTCOME.validate_python(value)


_OUTCOME = TypeAdapter(Outcome)
