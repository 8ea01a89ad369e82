"""Results by group of the query: do topics of one group (by subject, say) get worse rankings or answers than others?

Where topics have a group: each group's utility (the kind's measures), exposure of the documents' groups and attribution
(the exposure in what answers rest on), and the largest difference between two groups of topics.
Source: Dehghan & McDonald, 2026 (arXiv 2603.24218), who call these query group fairness, group exposure and group
attribution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.results import columns
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import Column, PlotLine, PlotPoint, Table
from fairagent.measures.expected_exposure import fitted_line
from fairagent.measures.parse import labels_of
from fairagent.types.common import counted

FILE = "query_groups.csv"
DIFFERENCE = "largest difference"
"""Stands in the place of a group."""
FEW = 10
"""A group with fewer topics is named in a note."""

Place = tuple[str, str, str]
"""What a number is of: `measure`, `exposure` or `attribution`; dimension; measure or label."""


@dataclass(frozen=True, slots=True)
class OfGroup:
    """One system's means over the topics of one group; `topics` is how many each mean is over."""

    system: str
    group: str
    means: Mapping[Place, float]
    topics: Mapping[Place, int]


def by_query_group(run: Run) -> list[OfGroup]:
    """Every system and group of topics, over the topics that all systems have answered; none where no topic has one."""
    outcomes = run.by_topic
    groups: dict[str, list[str]] = {}
    for topic in run.counted_topics:
        if group := outcomes[topic][run.baseline].group:
            groups.setdefault(group, []).append(topic)
    rows = []
    for system in run.systems:
        for group in sorted(groups):
            values: dict[Place, list[float]] = {}
            for topic in groups[group]:
                for place, value in _values(run, outcomes[topic][system]):
                    values.setdefault(place, []).append(value)
            means = {place: float(np.mean(of_topic)) for place, of_topic in values.items()}
            rows.append(OfGroup(system, group, means, {place: len(of_topic) for place, of_topic in values.items()}))
    return rows


def _values(run: Run, outcome: Outcome) -> Iterator[tuple[Place, float]]:
    for dimension, of_measure in outcome.values.items():
        yield from ((("measure", dimension, name), of_measure[name]) for name in run.measures if name in of_measure)
    for what, exposures in (("exposure", outcome.exposures), ("attribution", outcome.cited)):
        for one in exposures:
            # Each group's share of the labeled exposure, and the share without a label of all of it.
            shares = zip((*one.labels, "no label"), (*one.shares, one.unknown), strict=True)
            yield from (((what, one.dimension, label), share) for label, share in shares)


def differences(rows: Sequence[OfGroup]) -> dict[str, dict[Place, float]]:
    """System -> what -> the largest difference between two groups; for what at least two groups have."""
    apart: dict[str, dict[Place, float]] = {}
    for row in rows:
        of_system = [one.means for one in rows if one.system == row.system]
        values = {place: [means[place] for means in of_system if place in means] for place in row.means}
        spread = {place: max(of) - min(of) for place, of in values.items() if len(of) > 1}
        apart.setdefault(row.system, {}).update(spread)
    return apart


def query_group_tables(run: Run) -> list[Table]:
    """The measures by group of the query, then exposure and attribution in each dimension."""
    rows = by_query_group(run)
    if not rows:
        return []
    pairs = [("measure", *pair) for pair in columns(run)]
    labels = labels_of(list(dict.fromkeys(measure for *_, measure in pairs)))
    heads = [Column(labels[measure], above=dimension or run.kind.overall) for _, dimension, measure in pairs]
    tables = [_table(rows, pairs, heads, "by group of the query", list(_notes(run, rows)))]
    for what, title in (("exposure", "exposure"), ("attribution", "what answers rest on")):
        for dimension in run.dimensions:
            there = list(dict.fromkeys(place for row in rows for place in row.means if place[:2] == (what, dimension)))
            if there:
                heads = [Column(label) for *_, label in there]
                tables.append(_table(rows, there, heads, f"{dimension}, {title} by group of the query"))
    return tables


def query_group_files(run: Run) -> dict[str, Table]:
    """A file with one line a number, where topics have groups; `query_group` is empty for the largest difference."""
    rows = by_query_group(run)
    lines: list[tuple[object, ...]] = [
        (row.system, row.group, *place, row.topics[place], value) for row in rows for place, value in row.means.items()
    ]
    for system, of_system in differences(rows).items():
        lines += [(system, None, *place, None, value) for place, value in of_system.items()]
    names = ("system", "query_group", "quantity", "dimension", "name", "topics", "value")
    return {FILE: Table.of(names, lines)} if lines else {}


def _table(
    rows: Sequence[OfGroup], places: Sequence[Place], heads: Sequence[Column], title: str, notes: Sequence[str] = ()
) -> Table:
    apart = differences(rows)
    lines: list[tuple[object, ...]] = []
    for system in dict.fromkeys(row.system for row in rows):
        for row in (one for one in rows if one.system == system):
            topics = max((row.topics[place] for place in places if place in row.topics), default=0)
            lines.append((system, row.group, topics, *map(row.means.get, places)))
        if any(place in apart[system] for place in places):
            lines.append((system, DIFFERENCE, None, *map(apart[system].get, places)))
    return Table.of(["system", "query group", Column("topics", none=""), *heads], lines, title, notes)


def _notes(run: Run, rows: Sequence[OfGroup]) -> Iterator[str]:
    yield f"{DIFFERENCE}: the highest mean of a group minus the lowest; groups differ in their topics as well"
    sizes = {row.group: max(row.topics.values(), default=0) for row in rows}
    if few := [f"{group} ({size})" for group, size in sizes.items() if size < FEW]:
        yield f"fewer than {FEW} topics, so that chance decides: {', '.join(few)}"
    if without := {one.topic for one in run.answered if not one.group and one.failed is None}:
        yield f"{counted(len(without), 'topic')} without a group"


def cloud(name: str, color: int, points: Sequence[PlotPoint]) -> PlotLine:
    """Points of a plot, each alone, and the two ends of the line of least squares through them, where it is defined."""
    line = fitted_line([point.x for point in points], [point.y for point in points]) if points else None
    ends = sorted({point.x for point in points}) if line else []
    fit = [PlotPoint("fit", x, line.at(x)) for x in (ends[0], ends[-1])] if line else []
    return PlotLine(name, color, tuple(fit), tuple(points))
