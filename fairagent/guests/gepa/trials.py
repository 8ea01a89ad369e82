"""Templates tried on topics: each outcome, and each wording that a model gave, is journaled once it is paid for."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import Any, Self

from fairagent.extend import (
    DataError,
    Fault,
    LineFile,
    Memo,
    Models,
    Opened,
    Outcome,
    ReplyError,
    close_all,
    from_value,
    in_threads,
    parse_json,
    to_line,
    unsealed,
    whole_lines,
)
from fairagent.guests.gepa.feedback import feedback
from fairagent.guests.gepa.plan import NO_LOOP, OptimizePlan, with_systems
from fairagent.guests.gepa.texts import key_of_text

JOURNAL = "journal.jsonl"
WORKERS = 4
"""Topics at a time: their searches wait for a model."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What a template did on a topic: its score in [0, 1], in words, and measure -> mean over the dimensions."""

    topic: str
    query: str
    score: float
    happened: str
    values: Mapping[str, float]


class TemplateTrials:
    """Tries wordings on topics, and remembers what they came to; a context, in a folder that is locked.

    A wording with faults scores 0 without being used. A reply that cannot be used leaves the search as it is without a
    loop. Raises whatever else keeps a model from answering: BudgetExceeded, TransientModelError.
    """

    def __init__(self, plan: OptimizePlan, folder: Path, key: str) -> None:
        self.plan = plan
        self.models = Models()
        self._folder = folder
        self._key = key
        self._memo = Memo()
        self._lock = threading.Lock()
        self._outcomes: dict[tuple[str, str], Outcome] = {}
        self._replies: dict[str, str] = {}
        self._trials: dict[str, Any] = {}
        self._journal = LineFile(folder / JOURNAL)
        self._read()

    def __enter__(self) -> Self:
        self._journal.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.__exit__(kind, error, trace)
        close_all(self._memo)

    def tried(self, body: str, topics: Sequence[str]) -> list[Tried]:
        """What the wording comes to on the topics, in their order."""
        subject = self.plan.checked.subject.topics
        if faults := self.plan.start.faults(body, self.plan.source):
            text = f"This is no template: {'; '.join(faults)}"
            return [Tried(topic, subject[topic].query, 0.0, text, {}) for topic in topics]
        name = key_of_text(body)
        self._prepare(name, body)

        def one(topic: str) -> Tried:
            alone, outcome = self._outcome(NO_LOOP, topic), self._outcome(name, topic)
            used = alone if outcome.failed is not None else outcome
            if outcome.failed is not None:
                outcome = replace(alone, failed=outcome.failed, steps=(), stopped="")
            text = feedback(outcome, alone, self.plan.measure)
            return Tried(topic, subject[topic].query, self._score(used), text, _means(used))

        # GEPA fills up its last batch with topics that it has already.
        distinct = list(dict.fromkeys(topics))
        of_topic = dict(zip(distinct, in_threads(one, distinct, WORKERS, "template"), strict=True))
        return [of_topic[topic] for topic in topics]

    def forget_systems(self) -> None:
        """Open the systems anew, with the models that are set now."""
        self._trials.clear()

    def reply(self, key: str) -> str | None:
        """The wording that a model gave to this request; None where it was not asked."""
        return self._replies.get(key)

    def keep_reply(self, key: str, text: str) -> None:
        """Journal it."""
        self._replies[key] = text
        self._write({"reply": key, "text": text})

    def _score(self, outcome: Outcome) -> float:
        values = [of[self.plan.measure] for of in outcome.values.values() if self.plan.measure in of]
        return fmean(values) if values else 0.0

    def _prepare(self, name: str, body: str) -> None:
        if name in self._trials:
            return
        plan = self.plan
        folder = plan.start.write(body, self._folder / "candidates" / name, plan.source)
        checked = with_systems(plan.checked, {name: str(folder.absolute())})
        opened = Opened(checked.plan, checked.collection, checked.subject, self.models, self._memo)
        self._trials[name] = self._trials[NO_LOOP] = checked.plan.experiment.trial(opened)

    def _outcome(self, system: str, topic: str) -> Outcome:
        if known := self._outcomes.get((system, topic)):
            return known
        try:
            outcome: Outcome = self._trials[system].outcome(system, topic)
        except ReplyError as error:
            query = self.plan.checked.subject.topics[topic].query
            outcome = Outcome.failure(topic, query, system, str(error), 0.0, error.usage)
        with self._lock:
            self._outcomes[system, topic] = outcome
            self._write({"outcome": parse_json(to_line(outcome))})
        return outcome

    def _write(self, record: Mapping[str, Any]) -> None:
        self._journal.write(json.dumps(record, separators=(",", ":")), self._key)

    def _read(self) -> None:
        path = self._folder / JOURNAL
        for number, line in enumerate(whole_lines(path, self._folder), start=1):
            try:
                record = parse_json(unsealed(line, self._key).decode())
                if "reply" in record:
                    self._replies[record["reply"]] = record["text"]
                else:
                    outcome = from_value(record["outcome"])
                    self._outcomes[outcome.system, outcome.topic] = outcome
            except (ValueError, KeyError, TypeError) as error:
                fault = Fault(path, number, f"{error}; start over with --new: cached replies are not paid for again")
                raise DataError("the journal of the optimization is damaged", [fault]) from None


def _means(outcome: Outcome) -> dict[str, float]:
    """Measure -> its mean over the dimensions that the topic counts for."""
    values_of: dict[str, list[float]] = {}
    for values in outcome.values.values():
        for name, value in values.items():
            values_of.setdefault(name, []).append(value)
    return {name: fmean(values) for name, values in values_of.items()}
