"""A scripted model that is asked for groups, and word lists."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.guests.testing import Scripted, ScriptedModel
from fairagent.labeling.asked import Asked
from fairagent.labeling.evidence import WordLists, read_word_lists
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.calls import Case
from fairagent.llm.request import ModelReply, ModelRequest
from fairagent.settings import load_settings
from fairagent.types import Document

TEXTS = {id: Document(id, f"A text of {id}.", "") for id in ("asia", "europe", "nowhere", "asia too")}


def documents(request: ModelRequest) -> list[dict[str, str]]:
    """What the prompt shows, as a model would read it."""
    text = "\n".join(text for _, text in request.messages)
    found: list[dict[str, str]] = json.loads(re.findall(r"^\[.*\]$", text, flags=re.MULTILINE)[-1])
    return found


def answer(letter: Callable[[str], str]) -> Callable[[ModelRequest], Scripted]:
    """A model that gives each text the letter that a function of it says."""

    def reply(request: ModelRequest) -> Scripted:
        labels = [{"id": one["id"], "letter": letter(one["text"])} for one in documents(request)]
        return json.dumps({"labels": labels})

    return reply


def read(text: str) -> str:
    return "A" if "asia" in text else "B" if "europe" in text else "C"


def asked(script: Callable[[ModelRequest], Scripted], batch: int = 3) -> tuple[Asked, ScriptedModel]:
    model = ScriptedModel(script)
    return Asked(model, Prompts(""), "region", ("Asia", "Europe"), TEXTS, "scripted", batch, workers=1), model


def test_letters_become_chances() -> None:
    evidence, model = asked(answer(read))
    rows, told = evidence.rows(list(TEXTS))
    assert told.tolist() == [True, True, False, True]
    assert np.exp(rows[told]) == pytest.approx(np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]]))
    assert rows[2].tolist() == [0, 0]
    assert len(model.requests) == 2
    assert evidence.source == "model (scripted)"


def test_one_by_one_the_chances_of_the_letters_count() -> None:
    def reply(request: ModelRequest) -> Scripted:
        assert request.choices == "ABC"
        text = json.dumps({"labels": [{"id": one["id"], "letter": "A"} for one in documents(request)]})
        return ModelReply(text, 5, 5, chances=(("A", 0.6), ("B", 0.2), ("C", 0.2)))

    evidence, model = asked(reply, batch=1)
    rows, told = evidence.rows(["asia"])
    assert told.tolist() == [True]
    assert rows[0] == pytest.approx([math.log(0.75), math.log(0.25)])
    assert len(model.requests) == 1


def test_a_group_that_is_not_there_is_corrected_and_else_nothing_is_said() -> None:
    evidence, model = asked(answer(lambda text: "Z" if "nowhere" in text else read(text)))
    rows, told = evidence.rows(["asia", "nowhere", "europe"])
    # Three tries of all, then each alone, of which one fails three times.
    assert len(model.requests) == 3 + 1 + 3 + 1
    assert "no letter of a group; there are: A, B, C" in model.requests[1].messages[-1][1]
    assert told.tolist() == [True, False, True]
    assert rows[1].tolist() == [0, 0]


def test_the_calls_are_known_before() -> None:
    evidence, model = asked(answer(read), batch=3)
    settings = load_settings(overrides={"model": {"name": "scripted", "max_tokens": 500}}, environ={})
    calls = evidence.calls(Case(settings, Prompts(""), ()), list(TEXTS))
    assert (calls.calls, calls.output_tokens) == (2, 1000)
    evidence.rows(list(TEXTS))
    sent = sum(len(text) for request in model.requests for _, text in request.messages)
    assert calls.input_tokens >= sent / 5


def test_words_are_counted_by_label() -> None:
    lists = WordLists({"female": ["she", "her", "Ms"], "male": ["he", "his", "Ms"]}, {})
    # "Ms" is of both: half for each.
    assert lists.counts("She said that he and her aunt met Ms Hale.").tolist() == [2.5, 1.5]
    assert WordLists({"a": ["New York"], "b": ["York"]}, {}).counts("new york, York").tolist() == [1, 2]


def test_a_document_without_any_word_says_nothing() -> None:
    texts = {"d": Document("d", "she and she", "Her"), "e": Document("e", "a tree", "")}
    rows, told = WordLists({"female": ["she", "her"], "male": ["he"]}, texts).rows(["d", "e"])
    assert told.tolist() == [True, False]
    assert rows.tolist() == [[math.log(4), 0], [0, 0]]


@pytest.mark.parametrize(
    ("text", "says"),
    [("a: [x]\n", "1 label with words"), ("a: [x]\nb: []\n", "'b' has"), ("a: [x]\nb: y\n", "'b' has")],
    ids=["one label", "no word", "no list"],
)
def test_wrong_word_lists(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "words.yaml"
    file.write_text(text)
    with pytest.raises(DataError, match=says):
        read_word_lists(file)
    file.write_text("a: [x, y z]\nb: [w]\n")
    assert read_word_lists(file) == {"a": ["x", "y z"], "b": ["w"]}
