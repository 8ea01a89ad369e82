"""An experiment's run, finished or not: its files, what tables and pages are made of, and two runs side by side.

The journal has a line for each topic and system, on the disk before anything else happens. A process may die at any
moment. Then the last line may be torn; it is ignored, and its topic is done again. A line that is whole was forced to
the disk, so what was paid for once is not paid for twice. Every line ends in a checksum of itself and of what its
system was made from: no changed digit and no line of another run gets into a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from fairagent.collection.records import listed
from fairagent.collection.targets import EstimatedTarget, TrecEstimatedTarget
from fairagent.errors import DataError, Fault, UsageError
from fairagent.evaluate.comparison import Comparison, Equal, bootstrap_intervals, by_query, compare, equal_systems
from fairagent.evaluate.fingerprint import keys
from fairagent.evaluate.kind import ExperimentKind, KindResults, MeasureInfo
from fairagent.evaluate.outcome import Outcome, from_value, to_line
from fairagent.evaluate.plan import Plan
from fairagent.evaluate.thresholds import Threshold
from fairagent.measures.base import seeded
from fairagent.measures.parse import labels_of, leading_measure, short_labels
from fairagent.measures.trec_fair import Year
from fairagent.settings.faults import no_such, worded
from fairagent.storage.files import LineFile, checksum, unsealed, whole_lines, write_whole
from fairagent.storage.readers import file_text, parse_json
from fairagent.storage.threads import Memo
from fairagent.types import FloatArray, Usage
from fairagent.types.common import Summarized, counted

HEAD = "run.json"
JOURNAL = "journal.jsonl"
TRANSCRIPT = "transcript.jsonl"
"""The exchanges with models: no result is made from it, and it is not the same in every run."""
LARGEST_HEAD = 1 << 26
"""Bytes of run.json."""
FORMAT = 4
"""Of run.json and the journal; 1: plans did not say their kind; 2: no checksums; 3: another key in recall by group."""
SEAL = "sha256"
"""The key of run.json's checksum."""
NOT_FINITE = "a number in its outcome is not finite"
"""The error of an outcome that cannot be written."""


class Journal(LineFile):
    """The journal of a run; `keys` say of each system what it was made from."""

    def __init__(self, path: Path, keys: Mapping[str, str]) -> None:
        super().__init__(path)
        self._keys = keys

    def add(self, outcome: Outcome) -> None:
        """See `LineFile.write`; an outcome with a number that is not finite is written as a failed one."""
        try:
            line = to_line(outcome)
        except ValueError:
            failed = Outcome.failure(outcome.topic, outcome.query, outcome.system, NOT_FINITE, outcome.seconds)
            took = {name: getattr(outcome, name) for name in ("calls", "input_tokens", "output_tokens")}
            line = to_line(replace(failed, **took))
        self.write(line, self._keys[outcome.system])


def read_head(folder: Path) -> dict[str, Any]:
    """run.json: the plan, what it was made from, where from, and what is left out. Errors as `load_run`."""
    path = folder / HEAD
    try:
        head: dict[str, Any] = parse_json(file_text(path, LARGEST_HEAD, within=folder))
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{folder} holds no run ({HEAD} is missing); `fairagent evaluate FILE` makes one") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error}); start over with --new") from None
    layout = head.get("format") if isinstance(head, dict) else None
    if layout != FORMAT:
        older = f"an older version of fairagent (layout {layout}, this is {FORMAT})"
        made = older if isinstance(layout, int) and layout < FORMAT else "something else"
        raise DataError(
            f"{path}: this is no run of this version of fairagent, but of {made}; nothing was changed: name another "
            "folder with --run, or start over with --new"
        )
    if head.pop(SEAL, None) != _seal(head):
        raise DataError(
            f"{path}: is damaged, its checksum is not that of what it says; put it back from a copy, or start over "
            "with --new: cached replies are not paid for again"
        )
    return head


def plan_in(head: Mapping[str, Any], folder: Path) -> Plan:
    """The plan that the run.json of `folder` holds; DataError where it is none, as of a kind that has changed."""
    try:
        return Plan.model_validate(head["plan"])
    except (ValidationError, KeyError, TypeError) as error:
        why = f"plan: {error}"
        if isinstance(error, ValidationError):
            fault = error.errors(include_url=False)[0]
            why = f"{'.'.join(map(str, ('plan', *fault['loc'])))}: {worded(fault)}"
        raise DataError(f"{folder / HEAD}: is damaged ({why}); start over with --new") from None


def write_head(folder: Path, head: Mapping[str, Any]) -> None:
    """Write what `read_head` reads."""
    write_whole(folder / HEAD, json.dumps({**head, SEAL: _seal(head)}, indent=1, allow_nan=False) + "\n")


def _seal(head: Mapping[str, Any]) -> str:
    # As it is read again: a tuple is a list there, and a number a key.
    return checksum(json.dumps(parse_json(json.dumps(head)), sort_keys=True))


def read_outcomes(folder: Path, head: Mapping[str, Any] | None = None) -> list[Outcome]:
    """Every whole line of the journal of the run in `folder`, in order; `head` is its run.json, where that was read.

    Errors as `load_run`: DataError names every line that is no outcome of one of the systems, made from the same.
    """
    path, of_systems = folder / JOURNAL, keys((head or read_head(folder))["fingerprint"])
    outcomes: list[Outcome] = []
    faults: list[Fault] = []
    for number, line in enumerate(whole_lines(path, within=folder), start=1):
        try:
            values = parse_json(line.decode())
            system = values.get("system") if isinstance(values, dict) else None
            if not isinstance(system, str) or system not in of_systems:
                raise ValueError("of no system that the run has")
            unsealed(line, of_systems[system])
            outcomes.append(from_value(values))
        except (ValueError, RecursionError) as error:
            faults.append(Fault(path, number, f"no outcome of this run ({error})"))
    if faults:
        raise DataError("the journal is damaged; remove these lines to have their topics done again", faults)
    return outcomes


def answers(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], Outcome]:
    """(topic, system) -> the last outcome, an answer counting more than a failure."""
    latest: dict[tuple[str, str], Outcome] = {}
    for outcome in outcomes:
        key = (outcome.topic, outcome.system)
        if outcome.failed is None or key not in latest or latest[key].failed is not None:
            latest[key] = outcome
    return latest


@dataclass(frozen=True, slots=True, eq=False)
class MeanExposure:
    """What one system gives the groups of a dimension, (g,) shares and targets, as means over `topics` topics."""

    system: int
    labels: tuple[str, ...]
    shares: FloatArray
    target: FloatArray
    topics: int
    unknown: float
    unknown_target: float | None


@dataclass(frozen=True, slots=True)
class LoopGain:
    """By how much a system is better than itself without its loop, by the measure that the experiment is won by.

    `gain` is the mean over pairs of topic and dimension, `low` and `high` its 95 % interval, for which topics are
    resampled. `other` is the system without the loop, "" where the experiment does not name it.
    """

    system: str
    other: str
    measure: str
    gain: float
    low: float
    high: float
    topics: int
    pairs: int

    def __str__(self) -> str:
        if self.low <= 0 <= self.high:
            verdict = f"adds nothing measurable here ({self.measure} {self.gain:+.3f}"
        else:
            verdict = f"{f'adds +{self.gain:.3f}' if self.gain > 0 else f'costs {-self.gain:.3f}'} ({self.measure}"
        pairs = f", {self.pairs:,} pairs of topic and dimension" if self.pairs > self.topics else ""
        return (
            f"{self.system}: the loop {verdict}, 95 % interval {self.low:+.3f} to {self.high:+.3f}; "
            f"{counted(self.topics, 'topic')}{pairs}{self.other and f'; against {self.other}'})"
        )


def loop_gains(plan: Plan, outcomes: Mapping[tuple[str, str], Outcome], topics: Sequence[str]) -> Iterator[LoopGain]:
    """What each loop adds on those of the `topics` that both systems have answered, where they are two or more."""
    by_name = {one.name: one for one in plan.experiment.measured(plan.dimensions)}
    measure = leading_measure(plan.measures)
    if measure is None or by_name[measure].neutral:
        return
    lower = by_name[measure].lower_is_better
    label = short_labels(plan.measures)[measure] + (", less is better" if lower else "")
    for name, system in plan.systems.items():
        plain = system.without_loop()
        other = plain and plain.name_among(plan.all_systems)
        if not other:
            continue
        of_topics, differences = [], []
        for topic in topics:
            without = outcomes.get((topic, other))
            for dimension, values in outcomes[topic, name].values.items():
                if measure in values and without and measure in without.values.get(dimension, {}):
                    of_topics.append(topic)
                    differences.append(values[measure] - without.values[dimension][measure])
        sums, counts = by_query(np.array([differences]) * (-1 if lower else 1), of_topics)
        if len(counts) > 1:
            low, high = bootstrap_intervals(sums, seeded(plan.experiment.seed, "loop", measure), counts)
            gain, named = float(sums.sum() / counts.sum()), other if other in plan.systems else ""
            yield LoopGain(name, named, label, gain, float(low[0]), float(high[0]), len(counts), len(of_topics))


@dataclass(frozen=True, repr=False)
class Results(Summarized):
    """All that came out of an experiment, read once from its journal: what tables, page and verdicts are made of.

    `systems` are in their order, the baseline first. `outcomes` has the last one of every topic and system, failed ones
    too; `excluded` why topics count for no system. The comparisons of a `partial` run, not finished, cover the topics
    that all systems have answered. `oracle_systems` looked at the judgments. `expected` numbers are by system,
    dimension ("" for relevance alone) and measure. `rows` is what the `kind` says of each system alone, `steers` by
    which target it steers in each dimension, where it looks at groups. Relative `thresholds` look at the experiment's
    own baseline. Where rankings are what is judged, `equal` are systems that rank as another one does on all topics,
    and `loops` says what the loops of systems add.
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
    kind: ExperimentKind
    rows: Mapping[str, Mapping[str, Any]]
    steers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    thresholds: tuple[Threshold, ...] = ()
    equal: tuple[Equal, ...] = ()
    loops: tuple[LoopGain, ...] = ()
    memo: Memo = field(default_factory=Memo, init=False, compare=False)
    """What several tables are made of, and is computed once."""

    @property
    def _summary(self) -> str:
        topics = counted(len(self.by_topic), "topic")
        size = f"{counted(len(self.systems), 'system')}, {topics}{', not finished' if self.partial else ''}"
        return f"{self.name!r} on {self.collection!r}: {size}"

    @cached_property
    def of_kind(self) -> KindResults:
        """What its kind shows besides the comparisons."""
        return self.kind.results(self)

    @property
    def track(self) -> Year | None:
        """The year of the TREC Fair Ranking track, where its collection is one of the track's."""
        source = self.provenance.get("collection")
        return source.get("track") if isinstance(source, Mapping) else None

    @property
    def compared_in(self) -> tuple[str, ...]:
        """The dimensions that systems are compared in: those of fairness, or "" where these are classes of topics."""
        return ("",) if self.kind.classes else self.dimensions or ("",)

    @cached_property
    def compared(self) -> dict[tuple[str, str, str], Comparison]:
        """System, dimension and measure -> comparison."""
        return {(row.system, row.dimension, row.measure): row for row in self.comparisons}

    @cached_property
    def columns(self) -> list[tuple[str, str]]:
        """The (dimension, measure) pairs that there are comparisons for, in order."""
        return list(dict.fromkeys((row.dimension, row.measure) for row in self.comparisons))

    @cached_property
    def labels(self) -> dict[str, str]:
        """The measures that there are comparisons by, with their labels."""
        there = {measure for _, measure in self.columns}
        return labels_of([measure for measure in self.measures if measure in there])

    @property
    def targets(self) -> Mapping[str, str]:
        """Dimension -> the name of the target that it is judged by; of several where systems are by their own."""
        judged = self.kind.targets(self.dimensions)
        if judged is not None:
            return judged
        names = {one: dict.fromkeys(of[one] for of in self.steers.values() if one in of) for one in self.dimensions}
        return {dimension: " or ".join(of) for dimension, of in names.items() if of}

    @property
    def target_text(self) -> str:
        """These in a few words, e.g. "uniform in gender; trec in region"; "" where nothing depends on any."""
        of: dict[str, list[str]] = {}
        for dimension, name in self.targets.items():
            of.setdefault(name, []).append(dimension)
        return "; ".join(f"{name} in {listed(dimensions)}" for name, dimensions in of.items())

    @property
    def steered_otherwise(self) -> tuple[str, ...]:
        """Which systems steer by another target than the one that they are judged by, a line a dimension and target.

        An estimate of the one that they are judged by is no other.
        """
        lines, estimated = [], {kind().kind: kind.judged_by for kind in (EstimatedTarget, TrecEstimatedTarget)}
        for dimension, judged in self.targets.items():
            of = {system: steered.get(dimension, judged) for system, steered in self.steers.items()}
            for target in dict.fromkeys(name for name in of.values() if judged not in (name, estimated.get(name))):
                systems = listed([system for system, name in of.items() if name == target], 3)
                lines.append(f"{dimension}: {systems} steered by {target}, judged by {judged}")
        return tuple(lines)

    @cached_property
    def answered(self) -> list[Outcome]:
        """The outcomes of the topics that are judged."""
        return [outcome for outcome in self.outcomes if outcome.topic not in self.excluded]

    @cached_property
    def by_topic(self) -> dict[str, dict[str, Outcome]]:
        """The outcomes as topic -> system -> outcome, topics in the order in which they were run."""
        topics: dict[str, dict[str, Outcome]] = {}
        for outcome in self.outcomes:
            topics.setdefault(outcome.topic, {})[outcome.system] = outcome
        return topics

    @cached_property
    def counted_topics(self) -> tuple[str, ...]:
        """The topics that every system finished and that are not excluded."""
        return tuple(
            topic
            for topic, outcomes in self.by_topic.items()
            if topic not in self.excluded
            and all(system in outcomes and outcomes[system].failed is None for system in self.systems)
        )

    @cached_property
    def costs(self) -> dict[str, Usage]:
        """System -> what its outcomes took together."""
        return {
            system: sum((outcome.usage for outcome in self.outcomes if outcome.system == system), Usage())
            for system in self.systems
        }

    @cached_property
    def measured(self) -> dict[str, MeasureInfo]:
        """Measure -> what it is."""
        return {one.name: one for one in self.kind.measured(self.dimensions)}

    @property
    def neutral(self) -> frozenset[str]:
        """The measures of which neither a lower nor a higher value is better."""
        return frozenset(name for name, one in self.measured.items() if one.neutral)

    def mean_exposures(self, dimension: str) -> tuple[MeanExposure, ...]:
        """Every system's mean exposure in one dimension over the topics that count for it, or all if none does."""
        outcomes, finished = self.by_topic, self.counted_topics
        topics = [topic for topic in finished if dimension in outcomes[topic][self.baseline].values] or finished
        means = []
        for number, system in enumerate(self.systems):
            shown = [one for topic in topics for one in outcomes[topic][system].exposures if one.dimension == dimension]
            # A topic in which nothing labeled is shown counts: all of its shares are 0.
            if shown:
                due = [one.unknown_target for one in shown if one.unknown_target is not None]
                means.append(
                    MeanExposure(
                        number,
                        shown[0].labels,
                        np.mean([one.shares for one in shown], axis=0),
                        np.mean([one.target for one in shown], axis=0),
                        len(shown),
                        float(np.mean([one.unknown for one in shown])),
                        float(np.mean(due)) if len(due) == len(shown) else None,
                    )
                )
        return tuple(means)

    def gain(self, measure: str, value: float, baseline: float = 0.0) -> float:
        """By how much `value` is better than the baseline's."""
        lower = measure in self.measured and self.measured[measure].lower_is_better
        return baseline - value if lower else value - baseline

    def expected_of(self, row: Comparison) -> float | None:
        """The number that was expected in the place of the row's mean, if any."""
        return (self.expected or {}).get(row.system, {}).get(row.dimension, {}).get(row.measure)


def load_run(folder: Path | str, baseline: str = "") -> Results:
    """The run in `folder`, from its run.json and journal alone; `baseline` takes the place of the experiment's.

    Raises UsageError where there is no run or no such system, DataError where a file of it is damaged.
    """
    folder = Path(folder)
    head = read_head(folder)
    plan = plan_in(head, folder)
    kind, topics, systems = plan.experiment, plan.topics, list(plan.systems)
    if baseline:
        if baseline not in systems:
            raise UsageError(f"the run has {no_such('system', baseline, systems)}")
        systems.sort(key=lambda name: name != baseline)
        plan = plan.model_copy(update={"systems": {name: plan.systems[name] for name in systems}})
    latest: Mapping[tuple[str, str], Outcome] = answers(read_outcomes(folder, head))
    failed = {
        topic: f"{system} failed: {outcome.failed}"
        for system, topic in reversed(plan.jobs)
        if system in systems and (outcome := latest.get((topic, system))) and outcome.failed is not None
    }
    done = [topic for topic in topics if topic not in failed and all((topic, system) in latest for system in systems)]
    latest = kind.completed(latest, done, plan)
    searched = [*topics, *dict.fromkeys(topic for more in plan.unjudged.values() for topic in more)]
    outcomes = tuple(latest[key] for topic in searched for system in systems if (key := (topic, system)) in latest)
    columns = [(dimension, measure) for dimension in ("", *plan.dimensions) for measure in plan.measures]
    rankings = {name: [[id for id, _ in latest[topic, name].scored] for topic in done] for name in systems}
    lower = {one.name for one in kind.measured(plan.dimensions) if one.lower_is_better}
    return Results(
        name=kind.name,
        collection=head["provenance"]["collection"]["name"],
        n=plan.n,
        systems=tuple(systems),
        baseline=systems[0],
        dimensions=plan.dimensions,
        measures=plan.measures,
        comparisons=compare(latest, done, systems, columns, kind.seed, lower),
        outcomes=outcomes,
        excluded={**head["excluded"], **dict(reversed(failed.items()))},
        provenance={
            "about": kind.about,
            **head["provenance"],
            "systems": {name: made for name, made in head["fingerprint"]["systems"].items() if name in systems},
        },
        partial=any((topic, system) not in latest for system, topic in plan.jobs),
        oracle_systems=tuple(name for name in systems if any(o.oracle for o in outcomes if o.system == name)),
        expected=plan.expected or None,
        kind=kind,
        rows={name: system.row for name, system in plan.systems.items()},
        steers={name: system.steers for name, system in plan.systems.items()},
        thresholds=plan.thresholds,
        equal=equal_systems(rankings) if kind.ranks else (),
        loops=tuple(loop_gains(plan, latest, done)) if kind.ranks else (),
    )
