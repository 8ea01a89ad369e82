"""What all items together come to under each system: StereoSet's LMS, SS and ICAT, CrowS-Pairs' CP-S."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fairagent.evaluate.outcome import ChoiceRecord
from fairagent.evaluate.run import Run
from fairagent.evaluate.stereotypes.section import OF_ALL
from fairagent.evaluate.tables import answered, csv_text
from fairagent.evaluate.text_table import aligned
from fairagent.stereotypes.benchmark import (
    NOTES,
    OVERALL,
    crows_pairs_rows,
    crows_pairs_values,
    stereoset_rows,
    stereoset_values,
)
from fairagent.stereotypes.items import Example, Pair, Part

FILE = "stereotypes.csv"


@dataclass(frozen=True, slots=True)
class SetRow:
    """One system's numbers over the `count` items of one part and one kind, each or both "overall"."""

    system: str
    part: str
    kind: str
    values: Mapping[str, float | None]
    count: int


def set_rows(run: Run) -> list[SetRow]:
    """The numbers over the items that every system has scored; none where no model chose."""
    return [row for system in run.systems if (records := _records(run, system)) for row in _rows(run, system, records)]


def sets_text(run: Run) -> list[list[str]]:
    """A block of lines for all items, each part and each kind; none where there is nothing to tell."""
    rows = set_rows(run)
    blocks = []
    for part, kind in dict.fromkeys((row.part, row.kind) for row in rows if OVERALL in (row.part, row.kind)):
        of_place = [row for row in rows if (row.part, row.kind) == (part, kind)]
        papers = [_expected(run, row) for row in of_place]
        names = list(of_place[0].values)
        shown = [name for name in names if any(name in paper for paper in papers)]
        table = [["system", *names, *(f"expected {name}" for name in shown)]]
        for row, paper in zip(of_place, papers, strict=True):
            table.append(
                [row.system, *map(_number, row.values.values()), *(_number(paper.get(name)) for name in shown)]
            )
        place = ", ".join(dict.fromkeys([*([part] if part != OVERALL else []), *([kind] if kind != OVERALL else [])]))
        blocks.append([f"{place or 'all'} ({of_place[0].count:,} items)", *aligned(table)])
    return [[f"by {run.way}", *NOTES[run.choices]], *blocks] if blocks else []


def sets_csv(run: Run) -> str:
    """A line for each system, part, kind and measure; numbers keep every digit."""
    lines = [
        (row.system, row.part, row.kind, name, value, row.count, _expected(run, row).get(name), run.way)
        for row in set_rows(run)
        for name, value in row.values.items()
    ]
    return csv_text(("system", "part", "kind", "measure", "value", "items", "expected", "way"), lines)


def _rows(run: Run, system: str, records: Mapping[str, ChoiceRecord]) -> Iterator[SetRow]:
    scores = [np.array(record.scores) for record in records.values()]
    if run.choices == "stereoset":
        examples = [_example(id, record) for id, record in records.items()]
        for row in stereoset_rows(examples, scores):
            yield SetRow(system, row.part, row.domain, stereoset_values(row.score), row.score.count)
        return
    pairs = [Pair(id, record.kind, "", "", record.part == "stereo") for id, record in records.items()]
    for found in crows_pairs_rows(pairs, scores, next(iter(records.values())).decimals):
        yield SetRow(system, OVERALL, found.kind, crows_pairs_values(found.score), found.score.count)


def _example(id: str, record: ChoiceRecord) -> Example:
    """What of an example its numbers depend on."""
    part: Part = "intrasentence" if record.part == "intrasentence" else "intersentence"
    return Example(id, part, record.kind, record.target, "", "", "", "")


def _records(run: Run, system: str) -> dict[str, ChoiceRecord]:
    """Topic -> what was recorded of it under `system`, for the topics that every system has done."""
    seen: dict[str, int] = {}
    for outcome in answered(run):
        seen[outcome.topic] = seen.get(outcome.topic, 0) + 1
    return {
        outcome.topic: outcome.choice
        for outcome in answered(run)
        if outcome.system == system and outcome.choice and seen[outcome.topic] == len(run.systems)
    }


def _expected(run: Run, row: SetRow) -> Mapping[str, float]:
    """The numbers to compare with: those of all parts together, by kind."""
    if row.part != OVERALL:
        return {}
    of_system = (run.expected or {}).get(row.system, {})
    found = of_system.get("" if row.kind == OVERALL else row.kind, {})
    return {name: value for name, value in found.items() if name in OF_ALL[run.choices]}


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
