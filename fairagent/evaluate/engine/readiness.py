"""What of an experiment can run on this machine, system by system, and what the others lack; nothing is run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairagent.errors import FairAgentError
from fairagent.evaluate.engine.check import examine
from fairagent.evaluate.engine.problems import Problems, place_in
from fairagent.evaluate.engine.worst_case import Estimate, estimate
from fairagent.settings import read_yaml


@dataclass(frozen=True, slots=True)
class Readiness:
    """What an experiment lacks; `lacks` is every message once, in the order found.

    `systems` says of each system which of them keep it from running (their places in `lacks`, from 0): its own, and
    those that are everybody's. `costs` is at most what language models are asked, None where the topics are not there
    and nobody can count. `exit_code` is what running it would end with now, 0 where all can run.
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
    """The readiness of the experiment in `file`; `limit` takes so many of its topics, as there.

    Nothing is built, fetched or asked. SettingsError where too little of the file is right to look any further.
    """
    problems = Problems()
    kind, checked = examine(read_yaml(file), file, file.parent, problems, limit, environ, labeled=True)
    own = problems.by_system(kind.systems)
    everybodys = [error for error in problems.found if not any(error in errors for errors in own.values())]
    messages = tuple(dict.fromkeys(_message(error, own) for error in problems.found))
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
        problems.found[0].exit_code if problems.found else 0,
    )


def _message(error: FairAgentError, names: Iterable[str]) -> str:
    """What is lacking, without the system that lacks it: several may lack the same."""
    place = place_in(str(error), names)
    return place[1] if place else str(error)
