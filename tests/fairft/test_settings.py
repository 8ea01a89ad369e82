"""Training data and settings: their faults, what is held out, and the files that are shipped."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from fairagent.errors import DataError, UsageError
from fairagent.papers.fairft.run import check
from fairagent.papers.fairft.settings import OPTIONS, FairFTFile, TrainingExample, read_examples, split
from fairagent.settings import read_yaml, validate

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


ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "fairagent" / "papers" / "fairft" / "README.md").read_text(encoding="utf-8")


def test_the_settings_shown_are_settings() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    file = validate(FairFTFile, yaml.safe_load(shown), "the README")
    assert file.training == FairFTFile.model_fields["training"].default


@pytest.mark.shared
@pytest.mark.parametrize(("name", "rate", "source"), [("1b", 1e-5, "web"), ("mistral-7b", 1e-6, "wikipedia")])
def test_the_papers_settings_are_right_and_leak_nothing(
    shared: Path, tmp_path: Path, name: str, rate: float, source: str
) -> None:
    pytest.importorskip("sentence_transformers")
    folder = ROOT / "evaluations" / "papers" / "fairft" / "train"
    file = read_yaml(folder / f"{name}_{source}.yaml")
    # Its documents are not at hand.
    assert file["collection"] == f"../../collections/{source}.yaml"
    file["collection"] = str(ROOT / "evaluations" / "collections" / "wikilead.yaml")
    for section in (file["examples"], *file["test"]):
        section["path"] = str((folder / section["path"]).resolve())
    (tmp_path / "train.yaml").write_text(yaml.safe_dump(file), encoding="utf-8")
    checked = check(tmp_path / "train.yaml")
    assert checked.file.name == f"fairft-{name}-{source}"
    training = checked.file.training
    assert (training.documents, training.gamma, training.beta, training.batch) == (20, 0.1, 0.1, 20)
    assert (training.direction, training.rate) == ("p-q", rate)
    assert len(checked.held_out) == 100
    assert 850 < len(checked.training) <= 900
