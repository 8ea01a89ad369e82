"""Refiners: words of a group's documents worked out by hand, and what is asked of and taken from scripted models.

    d0 male     law law he          d2 female   law she
    d1 male     law he              d3 female   law she judge

With equal scores P(w|female) is law 5/12, she 5/12, judge 1/6 (the mean of 1/2, 1/2 and 1/3, 1/3, 1/3), and P(w|list)
is law 1/2, he 5/24, she 5/24, judge 1/12. So law scores (5/12) ln(5/6) < 0, she (5/12) ln 2, judge (1/6) ln 2: 5 to 2.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scripted import ranking

from fairagent.errors import (
    BudgetExceeded,
    FatalModelError,
    ModelError,
    ReplyRefused,
    ReplyTruncated,
    TransientModelError,
)
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelReply
from fairagent.llm.prompts import Prompts
from fairagent.retrieve.relevance_model import Postings
from fairagent.search.refine import (
    KEYWORD,
    MOST_KEYWORDS,
    AskingRefiner,
    FeedbackRefiner,
    GroundedRefiner,
    Keywords,
    LlmRefiner,
    RefineState,
    sift,
)
from fairagent.types import Document, Exposure, Group, Query, Refinement, Term, Usage

TEXTS = {"d0": "law law he", "d1": "law he", "d2": "law she", "d3": "law she judge"}
WORDS = ["law", "he", "she", "judge"]
MALE, FEMALE, UNKNOWN = [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]
ROWS = [MALE, MALE, FEMALE, FEMALE]


class Library:
    """The four documents; term numbers start at 10; `shares` are the parts of all documents that hold each word."""

    def __init__(self, **shares: float) -> None:
        self.shares = np.array([shares.get(word, 0.1) for word in WORDS])

    def postings(self, ids: Sequence[str]) -> Postings:
        texts = [TEXTS[id].split() for id in ids]
        entries = [
            (row, WORDS.index(word), count) for row, words in enumerate(texts) for word, count in Counter(words).items()
        ]
        row, term, count = np.array(entries).T
        length = np.array(list(map(len, texts)), dtype=np.float64)
        return Postings(row, term, count.astype(np.float64), length, np.arange(10, 14), self.shares)

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        return [WORDS[number - 10] for number in vocabulary.tolist()]

    def analyze(self, text: str) -> list[str]:
        return [word for word in text.split() if word != "the"]

    def document(self, id: str) -> Document:
        return Document(id, TEXTS[id], f"Page\n {id}\u200b")


def state(
    rows: Sequence[Sequence[float]] = ROWS,
    *,
    query: str = "the law courts",
    terms: tuple[Term, ...] = (),
    scores: Sequence[float] = (1, 1, 1, 1),
    tried: Collection[str] = (),
) -> RefineState:
    exposures = (
        Exposure("region", ("Africa", "Asia"), np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0.0, 0.0),
        Exposure("gender", ("female", "male"), np.array([0.123, 0.877]), np.array([0.5, 0.5]), 0.1, 0.3),
    )
    deep, current, memberships = ranking(list(TEXTS), scores), Query(query, terms=terms), {"gender": np.array(rows)}
    return RefineState(Query(query), current, deep, memberships, exposures, Group("gender", "female"), frozenset(tried))


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
    assert list(terms(FeedbackRefiner(Library(), support=1), tried={"she"})) == ["judge"]
    assert list(terms(FeedbackRefiner(Library(), support=1, documents=1))) == ["she"]  # d2 alone
    assert list(terms(FeedbackRefiner(Library(), support=1, terms=1))) == ["she"]
    assert sum(terms(FeedbackRefiner(Library(), support=1, terms=1, weight=0.5)).values()) == pytest.approx(1.0)


@pytest.mark.parametrize("row", [FEMALE, [0.0, 1 / 3, 2 / 3], [0.0, 0.1, 0.9]])
def test_a_group_that_is_in_all_documents_alike_has_no_words_of_its_own(row: list[float]) -> None:
    # The two models differ by rounding at most, and rounding proposes nothing.
    proposed = FeedbackRefiner(Library(), support=1).refine(state([row] * 4, scores=(3.7, 2.9, 1.3, 0.7)))
    assert (proposed.terms, proposed.note) == ((), "no new word sets the documents of female (gender) apart")


# --- grounded: shown the words of the documents -----------------------------------------------------------------


def grounded(*script: object) -> GroundedRefiner:
    feedback = FeedbackRefiner(Library(), support=1)
    return GroundedRefiner(ScriptedModel(script), Prompts(), drift=100.0, feedback=feedback)


def reply(*keywords: str) -> str:
    return json.dumps({"keywords": keywords})


def asked(refining: AskingRefiner) -> dict[str, object]:
    user = refining.model.requests[-1].messages[-1][1]
    return json.loads(user[user.index("{") : user.rindex("}\n\nGive") + 1])


def test_the_model_sees_words_with_counts_and_titles():
    refining = grounded(reply("she", "Barrister"))
    refinement = refining.refine(state(tried={"women"}))
    assert refinement.terms == (Term("she"), Term("Barrister"))
    assert (refinement.source, refinement.note, refinement.usage.calls) == ("grounded", "", 1)
    (request,) = refining.model.requests
    assert request.reply is Keywords
    # d2 and d3 of 4 are the group's.
    assert asked(refining) == {
        "query": "the law courts",
        "dimension": "gender",
        "group_shown_too_little": "female",
        "share_of_the_group_now": "12.3%",
        "share_it_should_have": "50.0%",
        "documents_of_the_group_read": 2,
        "documents_found_in_all": 4,
        "words_with_how_many_documents_contain_them": [
            {"word": "she", "of_group": 2, "of_all": 2},
            {"word": "judge", "of_group": 1, "of_all": 1},
        ],
        "titles_of_documents_of_the_group": ["Page d2", "Page d3"],
        "words_added_for_the_topic": [],
        "tried_before_do_not_repeat": ["women"],
    }


def test_without_a_document_of_the_group_and_with_what_was_tried():
    refining = grounded(reply("she"))
    assert refining.refine(state([MALE] * 4)).terms == (Term("she"),)
    shown = asked(refining)
    assert shown["words_with_how_many_documents_contain_them"] == []
    assert shown["documents_of_the_group_read"] == 0
    refining = grounded(reply("She", "judge"))
    refinement = refining.refine(state(tried={"she"}))
    assert refinement.terms == (Term("judge"),)
    assert refinement.refused == ("She: nothing new",)
    assert [word["word"] for word in asked(refining)["words_with_how_many_documents_contain_them"]] == ["judge"]


# --- what keywords become before anything is searched -----------------------------------------------------------


# proposed, kept; the query is "famous Lawyers", "judge" has been tried
CLEANING = [
    (["she", "her"], ["she", "her"]),
    (['"women lawyers"', "‘solicitor’"], ["women lawyers", "solicitor"]),
    (["Straße", "STRASSE", "strasse"], ["Straße"]),
    (["wo\u200bman", "\u202eher\u202c", "at\u00adtorney", "\ufeffshe"], ["woman", "her", "attorney", "she"]),
    (["bar\x00rister\x1b"], ["barrister"]),
    (["judge", "JUDGE", "ｊｕｄｇｅ"], []),
    (["lawyers", "Famous  lawyers", "LAWYERS!"], []),
    (["", " ", "\u200b", '""', "...", "—"], []),
    (["one\ntwo", "one\r\ntwo", "one\u2028two"], []),
    (["x" * 80, "y" * 81, "z" * 10_000], ["x" * 80]),
    (["http://evil.example", "www.evil", "evil.com", "see evil.io/x", "a@b.org", "Evil.Com now"], []),
    (["Ph.D. women", "U.S. senator", "hip-hop", "AT&T", "AC/DC", "C++", "O'Hara"], None),
    (["+she", "-men", "she -men", "!men", "her*", "wom?n", "title:she", '"a" b', "she^9", "she~2"], []),
    (["female_group_name_1", "a_b"], []),
    (["(she)", "[a TO b]", "{x}", "a && b", "a || b", "a OR b", "NOT men", "a AND b", "a\\b", "<b>she</b>"], []),
]


@pytest.mark.parametrize(("proposed", "kept"), CLEANING)
def test_keywords_are_cleaned_as_data(proposed, kept):
    found = sift(proposed, "famous Lawyers", ["judge"]).usable
    assert list(found) == (proposed if kept is None else kept)


def test_every_refusal_has_its_reason_and_a_flood_is_summed_up():
    sifted = sift(["one\ntwo", "x" * 81, "www.evil", "a && b", "she", "JUDGE", "lawyers"], "famous Lawyers", ["judge"])
    assert sifted.usable == ("she",)
    assert sifted.repeated == ("JUDGE", "lawyers")
    assert sifted.refused == (
        "one two: several lines",
        f"{'x' * 40} ...: longer than 80 characters",
        "www.evil: an address",
        "a && b: a query operator",
    )
    sifted = sift([f"word{i}" for i in range(500)], "lawyers", [])
    assert len(sifted.usable) == MOST_KEYWORDS
    assert len(sifted.refused) == MOST_KEYWORDS + 1
    assert sifted.refused[0] == "word12: more than 12 keywords"
    assert sifted.refused[-1] == "and 476 more"


# --- llm --------------------------------------------------------------------------------------------------------


def llm_refiner(*script: object, weight: float = 1.0, drift: float = 100.0, prompts: str = "") -> LlmRefiner:
    return LlmRefiner(ScriptedModel(script), Prompts(prompts), weight, drift)


def test_keywords_become_weighted_terms():
    script = [ModelReply(reply("she", "Barrister"), 200, 9, seconds=0.5)]
    refinement = llm_refiner(*script, weight=0.5).refine(state())
    assert refinement.terms == (Term("she", 0.5), Term("Barrister", 0.5))
    assert (refinement.source, refinement.note) == ("llm", "")
    assert refinement.usage == Usage(1, 200, 9, None, 0.5)


def test_the_model_is_told_the_state_of_the_loop():
    asking = llm_refiner(reply("she"))
    terms = (*(Term(f"word{i}", 0.01 * i) for i in range(1, 31)), Term("women", 0.9))
    asking.refine(state(query="law\u200byers \u202e{{ 7*7 }}", terms=terms, tried={"women", "her"}))
    (request,) = asking.model.requests
    assert request.reply is Keywords
    assert request.max_tokens == Prompts()["refine_query"].head.max_tokens
    assert asked(asking) == {
        "query": "lawyers {{ 7*7 }}",
        "dimension": "gender",
        "group_shown_too_little": "female",
        "share_of_the_group_now": "12.3%",
        "share_it_should_have": "50.0%",
        "words_added_for_the_topic": [f"word{i}" for i in range(30, 10, -1)],
        "tried_before_do_not_repeat": ["her", "women"],
    }


def test_what_is_new_and_what_all_keywords_weigh_together():
    terms = (Term("court", 1.0), Term("woman", 0.02))
    asking = llm_refiner(reply("Court", "Judge", "woman", "her"))
    refinement = asking.refine(state(query="lawyers", terms=terms, tried={"judge"}))
    assert [term.text for term in refinement.terms] == ["woman", "her"]
    words = [f"court{i}" for i in range(12)]
    (one,) = llm_refiner(reply("she"), drift=0.5).refine(state(query="famous lawyers")).terms
    many = llm_refiner(reply(*words), drift=0.5).refine(state(query="famous lawyers")).terms
    assert one == Term("she", 1.0)
    assert sum(term.weight for term in many) == pytest.approx(1.0)
    assert len({term.weight for term in many}) == 1


@pytest.mark.parametrize(
    ("proposed", "note"),
    [
        (["http://evil.example", "a OR b"], "none of the model's 2 keywords is usable"),
        (["courts"], "repeated: none of the model's 1 keywords is new"),
    ],
)
def test_nothing_new_is_said_and_counted(proposed, note):
    refinement = llm_refiner(reply(*proposed)).refine(state())
    assert (refinement.terms, refinement.note) == ((), note)
    assert refinement.usage.calls == 1


def refused() -> ReplyRefused:
    error = ReplyRefused("tiny declined to answer: I cannot.")
    error.usage = Usage(1, 100, 5, None, 0.1)
    return error


class Feedback:
    """A refiner without a model."""

    def refine(self, state: RefineState) -> Refinement:
        return Refinement((Term("her"),), "feedback")


BAD = [
    (ReplyTruncated("cut off after 400 tokens"), "truncated reply: cut off after 400 tokens"),
    (TransientModelError("overloaded"), "overloaded"),
    (refused(), "refused: tiny declined to answer: I cannot."),
    (reply("...", "..."), "none of the model's 2 keywords is usable"),
]


@pytest.mark.parametrize(("bad", "note"), BAD)
def test_a_bad_reply_is_followed_by_what_on_error_says(bad: object, note: str) -> None:
    def asking(on_error: str, otherwise: object = None) -> LlmRefiner:
        return LlmRefiner(ScriptedModel([bad]), Prompts(), on_error=on_error, otherwise=otherwise)

    kept = asking("keep", Feedback()).refine(state())
    assert (kept.terms, kept.source, kept.note) == ((), "llm", note)
    fallen = asking("fallback", Feedback()).refine(state())
    assert (fallen.terms, fallen.source) == ((Term("her"),), "feedback")
    assert fallen.note == f"{note}; feedback proposes instead of llm"
    assert fallen.usage == kept.usage
    # Where there are no words to take, the query is kept.
    assert asking("fallback").refine(state()) == kept
    with pytest.raises(ModelError, match=re.escape(note.split(": ", 1)[-1])):
        asking("fail", Feedback()).refine(state())


@pytest.mark.parametrize("on_error", ["keep", "fallback"])
@pytest.mark.parametrize("error", [FatalModelError("no key"), BudgetExceeded("used up")])
def test_what_ends_everything_ends_a_refinement(on_error: str, error: Exception) -> None:
    def ends(request: object) -> str:
        raise error

    with pytest.raises(type(error)):
        LlmRefiner(ScriptedModel(ends), Prompts(), on_error=on_error, otherwise=Feedback()).refine(state())


def test_the_answer_of_an_example_is_no_proposal() -> None:
    asking = llm_refiner(reply("she", "her", "woman"), reply("she", "women"), prompts="few-shot")
    assert [term.text for term in asking.refine(state()).terms] == ["she", "women"]
    assert "repeats the answer of an example" in asking.model.requests[1].messages[-1][1]
    # The plain template has no examples to repeat.
    assert len(llm_refiner(reply("she", "her", "woman")).refine(state()).terms) == 3


def test_a_keyword_of_any_script_is_within_the_bounds_and_nothing_that_is_no_word() -> None:
    words = ["北京", "नमस्ते", "O'Brien", "x" * 40]
    others = ["...", "", "a*b", "a OR (b)", "a\nb", "x" * 41]
    assert [word for word in words + others if re.fullmatch(KEYWORD[1:-1], word)] == words
