"""Runs one topic under one system: an experiment's trial, opened once in each process that works on a plan."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from time import perf_counter

from fairagent.collection import Collection
from fairagent.errors import DataError, FatalModelError, IndexMismatch, ModelError
from fairagent.evaluate.engine.check import open_collection
from fairagent.evaluate.engine.kind import Opened, Subject, Trial
from fairagent.evaluate.engine.outcome import Outcome
from fairagent.evaluate.engine.plan import Plan
from fairagent.llm.exchange import Exchange, Listener, exchanges_to
from fairagent.llm.ledger import ledger
from fairagent.llm.models import Models
from fairagent.memo import Memo
from fairagent.retrieve.bm25.part import close_all
from fairagent.threads import one_blas_thread


@dataclass(frozen=True, slots=True, eq=False)
class TopicRunner:
    """The opened trial of an experiment, which makes an outcome of a topic and a system; threads may share it."""

    trial: Trial
    opened: Opened

    @classmethod
    def open(
        cls,
        plan: Plan,
        collection: Collection | None = None,
        subject: Subject | None = None,
        models: Models | None = None,
    ) -> TopicRunner:
        """Open the engines and build the systems, which may train some of them."""
        kind = plan.experiment
        collection = collection or open_collection(kind)
        subject = subject or kind.open(collection)
        models = models or Models(plan.cache, plan.budget, plan.prices)
        opened = Opened(plan, collection, subject, models, Memo())
        return cls(kind.trial(opened), opened)

    def outcome(self, system: str, id: str) -> Outcome:
        """What one topic comes to under one system.

        A topic fails where data or a model's replies are at fault; what would fail every topic (no key, no budget, no
        index) is raised, and ends the run.
        """
        started = perf_counter()
        with ledger() as spent:
            try:
                outcome = self.trial.outcome(system, id)
            except (DataError, ModelError) as error:
                if isinstance(error, FatalModelError | IndexMismatch):
                    raise
                query = self.opened.subject.topics[id].query
                return Outcome.failure(id, query, system, str(error), perf_counter() - started, spent.usage)
        return outcome if outcome.seconds else replace(outcome, seconds=perf_counter() - started)

    def close(self) -> None:
        """Release the engines' files and the models' connections."""
        close_all(self.opened.memo)
        self.opened.models.close()


@dataclass(frozen=True, slots=True)
class Done:
    """What a job came to, and the exchanges with models that nobody has been told of where it was done."""

    outcome: Outcome
    exchanges: tuple[Exchange, ...] = ()


_runners: dict[str, tuple[TopicRunner, Listener | None]] = {}
_opening = threading.Lock()


def run_job(key: str, plan: str, system: str, topic: str) -> Done:
    """What one topic comes to under one system, wherever this is called: the first call in a process opens the runner.

    `plan` is the plan as JSON, `key` names it and the state of its collection.
    """
    untold: list[Exchange] = []
    with _opening, exchanges_to(untold.append):
        if key not in _runners:
            _runners[key] = TopicRunner.open(Plan.model_validate_json(plan)), None
    runner, listener = _runners[key]
    tell = listener or untold.append
    with one_blas_thread(), exchanges_to(lambda exchange: tell(replace(exchange, system=system, topic=topic))):
        outcome = runner.outcome(system, topic)
    return Done(outcome, tuple(untold))


def keep_open(key: str, runner: TopicRunner, listener: Listener) -> None:
    """Let `run_job` in this process use `runner` for `key`, and tell `listener` of its exchanges as they happen."""
    _runners[key] = runner, listener


def close(key: str) -> None:
    """Forget the runner of `key` in this process and release its files."""
    if found := _runners.pop(key, None):
        found[0].close()
