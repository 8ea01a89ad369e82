"""Utility labels: which items of a profile make a generator's answer better (seed_systems.md, section 1.2).

u_j - u_base is the utility of the answer from item j alone, less that of the answer without any item; an item is useful
where that is above 0. Labels are kept in a file, a line each; its first line says what they are made from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.faults import shown
from fairagent.digests import unsealed
from fairagent.errors import DataError, Fault
from fairagent.evaluate.engine.fingerprint import changes
from fairagent.evaluate.engine.kind import Record
from fairagent.intake.json_text import parse_json
from fairagent.lines import whole_lines
from fairagent.types import FloatArray

Key = tuple[str, str | None]
"""What a label is of: a question and one of its items, or none."""

FORMAT = 2
"""Of the file and of how a prompt is made; labels of another one are not read. 2: lines have checksums."""
FEWEST = 2
"""So many useful items a question needs to be part of the experiment."""


@dataclass(frozen=True, slots=True)
class Label:
    """The `utility` of the answer to one question from one item; `item` None: from none."""

    question: str
    item: str | None
    utility: float
    answer: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Labels:
    """What the items of each question are worth: question id -> u_j - u_base (n,), in the order of its items.

    With a utility of which less is better, u_base - u_j. `base` is u_base; `unanswered` counts the answers that a model
    did not give, which are worth what an empty one is.
    """

    gains: Mapping[str, FloatArray]
    base: Mapping[str, float]
    unanswered: int = 0

    def useful(self, question: str) -> NDArray[np.bool_]:
        """Which items of the question are useful, (n,)."""
        return self.gains[question] > 0

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """The questions with at least 2 useful items, in their order."""
        return tuple(id for id in self.gains if self.useful(id).sum() >= FEWEST)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known: how many questions are left out, how many answers a model did not give."""
        left = len(self.gains) - len(self.kept)
        notes = [f"{left:,} of {len(self.gains):,} questions have fewer than {FEWEST} useful items and are left out"]
        if self.unanswered:
            notes.append(f"{self.unanswered:,} answers were not given (declined or empty) and count as empty")
        return tuple(notes[not left :])


def read_lines(path: Path, made_from: Record, upper: float) -> dict[Key, Label]:
    """The labels in the file by question and item; none where there is no file. A torn last line is ignored.

    Raises DataError where a line is no label with a utility in [0, `upper`], and where the first line names something
    else than `made_from`.
    """
    head, *lines = list(whole_lines(path)) or [b""]
    if not head:
        return {}
    _check_head(path, head, made_from)
    labels: dict[Key, Label] = {}
    faults: list[Fault] = []
    for number, line in enumerate(lines, start=2):
        try:
            label = _label_of(line, upper)
        except (ValueError, KeyError, TypeError) as error:
            faults.append(Fault(path, number, f"no label ({type(error).__name__}: {error})"))
        else:
            labels[label.question, label.item] = label
    if faults:
        raise DataError("utility labels are damaged; remove these lines to have them made again", faults)
    return labels


def head_line(made_from: Record) -> str:
    """The first line of a file."""
    return json.dumps({"made_from": made_from})


def to_line(label: Label) -> str:
    """A label as a line of the file."""
    notes = {"notes": list(label.notes)} if label.notes else {}
    said = {"question": label.question, "item": label.item, "utility": label.utility, "answer": label.answer}
    return json.dumps({**said, **notes})


def _check_head(path: Path, line: bytes, now: Record) -> None:
    try:
        before: Record = {"systems": {}, **parse_json(line.decode())["made_from"]}
    except (ValueError, KeyError, TypeError):
        raise DataError(
            "utility labels cannot be read", [Fault(path, 1, f"says not what they are made from: {shown(line)}")]
        ) from None
    different = changes(before, {"systems": {}, **now}) or _unsealed(line)
    if different:
        raise DataError(
            f"{path}: these utility labels were made from something else; name another file to have others made",
            [Fault(path, 1, change) for change in different],
        )


def _unsealed(line: bytes) -> list[str]:
    """What is wrong with the first line's checksum."""
    try:
        unsealed(line)
    except ValueError as error:
        return [str(error)]
    return []


def _label_of(line: bytes, upper: float) -> Label:
    record = parse_json(unsealed(line).decode())
    question, item, utility, answer = (record[name] for name in ("question", "item", "utility", "answer"))
    if not isinstance(question, str) or not isinstance(item, str | None) or not isinstance(answer, str):
        raise ValueError("question, item and answer are texts, item may be null")
    if isinstance(utility, bool) or not isinstance(utility, int | float) or not 0 <= utility <= upper:
        raise ValueError(f"the utility is {shown(utility)}, expected a number from 0 to {upper:g}")
    return Label(question, item, float(utility), answer, tuple(record.get("notes", ())))
