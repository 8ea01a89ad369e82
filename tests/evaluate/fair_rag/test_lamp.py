"""LaMP's files: what is read of each of the seven tasks, and everything that can be wrong with them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lamp_files
import pytest

from fairagent.errors import DataError, UsageError
from fairagent.papers.fair_rag.lamp import LIMIT, TASKS, load_lamp, parse_task

ALL = tuple(TASKS)


@pytest.mark.parametrize("name", ALL)
def test_every_task_is_read(tmp_path: Path, name: str) -> None:
    lamp = lamp_files.load(tmp_path, name)
    assert [question.id for question in lamp.questions] == ["10", "11"]
    question, task = lamp.questions[0], TASKS[name]
    assert (question.task, question.input, question.golds) == (task, lamp_files.INPUTS[name], (lamp_files.GOLDS[name],))
    assert question.query == lamp_files.QUERIES[name]
    entries = lamp_files.ENTRIES[name]
    assert [item.id for item in question.items] == ["p0", "p1"]
    for item, entry in zip(question.items, entries, strict=True):
        assert item.fields == {field: str(entry[field]) for field in task.shown}
        assert item.text == " ".join(entry[field] for field in task.searched)
        assert task.long in item.fields
    assert str(lamp) == f"{name}: 2 of 2 questions"


@pytest.mark.parametrize(
    ("name", "labeled_by", "metric"),
    [
        ("LaMP-1", "accuracy", "accuracy"),
        ("LaMP-2", "accuracy", "accuracy"),
        ("LaMP-3", "accuracy", "absolute-error"),
        *((f"LaMP-{number}", "rouge-l", "rouge-l") for number in (4, 5, 6, 7)),
    ],
)
def test_what_every_task_is_measured_by(name: str, labeled_by: str, metric: str) -> None:
    if metric == "rouge-l":
        pytest.importorskip("rouge")
    task = parse_task(name.replace("-", "_"))
    assert (task.label_utility.name, task.utility.name) == (labeled_by, metric)
    gold = lamp_files.GOLDS[name]
    assert task.label_utility(gold, [gold]) == pytest.approx(1.0)
    assert task.utility.lower_is_better == (name == "LaMP-3")


def test_the_first_questions_are_taken(tmp_path: Path) -> None:
    paths = lamp_files.write(tmp_path, lamp_files.questions("LaMP-7", 5), lamp_files.outputs("LaMP-7", 5))
    lamp = load_lamp("LaMP-7", *paths, limit=2)
    assert ([question.id for question in lamp.questions], str(lamp)) == (["10", "11"], "LaMP-7: 2 of 5 questions")
    assert lamp.sha256 == load_lamp("LaMP-7", *paths, limit=None).sha256
    assert len(load_lamp("LaMP-7", *paths, limit=None).questions) == 5
    many = lamp_files.write(tmp_path, lamp_files.questions("LaMP-7", 1002, 0), lamp_files.outputs("LaMP-7", 1002))
    assert len(load_lamp("LaMP-7", *many).questions) == LIMIT == 1000
    with pytest.raises(UsageError, match="at least 1, not 0"):
        load_lamp("LaMP-7", *paths, limit=0)


def test_gzipped_files_and_byte_order_marks(tmp_path: Path) -> None:
    plain = lamp_files.write(tmp_path, lamp_files.questions("LaMP-4"), lamp_files.outputs("LaMP-4"))
    expected = load_lamp("LaMP-4", *plain)
    plain[0].write_bytes(gzip.compress(plain[0].read_bytes()))
    assert load_lamp("LaMP-4", *plain) == expected
    plain[1].write_bytes(b"\xef\xbb\xbf" + plain[1].read_bytes())
    assert load_lamp("LaMP-4", *plain).questions == expected.questions


Change = Callable[[list[dict[str, Any]], dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "file", "fault"),
    [
        (lambda q, o: q[0].pop("id"), "questions", "question number 1: no field 'id'"),
        (lambda q, o: q[1].update(id="10"), "questions", "question '10' is there twice"),
        (lambda q, o: q[0].update(input="A tweet"), "questions", "question '10': nothing follows after 'article:'"),
        (lambda q, o: q[0].update(input="\ud800"), "questions", "half of a surrogate pair"),
        (lambda q, o: q[0]["profile"][1].pop("text"), "questions", "question '10', item 'p1': no field 'text'"),
        (lambda q, o: o["golds"].pop(), "outputs", "no gold for question '11'"),
        (lambda q, o: o["golds"][0].update(output=" . "), "outputs", "gold of question '10': the output ' . ' has no"),
        (lambda q, o: o["golds"].append(o["golds"][0]), "outputs", "gold of question '10': it is there twice"),
        (lambda q, o: o.update(task="LaMP_5"), "outputs", "the task is 'LaMP_5', expected 'LaMP_4'"),
    ],
)
def test_every_fault_is_named_with_its_record(tmp_path: Path, change: Change, file: str, fault: str) -> None:
    asked, wanted = lamp_files.questions("LaMP-4"), lamp_files.outputs("LaMP-4")
    change(asked, wanted)
    with pytest.raises(DataError) as raised:
        load_lamp("LaMP-4", *lamp_files.write(tmp_path, asked, wanted))
    found = [one for one in raised.value.faults if fault in one.message]
    assert [one.path.name for one in found] == [f"dev_{file}.json"], raised.value


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b'[\n{"id": 1,\n', r"dev_questions.json:3: not JSON"),
        (b"{}", "expected a list of questions, got {}"),
        (b"\x1f\x8b\x08broken", "gzip data"),
        (gzip.compress(b"[]" * 5000, mtime=0)[:20], "gzip data break off"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, content: bytes, fault: str) -> None:
    asked, wanted = lamp_files.write(tmp_path, [], lamp_files.outputs("LaMP-6"))
    asked.write_bytes(content)
    with pytest.raises(DataError, match=fault) as raised:
        load_lamp("LaMP-6", asked, wanted)
    assert len(raised.value.faults) == 1
