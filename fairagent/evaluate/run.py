"""An experiment's run as values, finished or not: what tables and pages are made of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairagent.errors import DataError, UsageError
from fairagent.evaluate.comparison import Comparison, compare
from fairagent.evaluate.fair_rag.normalize import with_normalized_utility
from fairagent.evaluate.fair_rag.section import Draws, FairRag
from fairagent.evaluate.journal import read_journal
from fairagent.evaluate.outcome import GroupShares, HitRecord, Outcome, StepRecord
from fairagent.evaluate.plan import SystemPlan
from fairagent.evaluate.stereotypes.section import MEASURES, LocalModel
from fairagent.evaluate.utility.section import Shown, Utility
from fairagent.stereotypes.choice import FORCED_CHOICE

__all__ = ["Comparison", "GroupShares", "HitRecord", "Outcome", "Run", "StepRecord", "load_run"]

HEAD = "run.json"
JOURNAL = "journal.jsonl"


@dataclass(frozen=True, slots=True)
class Run:
    """An experiment's run: `systems` in their order, the baseline first.

    `outcomes` holds the last outcome of every topic and system that was tried, failed ones too, in the order of the
    topics and systems; `excluded` says of each topic that no system is judged by why. `partial` marks a run that is not
    finished: its comparisons cover the topics that all systems have answered. `oracle_systems` looked at the
    judgments. `questions`: the topics are questions that were answered, and the dimensions their bias types or domains.
    `draws`: in a Fair RAG experiment, how the rankings of each of the systems are drawn. `utility` and `shown`: what a
    utility experiment measures, and whose documents each of the systems shows in which order. `choices` and `way`: of
    which benchmark's sentences a model preferred some, and how that was found out.
    `expected` are numbers to compare with (a paper's): system -> dimension ("" for relevance alone) ->
    measure -> value.
    """

    name: str
    collection: str
    n: int
    systems: tuple[str, ...]
    baseline: str
    dimensions: tuple[str, ...]
    measures: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    outcomes: tuple[Outcome, ...]
    excluded: Mapping[str, str]
    provenance: Mapping[str, object]
    partial: bool
    oracle_systems: tuple[str, ...]
    expected: Mapping[str, Mapping[str, Mapping[str, float]]] | None
    questions: bool = False
    draws: Mapping[str, Draws] = field(default_factory=dict)
    utility: Utility | None = None
    shown: Mapping[str, Shown] = field(default_factory=dict)
    choices: str = ""
    way: str = ""

    @property
    def compared_in(self) -> tuple[str, ...]:
        """The dimensions that systems are compared in: those of fairness, or "" where all questions are one."""
        return ("",) if self.questions else self.dimensions or ("",)

    @property
    def overall(self) -> str:
        """What the dimension "" is called."""
        return "all" if self.questions or self.utility else "relevance"


def load_run(folder: Path | str, baseline: str = "") -> Run:
    """The run in `folder`, from its run.json and journal alone; `baseline` takes the place of the experiment's.

    Raises UsageError where there is no run or no such system, DataError where a file of it is damaged.
    """
    folder = Path(folder)
    head = read_head(folder)
    plan = head["plan"]
    systems = list(plan["systems"])
    if baseline:
        if baseline not in systems:
            raise UsageError(f"the run has no system {baseline!r}; there are: {', '.join(systems)}")
        systems.sort(key=lambda name: name != baseline)
    latest = answers(read_journal(folder / JOURNAL))
    topics: list[str] = plan["topics"]
    failed = {
        topic: f"{system} failed: {outcome.failed}"
        for topic in topics
        for system in reversed(systems)
        if (outcome := latest.get((topic, system))) and outcome.failed is not None
    }
    done = [topic for topic in topics if topic not in failed and all((topic, system) in latest for system in systems)]
    draws: dict[str, Draws] = {}
    if plan.get("fair_rag"):
        rows = {name: SystemPlan.model_validate(plan["systems"][name]) for name in systems}
        latest = with_normalized_utility(latest, done, rows, FairRag.model_validate(plan["fair_rag"]))
        draws = {name: row.draws for name, row in rows.items() if row.draws}
    outcomes = tuple(latest[key] for topic in topics for system in systems if (key := (topic, system)) in latest)
    columns = [(dimension, measure) for dimension in ("", *plan["dimensions"]) for measure in plan["measures"]]
    return Run(
        name=plan["name"],
        collection=head["provenance"]["collection"]["name"],
        n=head["n"],
        systems=tuple(systems),
        baseline=systems[0],
        dimensions=tuple(plan["dimensions"]),
        measures=tuple(plan["measures"]),
        comparisons=compare(latest, done, systems, columns, plan["seed"]),
        outcomes=outcomes,
        excluded={**head["excluded"], **failed},
        provenance={"about": plan["about"], **head["provenance"], "systems": head["fingerprint"]["systems"]},
        partial=len(outcomes) < len(topics) * len(systems),
        oracle_systems=tuple(name for name in systems if any(o.oracle for o in outcomes if o.system == name)),
        expected=plan["expected"] or None,
        questions=plan.get("questions") is not None,
        draws=draws,
        utility=Utility.model_validate(plan["utility"]) if plan.get("utility") else None,
        shown={name: Shown.model_validate(row["shown"]) for name, row in plan["systems"].items() if row.get("shown")},
        **_choices(plan),
    )


def _choices(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Which benchmark's sentences were chosen among, and how; nothing where none were."""
    asked = plan.get("questions")
    if not asked or asked["task"] not in MEASURES:
        return {}
    local = asked.get("local")
    return {"choices": asked["task"], "way": LocalModel.model_validate(local).way if local else FORCED_CHOICE}


def read_head(folder: Path) -> dict[str, Any]:
    """run.json: the plan, what it was made from, where from, and what is left out. Errors as `load_run`."""
    path = folder / HEAD
    try:
        head = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{folder} holds no run ({HEAD} is missing); `fairagent evaluate FILE` makes one") from None
    except ValueError as error:
        raise DataError(f"{path}: cannot be read ({error}); start over with --new") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise DataError(f"{path}: this is no run of this version of fairagent; start over with --new")
    return head


FORMAT = 1
"""Of run.json."""


def answers(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], Outcome]:
    """(topic, system) -> the last outcome, an answer counting more than a failure."""
    latest: dict[tuple[str, str], Outcome] = {}
    for outcome in outcomes:
        key = (outcome.topic, outcome.system)
        if outcome.failed is None or key not in latest or latest[key].failed is not None:
            latest[key] = outcome
    return latest


def failures(outcomes: Sequence[Outcome]) -> Counter[tuple[str, str]]:
    """(topic, system) -> how often it has failed."""
    return Counter((outcome.topic, outcome.system) for outcome in outcomes if outcome.failed is not None)
