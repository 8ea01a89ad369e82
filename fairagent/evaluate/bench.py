"""Where systems run: a collection, its engines and the systems, opened once in each process that works on a plan."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from fairagent.collection import Collection, load_collection
from fairagent.errors import DataError, FatalModelError, IndexMismatch, ModelError
from fairagent.evaluate.answers.exam import Exam
from fairagent.evaluate.fair_rag.lamp import lamp_collection, read_lamp
from fairagent.evaluate.fair_rag.lamp_trial import LampTrial
from fairagent.evaluate.fair_rag.trial import FairRagTrial
from fairagent.evaluate.judge import Judge, step_record
from fairagent.evaluate.outcome import Outcome, took
from fairagent.evaluate.plan import Plan
from fairagent.evaluate.stereotypes.trial import ChoiceTrial
from fairagent.evaluate.systems import System, build_systems
from fairagent.evaluate.utility.trial import UtilityTrial
from fairagent.llm.ledger import ledger
from fairagent.llm.models import Models
from fairagent.memo import Memo
from fairagent.retrieve.bm25 import close_all
from fairagent.stereotypes.files import READERS as CHOICES
from fairagent.types import Topic


class Trial(Protocol):
    """What systems are put to: it says what a topic is, and what one of them comes to under a system."""

    def topic(self, id: str) -> Topic:
        """The topic of this id."""
        ...

    def outcome(self, system: str, id: str) -> Outcome:
        """What it comes to; DataError and ModelError where it fails."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """Systems rank documents, and the rankings are judged."""

    judge: Judge
    systems: Mapping[str, System]

    def topic(self, id: str) -> Topic:
        """The collection's topic."""
        return self.judge.collection.topics[id]

    def outcome(self, system: str, id: str) -> Outcome:
        """One topic's ranking, judged."""
        used, judge = self.systems[system], self.judge
        result = used.agent.search(self.topic(id))
        trace = result.trace
        return Outcome(
            topic=id,
            query=result.query.text,
            system=system,
            values=judge.values(id, result.ranking),
            hits=judge.hits(id, result.hits),
            exposures=judge.exposures(id, result.ranking),
            steps=tuple(map(step_record, trace.steps)),
            stopped=trace.stopped,
            **took(trace.usage),
            oracle=trace.oracle and used.sees_groups,
            seconds=trace.seconds,
            failed=None,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """Everything that a topic and a system's name become an outcome with; threads may share it."""

    trial: Trial
    memo: Memo
    models: Models

    @classmethod
    def open(cls, plan: Plan, collection: Collection | None = None, models: Models | None = None) -> Bench:
        """Open the engines and build the systems, which may train some of them."""
        collection = collection or _collection(plan)
        memo = Memo()
        models = models or Models(plan.cache, plan.budget, plan.prices)
        searching = {} if plan.fair_rag and plan.fair_rag.lamp else plan.systems
        systems = build_systems(searching, collection, models, plan.seed, memo)
        trial: Trial
        if plan.questions:
            exam = ChoiceTrial if plan.questions.task in CHOICES else Exam
            trial = exam.open(plan, plan.questions, collection, systems, models)
        elif plan.fair_rag and plan.fair_rag.lamp:
            trial = LampTrial.open(plan, plan.fair_rag, plan.fair_rag.lamp, collection, models)
        elif plan.fair_rag:
            trial = FairRagTrial.open(plan, plan.fair_rag, Judge.of(plan, collection), systems)
        elif plan.utility:
            trial = UtilityTrial.open(plan, plan.utility, collection, systems, models)
        else:
            trial = Rankings(Judge.of(plan, collection), systems)
        return cls(trial, memo, models)

    def outcome(self, system: str, id: str) -> Outcome:
        """What one topic comes to under one system.

        A topic fails where data or a model's replies are at fault; what would fail every topic (no key, no budget, no
        index) is raised, and ends the run.
        """
        started = perf_counter()
        with ledger() as spent:
            try:
                return self.trial.outcome(system, id)
            except (DataError, ModelError) as error:
                if isinstance(error, FatalModelError | IndexMismatch):
                    raise
                query = self.trial.topic(id).query
                return Outcome.failure(id, query, system, str(error), perf_counter() - started, spent.usage)

    def close(self) -> None:
        """Release the engines' files and the models' connections."""
        close_all(self.memo)
        self.models.close()


def _collection(plan: Plan) -> Collection:
    """What the plan's systems search."""
    if plan.fair_rag and plan.fair_rag.lamp:
        return lamp_collection(read_lamp(plan.fair_rag.lamp))
    return load_collection(plan.collection)


_opened: dict[str, Bench] = {}
_opening = threading.Lock()


def run_job(key: str, plan: str, system: str, topic: str) -> Outcome:
    """The outcome of one topic under one system, wherever this is called: the first call in a process opens the bench.

    `plan` is the plan as JSON, `key` names it and the state of its collection.
    """
    with _opening:
        if key not in _opened:
            _opened[key] = Bench.open(Plan.model_validate_json(plan))
    return _opened[key].outcome(system, topic)


def keep_open(key: str, bench: Bench) -> None:
    """Let `run_job` in this process use `bench` for `key`."""
    _opened[key] = bench


def close(key: str) -> None:
    """Forget the bench of `key` in this process and release its files."""
    if bench := _opened.pop(key, None):
        bench.close()
