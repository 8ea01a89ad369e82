"""The calls of language models that an experiment makes at most, and what of it can run on this machine.

Parts have a worst case (`Part.worst_case`); kinds of experiments add their own. Prompts are rendered and counted as one
token for every four characters.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairagent.collection.exposure import dimensions_of
from fairagent.errors import FairAgentError
from fairagent.evaluate.check import CheckedExperiment, examine
from fairagent.evaluate.fields import Problems, place_in
from fairagent.evaluate.reading import SystemPlan
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.calls import Calls, Case
from fairagent.settings import read_yaml


@dataclass(frozen=True, slots=True)
class Estimate:
    """At most so many calls and tokens for all topics under one system, and US dollars (None: no price is set).

    `waiting` are the seconds that the calls may take one after the other, each up to its time limit. Corrections of
    invalid replies and attempts that are repeated come on top.
    """

    system: str
    model: str
    topics: int
    calls: int
    input_tokens: int
    output_tokens: int
    dollars: float | None
    waiting: float


def estimate(checked: CheckedExperiment) -> list[Estimate]:
    """One line a system, those that use no model taking nothing; before them, the calls that come beforehand."""
    plan, kind = checked.plan, checked.plan.experiment
    calls = [(what, [one]) for what, one in kind.calls_before(plan, checked.subject)]
    for name, system in plan.systems.items():
        of_kind = kind.worst_case(name, plan, checked.subject) if system.asks else ()
        calls.append((name, [*_searching(system, checked), *of_kind]))
    rows = []
    for name, of_row in calls:
        prices = [(one, plan.prices.get(one.model.name)) for one in of_row]
        priced = [price.dollars(one.input_tokens, one.output_tokens) for one, price in prices if price]
        rows.append(
            Estimate(
                name,
                of_row[0].model.name if of_row else "",
                len(plan.topics),
                sum(one.calls for one in of_row),
                sum(one.input_tokens for one in of_row),
                sum(one.output_tokens for one in of_row),
                float(sum(priced)) if len(priced) == len(of_row) else None,
                sum(one.calls * one.model.timeout for one in of_row),
            )
        )
    return rows


def _searching(system: SystemPlan, checked: CheckedExperiment) -> Iterator[Calls]:
    """The calls of the parts that a search uses."""
    settings = system.settings
    if not system.searching_with:
        return
    groups = checked.collection.groups
    named = [(label, name) for name in dimensions_of(checked.collection, settings) for label in groups.labels(name)]
    longest = max(named, key=lambda pair: len(pair[0]) + len(pair[1]), default=("", ""))
    case = Case(settings, Prompts(settings.prompts), checked.queries, longest)
    for part in system.searching:
        yield from part.worst_case(case)


@dataclass(frozen=True, slots=True)
class Readiness:
    """What an experiment lacks; `lacks` has every message once.

    `systems` says of each system which of them stop it (their places in `lacks`, from 0): its own, and those that are
    everybody's. `costs` are those of language models at most, None where the topics are not there to be counted.
    `exit_code` is what running it would end with now, 0 where all can run.
    """

    name: str
    about: str
    topics: int
    lacks: tuple[str, ...]
    systems: Mapping[str, tuple[int, ...]]
    costs: tuple[Estimate, ...] | None
    exit_code: int

    @property
    def ready(self) -> tuple[str, ...]:
        """The systems that can run."""
        return tuple(name for name, lacking in self.systems.items() if not lacking)


def readiness(file: Path, limit: int | None = None, environ: Mapping[str, str] = os.environ) -> Readiness:
    """The readiness of the experiment in `file`; `limit` as in `check_experiment`.

    Nothing is built or fetched. SettingsError where too little of the file is right to look any further.
    """
    problems = Problems()
    kind, checked = examine(read_yaml(file), file, file.parent, problems, limit, environ, labeled=True)
    own = problems.by_system(kind.systems)
    everybodys = [error for error in problems.errors if not any(error in errors for errors in own.values())]
    messages = tuple(dict.fromkeys(_message(error, own) for error in problems.errors))
    return Readiness(
        kind.name,
        kind.about.strip(),
        len(checked.plan.topics) if checked else 0,
        messages,
        {
            name: tuple(sorted({messages.index(_message(error, own)) for error in (*everybodys, *errors)}))
            for name, errors in own.items()
        },
        tuple(estimate(checked)) if checked and checked.plan.topics else None,
        problems.errors[0].exit_code if problems.errors else 0,
    )


def _message(error: FairAgentError, names: Iterable[str]) -> str:
    """What is lacking, without the system that lacks it: several may lack the same."""
    place = place_in(str(error), names)
    return place[1] if place else str(error)
