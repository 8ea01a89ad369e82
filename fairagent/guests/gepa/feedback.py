"""What a template did on a topic, in words: the exposure table, the words of its replies, gap and relevance."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fairagent.extend import Outcome, label_of, percent, visible

LONGEST = 1600
"""Characters of the feedback on one topic."""
MOST_GROUPS = 6
"""Groups of a dimension that are named: those that are furthest from what they should have."""


def feedback(outcome: Outcome, alone: Outcome, measure: str) -> str:
    """What came of a topic, beside what the search comes to without its loop (`alone`), a sentence a line.

    `measure` is the one that templates are scored by. Of an outcome that failed it is why.
    """
    lines = [*_failure(outcome), *_exposures(outcome, alone), *_steps(outcome), *_values(outcome, alone, measure)]
    return visible("\n".join(lines))[:LONGEST]


def _failure(outcome: Outcome) -> Iterator[str]:
    if outcome.failed is not None:
        yield f"The reply could not be used, so that nothing changed: {outcome.failed}"


def _exposures(outcome: Outcome, alone: Outcome) -> Iterator[str]:
    before = {one.dimension: dict(zip(one.labels, one.shares, strict=True)) for one in alone.exposures}
    for one in outcome.exposures:
        rows = sorted(zip(one.labels, one.shares, one.target, strict=True), key=lambda row: row[1] - row[2])
        shown = [
            f'"{one.dimension}": "{label}" gets {percent(share)} of the attention '
            f"({percent(before.get(one.dimension, {}).get(label, 0.0))} without the loop), should have {percent(due)}"
            for label, share, due in (rows if len(rows) <= MOST_GROUPS else [*rows[: MOST_GROUPS - 1], rows[-1]])
        ]
        yield "; ".join(shown) + f"; {percent(one.unknown)} goes to documents without a label"


def _steps(outcome: Outcome) -> Iterator[str]:
    gap = math.inf
    for step in outcome.steps:
        if step.aim or step.proposed or step.refused:
            about = f"Asked for {step.aim}" if step.aim else f"Step {step.source}"
            used = ", ".join(text for text, _ in step.terms) or "none"
            parts = [f"used {used}"]
            parts += [f"in no document: {', '.join(step.dropped)}"] if step.dropped else []
            parts += [f"refused: {'; '.join(step.refused)}"] if step.refused else []
            parts += [f"{step.usable} of {step.proposed} proposals usable"] if step.proposed else []
            became = "accepted" if step.accepted else f"discarded{f' ({step.reason})' if step.reason else ''}"
            change = f"gap {gap:.3f} before, {step.gap:.3f} after" if math.isfinite(gap + step.gap) else "gap unknown"
            yield f"{about}: {'; '.join(parts)}; {change}: {became}"
        if step.accepted:
            gap = step.gap
    if outcome.stopped:
        yield f"The loop stopped: {outcome.stopped}"


def _values(outcome: Outcome, alone: Outcome, measure: str) -> Iterator[str]:
    for dimension, values in outcome.values.items():
        for name, value in values.items():
            before = alone.values.get(dimension, {}).get(name)
            was = "" if before is None else f" ({before:.3f} without the loop)"
            scored = ", which is the score" if name == measure else ""
            yield f"{label_of(name)}{f' for {dimension}' if dimension else ''}: {value:.3f}{was}{scored}"
