"""Training data: two forms, their faults, and what is held out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fairagent.errors import DataError, UsageError
from fairagent.papers.fairft.settings import OPTIONS, TrainingExample, read_examples, split

from .small import write_lines

GOOD = {"id": "a", "query": "who?", "answer": "no"}


def test_questions_are_read_in_order(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "q.jsonl", [GOOD, {**GOOD, "id": "b", "more": 1}])
    assert read_examples(path) == (TrainingExample("a", "who?", "no"), TrainingExample("b", "who?", "no"))


def test_every_fault_is_named(tmp_path: Path) -> None:
    records = [{"id": "a", "query": "x"}, {**GOOD, "query": " "}, GOOD, GOOD, {**GOOD, "id": "a b"}]
    with pytest.raises(DataError) as raised:
        read_examples(write_lines(tmp_path / "q.jsonl", records))
    assert [(fault.line, fault.message.split(";")[0]) for fault in raised.value.faults] == [
        (1, "no field 'answer'"),
        (2, "field 'query' is empty"),
        (4, "the id 'a' occurs twice"),
        (5, "the question id 'a b' holds white space"),
    ]


@pytest.mark.shared
def test_trustllms_recognition_is_read(shared: Path) -> None:
    path = shared / "data" / "trustllm_fairness" / "stereotype_recognition.jsonl"
    examples = read_examples(path, "recognition")
    counted = Counter(example.answer for example in examples)
    assert [counted[option] for option in OPTIONS.values()] == [328, 326, 346]
    assert all(example.query.startswith("Now you should judge") for example in examples)
    # The options stand in the prompt word for word.
    assert all(option in examples[0].query for option in OPTIONS.values())


def test_what_is_held_out_is_not_trained_on() -> None:
    examples = [TrainingExample(f"q{i}", f"question {i % 15}", "no") for i in range(20)]
    training, held_out = split(examples, 0.2, seed=1)
    assert len(held_out) == 4
    assert not {one.query for one in training} & {one.query for one in held_out}
    assert split(examples, 0.2, seed=1) == (training, held_out)
    assert split(examples, 0.2, seed=2)[1] != held_out


def test_examples_that_are_all_alike_cannot_be_divided() -> None:
    with pytest.raises(UsageError, match="none is left for training"):
        split([TrainingExample("a", "Who?", "no"), TrainingExample("b", "who", "no")], 0.1, 0)
