"""Group-aware feedback on four documents whose models are worked out by hand.

    d0 male     law law he          d2 female   law she
    d1 male     law he              d3 female   law she judge

With equal scores P(w|female) is law 5/12, she 5/12, judge 1/6 (the mean of 1/2, 1/2 and 1/3, 1/3, 1/3), and P(w|list)
is law 1/2, he 5/24, she 5/24, judge 1/12. So law scores (5/12) ln(5/6) < 0, she (5/12) ln 2, judge (1/6) ln 2: 5 to 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scripted import ranking

from fairagent.retrieve.relevance_model import Postings
from fairagent.search.refine.feedback import FeedbackRefiner, RefineState
from fairagent.types import Exposure, Group, Query

TEXTS = {"d0": "law law he", "d1": "law he", "d2": "law she", "d3": "law she judge"}
WORDS = ["law", "he", "she", "judge"]
MALE, FEMALE, UNKNOWN = [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]
ROWS = [MALE, MALE, FEMALE, FEMALE]


class Library:
    """The four documents; term numbers start at 10; `shares` are the parts of all documents that hold each word."""

    def __init__(self, **shares: float) -> None:
        self.shares = np.array([shares.get(word, 0.1) for word in WORDS])
        self.texts = TEXTS

    def postings(self, ids: Sequence[str]) -> Postings:
        entries = [
            (row, WORDS.index(word), self.texts[id].split().count(word))
            for row, id in enumerate(ids)
            for word in dict.fromkeys(self.texts[id].split())
        ]
        row, term, count = np.array(entries).T
        length = np.array([len(self.texts[id].split()) for id in ids], dtype=np.float64)
        return Postings(row, term, count.astype(np.float64), length, np.arange(10, 14), self.shares)

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        return [WORDS[number - 10] for number in vocabulary.tolist()]

    def analyze(self, text: str) -> list[str]:
        return [word for word in text.split() if word != "the"]


def state(
    rows: Sequence[Sequence[float]] = ROWS,
    *,
    query: str = "the law courts",
    scores: Sequence[float] = (1, 1, 1, 1),
    tried: frozenset[str] = frozenset(),
) -> RefineState:
    exposure = Exposure("gender", ("female", "male"), np.array([0.0, 1.0]), np.array([0.5, 0.5]), 0.0, 0.7)
    deep = ranking(list(TEXTS), scores)
    user, memberships = Query(query), {"gender": np.array(rows)}
    return RefineState(user, user, deep, memberships, (exposure,), Group("gender", "female"), tried)


def terms(refiner: FeedbackRefiner, **changes: object) -> dict[str, float]:
    return {term.text: term.weight for term in refiner.refine(state(**changes)).terms}  # type: ignore[arg-type]


def test_by_hand() -> None:
    # Two words of the query ("the" is none) times the weight .35 is .7, shared 5 to 2.
    proposed = FeedbackRefiner(Library(), weight=0.35, support=1).refine(state())
    assert [term.text for term in proposed.terms] == ["she", "judge"]
    assert [term.weight for term in proposed.terms] == pytest.approx([0.5, 0.2])
    assert (proposed.source, proposed.note, proposed.usage.calls) == ("feedback", "", 0)
    # d2 3/4, d3 1/4: P(w|female) law and she 3/8 + 1/12 = 11/24, judge 1/12. With list scores 6, 6, 3, 1 of 16
    # P(w|list): she 3/32 + 1/48 = 11/96, judge 1/48: a ratio of 4 for both. So 11/24 to 1/12 is 11 to 2.
    found = terms(FeedbackRefiner(Library(), weight=0.5, support=1), scores=(6, 6, 3, 1))
    assert found == pytest.approx({"she": 11 / 13, "judge": 2 / 13})
    # d3 is half female: P(w|female) law and she 2/3 (1/2) + 1/3 (1/3) = 4/9, judge 1/9.
    found = terms(FeedbackRefiner(Library(), weight=0.5, support=1), rows=[MALE, MALE, FEMALE, [0, 0.5, 0.5]])
    she, judge = (4 / 9) * math.log((4 / 9) / (5 / 24)), (1 / 9) * math.log((1 / 9) / (1 / 12))
    assert found == pytest.approx({"she": she / (she + judge), "judge": judge / (she + judge)})


def test_which_words_are_proposed() -> None:
    assert list(terms(FeedbackRefiner(Library(), support=2))) == ["she"]
    assert list(terms(FeedbackRefiner(Library(she=0.51), support=1))) == ["judge"]
    assert list(terms(FeedbackRefiner(Library(she=0.5), support=1))) == ["she", "judge"]
    assert list(terms(FeedbackRefiner(Library(she=0.5), support=1, max_share=0.4))) == ["judge"]
    assert list(terms(FeedbackRefiner(Library(), support=1), tried=frozenset({"she"}))) == ["judge"]
    assert list(terms(FeedbackRefiner(Library(), support=1, documents=1))) == ["she"]  # d2 alone
    assert list(terms(FeedbackRefiner(Library(), support=1, terms=1))) == ["she"]
    assert sum(terms(FeedbackRefiner(Library(), support=1, terms=1, weight=0.5)).values()) == pytest.approx(1.0)


@pytest.mark.parametrize("row", [FEMALE, [0.0, 1 / 3, 2 / 3], [0.0, 0.1, 0.9]])
def test_a_group_that_is_in_all_documents_alike_has_no_words_of_its_own(row: list[float]) -> None:
    # The two models differ by rounding at most, and rounding proposes nothing.
    proposed = FeedbackRefiner(Library(), support=1).refine(state([row] * 4, scores=(3.7, 2.9, 1.3, 0.7)))
    assert (proposed.terms, proposed.note) == ((), "no new word sets the documents of female (gender) apart")
