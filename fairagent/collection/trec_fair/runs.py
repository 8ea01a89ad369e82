"""Run files of the TREC Fair Ranking track, 2022 and 2021: in the track's own formats, or in those of other tools.

Topics and pages are whole numbers, best page first, separated by tabs, commas or spaces:

    Task 1   topic, page             one ranking a topic; or a run of any form of `fairagent.collection.run_lines`
    Task 2   topic, ranking, page    a sequence of rankings a topic

How long a ranking may be is the evaluator's to say.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from fairagent.collection.known import warn_once
from fairagent.collection.records import Faults, shown
from fairagent.collection.run_lines import RunLine, by_score, order_note, rows_of, run_lines
from fairagent.errors import UsageError
from fairagent.measures.trec_fair import LARGEST_ID, LONGEST, Repeated, Task, TrackRun, Year
from fairagent.storage.readers import unpacked_name

_ID = re.compile(r"[0-9]{1,10}", re.ASCII)


def read_run(
    path: Path | str, year: Year, task: Task, topics: Collection[str] | None = None, repeated: Repeated = "error"
) -> TrackRun:
    """The rankings of a run file; its name is the file's without `.gz`.

    The lines of a ranking need not stand together: rank is their order, or that of the scores or ranks where there are
    some; a warning says where ranks contradict scores. Raises one DataError with every error by file and line: lines
    of another form, cells that are no whole numbers, ids above 2^31 - 1, no lines at all, a page that a ranking lists
    twice (unless `repeated` is "count") and, where `topics` are given, topics that are none of them. UsageError for
    another year or task.
    """
    if year not in LONGEST or task not in (1, 2):
        raise UsageError(f"year {year!r}, task {task!r}: there are the years 2021 and 2022, and tasks 1 and 2")
    path, faults = Path(path), Faults()
    read = _task1(path, faults) if task == 1 else _task2(path, faults)
    rankings: dict[int, dict[int, list[int]]] = {}
    lines: dict[tuple[int, ...], int] = {}
    for line, cells in read:
        if not (ids := _ids(path, line, cells, faults)):
            continue
        topic, ranking, page = ids[0], sum(ids[1:-1]), ids[-1]
        if topics is not None and str(topic) not in topics and topic not in rankings:
            faults.add(path, line, f"topic {topic} is none of the {len(topics)} judged ones")
        if (before := lines.setdefault(tuple(ids), line)) != line and repeated == "error":
            message = f"page {page} is in line {before} of the same ranking already"
            faults.add(path, line, f"{message}; the track's own code would count both (--repeated count)")
        rankings.setdefault(topic, {}).setdefault(ranking, []).append(page)
    faults.check(f"run {str(path)!r} (TREC Fair {year}, Task {task})")
    ordered = {str(topic): [of[ranking] for ranking in sorted(of)] for topic, of in sorted(rankings.items())}
    return TrackRun.of(unpacked_name(path), ordered, repeated)


def _task1(path: Path, faults: Faults) -> Iterator[tuple[int, Sequence[str]]]:
    of_topic: dict[str, list[RunLine]] = {}
    for one in run_lines(path, faults):
        of_topic.setdefault(one.topic, []).append(one)
    ordered = {topic: by_score(found) for topic, found in of_topic.items()}
    if contradicting := [topic for topic, (_, wrong) in ordered.items() if wrong]:
        warn_once(order_note(path, contradicting))
    return ((one.line, (one.topic, one.document)) for of_one, _ in ordered.values() for one in of_one)


def _task2(path: Path, faults: Faults) -> Iterator[tuple[int, Sequence[str]]]:
    for place, (number, cells) in enumerate(rows_of(path, faults)[1]):
        if len(cells) == 3:
            yield number, cells
            continue
        hint = "; is this a run of Task 1?" if len(cells) in (2, 6) else ""
        faults.add(path, number, f"expected topic, ranking and page, got {len(cells)}: {shown(' '.join(cells))}{hint}")
        if not place:
            return  # every further line would say the same


def _ids(path: Path, line: int, cells: Sequence[str], faults: Faults) -> list[int]:
    names = ("topic", "page") if len(cells) == 2 else ("topic", "ranking", "page")
    wrong = [
        f"the {name} {shown(id)}"
        for name, id in zip(names, cells, strict=True)
        if not _ID.fullmatch(id) or int(id) > LARGEST_ID
    ]
    if wrong:
        what = "is no whole number" if len(wrong) == 1 else "are no whole numbers"
        faults.add(path, line, f"{' and '.join(wrong)} {what} from 0 to {LARGEST_ID}")
    return [] if wrong else [*map(int, cells)]
