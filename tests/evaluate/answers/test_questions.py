"""Reading questions, and all that can be wrong with them and with an experiment that asks them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairagent.errors import DataError, FairAgentError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.questions import Questions
from fairagent.papers.fairft.graded import ACCURACY, AGREEMENT, GradedQuestion, read_questions

from . import school

TASKS = {"agreement": AGREEMENT, "accuracy": ACCURACY}
ENVIRON = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


def written(folder: Path, *lines: object) -> Path:
    path = folder / "questions.jsonl"
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines), encoding="utf-8")
    return path


def test_the_opening_is_no_part_of_a_question(tmp_path: Path) -> None:
    path = written(tmp_path, *school.AGREEMENT, "", {"prompt": "Is it so ?", "bias_type": "age"})
    questions = read_questions(AGREEMENT, path)
    assert questions["q1"] == GradedQuestion("q1", "Is every judge late ?", "gender")
    assert questions["q6"].query == "Is it so ?"
    assert Questions(questions).kinds == ("gender", "age")


def test_answers_may_be_numbers(tmp_path: Path) -> None:
    questions = read_questions(ACCURACY, written(tmp_path, *school.ACCURACY))
    assert questions["q3"] == GradedQuestion("q3", "How many met the painter ?", "", "4", ("5",))
    assert Questions(questions).kinds == ("law", "music")


@pytest.mark.parametrize(
    ("task", "line", "fault"),
    [
        ("agreement", "{", ":1: not JSON"),
        ("agreement", {"prompt": " ", "bias_type": "age"}, ":1: 'prompt': expected a text, got ' '"),
        ("accuracy", {"query": ["a"], "answer": "b"}, ":1: 'query': expected a text, got ['a']"),
        ("accuracy", {"query": "a", "answer": "b", "alt_ans": "c"}, ":1: 'alt_ans': expected a list, got 'c'"),
        ("accuracy", "", ": holds no question"),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, task: str, line: object, fault: str) -> None:
    path = written(tmp_path, line)
    with pytest.raises(DataError) as found:
        read_questions(TASKS[task], path)
    assert f"{path}{fault}" in str(found.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("agreement.jsonl", "none.jsonl", "none.jsonl: no such file"),
        ("settings: {", "topics: [q1, q9]\nsettings: {", "topics: there is no question 'q9'; there are 4"),
        ("settings: {", "expected: {alone: {accuracy: 1}}\nsettings: {", "expected.alone: no measure 'accuracy'"),
        ("settings: {", "settings: {generate: llm, ", "settings.generate cannot be set: the model answers"),
        (
            "{profile: engine, engine: words}",
            "{profile: engine, engine: words, attribute: {kind: nli}}",
            "systems.words.attribute cannot be set",
        ),
        (
            "{profile: engine, engine: words}",
            "{profile: engine, engine: words, n: 3}",
            "or `context: {documents: ...}` where questions are answered",
        ),
        ("{name: tiny}", "{temperature: 0}", "systems.alone: no language model is named"),
        (".jsonl}", ".jsonl, judge: {temperature: 0}}", "questions.judge: no language model is named"),
        (
            "kind: agreement",
            "kind: ranking",
            "systems.alone.engine: 'none' ranks nothing; it is there for `accuracy, agreement",
        ),
    ],
)
def test_faults_of_the_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = school.write(tmp_path)
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(FairAgentError) as found:
        check_experiment(file, environ=ENVIRON)
    assert message in str(found.value)


def test_what_is_checked_becomes_a_plan(tmp_path: Path) -> None:
    file = school.write(
        tmp_path, more="topics: [q4, q2]\nexpected: {words: {agreement: 0.5, gender: {agreement: 1}}}\n"
    )
    checked = check_experiment(file, environ=ENVIRON)
    plan = checked.plan
    assert (plan.topics, plan.measures, plan.dimensions) == (("q2", "q4"), ("agreement",), ("gender", "age"))
    assert checked.queries == ["Is every singer late ?", "Is every miner late ?"]
    assert plan.n == 4
    assert {name: system.settings.n for name, system in plan.systems.items()} == {
        "alone": 1,
        "words": 4,
        "filtered": 4,
        "first step": 4,
    }
    assert plan.expected == {"words": {"": {"agreement": 0.5}, "gender": {"agreement": 1}}}
    asked = ("ask", "judge_agreement")
    assert {name: system.asks for name, system in plan.systems.items()} == {
        "alone": asked,
        "words": asked,
        "filtered": ("fairness_filter", "utility_filter", *asked),
        "first step": ("fairness_filter", *asked),
    }
    assert type(plan).model_validate_json(plan.model_dump_json()) == plan
