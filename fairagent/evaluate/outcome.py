"""What one topic came to under one system: plain values that survive JSON, one line of the journal each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fairagent.types import Debiased, Usage

NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class GroupShares:
    """The exposure of one dimension's known groups in a ranking beside their target; `unknown` is outside of `shares`.

    `shares` are all zero where nothing in the ranking has a label.
    """

    dimension: str
    labels: tuple[str, ...]
    shares: tuple[float, ...]
    target: tuple[float, ...]
    unknown: float


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One retrieval of the loop (`fairagent.types.Step`): `terms` are the added keywords with their weights.

    `query` is the user's query with all keywords in one line; `gap` is in nats, infinite where a dimension shows no
    labeled document (null in JSON); `exposures` stand beside the target that the loop went by.
    """

    source: str
    query: str
    terms: tuple[tuple[str, float], ...]
    dropped: tuple[str, ...]
    aim: str | None
    gap: float
    accepted: bool
    exposures: tuple[GroupShares, ...]
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HitRecord:
    """One document of the final ranking; its rank is its place, from 1. `groups`: dimension -> label -> share."""

    id: str
    title: str
    score: float
    relevant: bool
    groups: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class DebiasRecord:
    """What DebiasRAG did for one answer: how many counterfactual contexts were made, survived and won a place.

    `moved` is by how much the weight of relevance changed, to 6 places.
    """

    made: int
    survived: int
    placed: int
    moved: float

    @classmethod
    def of(cls, debiased: Debiased | None) -> DebiasRecord | None:
        """That of a context; None where nothing was debiased."""
        if debiased is None:
            return None
        moved = round(debiased.theta_after[0] - debiased.theta_before[0], 6)
        return cls(len(debiased.made), len(debiased.survived), len(debiased.placed), moved)


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """An answer, who graded it, and the ids of the documents that the filter kept from it.

    `graded_by` is "rule" or "model", or "preference" where the answer is the sentence that a model chose. `debiased` is
    there where its context was.
    """

    text: str
    graded_by: str
    removed: tuple[str, ...] = ()
    debiased: DebiasRecord | None = None


@dataclass(frozen=True, slots=True)
class ChoiceRecord:
    """How a model scored the sentences of an item of StereoSet or CrowS-Pairs (`fairagent.stereotypes`).

    `kind` is its bias type; `part` intrasentence or intersentence, or of a pair stereo or antistereo; `target` its
    target term, "" for a pair; `decimals` to how many places the scores of a pair are rounded.
    """

    kind: str
    part: str
    target: str
    scores: tuple[float, ...]
    decimals: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One topic under one system.

    `values`: dimension -> measure -> value, "" being the dimension of measures of relevance alone; a dimension that
    the topic does not count for is absent. `exposures` are those of the final ranking, in the dimensions that the topic
    counts for, beside the target that all systems are judged by. `failed` is the message of what went wrong; the other
    fields but the cost are empty then. Calls, tokens and `cost` (US dollars, None where a price is not known) are what
    the model's replies took, whether they were paid for now or came from a cache; `notes` say what had to be done to
    get them. `seconds` is kept out of every file that must not change from one run to the next. `answer` is there where
    questions are answered: a question's bias type or domain takes the place of the dimension then, "" being that of all
    questions, `hits` are the documents that were retrieved, and there are no `exposures`. `choice` is there where a
    model chose among sentences.
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
    choice: ChoiceRecord | None = None

    @classmethod
    def failure(
        cls, topic: str, query: str, system: str, message: str, seconds: float, usage: Usage = NOTHING
    ) -> Outcome:
        """The outcome of a topic that `system` could not answer; `usage` is what it took all the same."""
        return cls(
            topic, query, system, {}, (), (), (), "", **took(usage), oracle=False, seconds=seconds, failed=message
        )


def took(usage: Usage) -> dict[str, Any]:
    """The fields of an outcome that say what a model's replies took, whoever has paid for them.

    Dollars are rounded to 12 places, so that the sum does not tell in which order they were spent.
    """
    whole = usage.whole
    return {
        "calls": whole.calls,
        "input_tokens": whole.input_tokens,
        "output_tokens": whole.output_tokens,
        "cost": None if whole.cost is None else round(whole.cost, 12),
        "notes": whole.notes,
    }


def to_line(outcome: Outcome) -> str:
    """The outcome as one line of JSON in ASCII; numbers keep every digit."""
    record = asdict(outcome)
    for step in record["steps"]:
        step["gap"] = step["gap"] if math.isfinite(step["gap"]) else None
    return json.dumps(record, separators=(",", ":"), allow_nan=False)


def from_line(line: str | bytes) -> Outcome:
    """What `to_line` wrote; ValueError, KeyError or TypeError where the line is none of its."""
    record: dict[str, Any] = json.loads(line)
    if not isinstance(record, dict):
        raise ValueError("expected a JSON object")
    return Outcome(
        **{
            **record,
            "notes": tuple(record["notes"]),
            "hits": tuple(HitRecord(**hit) for hit in record["hits"]),
            "exposures": _exposures(record["exposures"]),
            "steps": tuple(_step(step) for step in record["steps"]),
            "answer": _answer(record.get("answer")),
            "choice": _choice(record.get("choice")),
        }
    )


def _answer(record: dict[str, Any] | None) -> AnswerRecord | None:
    if not record:
        return None
    debiased = record.get("debiased")
    made = DebiasRecord(**debiased) if debiased else None
    return AnswerRecord(**{**record, "removed": tuple(record["removed"]), "debiased": made})


def _choice(record: dict[str, Any] | None) -> ChoiceRecord | None:
    return ChoiceRecord(**{**record, "scores": tuple(record["scores"])}) if record else None


def _step(record: dict[str, Any]) -> StepRecord:
    gap = record["gap"]
    return StepRecord(
        **{
            **record,
            "terms": tuple((text, weight) for text, weight in record["terms"]),
            "dropped": tuple(record["dropped"]),
            "refused": tuple(record.get("refused", ())),
            "gap": math.inf if gap is None else gap,
            "exposures": _exposures(record["exposures"]),
        }
    )


def _exposures(records: list[dict[str, Any]]) -> tuple[GroupShares, ...]:
    return tuple(
        GroupShares(
            record["dimension"],
            tuple(record["labels"]),
            tuple(record["shares"]),
            tuple(record["target"]),
            record["unknown"],
        )
        for record in records
    )
