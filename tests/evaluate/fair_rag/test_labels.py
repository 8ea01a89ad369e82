"""Utility labels: what they say, that each is paid for once, and files that hold something else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lamp_files
import pytest

from fairagent.errors import BudgetExceeded, DataError, ModelError, ReplyRefused, TransientModelError
from fairagent.evaluate.fingerprint import of_model
from fairagent.evaluate.workers import Workers, threads
from fairagent.guests.testing import LoopbackServer, ScriptedModel, ServerReply, completion
from fairagent.llm.models import Models
from fairagent.llm.prompts import Prompts
from fairagent.llm.request import ModelRequest, estimate_tokens
from fairagent.papers.fair_rag.labels import Labeling
from fairagent.settings import BudgetSettings, ModelSettings
from fairagent.storage.files import sealed

ENTRIES = 'A clown "sings".', "A chase."


@pytest.fixture
def workers() -> Iterator[Workers]:
    with threads(2) as workers:
        yield workers


def labeling(folder: Path, count: int = 3, items: int = 4, **changed: Any) -> Labeling:
    lamp = lamp_files.load(folder, "LaMP-2", count, items)
    return replace(Labeling(lamp, Prompts(), {"name": "scripted", "options": {"temperature": 0}}), **changed)


def says(text: str) -> str:
    """Right from a comedy, wrong from anything else."""
    return "comedy" if "clown" in text.lower() else "no idea"


def viewer(request: ModelRequest) -> str:
    return says(request.messages[-1][1])


def asked(model: ScriptedModel) -> int:
    return len(model.requests)


def test_items_that_make_the_answer_better_are_useful(tmp_path: Path, workers: Workers) -> None:
    work, file = labeling(tmp_path), tmp_path / "labels" / "scripted.jsonl"
    model = ScriptedModel(viewer)
    labels = work.make(file, model, workers)
    assert asked(model) == 3 * (4 + 1)
    assert labels.base == {"10": 0.0, "11": 0.0, "12": 0.0}
    assert [(id, gains.tolist()) for id, gains in labels.gains.items()] == [
        (id, [1.0, 0.0, 1.0, 0.0]) for id in ("10", "11", "12")
    ]
    assert labels.useful("11").tolist() == [True, False, True, False]
    assert (labels.counted, labels.notes) == (("10", "11", "12"), ())
    again = work.read(file)
    assert {id: gains.tolist() for id, gains in again.gains.items()} == {
        id: gains.tolist() for id, gains in labels.gains.items()
    }


@pytest.mark.parametrize(("items", "useful"), [(0, 0), (1, 1), (2, 1)])
def test_questions_with_fewer_than_two_useful_items_are_left_out(
    tmp_path: Path, workers: Workers, items: int, useful: int
) -> None:
    work, file = labeling(tmp_path, items=items), tmp_path / "labels.jsonl"
    labels = work.make(file, ScriptedModel(viewer), workers)
    assert [int(labels.useful(id).sum()) for id in labels.gains] == [useful] * 3
    assert labels.counted == ()
    assert labels.notes == ("3 of 3 questions have fewer than 2 useful items and are left out",)
    with pytest.raises(DataError, match="no question has 2 useful items, so there is nothing to measure"):
        work.read(file)


def test_labels_go_on_where_they_ended(tmp_path: Path, workers: Workers) -> None:
    work, file = labeling(tmp_path), tmp_path / "labels.jsonl"
    count = 0

    def dies(request: ModelRequest) -> str | ModelError:
        nonlocal count
        count += 1
        return viewer(request) if count <= 6 else TransientModelError("given up")

    model = ScriptedModel(dies)
    with pytest.raises(TransientModelError):
        work.make(file, model, workers)
    done = len(file.read_text(encoding="utf-8").splitlines()) - 1
    assert 6 <= done <= 7
    with pytest.raises(DataError, match=rf"{15 - done} utility labels are missing \(question/item: 1"):
        work.read(file)
    rest = ScriptedModel(viewer)
    labels = work.make(file, rest, workers)
    assert asked(rest) == 15 - done
    assert labels.counted == ("10", "11", "12")
    none = ScriptedModel([])
    work.make(file, none, workers)
    assert asked(none) == 0


def test_a_line_that_a_kill_has_torn_is_made_again(tmp_path: Path, workers: Workers) -> None:
    work, file = labeling(tmp_path), tmp_path / "labels.jsonl"
    work.make(file, ScriptedModel(viewer), workers)
    whole = file.read_bytes()
    for cut in (1, len(whole.splitlines()[-1]), len(whole) - 20):
        file.write_bytes(whole[:-cut])
        left = whole[:-cut].count(b"\n")
        model = ScriptedModel(viewer)
        work.make(file, model, workers)
        assert asked(model) == 16 - max(left, 1)
        assert sorted(file.read_bytes().splitlines()) == sorted(whole.splitlines())


Change = Callable[[Labeling], Labeling]


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda work: replace(work, generator={"name": "other"}), 'generator.name: was "scripted", is "other"'),
        (lambda work: replace(work, tokens=100), "tokens: was 512, is 100"),
        (
            lambda work: replace(work, lamp=replace(work.lamp, sha256="0" * 64)),
            "data: was [0-9a-f]+..., is 000000000000",
        ),
    ],
)
def test_labels_of_something_else_are_refused(
    tmp_path: Path, workers: Workers, change: Change, difference: str
) -> None:
    work, file = labeling(tmp_path), tmp_path / "labels.jsonl"
    work.make(file, ScriptedModel(viewer), workers)
    other = change(work)
    for use in (
        lambda: other.read(file),
        lambda: other.make(file, ScriptedModel([]), workers),
        lambda: other.estimate(file, ModelSettings()),
    ):
        with pytest.raises(DataError, match=f"made from something else; name another file(.|\n)*{difference}"):
            use()


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
    work, file = labeling(tmp_path), tmp_path / "labels.jsonl"
    file.write_text(f"{sealed(json.dumps({'made_from': work.made_from}))}\n{label()}\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match="damaged; remove these lines") as raised:
        work.read(file)
    assert [(fault.path, fault.line) for fault in raised.value.faults] == [(file, 3)]


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

    work, file = labeling(tmp_path, count=2), tmp_path / "labels.jsonl"
    labels = work.make(file, ScriptedModel(script), workers)
    assert labels.gains["10"].tolist() == [-1.0] * 4
    assert labels.unanswered == 4
    assert labels.notes[-1] == "4 answers were not given (declined or empty) and count as empty"
    none = ScriptedModel([])
    assert work.make(file, none, workers).unanswered == 4


def test_the_estimate_is_what_is_sent(tmp_path: Path, workers: Workers) -> None:
    work, file = labeling(tmp_path), tmp_path / "labels.jsonl"
    settings = ModelSettings(name="tiny", max_tokens=100)
    told = work.estimate(file, settings)
    model = ScriptedModel(viewer)
    work.make(file, model, workers)
    sent = sum(estimate_tokens(*(text for _, text in request.messages)) for request in model.requests)
    assert (told.model, told.calls, told.input_tokens, told.output_tokens) == (settings, 15, sent, 15 * 100)
    assert work.estimate(file, settings).calls == 0


class Server:
    """A model behind the door, that counts what reaches it."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, request: dict[str, Any]) -> ServerReply:
        self.calls += 1
        return completion(says(request["messages"][-1]["content"]))


def test_through_the_door_the_budget_holds_and_nothing_is_paid_for_twice(
    no_variables: None, tmp_path: Path, workers: Workers
) -> None:
    said, file = Server(), tmp_path / "labels" / "a.jsonl"
    with LoopbackServer(said) as server:
        environ = {**os.environ, "OPENAI_BASE_URL": server.url}
        settings = ModelSettings(name="tiny")
        # Items 2 and 3 are 0 and 1 over again, and all questions are alike.
        work = labeling(tmp_path, generator=of_model(settings, environ))
        poor = Models(tmp_path / "cache", BudgetSettings(calls=2), environ=environ)
        with pytest.raises(BudgetExceeded, match="the budget of 2 calls is used up"):
            work.make(file, poor.open(settings), workers)
        poor.close()
        rich = Models(tmp_path / "cache", environ=environ)
        assert work.make(file, rich.open(settings), workers).counted == ("10", "11", "12")
        assert said.calls == 3
        # Lost, they are made again from the kept replies.
        file.unlink()
        work.make(file, rich.open(settings), workers)
        assert said.calls == 3
        rich.close()
