"""Each action, accepted and refused: what it does to the pool, to what is learned, and to what would be served."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from loop_engine import LAWYERS, TWO_KINDS, Dense, agent, begun, judging, verdicts

from fairagent.answer.filtering import FairFilter
from fairagent.errors import BudgetExceeded, TransientModelError
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.search.loop.actions import Action, FilterAction, JudgeAction, NeighborsAction, RefineAction
from fairagent.search.loop.candidates import Mixer
from fairagent.search.loop.controller import Controller
from fairagent.search.loop.judges import ScorerJudge
from fairagent.types import Document, FloatArray, SearchResult, Step

REFINE = RefineAction(4, 0.5)


def searched(engine: Dense, *actions: Action, beta: float = 0.9) -> SearchResult:
    return agent(engine, Controller(actions, mixer=Mixer(beta), drift=0.9)).search("law")


def step_of(result: SearchResult, name: str) -> Step:
    (step,) = (step for step in result.trace.steps if step.source == name)
    return step


# --- neighbors --------------------------------------------------------------------------------------------------


class Near:
    """A corpus graph that was written down."""

    def __init__(self, **near: str) -> None:
        self.near = {id: tuple(ids.split()) for id, ids in near.items()}
        self.asked: list[str] = []

    def neighbors(self, ids: Sequence[str]) -> list[tuple[str, ...]]:
        self.asked += ids
        return [self.near.get(id, ()) for id in ids]


FEW = Dense(TWO_KINDS, reachable=[f"m{number}" for number in range(1, 7)] + ["f1"])


def test_neighbors_of_the_groups_best_come_in_with_the_engines_score() -> None:
    graph = Near(f1="m1 f2", m1="f3")
    alone = searched(FEW, REFINE)
    result = searched(FEW, NeighborsAction(graph), REFINE)  # type: ignore[arg-type]
    step = step_of(result, "neighbors")
    assert graph.asked == ["f1"]
    assert step.accepted
    assert step.notes == ("female (gender): 1 of its documents come in",)
    assert step.why.startswith("female (gender) has 0% of the exposure")
    assert {group.label: weight for group, weight in step.weights} == {"female": 0.5, "male": 0.5}
    assert result.trace.gap < alone.trace.gap
    assert sum(id.startswith("f") for id in alone.ranking.ids) == 1
    assert sum(id.startswith("f") for id in result.ranking.ids) == 2


def test_a_group_without_documents_gets_those_near_what_is_served() -> None:
    engine = Dense(LAWYERS, reachable=["m1", "m2", "m3", "m4"])
    graph = Near(m1="f1", m4="f2")
    step = step_of(searched(engine, NeighborsAction(graph), REFINE), "neighbors")  # type: ignore[arg-type]
    assert graph.asked == ["m1", "m2", "m3", "m4"]
    assert step.notes == ("female (gender): 2 of its documents come in",)


def test_a_group_that_has_documents_enough_needs_no_neighbors() -> None:
    result = searched(Dense(LAWYERS), NeighborsAction(Near(f1="m1")))  # type: ignore[arg-type]
    assert len(result.trace.steps) == 1
    assert result.trace.stopped == "no group lacks documents"


# --- judge -------------------------------------------------------------------------------------------------------

MIXED = Dense(TWO_KINDS | {"f1": "law woman sea", "f2": "law woman sea", "f3": "law woman", "f4": "law woman"})
"""Two women at sea, whom a judge does not find relevant, and two who are."""


def test_what_is_judged_irrelevant_loses_relevance_and_is_not_learned_from() -> None:
    model = ScriptedModel(verdicts(lambda text: "sea" not in text))
    result = searched(MIXED, judging(model), REFINE)
    step = step_of(result, "judge")
    assert step.notes == ("female (gender): 2 of 4 documents judged are relevant",)
    assert step.usage.calls == len(model.requests) == 2
    assert step.accepted
    served = [id for id in result.ranking.ids if id.startswith("f")]
    assert served
    assert set(served) <= {"f3", "f4"}


def test_a_judge_whose_list_is_no_fairer_changes_nothing() -> None:
    """All women are off the topic: they sink, and the list without the judge is kept."""
    alone = searched(MIXED, REFINE)
    result = searched(MIXED, judging(ScriptedModel(verdicts(lambda text: False))), REFINE)
    step = step_of(result, "judge")
    assert (step.accepted, step.reason) == (False, f"the gap is not below {result.trace.steps[0].gap:.4f}")
    assert result.ranking.ids == alone.ranking.ids
    assert result.ranking.scores.tolist() == alone.ranking.scores.tolist()


def test_a_budget_that_ends_in_the_middle_of_a_judge_keeps_what_was_judged() -> None:
    answer = verdicts(lambda text: True)
    calls = []

    def ends(request: ModelRequest) -> str:
        calls.append(request)
        if len(calls) > 1:
            raise BudgetExceeded("the budget of 1 calls is used up")
        return answer(request)

    step = step_of(searched(MIXED, judging(ScriptedModel(ends)), REFINE), "judge")
    assert step.notes == (
        "female (gender): 2 of 2 documents judged are relevant",
        "2 of 4 documents were not judged: the budget of 1 calls is used up",
    )


def test_a_judge_that_never_answers_is_refused_and_the_loop_goes_on() -> None:
    def fails(request: ModelRequest) -> str:
        raise TransientModelError("overloaded")

    result = searched(MIXED, judging(ScriptedModel(fails)), REFINE)
    step = step_of(result, "judge")
    assert (step.accepted, step.reason) == (False, "no document was judged")
    assert "4 of 4 documents were not judged: overloaded" in step.notes
    assert any(step.source == "refine" for step in result.trace.steps)


class Ashore:
    """A cross-encoder that likes no sea."""

    name = "ashore"

    def score(self, query: str, texts: Sequence[str]) -> FloatArray:
        return np.array([-3.0 if "sea" in text else 5.0 for text in texts])


def test_a_cross_encoder_judges_by_its_own_scale() -> None:
    judgment = ScorerJudge(Ashore()).judge("law", [Document("a", "sea"), Document("b", "law")])
    assert judgment.chances == (0.0, 1.0)
    assert ScorerJudge(Ashore()).judge("law", [Document("b", "law")]).chances == (1.0,)
    step = step_of(searched(MIXED, JudgeAction(ScorerJudge(Ashore())), REFINE), "judge")
    assert step.notes == ("female (gender): 2 of 4 documents judged are relevant",)
    assert step.usage.calls == 0


# --- filter ------------------------------------------------------------------------------------------------------

COURT = Dense({"f1": "law woman", "f2": "law woman", "m1": "law man ship", "m2": "law man", "m3": "law man court"})


def filtering(passes: Callable[[str], bool]) -> tuple[FilterAction, ScriptedModel]:
    model = ScriptedModel(verdicts(passes))
    return FilterAction(FairFilter(model, Prompts(), utility=False, workers=1)), model


def test_what_is_removed_leaves_the_pool_and_is_refilled_from_it() -> None:
    action, model = filtering(lambda text: "ship" not in text)
    engine = Dense(COURT.texts | {"m1": "law law man", "m2": "law man ship"})
    result = searched(engine, action)
    step = step_of(result, "filter")
    assert step.accepted
    assert step.notes == ("m2 is removed: so it is",)
    assert "m2" not in result.ranking.ids
    assert len(result.ranking) == 4
    assert result.trace.usage.calls == len(model.requests) == 5
    # The engine's own list, which the guard may serve instead, goes without it too.
    again, _ = filtering(lambda text: "ship" not in text)
    assert Controller((again,), mixer=Mixer(0.9), drift=0.9).run(begun(engine)).removed == {"m2"}


def test_a_filter_that_makes_the_list_less_fair_is_refused() -> None:
    action, _ = filtering(lambda text: "woman" not in text)
    plain, result = searched(COURT), searched(COURT, action)
    step = step_of(result, "filter")
    assert (step.accepted, step.reason) == (False, "the gap is not below 0.0100")
    assert result.ranking.ids == plain.ranking.ids


def test_a_budget_that_ends_in_a_filter_keeps_what_was_reached() -> None:
    def ends(request: ModelRequest) -> str:
        raise BudgetExceeded("the budget of 0 calls is used up")

    action = FilterAction(FairFilter(ScriptedModel(ends), Prompts(), workers=1))
    alone, result = searched(COURT, REFINE), searched(COURT, REFINE, action)
    assert result.ranking.ids == alone.ranking.ids
    assert result.trace.stopped == "filter: the budget of 0 calls is used up"
    step = step_of(result, "filter")
    assert (step.accepted, step.reason) == (False, "the budget of 0 calls is used up")


# --- the trace ---------------------------------------------------------------------------------------------------
