"""What a published number and an experiment file are.

A published number is a line of the list that was read from the papers' text: seed (the paper), table, set, row, column,
note, value. A `File` says which lines are its own, and what keys lead to each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

DATA = "../../../../shared/data"
"""Beside the project, from a file's folder."""


class Number(NamedTuple):
    """One published number; `value` is its text."""

    seed: str
    table: str
    set: str
    row: str
    column: str
    note: str
    value: str


Keys = tuple[str, ...]
"""From the top of a file: `expected`, a system, perhaps a dimension, a measure; or `published`, why, row, column."""
Place = Callable[[Number], Keys | None]
Body = Mapping[str, Any]


@dataclass(frozen=True)
class File:
    """One experiment file: its path without the ending, the table it is of, its keys, and where its numbers stand.

    `place` says None of a number that stands in another file of the same table. `about` is wrapped, line by line; below
    it stands the `guess` that the file rests on, if there is one.
    """

    name: str
    table: tuple[str, str]
    about: str
    body: Body
    place: Place
    guess: str = ""

    def has_row(self, name: str) -> bool:
        """Whether `name` is a row: a system, one shown in another order, or the medians of several."""
        rows = (*self.body["systems"], *self.body.get("fair_rag", {}).get("medians", {}))
        return any(name == row or name.startswith((f"{row} ", f"{row}, ")) for row in rows)


def without_numbers(one: Number) -> None:
    """The place of the numbers of a figure that prints none."""
    return None
