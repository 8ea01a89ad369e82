"""Thresholds: what the numbers of an experiment have to reach (the key `assert` of its file), and whether they do.

A measure or a group of a dimension has a bound, for one system or for all but the baseline; `docs/ci.md` has the forms.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairagent.collection.table import Groups
from fairagent.errors import BackendUnavailable, SettingsError, UsageError
from fairagent.evaluate.comparison import SAME
from fairagent.evaluate.kind import ExperimentKind, MeasureInfo, Problems
from fairagent.evaluate.tables import Column, Table
from fairagent.measures.parse import OPTIONS, labels_of, parse_measure
from fairagent.settings.faults import no_such
from fairagent.types.common import counted

if TYPE_CHECKING:
    from fairagent.evaluate.run import Results

FORMS = "'>= .95', '< .1', '>= baseline', '>= baseline - .01'"
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_BOUND = re.compile(rf"(>=|<=|>|<)\s*(?:(-?{_NUMBER})|(baseline)(?:\s*([+-])\s*({_NUMBER}))?)")
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Bound:
    """What a number has to be: `sign` is one of >=, <=, > and <; `number` is added to the baseline's if `relative`."""

    sign: str
    number: float
    relative: bool = False

    @classmethod
    def parse(cls, text: object) -> Bound:
        """The bound that `text` says; UsageError, naming the forms, where it says none.

        >>> Bound.parse(">= baseline - .01")
        Bound(sign='>=', number=-0.01, relative=True)
        """
        match = _BOUND.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            raise UsageError(f"{text!r} is no bound; the forms are: {FORMS}")
        sign, absolute, relative, add, distance = match.groups()
        return cls(sign, float(f"{add or '+'}{distance or 0}" if relative else absolute), bool(relative))

    def __str__(self) -> str:
        if not self.relative:
            return f"{self.sign} {self.number:.12g}"
        added = f" {'-' if self.number < 0 else '+'} {abs(self.number):.12g}" if self.number else ""
        return f"{self.sign} baseline{added}"

    def holds(self, value: float, baseline: float = 0.0) -> bool:
        """Whether `value` is within it; what differs by 1e-9 or less is equal, as in ties of topics.

        >>> Bound.parse(">= .3").holds(0.1 + 0.2), Bound.parse("> baseline").holds(0.5, baseline=0.5)
        (True, False)
        """
        limit = self.limit(baseline)
        return _HOLDS[self.sign](limit if abs(value - limit) <= SAME else value, limit)

    def limit(self, baseline: float = 0.0) -> float:
        return baseline + self.number if self.relative else self.number


@dataclass(frozen=True, slots=True)
class Threshold:
    """A `bound` for a system's measure (its full definition), or the mean share of exposure of a group (its label)."""

    system: str
    dimension: str
    name: str
    of_group: bool
    bound: Bound
    baseline: str


def read_thresholds(
    kind: ExperimentKind,
    groups: Groups,
    dimensions: Sequence[str],
    measured: Sequence[MeasureInfo],
    systems: Sequence[str],
    baseline: str,
    problems: Problems,
) -> tuple[Threshold, ...]:
    """The thresholds of a file for the rows `systems`; adds what is wrong. A system's name beats a dimension's."""
    exposed = groups.dimensions if kind.exposes else ()
    labels = {name: groups.labels(name) if name in exposed else () for name in dimensions}
    of_groups: dict[str, bool | None] = {one.name: None if kind.classes else one.of_groups for one in measured}
    of_groups |= dict.fromkeys(kind.measured_together)
    shown = labels_of(tuple(of_groups))

    def measure(name: str, dimension: str) -> str:
        """The full definition of the measure of that name; UsageError where `dimension` has no value of it."""
        if name in labels:
            raise UsageError(f"{name!r} is a dimension: write measures or groups, with their bounds, under it")
        definition = name
        with suppress(UsageError, BackendUnavailable):
            definition = str(parse_measure(name))
        there = [one for one in shown if one in (name, definition)]
        there = there or [one for one, label in shown.items() if label == name]
        if not there:
            bare = OPTIONS.sub("", name)
            if variants := [label for one, label in shown.items() if OPTIONS.sub("", one) == bare]:
                raise UsageError(f"{name!r} is not computed, but: {', '.join(variants)}")
            known = [*labels.get(dimension, ()), *shown.values()]
            raise UsageError(no_such(f"measure{' or group' * bool(dimension)}", name, known))
        of = of_groups[there[0]]
        if of is not None and of != bool(dimension):
            raise UsageError(f"{name!r} stands {'under a dimension' if of else 'beside the dimensions, not under one'}")
        return there[0]

    # Place in the file, the systems that it is for, dimension, and name -> bound.
    read: list[tuple[str, Sequence[str], str, Mapping[Any, Any]]] = []
    others: Sequence[str] = [name for name in systems if name != baseline] or systems
    rows: Sequence[str]
    for key, value in kind.thresholds.items():
        if key in systems and isinstance(value, Mapping):
            place, rows, below = f"assert.{key}", [key], value
        elif isinstance(value, Mapping) and key not in labels:
            message = no_such("system and no dimension", key, [*systems, *labels])
            problems.add(SettingsError, f"assert: {message}")
            continue
        else:
            place, rows, below = "assert", others, {key: value}
        for name, bounds in below.items():
            if not isinstance(bounds, Mapping):
                read.append((place, rows, "", {name: bounds}))
            elif str(name) in labels:
                read.append((f"{place}.{name}", rows, str(name), bounds))
            else:
                problems.add(SettingsError, f"{place}: {no_such('dimension', str(name), labels)}")
    thresholds: list[Threshold] = []
    for where, rows, dimension, bounds in read:
        for name, text in ((str(name), text) for name, text in bounds.items()):
            of_group = name in labels.get(dimension, ())
            definition = name if of_group else problems.attempt(where, measure, name, dimension)
            bound = problems.attempt(f"{where}.{name}", Bound.parse, text)
            if definition and bound:
                thresholds += [Threshold(row, dimension, definition, of_group, bound, baseline) for row in rows]
    return tuple(thresholds)


@dataclass(frozen=True, slots=True)
class ThresholdVerdict:
    """A threshold's `value` and the `limit` that it was compared with; None, and missed, where no topic has it."""

    threshold: Threshold
    value: float | None
    limit: float | None
    met: bool

    def record(self) -> dict[str, object]:
        of = self.threshold
        place = {"system": of.system, "dimension": of.dimension, "group" if of.of_group else "measure": of.name}
        return {**place, "value": self.value, "bound": str(of.bound), "limit": self.limit, "met": self.met}


def verdicts(run: Results) -> tuple[ThresholdVerdict, ...]:
    """A verdict for each threshold of a finished run, by means over the topics that every system has answered."""
    if run.partial or not run.thresholds:
        return ()
    # System, dimension, whether it is a group's, and its name -> value.
    numbers = {(system, dim, False, name): value for (system, dim, name), value in run.of_kind.together.items()}
    numbers |= {(*place[:2], False, place[2]): row.mean for place, row in run.compared.items()}
    for dimension in {one.dimension for one in run.thresholds if one.of_group}:
        for mean in run.mean_exposures(dimension):
            shares = zip(mean.labels, mean.shares.tolist(), strict=True)
            numbers |= {(run.systems[mean.system], dimension, True, label): share for label, share in shares}
    results = []
    for one in run.thresholds:
        value = numbers.get((one.system, one.dimension, one.of_group, one.name))
        base = numbers.get((one.baseline, one.dimension, one.of_group, one.name)) if one.bound.relative else 0.0
        limit = None if value is None or base is None else one.bound.limit(base)
        met = value is not None and base is not None and one.bound.holds(value, base)
        results.append(ThresholdVerdict(one, value, limit, met))
    return tuple(results)


def summary(run: Results) -> str:
    """How many thresholds are met, or that the run is not finished, in one line; "" where there are none."""
    if not run.thresholds:
        return ""
    all = counted(len(run.thresholds), "threshold")
    if run.partial:
        return f"{all} not judged: the run is not finished"
    return f"{sum(one.met for one in verdicts(run))} of {all} {'is' if len(run.thresholds) == 1 else 'are'} met"


def thresholds_table(run: Results, met: bool = True) -> Table:
    """The thresholds with what they came to; without those that are `met`, those that were missed."""
    labels, lines = labels_of(run.measures), []
    for verdict in verdicts(run):
        of, result = verdict.threshold, "met" if verdict.met else "MISSED"
        if met or not verdict.met:
            place = of.system, of.dimension or run.kind.overall, labels.get(of.name, of.name)
            lines.append((*place, verdict.value, str(of.bound), verdict.limit, result))
    numbers = Column("value", ".6f"), "bound", Column("limit", ".6f")
    return Table.of(["system", "dimension", "measure or group", *numbers, "result"], lines, summary(run), systems=True)
