"""Ten thousand damaged run files through every reader: a value, or one error that names the file and the line."""

from __future__ import annotations

import gzip
import math
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from fairagent.collection.trec_fair import read_run
from fairagent.errors import DataError
from fairagent.measures.trec_fair import DIMENSIONS_2022, Pages, Task, TrackEvaluator, TrackRun
from fairagent.retrieve.run_file import RunFile
from fairagent.retrieve.run_file import read_run as read_any_run
from fairagent.types import Query

FILES = 10_000
TOPICS = ("101", "102", "103")
WHOLE_FILE = ("there are no lines", "ranks documents for none of", "cannot be read", "no such file")
"""Faults that stand in no line."""

PAGES = Pages.from_alignments(
    DIMENSIONS_2022[2:3], [(page, {"gender": {"female" if page % 3 else "male": 1.0}}, "C") for page in range(30)]
)
QRELS = {topic: list(range(10 + place)) for place, topic in enumerate(TOPICS)}
TRACKS: dict[Task, TrackEvaluator] = {
    task: TrackEvaluator(2022, task, ["gender"], PAGES, QRELS, 20 if task == 1 else None) for task in (1, 2)
}
ODD_CELLS = (
    *("", "nan", "inf", "-inf", "1e999", "1e-400", "-1", "+7", "7.0", "٣", "²", "0x10", "1_000", "2147483647"),
    *("2147483648", "9" * 30, "topic", "Q0", '"7"', "7;8", "é", "\x00", "\u2028", "\ufeff", "a b", "x" * 300),
)
ODD_BYTES = (b"\xff", b"\x00", b"\t", b"\n", b"\r", b"\r\n", b",", b" ", b"\x1f\x8b", b"-", b"9", b"\xe2\x80", b"\x0b")


def whole(random: Random) -> list[list[str]]:
    """The cells of a file in which nothing is odd."""
    form, lines = random.choice(["plain", "sequence", "trec"]), []
    for topic in random.sample(TOPICS, random.randint(1, 3)):
        pages = random.sample(range(40), random.randint(1, 8))
        for rank, page in enumerate(pages, start=1):
            if form == "plain":
                lines.append([topic, str(page)])
            elif form == "sequence":
                lines.append([topic, str(rank % 2), str(page)])
            else:
                lines.append([topic, "Q0", str(page), str(rank), f"{9 - rank / 7:.4f}", "me"])
    headers = {
        2: ["id", "page_id"],
        3: ["topic", "rep_number", "page"],
        6: ["qid", "Q0", "doc", "rank", "score", "run"],
    }
    return ([headers[len(lines[0])]] if random.random() < 0.3 else []) + lines


def damaged(random: Random) -> bytes:
    """A file with nothing or up to five things wrong with it."""
    lines = whole(random)
    for _ in range(random.choice([0, 0, 1, 1, 2, 5])):
        line = random.choice(lines)
        kind = random.choice(["cell", "cell", "drop", "add", "twice", "shuffle", "remove"])
        if kind == "cell" and line:
            line[random.randrange(len(line))] = random.choice(ODD_CELLS)
        elif kind == "drop" and line:
            line.pop()
        elif kind == "add":
            line.insert(random.randint(0, len(line)), random.choice(ODD_CELLS))
        elif kind == "twice":
            lines.append(list(line))
        elif kind == "shuffle":
            random.shuffle(lines)
        elif len(lines) > 1:
            lines.remove(line)
    separator, end = random.choice(["\t", "\t", " ", ",", ", ", "  "]), random.choice(["\n", "\n", "\r\n"])
    text = end.join(separator.join(line) for line in lines) + random.choice(["\n", ""])
    raw = random.choice([b"", b"", b"\xef\xbb\xbf"]) + text.encode()
    for _ in range(random.choice([0, 0, 0, 1, 3])):
        place = random.randint(0, len(raw))
        raw = raw[:place] + random.choice([*ODD_BYTES, b""]) + raw[place + random.choice([0, 1, 4]) :]
    if random.random() < 0.2:
        raw = gzip.compress(raw, mtime=0)
        raw = raw[: random.randint(0, len(raw))] if random.random() < 0.3 else raw
    if random.random() < 0.03:
        raw = random.randbytes(random.randint(0, 60))
    return raw


def evaluated(run: TrackRun, task: Task) -> None:
    """The values of a run are numbers in their ranges."""
    for row in TRACKS[task].evaluate(run).rows:
        values = [getattr(row, name) for name in (("ndcg", "awrf", "score") if task == 1 else ("ee_l", "ee_d", "ee_r"))]
        assert all(math.isfinite(value) and value >= 0.0 for value in values)
        assert task == 2 or max(values) <= 1.0 + 1e-9


def through(path: Path, reader: str) -> None:
    """Read the file, and use what was read."""
    if reader == "any collection":
        run = RunFile(read_any_run(path, TOPICS))
        assert any(len(run.search(Query("words", topic), 20)) for topic in TOPICS)
        return
    task: Task = 1 if reader == "task 1" else 2
    run = read_run(path, 2022, task, QRELS)
    evaluated(run, task)
    raw = path.read_bytes()
    if not raw.startswith(b"\x1f\x8b"):
        path.write_bytes(raw + b"\n \n")  # a blank line: what was read as one array is read line by line
        again = read_run(path, 2022, task, QRELS)
        assert (run.topics, run.pages.tolist()) == (again.topics, again.pages.tolist())
        path.write_bytes(raw)


def named(path: Path, error: DataError) -> bool:
    """Whether the error names the file and, unless it is about the whole of it, the lines."""
    return bool(error.faults) and all(
        fault.path == path and (fault.line is not None or fault.message.startswith(WHOLE_FILE))
        for fault in error.faults
    )


@pytest.mark.slow
def test_ten_thousand_run_files(tmp_path: Path) -> None:
    random, path = Random(16), tmp_path / "run.txt"
    came_to: Counter[tuple[str, str]] = Counter()
    for _ in range(FILES):
        raw = damaged(random)
        path.write_bytes(raw)
        for reader in ("task 1", "task 2", "any collection"):
            outcome = "a value"
            try:
                through(path, reader)
            except DataError as error:
                outcome = "an error" if named(path, error) else f"{error} without file or line, of {raw!r}"
            except Exception as error:
                raise AssertionError(f"{reader}: {raw!r}") from error
            came_to[reader, outcome] += 1
    # Neither may be rare, or nothing was tried.
    assert {outcome for _, outcome in came_to} == {"a value", "an error"}
    assert len(came_to) == 6
    assert min(came_to.values()) > FILES / 20, came_to
