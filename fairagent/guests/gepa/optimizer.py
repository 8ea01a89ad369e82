"""GEPA on a template: candidates by reflection on the tuning half of the topics, the winner's test on the other."""

from __future__ import annotations

import difflib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from fairagent.extend import (
    CORRECTIONS,
    SAME,
    BudgetExceeded,
    DataError,
    Model,
    ModelRequest,
    Models,
    Prompts,
    ReplyError,
    Usage,
    UsageError,
    bootstrap_intervals,
    changes,
    file_text,
    fingerprint,
    installed,
    locked,
    logger,
    paired_randomization,
    parse_json,
    query_shown,
    remove_folder,
    seeded,
    wins_ties_losses,
    with_note,
    write_whole,
)
from fairagent.guests.gepa.plan import REVISE, OptimizePlan
from fairagent.guests.gepa.texts import key_of_text, sections_of
from fairagent.guests.gepa.trials import JOURNAL, TemplateTrials, Tried

HEAD = "optimize.json"
LARGEST_HEAD = 1 << 26
"""Bytes."""
OnCandidate = Callable[[str, int, float], None]
"""Gets what happened (`start`, `scored`, `refused`), the number of the candidate, and its mean score."""

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class WinnerTest:
    """The winner against the start on the topics that it was not chosen by; `difference` is of mean scores.

    `low` and `high` are the 95 % bootstrap interval of the difference, `p` that of the paired randomization test.
    `means` are of start and winner by measure.
    """

    topics: int
    difference: float
    low: float
    high: float
    p: float | None
    wins: int
    ties: int
    losses: int
    means: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class OptimizedTemplate:
    """What came of an optimization; `winner` is the whole file, "" where nothing scored better than the start.

    `scores` are the mean scores of start and winner on the tuning half, `candidates` the wordings asked for, `refused`
    those that were no template to the end. `ended` says why no more were tried. `test` is None without a winner.
    """

    start: str
    winner: str
    scores: tuple[float, float]
    candidates: int
    refused: int
    ended: str
    test: WinnerTest | None
    usage: Usage

    @property
    def better(self) -> bool:
        """Whether the winner is better than the start on the other half as well."""
        return self.test is not None and self.test.difference > SAME

    def diff(self, id: str) -> list[str]:
        """The winner as a unified diff against the start."""
        names = f"start/{id}.j2", f"winner/{id}.j2"
        return list(difflib.unified_diff(self.start.splitlines(), self.winner.splitlines(), *names, lineterm=""))


class TemplateAdapter:
    """What GEPA's engine asks for (its protocol `GEPAAdapter`): scores of a candidate, what happened, a new wording.

    `error` is what ended it: GEPA notes errors of proposals and goes on, where a budget that is used up has to end it.
    """

    def __init__(self, trials: TemplateTrials, model: Model, on_candidate: OnCandidate) -> None:
        self.trials = trials
        self.error: Exception | None = None
        self.requested = 0
        self.refused = 0
        self.scored: dict[str, float] = {}
        self._model = model
        self._tell = on_candidate
        self._prompts = Prompts(trials.plan.source)

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        """The scores of a candidate on these topics."""
        plan = self.trials.plan
        with self._heard():
            tried = self.trials.tried(candidate[plan.id], batch)
        scores = [one.score for one in tried]
        if len(set(batch)) == len(plan.tune) and candidate[plan.id] not in self.scored:
            self.scored[candidate[plan.id]] = fmean(scores)
            self._tell("start" if len(self.scored) == 1 else "scored", self.requested, fmean(scores))
        batch_of = installed("gepa", "prompts optimize").EvaluationBatch
        return batch_of(outputs=[None] * len(tried), scores=scores, trajectories=tried if capture_traces else None)

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> dict[str, list[dict[str, str]]]:
        """What it did on each topic, in words."""
        tried: Sequence[Tried] = eval_batch.trajectories
        records = [{"query": query_shown(one.query), "happened": one.happened} for one in tried]
        return dict.fromkeys(components_to_update, records)

    def propose_new_texts(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        """A new wording; none where the model gave the same again, or no template in three attempts."""
        with self._heard():
            if self.error:
                raise self.error
            plan = self.trials.plan
            self.requested += 1
            body = self._wording(candidate[plan.id], reflective_dataset[plan.id])
        if body is None:
            self.refused += 1
            self._tell("refused", self.requested, 0.0)
        return {plan.id: body} if body is not None and body not in self.scored else {}

    def _wording(self, body: str, topics: Sequence[Mapping[str, Any]]) -> str | None:
        """The model's wording without a fault; each fault is named in the next request."""
        plan = self.trials.plan
        values = {"template": body, "values": plan.values, "topics": list(topics)}
        request = self._prompts.request(REVISE, values)
        current = request
        for attempt in range(1 + CORRECTIONS):
            # Each request is one of its own by its seed: the cache would give the same wording again.
            current = replace(current, seed=(plan.seed + self.requested) * (1 + CORRECTIONS) + attempt)
            text, problem = self._reply(current)
            sections = sections_of(text)
            faults = [problem] if problem else plan.start.faults(sections, plan.source)
            if not faults:
                return sections
            listed = "\n".join(f"- {fault}" for fault in faults)
            log.info("a wording of %s has faults: %s", plan.id, "; ".join(faults))
            current = with_note(request, f"Your last one cannot be used:\n{listed}\nWrite it again, whole:")
        return None

    def _reply(self, request: ModelRequest) -> tuple[str, str]:
        """The model's text, paid for once, and why it is of no use ("": it may be)."""
        key = hashlib.sha256(json.dumps([request.seed, request.messages]).encode()).hexdigest()
        stored = self.trials.reply(key)
        if stored is None:
            try:
                stored = json.dumps([self._model.complete(request).text, ""])
            except ReplyError as error:
                stored = json.dumps(["", str(error)])
            self.trials.keep_reply(key, stored)
        text, problem = parse_json(stored)
        return text, problem

    @contextmanager
    def _heard(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.error = self.error or error
            raise


class _GepaLog:
    """GEPA's log, among ours."""

    def log(self, message: str) -> None:
        log.debug("%s", message)


def optimize(
    plan: OptimizePlan,
    folder: Path,
    new: bool = False,
    on_candidate: OnCandidate = lambda what, number, score: None,
    clock: Callable[[], float] = time.monotonic,
) -> OptimizedTemplate:
    """Carry out the plan in `folder`, or go on with what is there: the result is the same, and nothing is paid twice.

    With a budget, so much of it is kept back as the test may take; where the rest is used up, the best so far is
    tested. Raises UsageError where `folder` holds something else, and BudgetExceeded where not even the start could be
    scored; what was paid for stays in the folder.
    """
    engine = installed("gepa", "prompts optimize")
    _check_free(folder)
    with locked(folder):
        made_from = _take_up(plan, folder, new)
        key = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
        began = clock()
        with TemplateTrials(plan, folder, key) as trials:
            with _models(plan, plan.budget_of_tuning()) as models:
                trials.models = models
                adapter = TemplateAdapter(trials, models.open(plan.proposer), on_candidate)
                ended = _evolve(engine, plan, adapter)
            usage, test = models.usage, None
            best = max(adapter.scored, key=lambda body: adapter.scored[body])
            start = adapter.scored[plan.start.body]
            won = adapter.scored[best] > start + SAME
            if won:
                with _models(plan, plan.budget_of_testing(usage, clock() - began)) as models:
                    trials.models = models
                    trials.forget_systems()
                    test = _test(plan, trials, best)
                usage = usage + models.usage
    return OptimizedTemplate(
        start=plan.start.whole(plan.start.body),
        winner=plan.start.whole(best) if won else "",
        scores=(start, adapter.scored[best]),
        candidates=adapter.requested,
        refused=adapter.refused,
        ended=ended,
        test=test,
        usage=usage,
    )


def _check_free(folder: Path) -> None:
    if not folder.exists() or (folder / HEAD).is_file():
        return
    if any(not one.name.startswith(".") for one in folder.iterdir()):
        raise UsageError(f"{folder} is there and holds no optimization; name a new or an empty folder with --run")


@contextmanager
def _models(plan: OptimizePlan, budget: Any) -> Iterator[Models]:
    models = Models(plan.checked.plan.cache, budget, plan.prices)
    try:
        yield models
    finally:
        models.close()


def _evolve(engine: Any, plan: OptimizePlan, adapter: TemplateAdapter) -> str:
    """Let GEPA try candidates until there are as many as planned, or the budget is used up; returns why it ended."""
    with suppress(BudgetExceeded):
        engine.optimize(
            {plan.id: plan.start.body},
            trainset=list(plan.tune),
            valset=list(plan.tune),
            adapter=adapter,
            reflection_minibatch_size=plan.batch,
            stop_callbacks=[lambda state: adapter.error is not None or state.i >= plan.candidates - 1],
            logger=_GepaLog(),
            seed=plan.seed,
        )
    if adapter.error is None:
        return "as planned"
    if not isinstance(adapter.error, BudgetExceeded) or plan.start.body not in adapter.scored:
        raise adapter.error
    return f"the budget is used up, but for what the test may take: {adapter.error}"


def _test(plan: OptimizePlan, trials: TemplateTrials, winner: str) -> WinnerTest:
    """The winner against the start on the other half."""
    start, won = trials.tried(plan.start.body, plan.test), trials.tried(winner, plan.test)
    differences = np.array([[after.score - before.score for before, after in zip(start, won, strict=True)]])
    differences[np.abs(differences) <= SAME] = 0
    low, high = bootstrap_intervals(differences, seeded(plan.seed, "bootstrap", "", plan.measure))
    (p,) = paired_randomization(differences, seeded(plan.seed, "randomization", "", plan.measure))
    names = dict.fromkeys(name for one in (*start, *won) for name in one.values)
    means = {
        name: tuple(fmean(one.values[name] for one in side if name in one.values) for side in (start, won))
        for name in names
    }
    wins = wins_ties_losses(differences[0])
    return WinnerTest(
        len(plan.test),
        float(differences.mean()),
        float(low[0]),
        float(high[0]),
        p,
        *wins,
        means,  # type: ignore[arg-type]
    )


def _take_up(plan: OptimizePlan, folder: Path, new: bool) -> dict[str, Any]:
    """Begin in `folder`, or go on with what is there; UsageError where that was made from something else."""
    made_from: dict[str, Any] = parse_json(
        json.dumps(
            {
                **fingerprint(plan.checked),
                "topics": {"tune": list(plan.tune), "test": list(plan.test)},
                "template": {"id": plan.id, "sections": key_of_text(plan.start.body)},
                "batch": plan.batch,
                "proposer": plan.proposer.name,
            }
        )
    )
    path = folder / HEAD
    if new:
        for name in (HEAD, JOURNAL):
            (folder / name).unlink(missing_ok=True)
        remove_folder(folder / "candidates")
    elif path.is_file():
        try:
            before = parse_json(file_text(path, LARGEST_HEAD, within=folder))
            changed = changes(before, made_from)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError(f"{path}: cannot be read; start over with --new") from None
        if changed:
            lines = [f"the optimization in {folder} was made from something else:", *(f"  {one}" for one in changed)]
            raise UsageError("\n".join([*lines, "put that back, start over with --new, or name another folder"]))
    write_whole(path, json.dumps(made_from, indent=1) + "\n")
    return made_from
