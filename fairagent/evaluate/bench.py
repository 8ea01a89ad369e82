"""Where systems run: a collection, its engines and the systems, opened once in each process that works on a plan."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

from fairagent.collection import Collection, load_collection
from fairagent.errors import DataError, FatalModelError, IndexMismatch, ModelError
from fairagent.evaluate.engines import Engines
from fairagent.evaluate.judge import Judge, step_record
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.plan import Plan
from fairagent.evaluate.systems import KINDS, Parts, System
from fairagent.types import SearchResult, Usage


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """Everything that a topic and a system's name become an outcome with; threads may share it."""

    plan: Plan
    judge: Judge
    engines: Engines
    systems: Mapping[str, System]

    @classmethod
    def open(cls, plan: Plan, collection: Collection | None = None) -> Bench:
        """Open the engines and build the systems, which may train some of them."""
        collection = collection or load_collection(plan.collection)
        engines = Engines(collection)
        systems = {}
        for name, system in plan.systems.items():
            kind = KINDS[system.kind]
            parts = Parts(collection, system.settings, engines, system.index, plan.seed)
            systems[name] = kind.build(parts, kind.options(**system.options))
        return cls(plan, Judge.of(plan, collection), engines, systems)

    def outcome(self, system: str, id: str) -> Outcome:
        """What one topic comes to under one system.

        A topic fails where data or a model's replies are at fault; what would fail every topic (no key, no budget, no
        index) is raised, and ends the run.
        """
        topic = self.judge.collection.topics[id]
        started = perf_counter()
        try:
            result = self.systems[system].agent.search(topic)
            return self._outcome(system, id, result)
        except (DataError, ModelError) as error:
            if isinstance(error, FatalModelError | IndexMismatch):
                raise
            return Outcome.failure(id, topic.query, system, str(error), perf_counter() - started)

    def _outcome(self, name: str, id: str, result: SearchResult) -> Outcome:
        system, trace = self.systems[name], result.trace
        return Outcome(
            topic=id,
            query=result.query.text,
            system=name,
            values=self.judge.values(id, result.ranking),
            hits=self.judge.hits(id, result.hits),
            exposures=self.judge.exposures(id, result.ranking),
            steps=tuple(map(step_record, trace.steps)),
            stopped=trace.stopped if system.agent.settings.iterations else "",
            calls=trace.usage.calls,
            input_tokens=trace.usage.input_tokens,
            output_tokens=trace.usage.output_tokens,
            cost=self._cost(name, trace.usage),
            oracle=trace.oracle and system.sees_groups,
            seconds=trace.seconds,
            failed=None,
        )

    def _cost(self, system: str, usage: Usage) -> float | None:
        """US dollars: what the model's door says, else what the experiment's prices say, else None."""
        price = self.plan.prices.get(self.plan.systems[system].settings.model.name)
        if usage.cost is not None or price is None:
            return usage.cost
        return (usage.input_tokens * price.input + usage.output_tokens * price.output) / 1e6


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
        bench.engines.close()
