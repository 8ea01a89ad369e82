"""The assertion for users' tests: its numbers, what it says, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fairagent.collection import GroupTable, load_collection
from fairagent.collection.demo import write_demo
from fairagent.errors import DataError, UsageError
from fairagent.guests.testing import assert_exposure

GENDER: dict[str, Any] = {"a": "male", "b": "female", "c": "male", "d": None, "e": {"female": 1, "male": 3}}
HALF = {"female": 0.5, "male": 0.5}
LOWEST = 1 - math.log(2)


def said(ranking: Any, groups: Any = GENDER, target: Any = HALF, **asked: Any) -> str:
    """The message of the assertion that fails."""
    with pytest.raises(AssertionError) as raised:
        assert_exposure(ranking, groups, target, **asked)
    return str(raised.value)


def numbers(text: str) -> dict[str, float]:
    """Of a message: group -> exposure, and "AWRF"."""
    lines = [line.split() for line in text.splitlines()[2:]]
    return {words[0].partition("(unknown=ignore)")[0] or words[0]: float(_number(words)) for words in lines}


def _number(words: list[str]) -> str:
    return words[2].rstrip(",") if words[1] == "is" else words[1]


def awrf(female: float) -> float:
    """1 - the Jensen-Shannon divergence of two groups' shares from a half each."""

    def entropy(share: float) -> float:
        return -sum(p * math.log(p) for p in (share, 1 - share) if p)

    return 1 - (entropy((female + 0.5) / 2) - (entropy(female) + entropy(0.5)) / 2)


def test_by_hand() -> None:
    """Weights 1, 1, 1/log2(3): male 1 + .75 w, female 1 + .25 w, of 2 + w."""
    w = 1 / math.log2(3)
    female = (1 + 0.25 * w) / (2 + w)
    fairness = awrf(female)
    found = numbers(said(["a", "b", "e"], at_least=1, shares={"female": ">= .9"}))
    assert found == pytest.approx({"female": female, "male": 1 - female, "(unknown)": 0, "AWRF": fairness}, abs=5e-5)
    assert_exposure(["a", "b", "e"], GENDER, HALF, at_least=fairness, shares={"female": f">= {female}"})
    with pytest.raises(AssertionError):
        assert_exposure(["a", "b", "e"], GENDER, HALF, at_least=fairness + 2e-9)
    with pytest.raises(AssertionError):
        assert_exposure(["a", "b", "e"], GENDER, HALF, at_least=None, shares={"female": f">= {female + 2e-9}"})


def test_the_message_is_a_table() -> None:
    text = said(["a", "c", "d", "b"], dimension="gender", n=3, shares={"female": ">= .4", "male": "< 2"})
    assert text.splitlines() == [
        "exposure in the first 3 of 4 documents, by gender",
        "group      exposure  target   bound  result",
        "female       0.0000  0.5000  >= 0.4  MISSED",
        "male         1.0000  0.5000     < 2     met",
        "(unknown)    0.2398",
        "AWRF(unknown=ignore)@3 is 0.7842, bound >= 0.95: MISSED",
    ]


def test_documents_without_a_label_change_nothing() -> None:
    """They keep their rank, which is why the two must be at its weight: ranks 1 and 2 weigh alike."""
    assert_exposure(["a", "b", "d", "nowhere"], GENDER, HALF, at_least=1)


@pytest.mark.parametrize("ranking", [["d", "nowhere"], []])
def test_where_nothing_is_labeled_the_groups_have_nothing(ranking: list[str]) -> None:
    found = numbers(said(ranking, shares={"female": "> 0"}))
    unknown = 1.0 if ranking else 0.0
    assert found == pytest.approx({"female": 0, "male": 0, "(unknown)": unknown, "AWRF": LOWEST}, abs=5e-5)


def test_every_form_of_groups(tmp_path: Path) -> None:
    table = GroupTable.from_rows([(id, {"gender": labels}) for id, labels in GENDER.items()], ["gender"])
    collection = load_collection(write_demo(tmp_path))
    ids = list(collection.qrels["T01"])[:8]
    messages = [said(["a", "c", "d"], groups, dimension="gender") for groups in (GENDER, table)]
    assert messages[0] == messages[1]
    assert said(["a", "c", "d"], table) == messages[0]
    for groups in (collection, collection.groups):
        text = said(ids, groups, {"female": 1}, dimension="gender")
        assert "exposure in 8 documents, by gender" in text
    with pytest.raises(UsageError, match="needs a dimension; there are: gender, region"):
        assert_exposure(ids, collection, "uniform")


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"ranking": "abc"}, UsageError, "a ranking is a sequence of ids, not the text 'abc'"),
        ({"ranking": ["a", "b", "a"]}, DataError, "document 'a' stands at ranks 1 and 3"),
        ({"target": {"female": 0.5, "male": 0.4}}, DataError, "cannot be used"),
        ({"target": "population"}, DataError, "has no population"),
        ({"n": 0}, DataError, "cut-off"),
        ({"shares": {"femal": "> 0"}}, UsageError, "shares: no group 'femal'; did you mean 'female'?"),
        ({"at_least": None}, UsageError, "there is no bound"),
    ],
)
def test_what_cannot_be_asked_is_an_error_and_no_failure(
    changes: Mapping[str, Any], kind: type[Exception], message: str
) -> None:
    asked = {"ranking": ["a", "b"], "groups": GENDER, "target": HALF, **changes}
    with pytest.raises(kind, match=message.replace("?", r"\?")):
        assert_exposure(asked.pop("ranking"), asked.pop("groups"), asked.pop("target"), **asked)
