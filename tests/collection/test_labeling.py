"""`from_records(labels=...)`, and the notes on labels before anything is measured."""

from __future__ import annotations

from typing import Any

import pytest

from fairagent import Collection
from fairagent.errors import DataError, FairAgentError, UsageError

DIRTY = ["M", "male", "Male ", "female", "Female", "F", "N/A", "unknown", "prefer not to say", None] * 2


def rows(values: list[Any], column: str = "gender") -> list[dict[str, Any]]:
    return [{"id": f"d{place}", "text": "law", column: value} for place, value in enumerate(values)]


@pytest.mark.parametrize("labels", ["join", {"gender": "join"}])
def test_spellings_are_joined(labels: Any) -> None:
    collection = Collection.from_records(iter(rows(DIRTY)), groups="gender", labels=labels)
    assert collection.groups.labels("gender") == ("female", "male")
    assert collection.groups.shares("gender").tolist() == pytest.approx([0.4, 0.3, 0.3])
    assert collection.notes == ()


def test_lists_separators_columns_and_own_maps() -> None:
    lists = Collection.from_records(rows([["A x", "a X"], ["b", "N/A"], "a x"]), groups="gender", labels="join")
    assert lists.groups.labels("gender") == ("a x", "b")
    split = Collection.from_records(
        rows(["ab|CD", "Cd|Cd", "AB|unknown"], "who"), groups={"sex": "who"}, separator="|", labels="join"
    )
    assert split.groups.labels("sex") == ("Cd", "ab")
    own = {"gender": {"map": {"M": "m"}}}
    assert "Male" in Collection.from_records(rows(DIRTY), groups=own, labels="join").groups.labels("gender")


def test_spellings_that_look_alike_are_said_and_left(caplog: pytest.LogCaptureFixture) -> None:
    collection = Collection.from_records(rows(DIRTY), groups="gender")
    assert len(collection.groups.labels("gender")) == 9
    (note,) = collection.notes
    assert "Female, F -> female" in note
    assert "prefer not to say, unknown, N/A -> no label" in note
    assert 'labels="join"' in note
    assert note in caplog.text


WRONG: list[tuple[list[Any], dict[str, Any], type[FairAgentError], str]] = [
    (DIRTY, {"labels": {"sex": "join"}}, UsageError, "no dimension 'sex'; there are: gender"),
    (DIRTY, {"labels": {"gender": {"M": "m"}}, "groups": {"gender": {"map": {"F": "f"}}}}, UsageError, "has a `map`"),
    (["N/A", "-"], {"labels": "join"}, DataError, "leaves no label: it makes nothing of 'N/A' (1), '-' (1)"),
    (["f", 1, True], {}, DataError, "mixed types: text ('f', records:1), whole numbers (1, records:2), true or false"),
]


@pytest.mark.parametrize(("values", "how", "error", "words"), WRONG)
def test_bad_input_is_one_error(values: list[Any], how: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        Collection.from_records(rows(values), **{"groups": "gender"} | how)
    assert words in str(raised.value)
