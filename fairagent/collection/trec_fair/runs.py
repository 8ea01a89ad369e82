"""Run files of the TREC Fair Ranking track, 2022 and 2021: in the track's own formats, or in TREC's.

Whole numbers, best page first, separated by tabs, commas or spaces (`fairagent.collection.run_lines`):

    Task 1   topic, page             one ranking a topic
             or TREC's six columns   topic, Q0, page, rank, score, tag; by falling score
    Task 2   topic, ranking, page    a sequence of rankings a topic

How long a ranking may be is the evaluator's to say. A file of numbers without any error is read as one array; at the
first thing that is odd the lines are read one by one, to name every error.
"""

import re
from collections.abc import Collection
from pathlib import Path

import numpy as np

from fairagent.collection.records import Faults, shown
from fairagent.collection.run_lines import HEADERS, TREC, Form, RunLine, by_score, run_line, run_lines
from fairagent.errors import UsageError
from fairagent.measures.trec_fair import LARGEST_ID, LONGEST, IntArray, Repeated, Task, TrackRun, Year
from fairagent.storage.readers import Malformed, file_bytes

FORMS: dict[Task, tuple[Form, ...]] = {
    1: (("topic", "page"), ("topic", "Q0", "page", "rank", "score", "tag")),
    2: (("topic", "ranking", "page"),),
}
AT_ONCE = 1 << 28
"""Bytes of the largest file that is read as one array."""
DIGITS = 10
"""Digits of the longest number."""

_NUMBER = re.compile(rf"[0-9]{{1,{DIGITS}}}", re.ASCII)
_HEADER = re.compile(rf"(?:{'|'.join(HEADERS)})[\t, ][^\n]*\n".encode(), re.IGNORECASE)
_BOM = b"\xef\xbb\xbf"
_TAB, _NEWLINE, _SPACE, _COMMA, _ZERO = b"\t\n ,0"


_Table = tuple[IntArray, IntArray]
"""The cells of a run file, (n, columns), and the file's line that each row stands in, (n,)."""


def read_run(
    path: Path | str, year: Year, task: Task, topics: Collection[str] | None = None, repeated: Repeated = "error"
) -> TrackRun:
    """The rankings of a run file; its name is the file's without `.gz`.

    The lines of a ranking need not stand together: rank is their order, or with six columns that of the scores. Raises
    one DataError with every error by file and line: another number of columns, cells that are no whole numbers, ids
    above 2^31 - 1, ranks that contradict the scores, no lines at all, a page that a ranking lists twice (unless
    `repeated` is "count") and, where `topics` are given, topics that are none of them. UsageError for another year or
    task.
    """
    if year not in LONGEST or task not in FORMS:
        raise UsageError(f"year {year!r}, task {task!r}: there are the years 2021 and 2022, and tasks 1 and 2")
    path, faults = Path(path), Faults()
    table = _at_once(path, len(FORMS[task][0])) or _line_by_line(path, task, faults)
    run = _grouped(path, table, task, topics, repeated, faults)
    faults.check(f"run {str(path)!r} (TREC Fair {year}, Task {task})")
    return run


def _at_once(path: Path, columns: int) -> _Table | None:
    """The table of a file in which nothing is odd; None for any other."""
    try:
        text = file_bytes(path, AT_ONCE, unzipped=True)
    except (OSError, Malformed):
        return None
    text = text.removeprefix(_BOM)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    header = _HEADER.match(text)
    text = text[header.end() :] if header else text
    if not text.endswith(b"\n"):
        text += b"\n"
    characters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(characters - np.uint8(_ZERO) > 9)  # every character that is no digit
    if ends.size % columns:
        return None
    separators = characters[ends].reshape(-1, columns)
    widths = np.diff(ends, prepend=-1) - 1
    between = separators[0, 0]
    regular = (separators[:, -1] == _NEWLINE).all() and (separators[:, :-1] == between).all()
    if not regular or between not in (_TAB, _COMMA, _SPACE) or widths.min() < 1 or widths.max() > DIGITS:
        return None
    cells = np.fromstring(text.replace(b",", b" "), np.int64, sep=" ").reshape(-1, columns)
    if cells.max() > LARGEST_ID:
        return None
    first = 2 if header else 1
    return cells, np.arange(first, len(cells) + first)


def _line_by_line(path: Path, task: Task, faults: Faults) -> _Table:
    rows: list[list[int]] = []
    numbers: list[int] = []
    scored: dict[int, list[RunLine]] = {}
    for number, cells in run_lines(path, FORMS[task], faults):
        trec = len(cells) == len(TREC)
        ids = [cells[0], cells[2]] if trec else cells
        wrong = [(name, cell) for name, cell in zip(FORMS[task][0], ids, strict=True) if not _is_id(cell)]
        for name, cell in wrong:
            faults.add(path, number, f"the {name} {shown(cell)} is no whole number from 0 to {LARGEST_ID}")
        if wrong:
            continue
        if trec:
            try:
                scored.setdefault(int(cells[0]), []).append(run_line(number, cells))
            except ValueError as error:
                faults.add(path, number, str(error))
        else:
            rows.append([int(cell) for cell in ids])
            numbers.append(number)
    for topic, of_topic in scored.items():
        for one in by_score(path, of_topic, faults):
            rows.append([topic, int(one.document)])
            numbers.append(one.line)
    return np.array(rows, np.int64).reshape(-1, len(FORMS[task][0])), np.array(numbers, np.int64)


def _is_id(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None and int(cell) <= LARGEST_ID


def _grouped(
    path: Path, table: _Table, task: Task, topics: Collection[str] | None, repeated: Repeated, faults: Faults
) -> TrackRun:
    """The rankings of a table; errors for repeated pages and unknown topics."""
    cells, at = table
    pages, scale = cells[:, -1], LARGEST_ID + 1
    keys = cells[:, 0] * scale + (cells[:, 1] if task == 2 else 0)
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    rankings, of_start = np.unique(keys[starts], return_inverse=True)
    ranking = np.repeat(of_start, np.diff(starts, append=keys.size))
    if starts.size > rankings.size or (np.diff(of_start) < 0).any():
        order = ranking.argsort(kind="stable")
        ranking, pages, at = ranking[order], pages[order], at[order]
    bounds = np.concatenate(([0], np.bincount(ranking, minlength=rankings.size).cumsum()))
    distinct, topic = np.unique(rankings // scale, return_inverse=True)
    names = tuple(map(str, distinct.tolist()))

    if repeated == "error":
        listed = ranking * scale + pages
        in_order = np.sort(listed)
        first: dict[int, int] = {}
        rows = zip(listed.tolist(), pages.tolist(), at.tolist(), strict=True)
        for key, page, line in rows if (in_order[1:] == in_order[:-1]).any() else ():
            if first.setdefault(key, line) != line:
                message = f"page {page} is in line {first[key]} of the same ranking already"
                faults.add(path, line, f"{message}; the track's own code would count both (--repeated count)")
    if topics is not None:
        for number, name in enumerate(names):
            if name not in topics:
                line = int(at[bounds[np.flatnonzero(topic == number)[0]]])
                faults.add(path, line, f"topic {name} is none of the {len(topics)} judged ones")
    return TrackRun(path.name.removesuffix(".gz"), names, topic, bounds, pages)
