"""Running an experiment: what is missing is done, each outcome is journaled, and the tables are written from that."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from fairagent.errors import DataError, FairAgentError, FatalModelError, IndexMismatch, ModelError, UsageError
from fairagent.evaluate.check import CheckedExperiment
from fairagent.evaluate.fingerprint import changes, fingerprint, keys, provenance, without_passwords
from fairagent.evaluate.kind import SEARCH, Opened, open_collection
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.plan import Plan, prepared
from fairagent.evaluate.results import made_files, write_results
from fairagent.evaluate.run import (
    FORMAT,
    HEAD,
    JOURNAL,
    TRANSCRIPT,
    Journal,
    Results,
    answers,
    load_run,
    read_head,
    read_outcomes,
    write_head,
)
from fairagent.evaluate.workers import Workers
from fairagent.llm.budget import ledger
from fairagent.llm.exchange import Exchange, Listener, Transcript, exchanges_to, one_search
from fairagent.llm.models import Models
from fairagent.retrieve.bm25.part import close_all
from fairagent.settings.parts import Progress
from fairagent.storage.files import LOCK, is_left_over, locked
from fairagent.storage.threads import Memo, one_blas_thread

ATTEMPTS = 3
"""How often a topic that fails is tried under one system, over all repetitions of the command."""
NOT_IN_PLAN: Any = {"cache": True, "budget": True, "experiment": {"cache", "budget"}}
"""What is left out of the plan in run.json: it may be another each time."""


class TopicRunner:
    """The trial of an experiment, which makes an outcome of a topic and a system; threads may share it.

    To make it opens the engines and builds the systems, which may train some of them.
    """

    def __init__(self, plan: Plan, checked: CheckedExperiment | None = None, models: Models | None = None) -> None:
        kind, models = plan.experiment, models or Models(plan.cache, plan.budget, plan.prices)
        collection = checked.collection if checked else open_collection(kind)
        subject = checked.subject if checked else kind.open(collection)
        self.opened = Opened(plan, collection, subject, models, Memo())
        self.trial = kind.trial(self.opened)

    def outcome(self, system: str, id: str) -> Outcome:
        """One topic under one system, failed where data or replies are at fault; what fails every topic is raised."""
        started = perf_counter()
        # A key that expires ends the run: topics without the model would be counted as its own.
        with ledger() as spent, one_search(serves=False):
            try:
                outcome = self.trial.outcome(system, id)
            except (DataError, ModelError) as error:
                if isinstance(error, FatalModelError | IndexMismatch):
                    raise
                query = self.opened.subject.topics[id].query
                return Outcome.failure(id, query, system, str(error), perf_counter() - started, spent.usage)
        return outcome if outcome.seconds else replace(outcome, seconds=perf_counter() - started)


_runners: dict[str, tuple[TopicRunner, Listener | None]] = {}
"""The open runners of this process, each with the listener that hears of exchanges as they happen, if there is one."""
_opening = threading.Lock()


def run_job(key: str, plan: str, system: str, topic: str) -> tuple[Outcome, tuple[Exchange, ...]]:
    """One topic under one system, and the exchanges with models that no listener has heard of in its process.

    The first call in a process opens the runner of `plan` (JSON), which `key` names.
    """
    exchanges: list[Exchange] = []
    with _opening, exchanges_to(exchanges.append):
        if key not in _runners:
            _runners[key] = TopicRunner(Plan.model_validate_json(plan)), None
    runner, listener = _runners[key]
    add = listener or exchanges.append
    with one_blas_thread(), exchanges_to(lambda exchange: add(replace(exchange, system=system, topic=topic))):
        outcome = runner.outcome(system, topic)
    return outcome, tuple(exchanges)


def build_indexes(checked: CheckedExperiment, progress: Progress = lambda what, done: None) -> None:
    """Build the indexes and embeddings that the systems need and that are not there."""
    if checked.plan.experiment.uses >= SEARCH:
        for part, site in prepared(checked.plan.systems, checked.collection):
            part.prepare(site, progress)


def run_experiment(
    checked: CheckedExperiment,
    folder: Path,
    workers: Workers,
    new: bool = False,
    progress: Callable[[int, int], None] = lambda done, all: None,
    environ: Mapping[str, str] | None = None,
    models: Models | None = None,
) -> Results:
    """Run what `folder` does not hold yet, and write its results; the indexes must be there (`build_indexes`).

    It may be repeated after any interruption, with the same results. `new` starts over. `progress` gets how many jobs
    are done, and of how many; the caller closes `models`. Raises UsageError where `folder` holds something else,
    BackendUnavailable where another process works in it, and what ends a run (no key, no budget, Ctrl-C) after the
    results so far have been written, marked as partial.
    """
    # A run's folder may have these before its run.json: whoever began it may have been killed.
    others = (path.name for path in folder.iterdir()) if folder.exists() and not (folder / HEAD).is_file() else ()
    if any(name != LOCK and not is_left_over(name) for name in others):
        raise UsageError(f"{folder} is there and holds no run; name a new or an empty folder with --run")
    with one_blas_thread(), locked(folder):
        made_from = fingerprint(checked, environ)
        if new:
            for path in made_files(folder):
                path.unlink()
        elif (folder / HEAD).is_file():
            before = read_head(folder)["fingerprint"]
            if changed := changes(before, made_from):
                lines = [f"the run in {folder} was made from something else; going on would mix the outcomes of both:"]
                lines += [f"  {change}" for change in changed]
                lines += ["put that back, start over with --new, or name another folder with --run"]
                raise UsageError("\n".join(lines))
            # Systems that the file no longer names may come back, and must then be what they were.
            made_from = {**made_from, "systems": {**before["systems"], **made_from["systems"]}}
        head = {
            "format": FORMAT,
            "plan": without_passwords(checked.plan.model_dump(mode="json", exclude=NOT_IN_PLAN)),
            "excluded": dict(checked.excluded),
            "fingerprint": made_from,
            "provenance": provenance(checked, environ),
        }
        write_head(folder, head)
        try:
            _run_rest(checked, folder, workers, progress, models)
        except BaseException:
            with suppress(FairAgentError):
                _conclude(folder)
            raise
        return _conclude(folder)


def _conclude(folder: Path) -> Results:
    """The run so far, its tables written, and in its run.json what the models' servers could not do."""
    run, head = load_run(folder), read_head(folder)
    models = head["provenance"]["models"]
    for system, model in models.items():
        of_system = (outcome for outcome in run.outcomes if outcome.system == system)
        model["notes"] = sorted({note for outcome in of_system for note in outcome.notes})
    write_head(folder, head)
    run = replace(run, provenance={**run.provenance, "models": models})
    write_results(run, folder)
    return run


def _run_rest(
    checked: CheckedExperiment,
    folder: Path,
    workers: Workers,
    progress: Callable[[int, int], None],
    models: Models | None,
) -> None:
    plan, head = checked.plan, read_head(folder)
    outcomes = read_outcomes(folder, head)
    latest = answers(outcomes)
    failed = Counter((outcome.topic, outcome.system) for outcome in outcomes if outcome.failed is not None)
    rest = [
        (system, topic)
        for system, topic in plan.jobs
        if (topic, system) not in latest
        or (latest[topic, system].failed is not None and failed[topic, system] < ATTEMPTS)
    ]
    all_jobs = len(plan.jobs)
    done = all_jobs - len(rest)
    progress(done, all_jobs)
    if not rest:
        return
    text = plan.model_dump_json()
    key = json.dumps([str(folder.absolute()), text, head["fingerprint"]])
    path = folder / TRANSCRIPT
    try:
        with Transcript(path) as transcript:
            with exchanges_to(transcript.add):
                runner = TopicRunner(plan, checked, models)
                _runners[key] = runner, transcript.add
            try:
                with Journal(folder / JOURNAL, keys(head["fingerprint"])) as journal:

                    def record(job: tuple[Outcome, tuple[Exchange, ...]]) -> None:
                        nonlocal done
                        for exchange in job[1]:
                            transcript.add(exchange)
                        journal.add(job[0])
                        done += 1
                        progress(done, all_jobs)

                    calls = ((run_job, (key, text, system, topic)) for system, topic in rest)
                    workers.for_each(calls, record, len(rest))
            finally:
                # Engines' files and models' connections of this process.
                if entry := _runners.pop(key, None):
                    close_all(entry[0].opened.memo)
                    entry[0].opened.models.close()
    finally:
        # A run that uses no model leaves no transcript.
        if path.is_file() and not path.stat().st_size:
            path.unlink()
