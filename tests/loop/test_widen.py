"""The loop that widens: when it searches again, what it accepts, and that nothing it does can harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from loop_engine import Dense, Scores, agent, finding, step_of, verdicts
from scripted import by_letter

from fairagent.answer.filtering import FairFilter
from fairagent.errors import BackendUnavailable, FatalModelError
from fairagent.guests.testing import ScriptedModel
from fairagent.llm.prompts import Prompts
from fairagent.measures.objective import objective
from fairagent.search.loop.base import lacking
from fairagent.search.loop.widen import Action, filtering, widening
from fairagent.types import Exposure, FloatArray, Query
from fairagent.types.search import SearchResult

MEN = {"m1": -6.0, "m2": -7.0, "m3": -8.0, "m4": -9.0}
"""Of an engine of logarithms: relevances of 1, 2/3, 1/3 and 0."""


@pytest.mark.parametrize(("score", "accepted"), [(-9.0, True), (-9.7, False), (-5.0, True)])
def test_a_step_is_accepted_if_the_objective_rises_by_hand(score: float, accepted: bool) -> None:
    """Two men have R = 5/6 and G = .2158 (JS of 0, 1 and 1/2, 1/2), so J = .402: a woman's (1 + r) / 2 is to be more.

    At -9 her relevance is 0, at -9.7 -.23; better than the last that the engine lists is as good as that.
    """
    engine = Scores(MEN | {"f1": score}, q="m1 m2 m3 m4")
    result = agent(engine, finding("f1"), fairness=2, n=2).search("q")
    step = step_of(result, "group")
    assert (step.accepted, step.entered) == (accepted, 1)
    assert step.reason == ("" if accepted else "what would be served is no better")
    assert step.why == "female (gender) has 0% of the exposure, its share is 50%, and it lacks candidates"
    assert step.notes == ("female (gender): 1 of its documents come in",)
    assert set(result.ranking.ids) == ({"m1", "f1"} if accepted else {"m1", "m2"})
    assert result.trace.stopped


def test_where_no_group_lacks_candidates_nobody_is_asked_again() -> None:
    engine = Scores(MEN | {"f1": -8.5, "f2": -8.5}, q="m1 m2 m3 m4 f1 f2")
    result = agent(engine, finding("f3"), finding("f4", "documents")).search("q")
    assert (engine.asked, len(result.trace.steps)) == (["q"], 1)
    assert result.trace.stopped == "no group lacks candidates"
    assert agent(engine, finding("f1")).search("nothing").trace.stopped == "the query retrieves nothing"


def test_each_action_is_taken_once_in_its_order_until_nothing_is_lacking() -> None:
    engine = Scores(MEN | {"f1": -7.0, "f2": -7.0, "f3": -7.0}, q="m1 m2 m3 m4")
    actions = (finding("m2 nobody", "neighbors"), finding("f1"), finding("f2 f3", "documents"), finding("f3", "words"))
    engine.texts["nobody"] = 0.0
    result = agent(engine, *actions, groups=by_letter(MEN | {"f1": 0, "f2": 0, "f3": 0})).search("q")
    assert [step.source for step in result.trace.steps] == ["query", "neighbors", "group", "documents"]
    assert [step.reason for step in result.trace.steps[1:]] == ["no other document is found", "", ""]
    assert result.trace.stopped == "no group lacks candidates"


class Broken(Scores):
    """Fails at documents from elsewhere, or scores one of them with `nan`."""

    nan = False

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        if "f1" in ids and not self.nan:
            raise BackendUnavailable("the server is gone")
        return np.array([np.nan if id == "f1" else self.texts[id] for id in ids])


@pytest.mark.parametrize(("nan", "said"), [(False, "the server is gone"), (True, "'f1'")])
def test_an_engine_that_fails_at_the_second_search_leaves_the_first_list(nan: bool, said: str) -> None:
    engine = Broken(MEN | {"f1": 0.0}, q="m1 m2 m3 m4")
    engine.nan = nan
    result = agent(engine, finding("f1"), n=2).search("q")
    step = step_of(result, "group")
    assert step.reason.startswith("the engine failed, so its first list stays: ")
    assert said in step.reason
    assert result.ranking.ids == ("m1", "m2")


def test_a_document_worse_than_the_engines_last_has_a_relevance_below_0() -> None:
    engine = Scores(MEN | {"f1": -12.0}, q="m1 m2 m3 m4")
    served = agent(engine, finding("f1"), n=2).find("q", 2).loop.reranked
    assert served
    assert served.estimates == pytest.approx({"m1": 1, "m2": 2 / 3, "m3": 1 / 3, "m4": 0, "f1": -1})


def test_what_a_filter_removed_never_comes_back() -> None:
    model = ScriptedModel(verdicts(lambda text: "ship" not in text))
    texts = {"m1": "law man ship", "m2": "law man", "m3": "law man", "f1": "law woman ship", "f2": "law woman"}
    action = filtering(FairFilter(model, Prompts(), utility=False, workers=1))
    engine = Dense(texts, reachable=["m1", "m2", "m3", "f1"])
    run = agent(engine, action, finding("f1 m1 f2"), n=3).find("law", 3)
    assert run.loop.removed == {"m1", "f1"}
    assert run.loop.entered == {"f2"}
    assert set(run.loop.candidates.ids) == {"m2", "m3", "f2"} == set(run.pool.ids)


def test_who_lacks_most_comes_first_by_importance() -> None:
    gender = Exposure("gender", ("f", "m"), np.array([0.3, 0.7]), np.array([0.5, 0.5]), 0.0, 0.1)
    region = Exposure("region", ("a", "b"), np.array([0.1, 0.9]), np.array([0.5, 0.5]), 0.0, 0.1, importance=0.4)
    assert [(lack.group.label, lack.place) for lack in lacking([gender, region])] == [("f", 0), ("a", 2)]


def test_a_fatal_error_ends_the_search() -> None:
    def fails(*of_search: object) -> Sequence[str]:
        raise FatalModelError("no key")

    with pytest.raises(FatalModelError, match="no key"):
        agent(Scores(MEN, q="m1 m2"), widening("group", fails), groups=by_letter(["f1", *MEN])).search("q")


# --- whatever the engine says ------------------------------------------------------------------------------------

IDS = [f"{letter}{number}" for letter in "fmu" for number in range(4)]
tables = st.fixed_dictionaries({id: st.integers(-40, 0).map(lambda score: score / 4) for id in IDS})
own = st.lists(st.sampled_from(IDS), min_size=1, max_size=9, unique=True).map(" ".join)
prices = st.sampled_from([0.0, 0.3, 1.0, 5.0, 40.0])


def widened(scores: Mapping[str, float], found: str, price: float, *actions: Action) -> SearchResult:
    return agent(Scores(scores, q=found), *actions, fairness=price, groups=by_letter(IDS)).search("q")


@settings(max_examples=80, deadline=None)
@given(tables, own, prices, st.permutations(IDS))
def test_what_is_served_is_never_worse_for_having_searched_again(
    scores: dict[str, float], found: str, price: float, more: list[str]
) -> None:
    actions = finding(" ".join(more[:6])), finding(" ".join(more[6:]), "documents")
    worths = []
    for some in ((), actions[:1], actions):
        made = agent(Scores(scores, q=found), *some, fairness=price, groups=by_letter(IDS))
        served = made.find("q", 4).loop.reranked
        assert served
        worths.append(float(objective(np.array(served.relevance), np.array(served.gap), price)))
    assert worths[0] <= worths[1] + 1e-9
    assert worths[1] <= worths[2] + 1e-9


@settings(max_examples=60, deadline=None)
@given(tables, own, prices, st.integers(-64, 64), st.sampled_from([1 / 8, 1, 16]))
@example(dict.fromkeys(IDS, -3.0), " ".join(IDS[4:]), 1.0, 7, 16)
def test_a_search_is_the_same_whatever_the_zero_and_the_unit_of_the_scores(
    scores: dict[str, float], found: str, price: float, shift: int, scale: float
) -> None:
    action = finding(" ".join(IDS))
    plain = widened(scores, found, price, action)
    moved = widened({id: (score + shift) * scale for id, score in scores.items()}, found, price, action)
    assert moved.ranking.ids == plain.ranking.ids
    assert moved.trace.gap == plain.trace.gap
    assert [(step.source, step.accepted) for step in moved.trace.steps] == [
        (step.source, step.accepted) for step in plain.trace.steps
    ]
