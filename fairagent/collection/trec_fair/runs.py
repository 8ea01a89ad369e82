"""Run files of the TREC Fair Ranking track, 2022 and 2021: in the track's own formats, or in TREC's.

Whole numbers, best page first, separated by tabs, commas or spaces (`fairagent.collection.run_lines`):

    Task 1   topic, page             one ranking a topic
             or TREC's six columns   topic, Q0, page, rank, score, tag; by falling score
    Task 2   topic, ranking, page    a sequence of rankings a topic

How long a ranking may be is the evaluator's to say.
"""

import re
from collections.abc import Collection
from pathlib import Path

import numpy as np

from fairagent.collection.records import Faults, shown
from fairagent.collection.run_lines import TREC, Form, RunLine, by_score, run_line, run_lines
from fairagent.errors import UsageError
from fairagent.measures.trec_fair import LARGEST_ID, LONGEST, Repeated, Task, TrackRun, Year

FORMS: dict[Task, tuple[Form, ...]] = {
    1: (("topic", "page"), ("topic", "Q0", "page", "rank", "score", "tag")),
    2: (("topic", "ranking", "page"),),
}
_ID = re.compile(r"[0-9]{1,10}", re.ASCII)


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
    rows: list[list[int]] = []
    scored: dict[int, list[RunLine]] = {}
    for number, cells in run_lines(path, FORMS[task], faults):
        trec = len(cells) == len(TREC)
        ids = [cells[0], cells[2]] if trec else cells
        try:
            named = zip(FORMS[task][0], ids, strict=True)
            wrong = [f"the {name} {shown(id)}" for name, id in named if not _ID.fullmatch(id) or int(id) > LARGEST_ID]
            if wrong:
                what = "is no whole number" if len(wrong) == 1 else "are no whole numbers"
                raise ValueError(f"{' and '.join(wrong)} {what} from 0 to {LARGEST_ID}")
            if trec:
                scored.setdefault(int(cells[0]), []).append(run_line(number, cells))
            else:
                rows.append([*map(int, ids), number])
        except ValueError as error:
            faults.add(path, number, str(error))
    for topic, of_topic in scored.items():
        rows += [[topic, int(one.document), one.line] for one in by_score(path, of_topic, faults)]
    run = _grouped(path, rows, task, topics, repeated, faults)
    faults.check(f"run {str(path)!r} (TREC Fair {year}, Task {task})")
    return run


def _grouped(
    path: Path, rows: list[list[int]], task: Task, topics: Collection[str] | None, repeated: Repeated, faults: Faults
) -> TrackRun:
    """The rankings of rows whose last cell is their line; errors for repeated pages and unknown topics."""
    *first, pages, at = np.array(rows, np.int64).reshape(len(rows), task + 2).T
    scale = LARGEST_ID + 1
    rankings, ranking = np.unique(first[0] * scale + (first[1] if task == 2 else 0), return_inverse=True)
    order = ranking.argsort(kind="stable")
    pages, at = pages[order], at[order]
    bounds = np.concatenate(([0], np.bincount(ranking, minlength=rankings.size).cumsum()))
    distinct, topic = np.unique(rankings // scale, return_inverse=True)
    names = tuple(map(str, distinct.tolist()))
    if repeated == "error":
        lines: dict[tuple[int, int], int] = {}
        for *key, line in zip(ranking[order].tolist(), pages.tolist(), at.tolist(), strict=True):
            if (before := lines.setdefault((key[0], key[1]), line)) != line:
                message = f"page {key[1]} is in line {before} of the same ranking already"
                faults.add(path, line, f"{message}; the track's own code would count both (--repeated count)")
    for number, name in enumerate(names):
        if topics is not None and name not in topics:
            line = int(at[bounds[np.flatnonzero(topic == number)[0]]])
            faults.add(path, line, f"topic {name} is none of the {len(topics)} judged ones")
    return TrackRun(path.name.removesuffix(".gz"), names, topic, bounds, pages)
