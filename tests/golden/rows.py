"""Golden files row by row: what a row says, what is computed here for it, and where both part.

A golden file holds rows, each with inputs and with values that somebody else's code, or an independent computation,
gave for them. A reader computes the same values by the same names: `reads` registers it for files and, of a JSON file,
for the key under which its rows are. A row is one case, which holds if all that its readers give is in the row, each
number within a tolerance and everything else equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Row = dict[str, Any]


class Near(NamedTuple):
    """How far a number may be from the golden one: by `rel` of that, or by `abs`, whichever is more."""

    rel: float = 1e-9
    abs: float = 1e-12


EXACT = Near()


@dataclass(frozen=True)
class Reader:
    """`ours` of each of the `rows` of the files that match `pattern`; `near` has tolerances by name, "" is the rest."""

    pattern: str
    section: str
    rows: Callable[[Path], Iterable[tuple[str, Row]]]
    ours: Callable[[Row], Row]
    near: Mapping[str, Near]


READERS: list[Reader] = []
DIFFERS = "differs"
"""A reader gives it beside the values that hold where others differ on purpose (docs/reference/differences.md)."""
NOT_HERE: dict[tuple[str, str], str] = {}
"""(file, key) -> why no reader computes those rows."""


def reads(
    pattern: str,
    section: str,
    near: Mapping[str, Near] | None = None,
    rows: Callable[[Any], Iterable[Row]] | None = None,
) -> Callable[[Callable[[Row], Row]], Callable[[Row], Row]]:
    """Register a reader of the rows under `section` of JSON files; `rows` makes them of what is there."""

    def of(path: Path) -> Iterator[tuple[str, Row]]:
        if section not in (content := json.loads(path.read_text(encoding="utf-8"))):
            return
        found = rows(content[section]) if rows else content[section]
        for number, row in enumerate(found):
            yield f"{section}[{number}] {row.get('id', '')}".rstrip(), row

    return reads_lines(pattern, of, near, section)


def reads_lines(
    pattern: str,
    rows: Callable[[Path], Iterable[tuple[str, Row]]],
    near: Mapping[str, Near] | None = None,
    section: str = "",
) -> Callable[[Callable[[Row], Row]], Callable[[Row], Row]]:
    """Register a reader of files of another form; `rows` gives their (id, row)."""

    def register(ours: Callable[[Row], Row]) -> Callable[[Row], Row]:
        READERS.append(Reader(pattern, section, rows, ours, near or {}))
        return ours

    return register


def readers_of(path: Path) -> list[Reader]:
    """The readers of a file."""
    return [reader for reader in READERS if path.match(reader.pattern)]


@dataclass
class Verdict:
    """What is wrong with a row, nothing where it holds; and whether something in it differs as documented."""

    faults: list[str] = field(default_factory=list)
    differs: bool = False


def judged(path: Path) -> dict[str, Verdict]:
    """The rows of a file by their ids."""
    verdicts: dict[str, Verdict] = {}
    for reader in readers_of(path):
        for id, row in reader.rows(path):
            verdict = verdicts.setdefault(id, Verdict())
            try:
                ours = reader.ours(row)
                verdict.differs |= bool(ours.pop(DIFFERS, False))
                verdict.faults += differences(ours, row, reader.near)
            except Exception as error:  # a row that cannot be computed does not hold, and the others are still judged
                verdict.faults.append(f"{type(error).__name__}: {error}")
    return verdicts


def differences(ours: Any, theirs: Any, near: Mapping[str, Near], name: str = "", key: str = "") -> Iterator[str]:
    """Where `ours` is not what is written; `near` of a name holds for all that is below it."""
    ours = ours.tolist() if isinstance(ours, np.ndarray | np.generic) else ours
    key = name if name in near else key
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for part, value in ours.items():
            if part not in theirs:
                yield f"{part!r} is not in the file"
            else:
                yield from differences(value, theirs[part], near, part, key)
    elif isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        if len(ours) != len(theirs):
            yield f"{name}: {len(ours)} values, not {len(theirs)}"
        for mine, other in zip(ours, theirs, strict=False):
            yield from differences(mine, other, near, name, key)
    elif not _same(ours, theirs, near.get(key, EXACT)):
        yield f"{name}: {ours!r}, not {theirs!r}"


def _same(ours: Any, theirs: Any, near: Near) -> bool:
    if theirs in ("nan", "inf", "-inf"):
        theirs = float(theirs)
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in (ours, theirs)):
        return type(ours) is type(theirs) and bool(ours == theirs)
    if ours != ours or theirs != theirs:
        return ours != ours and theirs != theirs
    return bool(ours == theirs or abs(ours - theirs) <= max(near.rel * abs(theirs), near.abs))
