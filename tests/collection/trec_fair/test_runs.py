from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fairagent.collection.trec_fair import read_run
from fairagent.errors import DataError
from fairagent.measures.trec_fair import Task, TrackRun

TASK1 = "id\tpage_id\n101\t7\n101\t9\n102\t9\n102\t70000000\n"
TASK2 = "id\trep_number\tpage_id\n101\t1\t7\n101\t1\t9\n101\t2\t9\n102\t1\t7\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mine.tsv"


def rankings(run: TrackRun) -> dict[str, list[list[int]]]:
    lists: dict[str, list[list[int]]] = {topic: [] for topic in run.topics}
    for number, start, end in zip(run.topic.tolist(), run.bounds.tolist(), run.bounds[1:].tolist(), strict=False):
        lists[run.topics[number]].append(run.pages[start:end].tolist())
    return lists


ONE = {"101": [[7, 9]], "102": [[9, 70000000]]}
TWO = {"101": [[7, 9], [9]], "102": [[7]]}


def test_the_rankings_of_both_tasks(path: Path) -> None:
    path.write_text(TASK1)
    run = read_run(path, 2022, 1)
    assert (run.name, rankings(run)) == ("mine.tsv", ONE)
    path.write_text(TASK2)
    assert rankings(read_run(path, 2021, 2)) == TWO


def test_every_accepted_form_reads_the_same(path: Path) -> None:
    tasks: list[tuple[str, Task, object]] = [(TASK1, 1, ONE), (TASK2, 2, TWO)]
    for text, task, expected in tasks:
        for form in (
            text.partition("\n")[2].encode(),  # no header
            b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
            gzip.compress(text[:9].encode(), mtime=0) + gzip.compress(text[9:].encode()),
            text.replace("101", "00101").encode(),
        ):
            path.write_bytes(form)
            assert rankings(read_run(path, 2022, task)) == expected


def test_lines_of_a_ranking_need_not_stand_together(path: Path) -> None:
    path.write_text("102\t5\n101\t7\n102\t4\n101\t9\n102\t3\n")
    assert rankings(read_run(path, 2022, 1)) == {"101": [[7, 9]], "102": [[5, 4, 3]]}
    path.write_text("101\t2\t5\n101\t1\t7\n101\t2\t4\n99\t1\t7\n")
    assert rankings(read_run(path, 2022, 2)) == {"99": [[7]], "101": [[7], [5, 4]]}


FAULTS: list[tuple[Task, str, list[str]]] = [
    (1, "", [": there are no lines"]),
    (1, "101\t7\n101\t6\n101\n101\t8\t9\t3\n", [":3: 1 column, and 2 above: '101'", ":4: 4 columns, and 2 above"]),
    (1, "101\t7\tx\ty\tz\n101\t7\n", [":1: the rank 'x' is no whole number; a run has TREC's six columns"]),
    (2, TASK1, [":2: expected topic, ranking and page, got 2: '101 7'; is this a run of Task 1?"]),
    (2, "101 Q0 7 1 0.5 me\n", [":1: expected topic, ranking and page, got 6"]),
    (1, "101 Q0 7 1 0.5 me\n101 Q0 6 1 0.4 me\n101 Q0 x 2 0.4 me\n101 Q0 9 4 nan me\n", [
        ":3: the page 'x' is no whole number", ":4: the score 'nan' is no finite number"]),
    (1, "101\t7.0\n101\tnan\n101\t-7\n101\t\nx\t7\n101\t٣\n101\t2147483648\n", [
        f":{line}: the {name} {cell} is no whole number from 0 to 2147483647"
        for line, name, cell in [(1, "page", "'7.0'"), (2, "page", "'nan'"), (3, "page", "'-7'"), (4, "page", "''"),
                                 (5, "topic", "'x'"), (6, "page", "'٣'"), (7, "page", "'2147483648'")]]),
    (2, "101\tx\ty\n", [":1: the ranking 'x' and the page 'y' are no whole numbers"]),
    (1, "101\t7\nid\tpage_id\n", [":2: the topic 'id' and the page 'page_id' are no whole numbers"]),
    (1, "id\tpage_id\n101\t7\n101\t9\n102\t7\n101\t7\n101\t7\n", [
        ":5: page 7 is in line 2 of the same ranking already", ":6: page 7 is in line 2 of the same ranking already"]),
]  # fmt: skip


@pytest.mark.parametrize(("task", "text", "faults"), FAULTS)
def test_every_fault_is_named_with_its_line(path: Path, task: Task, text: str, faults: list[str]) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_run(path, 2022, task)
    assert len(caught.value.faults) == len(faults)
    for found, expected in zip(sorted(map(str, caught.value.faults)), sorted(faults), strict=True):
        assert expected in found


SIX = """101 Q0 9 2 1.5 me
102 Q0 70000000 9 -3e-2 me
101 Q0 7 1 2.5 me
102 Q0 9 9 4 me
"""
JSON = '{"101": {"9": 1.5, "7": 2.5}, "102": {"70000000": -3e-2, "9": 4}}'


def test_runs_of_other_tools_are_ordered_by_score(path: Path) -> None:
    for text in (SIX, SIX.replace(" ", ", "), "topic,Q0,page,rank,score,tag\n" + SIX, JSON):
        path.write_text(text)
        assert rankings(read_run(path, 2022, 1)) == ONE


def test_repeated_pages_count_where_they_are_to(path: Path) -> None:
    path.write_text("101\t7\n101\t9\n101\t7\n")
    assert rankings(read_run(path, 2022, 1, repeated="count")) == {"101": [[7, 9, 7]]}
    path.write_text("101 Q0 7 1 3 me\n101 Q0 9 2 2 me\n101 Q0 7 3 1 me\n")
    assert rankings(read_run(path, 2022, 1, repeated="count")) == {"101": [[7, 9, 7]]}
    path.write_text("101\t1\t7\n101\t1\t7\n")
    assert rankings(read_run(path, 2022, 2, repeated="count")) == {"101": [[7, 7]]}


def test_topics_that_are_not_judged_are_named_once(path: Path) -> None:
    path.write_text("101\t7\n55\t7\n55\t8\n66\t1\n")
    assert read_run(path, 2022, 1, ["101", "55", "66"]).topics == ("55", "66", "101")
    with pytest.raises(DataError) as caught:
        read_run(path, 2022, 1, {"101": None})
    assert sorted((fault.line, fault.message) for fault in caught.value.faults) == [
        (2, "topic 55 is none of the 1 judged ones"),
        (4, "topic 66 is none of the 1 judged ones"),
    ]
