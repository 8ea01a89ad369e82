"""LaMP: its files, what models are asked, scores of a profile's items, and their utility labels."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lamp_files
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from fairagent.errors import DataError, ModelError, ReplyInvalid, ReplyRefused, TransientModelError
from fairagent.evaluate.workers import Workers, threads
from fairagent.guests.testing import ScriptedModel
from fairagent.llm.prompts import Prompts
from fairagent.llm.request import ModelRequest, estimate_tokens
from fairagent.papers.fair_rag.lamp import (
    LIMIT,
    NO_ANSWER,
    TASKS,
    TOKENS,
    Item,
    Labeling,
    LampQuestion,
    answer_from,
    load_lamp,
    messages_for,
    score_items,
)
from fairagent.papers.fair_rag.okapi import okapi_scores
from fairagent.retrieve.encoders import Embeddings
from fairagent.settings import ModelSettings
from fairagent.storage.files import sealed

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


def test_the_first_questions_are_taken(tmp_path: Path) -> None:
    paths = lamp_files.write(tmp_path, lamp_files.questions("LaMP-7", 5), lamp_files.outputs("LaMP-7", 5))
    lamp = load_lamp("LaMP-7", *paths, limit=2)
    assert ([question.id for question in lamp.questions], str(lamp)) == (["10", "11"], "LaMP-7: 2 of 5 questions")
    assert lamp.sha256 == load_lamp("LaMP-7", *paths, limit=None).sha256
    assert len(load_lamp("LaMP-7", *paths, limit=None).questions) == 5
    many = lamp_files.write(tmp_path, lamp_files.questions("LaMP-7", 1002, 0), lamp_files.outputs("LaMP-7", 1002))
    assert len(load_lamp("LaMP-7", *many).questions) == LIMIT == 1000


def test_gzipped_files_byte_order_marks_and_what_cannot_be_read(tmp_path: Path) -> None:
    plain = lamp_files.write(tmp_path, lamp_files.questions("LaMP-4"), lamp_files.outputs("LaMP-4"))
    expected = load_lamp("LaMP-4", *plain)
    plain[0].write_bytes(gzip.compress(plain[0].read_bytes()))
    assert load_lamp("LaMP-4", *plain) == expected
    plain[1].write_bytes(b"\xef\xbb\xbf" + plain[1].read_bytes())
    assert load_lamp("LaMP-4", *plain).questions == expected.questions
    for content, fault in (
        (b'[\n{"id": 1,\n', r"dev_questions.json:3: not JSON"),
        (b"{}", "expected a list of questions"),
    ):
        plain[0].write_bytes(content)
        with pytest.raises(DataError, match=fault) as raised:
            load_lamp("LaMP-4", *plain)
        assert len(raised.value.faults) == 1


Change = Callable[[list[dict[str, Any]], dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "file", "fault"),
    [
        (lambda q, o: q[0].pop("id"), "questions", "question number 1: no field 'id'"),
        (lambda q, o: q[1].update(id="10"), "questions", "question '10': it is there twice"),
        (lambda q, o: q[0].update(input="A tweet"), "questions", "question '10': nothing follows after 'article:'"),
        (lambda q, o: q[0].update(input="\ud800"), "questions", "half of a surrogate pair"),
        (lambda q, o: q[0]["profile"][1].pop("text"), "questions", "question '10': item 'p1': no field 'text'"),
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


PROMPTS = Prompts()


def question(folder: Path, task: str = "LaMP-4", items: int = 2) -> LampQuestion:
    return lamp_files.load(folder, task, count=1, items=items).questions[0]


def long_question(task: str, text: str, items: int) -> LampQuestion:
    """A question all of whose texts are `text`."""
    fields = dict.fromkeys(TASKS[task].shown, text)
    return LampQuestion("1", TASKS[task], text, text, tuple(Item(f"p{n}", text, fields) for n in range(items)), text)


@pytest.mark.parametrize("task", ALL)
def test_a_prompt_shows_the_question_as_it_stands_and_the_items_in_their_order(tmp_path: Path, task: str) -> None:
    asked = question(tmp_path, task)
    (system, _), (user, text) = messages_for(PROMPTS, asked, asked.items[::-1])
    assert (system, user) == ("system", "user")
    assert text.count(asked.input) == 1
    places = [text.index(json.dumps(value)) for item in asked.items[::-1] for value in sorted(item.fields.values())]
    assert max(places) < text.index(asked.input)
    first, last = ([text.index(json.dumps(value)) for value in item.fields.values()] for item in asked.items)
    assert max(last) < min(first)
    bare = messages_for(PROMPTS, asked, [])
    assert asked.input in bare[1][1]
    assert bare[1][1].startswith(asked.input)
    assert not any(json.dumps(value) in bare[1][1] for item in asked.items for value in item.fields.values())


@pytest.mark.parametrize("task", ALL)
@pytest.mark.parametrize(
    ("text", "items"), [("court " * 900, 0), ("x" * 5000, 1), ('"\n' * 2000, 5), ("裁判所" * 900, 20)]
)
def test_no_prompt_is_longer_than_it_may_be(task: str, text: str, items: int) -> None:
    asked = long_question(task, text, items)
    messages = messages_for(PROMPTS, asked, asked.items)
    assert estimate_tokens(*(text for _, text in messages)) <= TOKENS
    # The end of the template, where it says what is wanted, is there.
    assert messages[-1][1].endswith("and nothing else:")


@given(tokens=st.integers(200, 900), length=st.integers(0, 3000), items=st.integers(0, 7))
def test_any_length_fits_and_room_is_used(tokens: int, length: int, items: int) -> None:
    asked = replace(long_question("LaMP-4", "court law " * (length // 10), items), input="Which headline?")
    messages = messages_for(PROMPTS, asked, asked.items, tokens)
    taken = estimate_tokens(*(text for _, text in messages))
    assert taken <= tokens
    if items and length > 5 * tokens:
        # What a share leaves over is less than two words an item, and as much again for rounding.
        assert taken > tokens - 10 * items


def test_a_model_is_asked_greedily_for_a_short_answer(tmp_path: Path) -> None:
    asked = question(tmp_path)
    model = ScriptedModel(["<think>North.</think> A court in the north"])
    answer = answer_from(model, PROMPTS, asked, asked.items)
    assert (answer.text, answer.notes, answer.usage.calls) == ("A court in the north", (), 1)
    (request,) = model.requests
    assert (request.temperature, request.max_tokens, request.whole) == (0.0, 128, False)
    assert request.messages == messages_for(PROMPTS, asked, asked.items)


@pytest.mark.parametrize("error", [ReplyRefused("it declined"), ReplyInvalid("the answer is empty")])
def test_a_model_that_gives_no_answer_has_answered_with_nothing(tmp_path: Path, error: ReplyInvalid) -> None:
    answer = answer_from(ScriptedModel([error]), PROMPTS, question(tmp_path), [])
    assert (answer.text, answer.notes) == ("", (f"{NO_ANSWER}: {error}",))


class Letters:
    """Counts "o" and "e", as a sparse matrix where `sparse`; or gives what is no number."""

    name = "letters"

    def __init__(self, broken: bool = False, sparse: bool = False) -> None:
        self.broken, self.form = broken, csr_matrix if sparse else np.array

    def documents(self, texts: Sequence[str]) -> Embeddings:
        counts = np.array([[text.count("o"), text.count("e")] for text in texts], dtype=np.float32)
        return self.form(counts * np.array([[1.0], [np.nan]], dtype=np.float32) if self.broken else counts)

    def queries(self, texts: Sequence[str]) -> Embeddings:
        return self.form(np.array([[1.0, 10.0]] * len(texts), dtype=np.float32))


def test_items_are_scored_for_the_query_and_not_for_the_whole_input(tmp_path: Path) -> None:
    (question,) = lamp_files.load(tmp_path, "LaMP-4", count=1, items=3).questions
    texts = [item.text for item in question.items]
    assert score_items(question, "okapi").tolist() == okapi_scores(question.query, texts).tolist()
    assert score_items(question, "okapi").tolist() != okapi_scores(question.input, texts).tolist()


def test_items_are_scored_by_vectors(tmp_path: Path) -> None:
    (question,) = lamp_files.load(tmp_path, "LaMP-7", count=1).questions
    assert [item.text for item in question.items] == ["court again, what fun", "rain rain rain"]
    for scores in (score_items(question, Letters()), score_items(question, Letters(sparse=True))):
        assert (scores.tolist(), scores.dtype) == ([1.0, 0.0], np.float64)
    with pytest.raises(DataError, match="question '10': letters gives item 'p1' a score that is no number"):
        score_items(question, Letters(broken=True))


@pytest.fixture
def workers() -> Iterator[Workers]:
    with threads(2) as workers:
        yield workers


def labeling(folder: Path, count: int = 3, items: int = 4) -> Labeling:
    lamp = lamp_files.load(folder, "LaMP-2", count, items)
    model = ModelSettings(name="tiny", max_tokens=100)
    generator = {"name": "scripted", "options": {"temperature": 0}}
    return Labeling(lamp, Prompts(), generator, model, folder / "labels" / "labels.jsonl")


def says(text: str) -> str:
    """Right from a comedy, wrong from anything else."""
    return "comedy" if "clown" in text.lower() else "no idea"


def viewer(request: ModelRequest) -> str:
    return says(request.messages[-1][1])


def asked(model: ScriptedModel) -> int:
    return len(model.requests)


def test_items_that_make_the_answer_better_are_useful(tmp_path: Path, workers: Workers) -> None:
    work = labeling(tmp_path)
    model = ScriptedModel(viewer)
    labels = work.make(model, workers)
    assert asked(model) == 3 * (4 + 1)
    assert [(id, gains.tolist()) for id, gains in labels.gains.items()] == [
        (id, [1.0, 0.0, 1.0, 0.0]) for id in ("10", "11", "12")
    ]
    assert labels.useful("11").tolist() == [True, False, True, False]
    assert (labels.counted, labels.notes) == (("10", "11", "12"), ())
    again = work.read()
    assert {id: gains.tolist() for id, gains in again.gains.items()} == {
        id: gains.tolist() for id, gains in labels.gains.items()
    }


@pytest.mark.parametrize(("items", "useful"), [(0, 0), (1, 1), (2, 1)])
def test_questions_with_fewer_than_two_useful_items_are_left_out(
    tmp_path: Path, workers: Workers, items: int, useful: int
) -> None:
    work = labeling(tmp_path, items=items)
    labels = work.make(ScriptedModel(viewer), workers)
    assert [int(labels.useful(id).sum()) for id in labels.gains] == [useful] * 3
    assert labels.counted == ()
    assert labels.notes == ("3 of 3 questions have fewer than 2 useful items and are left out",)
    with pytest.raises(DataError, match="no question has 2 useful items, so there is nothing to measure"):
        work.read()


def test_labels_go_on_where_they_ended(tmp_path: Path, workers: Workers) -> None:
    work = labeling(tmp_path)
    count = 0

    def dies(request: ModelRequest) -> str | ModelError:
        nonlocal count
        count += 1
        return viewer(request) if count <= 6 else TransientModelError("given up")

    model = ScriptedModel(dies)
    with pytest.raises(TransientModelError):
        work.make(model, workers)
    done = len(work.path.read_text(encoding="utf-8").splitlines()) - 1
    assert 6 <= done <= 7
    with pytest.raises(DataError, match=rf"{15 - done} utility labels are missing \(question/item: 1"):
        work.read()
    rest = ScriptedModel(viewer)
    labels = work.make(rest, workers)
    assert asked(rest) == 15 - done
    assert labels.counted == ("10", "11", "12")
    none = ScriptedModel([])
    work.make(none, workers)
    assert asked(none) == 0


def test_labels_of_something_else_are_refused(tmp_path: Path, workers: Workers) -> None:
    work = labeling(tmp_path)
    work.make(ScriptedModel(viewer), workers)
    for other, difference in (
        (replace(work, generator={"name": "other"}), 'generator.name: was "scripted", is "other"'),
        (replace(work, lamp=replace(work.lamp, sha256="0" * 64)), "data: was [0-9a-f]+..., is 000000000000"),
    ):
        refused = pytest.raises(DataError, match=f"made from something else; name another file(.|\n)*{difference}")
        with refused:
            other.read()
        with refused:
            other.make(ScriptedModel([]), workers)


def label(**changed: object) -> str:
    return sealed(json.dumps({"question": "10", "item": "p0", "utility": 1.0, "answer": "comedy"} | changed))


@pytest.mark.parametrize(
    "line",
    [
        "no JSON",
        label(utility=1.5),
        label(question=7),
        label().replace("1.0", "0.0"),
        json.dumps({"question": "10", "item": "p0", "utility": 1.0, "answer": "comedy"}),
    ],
)
def test_damaged_lines_are_named(tmp_path: Path, line: str) -> None:
    work = labeling(tmp_path)
    work.path.parent.mkdir()
    work.path.write_text(f"{sealed(json.dumps({'made_from': work.made_from}))}\n{label()}\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match="damaged; remove these lines") as raised:
        work.read()
    assert [(fault.path, fault.line) for fault in raised.value.faults] == [(work.path, 3)]


def test_answers_that_are_not_given_or_cannot_be_read_are_worth_nothing(tmp_path: Path, workers: Workers) -> None:
    def script(request: ModelRequest) -> str | ModelError:
        text = request.messages[-1][1]
        return (
            ReplyRefused("it declined")
            if "chase" in text
            else "the tag is comedy, or action"
            if "clown" in text
            else "comedy"
        )

    work = labeling(tmp_path, count=2)
    labels = work.make(ScriptedModel(script), workers)
    assert labels.gains["10"].tolist() == [-1.0] * 4
    assert labels.unanswered == 4
    assert labels.notes[-1] == "4 answers were not given (declined or empty) and count as empty"
    none = ScriptedModel([])
    assert work.make(none, workers).unanswered == 4


def test_the_estimate_is_what_is_sent(tmp_path: Path, workers: Workers) -> None:
    work = labeling(tmp_path)
    told = work.estimate()
    model = ScriptedModel(viewer)
    work.make(model, workers)
    sent = sum(estimate_tokens(*(text for _, text in request.messages)) for request in model.requests)
    assert (told.model, told.calls, told.input_tokens, told.output_tokens) == (work.model, 15, sent, 15 * 100)
    assert work.estimate().calls == 0
