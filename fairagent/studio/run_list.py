"""The list of runs: of each folder its systems, how far it has come, what it cost, and its best systems so far.

A list is asked for every two seconds while a run goes on, and a journal has megabytes: of each only what was added
since it was read last is read. Checksums are looked at where a run is opened.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from fairagent.extend import (
    HEAD,
    JOURNAL,
    PAGE,
    FairAgentError,
    PlainRecord,
    Plan,
    UsageError,
    is_worked_in,
    leading_measure,
    lower_is_better,
    open_to_read,
    parse_json,
    plan_in,
    read_head,
    short_labels,
)

HEADS_IN_MEMORY = 256


@dataclass(frozen=True, slots=True)
class TalliedOutcome:
    """What a list needs of an outcome; `values` and `cost` as in `Outcome`."""

    values: Mapping[str, Mapping[str, float]]
    failed: bool
    calls: int
    tokens: tuple[int, int]
    cost: float | None
    oracle: bool


@dataclass(slots=True, eq=False)
class JournalTally:
    """The last outcome of each topic and system in a journal, an answer counting more than a failure."""

    outcomes: dict[tuple[str, str], TalliedOutcome] = field(default_factory=dict)
    _file: int = -1
    _read: int = 0

    def read_on(self, folder: Path) -> None:
        """Add the whole lines that came since; those of a file that was begun anew, from its start."""
        path = folder / JOURNAL
        if not path.exists():
            self._begin(-1)
            return
        with open_to_read(path, folder) as file:
            about = path.stat()
            if about.st_ino != self._file or about.st_size < self._read:
                self._begin(about.st_ino)
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                self._add(line)

    def _begin(self, file: int) -> None:
        self.outcomes.clear()
        self._file, self._read = file, 0

    def _add(self, line: bytes) -> None:
        try:
            entry = parse_json(line.decode())
            key = entry["topic"], entry["system"]
            tokens = int(entry["input_tokens"]), int(entry["output_tokens"])
            failed = entry["failed"] is not None
            cost = None if entry["cost"] is None else float(entry["cost"])
            outcome = TalliedOutcome(entry["values"], failed, int(entry["calls"]), tokens, cost, bool(entry["oracle"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return  # the run's own page names it
        before = self.outcomes.get(key)
        if not failed or before is None or before.failed:
            self.outcomes[key] = outcome


class RunList:
    """The runs of a folder; what it has read of them is kept."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._tallies: dict[Path, JournalTally] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """The runs that can be read, the newest first; UsageError where there is none."""
        names = [run["name"] for run in self.record()["runs"] if "fault" not in run]
        if not names:
            raise UsageError(f"there is no run in {self.root}; fairagent evaluate makes one")
        return names

    def record(self) -> PlainRecord:
        """All runs, the one that was begun last first."""
        with self._lock:
            folders = sorted(run_folders(self.root), key=lambda folder: (-_begun(folder), folder.name))
            self._tallies = {folder: self._tallies.get(folder, JournalTally()) for folder in folders}
            return {"folder": str(self.root), "runs": [self._run(folder) for folder in folders]}

    def _run(self, folder: Path) -> PlainRecord:
        tally = self._tallies[folder]
        try:
            plan, excluded = _plan(folder, _begun(folder))
            tally.read_on(folder)
        except FairAgentError as error:
            return {"name": folder.name, "fault": str(error)}
        systems, topics = list(plan.systems), plan.topics
        done = {key: one for key, one in tally.outcomes.items() if key[0] in topics and key[1] in plan.systems}
        planned = len(systems) * len(topics)
        running = len(done) < planned and is_worked_in(folder)
        return {
            "name": folder.name,
            "title": plan.experiment.name,
            "kind": plan.experiment.kind,
            "begun": datetime.fromtimestamp(_begun(folder), UTC).isoformat(timespec="seconds"),
            "state": "done" if len(done) == planned else "running" if running else "not finished",
            "systems": systems,
            "baseline": plan.baseline,
            "topics": len(topics),
            "outcomes": len(done),
            "planned": planned,
            "failed": sum(one.failed for one in done.values()),
            "best": best_systems(plan, excluded, done),
            "cost": cost_of(list(done.values())),
            "page": (folder / PAGE).is_file(),
        }


def cost_of(outcomes: Sequence[TalliedOutcome]) -> PlainRecord:
    """What the replies of all outcomes took, paid for now or cached; `cost` is None where a price is not known."""
    costs = [one.cost for one in outcomes]
    return {
        "calls": sum(one.calls for one in outcomes),
        "input_tokens": sum(one.tokens[0] for one in outcomes),
        "output_tokens": sum(one.tokens[1] for one in outcomes),
        "cost": None if None in costs else sum(filter(None, costs)),
    }


def best_systems(
    plan: Plan, excluded: Mapping[str, str], outcomes: Mapping[tuple[str, str], TalliedOutcome]
) -> list[PlainRecord]:
    """In each dimension the system with the best mean by the `leading_measure`, beside the baseline's.

    Over the topics that count and that every system has answered so far. Systems that looked at the judgments are left
    out, and so is a dimension whose measure has no better end.
    """
    finished = [
        topic
        for topic in plan.topics
        if topic not in excluded
        and all((one := outcomes.get((topic, system))) and not one.failed for system in plan.systems)
    ]
    oracles = {system for (_, system), one in outcomes.items() if one.oracle}
    honest = [system for system in plan.systems if system not in oracles]
    lower = lower_is_better(plan.experiment, plan.dimensions)
    neutral = {one.name for one in plan.experiment.measured(plan.dimensions) if one.neutral}
    names = short_labels(plan.measures)
    rows = []
    for dimension in ("",) if plan.experiment.classes else plan.dimensions or ("",):

        def values(topic: str, system: str, dimension: str = dimension) -> Mapping[str, float]:
            return outcomes[topic, system].values.get(dimension, {})

        # A measure that all systems have for a topic.
        topics_of = {
            measure: [topic for topic in finished if all(measure in values(topic, one) for one in plan.systems)]
            for measure in plan.measures
        }
        measure = leading_measure([measure for measure, topics in topics_of.items() if topics])
        if measure is None or measure in neutral or not honest:
            continue
        means = {one: fmean(values(topic, one)[measure] for topic in topics_of[measure]) for one in plan.systems}
        best = (min if measure in lower else max)(honest, key=lambda system: means[system])
        rows.append(
            {
                "dimension": dimension,
                "measure": names[measure],
                "definition": measure,
                "system": best,
                "mean": means[best],
                "baseline": means[plan.baseline],
                "topics": len(topics_of[measure]),
            }
        )
    return rows


def run_folders(root: Path) -> list[Path]:
    """The folders of `root` that hold a run, by name; none that is a link."""
    folders = sorted(root.iterdir()) if root.is_dir() else []
    return [folder for folder in folders if (folder / HEAD).is_file() and not folder.is_symlink()]


def _begun(folder: Path) -> float:
    """When run.json was written: when the run was begun, or its plan changed; seconds since 1970, 0 without one."""
    try:
        return (folder / HEAD).stat().st_mtime
    except OSError:
        return 0.0


@lru_cache(maxsize=HEADS_IN_MEMORY)
def _plan(folder: Path, begun: float) -> tuple[Plan, dict[str, Any]]:
    """The plan of a run and the topics that it excludes; `begun` only tells one run.json from another."""
    head = read_head(folder)
    return plan_in(head, folder), head["excluded"]
