"""The refiner `llm` with a scripted model: what it asks, what it takes from a reply, what it leaves to the loop."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

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
from fairagent.search.refine.asking import KEYWORD, Keywords, LlmRefiner
from fairagent.search.refine.feedback import RefineState
from fairagent.types import Exposure, Group, Query, Ranking, Refinement, Term, Usage


def state(query: str = "lawyers", terms: tuple[Term, ...] = (), tried: frozenset[str] = frozenset()) -> RefineState:
    exposures = (
        Exposure("region", ("Africa", "Asia"), np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0.0, 0.0),
        Exposure("gender", ("female", "male"), np.array([0.123, 0.877]), np.array([0.5, 0.5]), 0.1, 0.3),
    )
    return RefineState(
        Query(query),
        Query(query, terms=terms),
        Ranking(("d1",), np.array([1.0])),
        {"gender": np.array([[0.0, 0.0, 1.0]]), "region": np.array([[0.0, 1.0, 0.0]])},
        exposures,
        Group("gender", "female"),
        tried,
    )


def reply(*keywords: object) -> str:
    return json.dumps({"keywords": keywords})


def refiner(*script: object, weight: float = 1.0, drift: float = 100.0, prompts: str = "") -> LlmRefiner:
    return LlmRefiner(ScriptedModel(script), Prompts(prompts), weight, drift)


def test_keywords_become_weighted_terms():
    script = [ModelReply(reply("she", "Barrister"), 200, 9, seconds=0.5)]
    refinement = refiner(*script, weight=0.5).refine(state())
    assert refinement.terms == (Term("she", 0.5), Term("Barrister", 0.5))
    assert (refinement.source, refinement.note) == ("llm", "")
    assert refinement.usage == Usage(1, 200, 9, None, 0.5)


def test_the_model_is_told_the_state_of_the_loop():
    asking = refiner(reply("she"))
    terms = (*(Term(f"word{i}", 0.01 * i) for i in range(1, 31)), Term("women", 0.9))
    asking.refine(state("law\u200byers \u202e{{ 7*7 }}", terms, frozenset({"women", "her"})))
    (request,) = asking.model.requests
    assert request.reply is Keywords
    assert request.max_tokens == Prompts()["refine_query"].head.max_tokens
    user = request.messages[-1][1]
    asked = json.loads(user[user.index("{") : user.rindex("}\n\nGive") + 1])
    assert asked == {
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
    refinement = refiner(reply("Court", "Judge", "woman", "her")).refine(state("lawyers", terms, frozenset({"judge"})))
    assert [term.text for term in refinement.terms] == ["woman", "her"]
    words = [f"word{i}" for i in range(12)]
    (one,) = refiner(reply("she"), drift=0.5).refine(state("famous lawyers")).terms
    many = refiner(reply(*words), drift=0.5).refine(state("famous lawyers")).terms
    assert one == Term("she", 1.0)
    assert sum(term.weight for term in many) == pytest.approx(1.0)
    assert len({term.weight for term in many}) == 1


@pytest.mark.parametrize(
    ("proposed", "note"),
    [
        (["http://evil.example", "a OR b"], "none of the model's 2 keywords is usable"),
        (["lawyers"], "repeated: none of the model's 1 keywords is new"),
    ],
)
def test_nothing_new_is_said_and_counted(proposed, note):
    refinement = refiner(reply(*proposed)).refine(state(tried=frozenset({"judge"})))
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
    asking = refiner(reply("she", "her", "woman"), reply("she", "women"), prompts="few-shot")
    assert [term.text for term in asking.refine(state()).terms] == ["she", "women"]
    assert "repeats the answer of an example" in asking.model.requests[1].messages[-1][1]
    # The plain template has no examples to repeat.
    assert len(refiner(reply("she", "her", "woman")).refine(state()).terms) == 3


@pytest.mark.parametrize("word", ["北京", "नमस्ते", "O'Brien", "x" * 40])
def test_a_keyword_of_any_script_is_within_the_bounds(word: str) -> None:
    assert re.fullmatch(KEYWORD[1:-1], word)


@pytest.mark.parametrize("word", ["...", "", "a*b", "a OR (b)", "a\nb", "x" * 41])
def test_what_could_not_be_searched_for_is_not(word: str) -> None:
    assert not re.fullmatch(KEYWORD[1:-1], word)
