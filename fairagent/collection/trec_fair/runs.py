"""Run files in the TREC Fair Ranking track's own formats, 2022 and 2021.

Tab-separated whole numbers, best page first; a header line, recognized by its first cell `id`, may come first:

    Task 1   topic, page             one ranking a topic, of up to 500 pages (2021: 1000)
    Task 2   topic, ranking, page    a sequence of rankings a topic

A gzipped file, a byte order mark, CRLF ends and blank lines are accepted. A file without any fault is read as one
array; at the first thing that is odd the lines are gone through one by one, to name every fault.
"""

import gzip
import re
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairagent.collection.faults import Faults, shown
from fairagent.collection.records import GZIP_MAGIC, lines
from fairagent.errors import UsageError
from fairagent.measures.trec_fair import LARGEST_ID, LONGEST, IntArray, Run, Task, Year

COLUMNS: dict[Task, tuple[str, ...]] = {1: ("topic", "page"), 2: ("topic", "ranking", "page")}
DIGITS = 10
"""Digits of the longest number."""

_NUMBER = re.compile(rf"[0-9]{{1,{DIGITS}}}", re.ASCII)
_BOM = b"\xef\xbb\xbf"
_TAB, _NEWLINE, _ZERO = 9, 10, 48


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The cells of a run file, (n, columns), and the file's line that each row stands in, (n,)."""

    cells: IntArray
    lines: IntArray


def read_run(path: Path | str, year: Year, task: Task, topics: Collection[str] | None = None) -> Run:
    """The rankings of a run file; its name is the file's without `.gz`.

    The lines of a ranking need not stand together: rank is their order. Raises one DataError with every fault by
    file and line: another number of columns, cells that are no whole numbers, ids above 2^31 - 1, a page that a
    ranking lists twice, a ranking with too many pages, no lines at all and, where `topics` are given, topics that
    are none of them. UsageError for another year or task.
    """
    if year not in LONGEST or task not in COLUMNS:
        raise UsageError(f"year {year!r}, task {task!r}: there are the years 2021 and 2022, and tasks 1 and 2")
    path, faults = Path(path), Faults()
    table = _at_once(path, len(COLUMNS[task]))
    if table is None:
        table = _line_by_line(path, task, faults)
    run = _grouped(path, table, year, task, topics, faults)
    faults.check(f"run {str(path)!r} (TREC Fair {year}, Task {task})")
    return run


def _at_once(path: Path, columns: int) -> _Table | None:
    """The table of a file in which nothing is odd; None for any other."""
    try:
        text = path.read_bytes()
        if text.startswith(GZIP_MAGIC):
            text = gzip.decompress(text)
    except (OSError, EOFError, zlib.error):
        return None
    text = text.removeprefix(_BOM)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    header = 0
    if text.startswith(b"id\t"):
        header, text = 1, text.partition(b"\n")[2]
    if not text.endswith(b"\n"):
        text += b"\n"
    characters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(characters - np.uint8(_ZERO) > 9)  # every character that is no digit
    if ends.size % columns:
        return None
    separators = characters[ends].reshape(-1, columns)
    widths = np.diff(ends, prepend=-1) - 1
    regular = (separators[:, -1] == _NEWLINE).all() and (separators[:, :-1] == _TAB).all()
    if not regular or widths.min() < 1 or widths.max() > DIGITS:
        return None
    cells = np.fromstring(text, np.int64, sep=" ").reshape(-1, columns)
    if cells.max() > LARGEST_ID:
        return None
    return _Table(cells, np.arange(1 + header, len(cells) + 1 + header))


def _line_by_line(path: Path, task: Task, faults: Faults) -> _Table:
    names, before = COLUMNS[task], faults.count
    rows: list[list[int]] = []
    numbers: list[int] = []
    for place, (number, line) in enumerate(lines(path, faults)):
        cells = [cell.strip(" ") for cell in line.split("\t")]
        if place == 0 and cells[0] == "id":
            continue
        if len(cells) != len(names):
            hint = _hint(line, len(cells), task) if not rows else ""
            expected = f"expected {len(names)} columns ({', '.join(names)}) separated by tabs"
            faults.add(path, number, f"{expected}, found {len(cells)}: {shown(line)}{hint}")
            if hint:
                break  # every further line would say the same
            continue
        wrong = [name for name, cell in zip(names, cells, strict=True) if not _is_id(cell)]
        for name in wrong:
            cell = cells[names.index(name)]
            faults.add(path, number, f"the {name} {shown(cell)} is no whole number from 0 to {LARGEST_ID}")
        if not wrong:
            rows.append([int(cell) for cell in cells])
            numbers.append(number)
    if not rows and faults.count == before:
        faults.add(path, None, "there are no lines")
    return _Table(np.array(rows, np.int64).reshape(-1, len(names)), np.array(numbers, np.int64))


def _is_id(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None and int(cell) <= LARGEST_ID


def _hint(line: str, columns: int, task: Task) -> str:
    """What a first line with another number of columns makes of the whole file."""
    other: Task = 2 if task == 1 else 1
    if columns == len(COLUMNS[other]):
        return f"; is this a run of Task {other} ({', '.join(COLUMNS[other])})?"
    cells = line.split()
    if columns == 1 and len(cells) == len(COLUMNS[task]):
        return "; its columns are separated by spaces"
    if len(cells) == 6 or cells[1:2] == ["Q0"]:
        return "; is this a TREC run file (topic Q0 page rank score name)? The track's own have no scores"
    return ""


def _grouped(path: Path, table: _Table, year: Year, task: Task, topics: Collection[str] | None, faults: Faults) -> Run:
    """The rankings of a table; faults for repeated pages, long rankings and unknown topics."""
    pages, scale = table.cells[:, -1], LARGEST_ID + 1
    keys = table.cells[:, 0] * scale + (table.cells[:, 1] if task == 2 else 0)
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    rankings, of_start = np.unique(keys[starts], return_inverse=True)
    ranking = np.repeat(of_start, np.diff(starts, append=keys.size))
    at = table.lines
    if starts.size > rankings.size or (np.diff(of_start) < 0).any():
        order = ranking.argsort(kind="stable")
        ranking, pages, at = ranking[order], pages[order], at[order]
    bounds = np.concatenate(([0], np.bincount(ranking, minlength=rankings.size).cumsum()))
    distinct, topic = np.unique(rankings // scale, return_inverse=True)
    names = tuple(map(str, distinct.tolist()))

    listed = ranking * scale + pages
    in_order = np.sort(listed)
    if (in_order[1:] == in_order[:-1]).any():
        _repeated(path, listed, pages, at, faults)
    longest = LONGEST[year]
    for number in np.flatnonzero(np.diff(bounds) > longest).tolist() if task == 1 else []:
        count, line = bounds[number + 1] - bounds[number], int(at[bounds[number] + longest])
        message = f"topic {names[topic[number]]} has {count} pages; Task 1 of {year} takes at most {longest}"
        faults.add(path, line, f"{message}, and this is the first beyond")
    if topics is not None:
        for number, name in enumerate(names):
            if name not in topics:
                line = int(at[bounds[np.flatnonzero(topic == number)[0]]])
                faults.add(path, line, f"topic {name} is none of the {len(topics)} judged ones")
    return Run(path.name.removesuffix(".gz"), names, topic, bounds, pages)


def _repeated(path: Path, listed: IntArray, pages: IntArray, at: IntArray, faults: Faults) -> None:
    first: dict[int, int] = {}
    for key, page, line in zip(listed.tolist(), pages.tolist(), at.tolist(), strict=True):
        if key in first:
            faults.add(path, line, f"page {page} is in line {first[key]} of the same ranking already")
        else:
            first[key] = line
