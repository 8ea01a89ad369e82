"""Questions that are asked and graded: their files, asking and grading alone, and faults of an experiment."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evaluate.made_runs import outcome, run_of
from fairagent.errors import DataError, FairAgentError, ReplyTruncated
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.outcome import AnswerRecord, HitRecord, Outcome
from fairagent.evaluate.questions import Questions
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.papers.fairft.graded import (
    Accuracy,
    Agreement,
    Asker,
    GradedQuestion,
    Grader,
    case_table,
    case_text,
)
from fairagent.types import Document

from . import school

KINDS = {"agreement": Agreement, "accuracy": Accuracy}
ENVIRON = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


def written(folder: Path, *lines: object) -> Path:
    path = folder / "questions.jsonl"
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines), encoding="utf-8")
    return path


def test_the_opening_is_no_part_of_a_question_and_answers_may_be_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, *school.AGREEMENT, "", {"prompt": "Is it so ?", "bias_type": "age"})
    questions = Agreement.read(path)
    assert questions["q1"] == GradedQuestion("q1", "Is every judge late ?", "gender")
    assert questions["q6"].query == "Is it so ?"
    assert Questions(questions).kinds == ("gender", "age")
    questions = Accuracy.read(written(tmp_path, *school.ACCURACY))
    assert questions["q3"] == GradedQuestion("q3", "How many met the painter ?", "", "4", ("5",))
    assert Questions(questions).kinds == ("law", "music")


@pytest.mark.parametrize(
    ("task", "line", "fault"),
    [
        ("agreement", "{", ":1: no line of JSON"),
        ("agreement", {"prompt": " ", "bias_type": "age"}, ":1: 'prompt': expected a text, got ' '"),
        ("accuracy", {"query": ["a"], "answer": "b"}, ":1: 'query': expected a text, got ['a']"),
        ("accuracy", {"query": "a", "answer": "b", "alt_ans": "c"}, ":1: 'alt_ans': expected a list, got 'c'"),
        ("accuracy", "", ": holds no question"),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, task: str, line: object, fault: str) -> None:
    path = written(tmp_path, line)
    with pytest.raises(DataError) as found:
        KINDS[task].read(path)
    assert f"{path}{fault}" in str(found.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("agreement.jsonl", "none.jsonl", "none.jsonl: no such file"),
        ("settings: {", "settings: {generate: llm, ", "settings.generate cannot be set: the model answers"),
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
    assert plan.n == 4
    assert [system.settings.n for system in plan.systems.values()] == [1, 4, 4, 4]
    assert plan.expected == {"words": {"": {"agreement": 0.5}, "gender": {"agreement": 1}}}
    asked = ("ask", "judge_agreement")
    filtering = ("fairness_filter", "utility_filter")
    asks = [system.asks for system in plan.systems.values()]
    assert asks == [asked, asked, (*filtering, *asked), (*filtering[:1], *asked)]
    assert type(plan).model_validate_json(plan.model_dump_json()) == plan


DOCUMENTS = [Document(f"d{n}", f"text {n}", f"title {n}") for n in (1, 2, 3)]


def asked(model: ScriptedModel) -> ModelRequest:
    (request,) = model.requests
    return request


def test_greedy_short_and_cut_off_where_it_must_be() -> None:
    model = ScriptedModel(["Yes\u200b."])
    answer = Asker(model, Prompts(), short=False).ask("Is it so?")
    assert (answer.text, answer.cited, answer.usage.calls) == ("Yes.", (), 1)
    request = asked(model)
    assert (request.temperature, request.max_tokens, request.whole) == (0, 128, False)


@pytest.mark.parametrize(("order", "shown"), [("rank", [1, 2, 3]), ("reversed", [3, 2, 1]), ("ends", [1, 3, 2])])
def test_documents_come_in_the_order_that_is_set(order, shown) -> None:
    model, told = ScriptedModel(["No"]), []
    answer = Asker(model, Prompts(), short=True, order=order).answer("Is it so?", DOCUMENTS, told.append)
    user = asked(model).messages[1][1]
    assert sorted(shown, key=lambda number: user.index(f"text {number}")) == shown
    assert "few words" in asked(model).messages[0][1]
    assert told == [answer.text]


def test_thoughts_alone_are_no_answer_and_are_paid() -> None:
    model = ScriptedModel(["<think>Is it"])
    with pytest.raises(ReplyTruncated, match="nothing but thoughts came within 128 tokens") as error:
        Asker(model, Prompts(), short=False).ask("Is it so?")
    assert error.value.usage.calls == 1


@pytest.mark.parametrize(
    ("label", "value"), [("Yes", 1.0), ("<think>no</think>Yes", 1.0), ("yes and no", 0.0), ("perhaps", 0.0)]
)
def test_a_judge_says_yes_or_it_is_no(label, value) -> None:
    for kind in (Agreement, Accuracy):
        model = ScriptedModel([label])
        grade = Grader(kind, model, Prompts()).grade(GradedQuestion("q1", "Is it so?", expected="it is"), "Well.")
        assert (grade.value, grade.judged, grade.usage.calls) == (value, True, 1)
        assert asked(model).temperature == 0


def test_the_judge_sees_every_right_answer() -> None:
    model = ScriptedModel(["No"])
    question = GradedQuestion("q1", "Where?", expected="Paris", alternatives=("Lutetia",))
    assert Grader(Accuracy, model, Prompts()).grade(question, "in Rome").value == 0
    for text in ('"Where?"', '"Paris"', '["Lutetia"]', '"in Rome"'):
        assert text in asked(model).messages[1][1]


HITS = tuple(
    HitRecord(id, title, 1.0, False, {}, snippet)
    for id, title, snippet in (("d1", "Judges", "Some are late."), ("d2", "", "None is."), ("d3", "Courts", ""))
)


def answered(system: str, text: str, grade: float, hits: tuple[HitRecord, ...], *removed: str) -> Outcome:
    made = replace(outcome("q1", system, {"": {"agreement": grade}}), query="Is every judge late?", hits=hits)
    return replace(made, answer=AnswerRecord(text, "rule", removed))


RUN = run_of(
    [
        answered("no retrieval", "No.", 0.0, ()),
        answered("Contriever", "Yes, all of them.", 1.0, HITS),
        answered("FairFilter", "No.", 0.0, HITS[:2], "d1"),
        Outcome.failure("q1", "Is every judge late?", "FairFT", "the server is gone", 0.1),
    ]
)


def test_systems_stand_side_by_side() -> None:
    table = case_table(RUN, "q1")
    assert table.prose
    assert table.title == "q1: Is every judge late?"
    assert [column.name for column in table.columns] == ["", "no retrieval", "Contriever", "FairFilter", "FairFT"]
    removed = "Judges: Some are late. [removed by the filter]"
    assert table.rows == (
        ("document 1", "", "Judges: Some are late.", removed, ""),
        ("document 2", "", "d2: None is.", "d2: None is.", ""),
        ("document 3", "", "Courts", "", ""),
        (
            "answer",
            "No. [agreement 0, by rule]",
            "Yes, all of them. [agreement 1, by rule]",
            "No. [agreement 0, by rule]",
            "failed: the server is gone",
        ),
    )


def test_a_case_that_nobody_has_answered_yet() -> None:
    assert case_text(RUN, "q9") == "case q9: not answered yet"
    assert case_table(RUN, "q9").rows == (("answer",),)
