"""What each action finds, judges or removes, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from loop_engine import FEW, LAWYERS, Dense, Texts, Words, agent, step_of, verdicts

from fairagent import Collection, build_index, open_agent
from fairagent.answer.filtering import FairFilter
from fairagent.errors import BudgetExceeded, TransientModelError
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.search.loop.asking import ModelJudge
from fairagent.search.loop.widen import Action, among_group, filtering, judging, near_in, of_documents
from fairagent.storage.threads import Memo
from fairagent.types.common import REMOVED

# --- group: the user's query among a group's own documents -------------------------------------------------------


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Collection, Path]:
    """Forty men, and three women whom "law" finds last; half of each letter's documents are of a park."""
    rows = [{"id": f"m{n}", "text": f"law law man number{n}", "gender": "male", "park": n % 2} for n in range(40)]
    text = "law woman court town street number"
    rows += [{"id": f"f{n}", "text": f"{text}{n}", "gender": "female", "park": n % 2} for n in range(3)]
    collection = Collection.from_records(rows, groups="gender", population={"gender": {"female": 0.5, "male": 0.5}})
    index = tmp_path_factory.mktemp("people") / "index"
    build_index(collection, index, engine="bm25")
    return collection, index


def test_a_group_is_searched_for_among_its_own_documents(people: tuple[Collection, Path]) -> None:
    fair = {"kind": "exposure", "fairness": 16}
    chosen: dict[str, Any] = {"engine": "bm25", "depth": 20, "n": 10, "target": "population", "rerank": fair}
    made = open_agent(*people, loop={"actions": "group"}, **chosen)
    assert made.live
    memo = made.live.now().memo
    before = len(memo.values())
    # What a `where` keeps the engine to is made for that search alone, and its documents alone come in.
    there = made.search("law", where={"park": "1"})
    assert [id for id in there.ranking.ids if id.startswith("f")] == ["f1"]
    assert len(memo.values()) == before
    for _ in range(2):
        result = made.search("law")
        step = step_of(result, "group")
        assert (step.accepted, step.entered) == (True, 3)
        assert step.notes == ("female (gender): 3 of its documents come in",)
        assert {"f0", "f1", "f2"} <= set(result.ranking.ids)
    assert len(memo.values()) == before + 1


# --- documents and neighbors: what is like a group's best --------------------------------------------------------

LISTED = LAWYERS | {f"s{number}": "ship sea" for number in range(40)}
WORDS = Words(LISTED)


class Near:
    """A corpus graph that was written down."""

    def __init__(self, **near: str) -> None:
        self.near = {id: tuple(ids.split()) for id, ids in near.items()}

    def neighbors(self, ids: Sequence[str]) -> list[tuple[str, ...]]:
        return [self.near.get(id, ()) for id in ids]


NEAR: Any = Near(f1="m1 f2", m1="f3")
"""Of a woman found, and of a man, who is only asked where no woman is."""
AROUND: Any = Near(m1="f1 m5", m4="f2")


@pytest.mark.parametrize(
    ("engine", "action", "come"),
    [
        pytest.param(Dense(LISTED, FEW), of_documents(None), "f2 f3 f4", id="vectors"),
        pytest.param(WORDS, of_documents(WORDS), "f2 f3 f4", id="words"),
        pytest.param(Texts(WORDS), of_documents(WORDS), "f2 f3 f4", id="a host's engine, beside an index of words"),
        pytest.param(Texts(WORDS), of_documents(None), "", id="a host's engine alone"),
        pytest.param(Dense(LISTED, FEW[:6]), of_documents(None), "", id="none of the group is found"),
        pytest.param(Dense(LISTED, FEW), near_in(NEAR), "f2", id="neighbors"),
        pytest.param(Dense(LISTED, FEW[:4]), near_in(AROUND), "f1 f2", id="near what is served"),
    ],
)
def test_documents_like_those_of_a_group_come_in(engine: Any, action: Action, come: str) -> None:
    run = agent(engine, action, depth=7).find("law", 4)
    step = run.loop.steps[-1]
    assert run.loop.entered == set(come.split())
    assert (step.source, step.accepted, step.entered) == (action.name, bool(come), len(come.split()))
    assert step.reason == ("" if come else "no other document is found")
    assert sum(id.startswith("f") for id in run.pool.ids) == (
        2 if come else len({"f1"} & set(run.loop.engine_list.ids))
    )  # type: ignore[union-attr]


def test_an_action_that_the_engine_cannot_do_is_not_offered() -> None:
    action = among_group(None, Memo())  # type: ignore[arg-type]
    assert agent(Texts(WORDS), action, depth=7).search("law").trace.stopped == "group: the engine cannot"


# --- judge -------------------------------------------------------------------------------------------------------

WOMEN = {"f1": "law woman sea", "f2": "law woman sea", "f3": "law woman", "f4": "law woman"}
MIXED = Dense({f"m{number}": "law law man" for number in range(1, 6)} | WOMEN)
"""Two women at sea, whom a judge does not find relevant, and two who are."""


def judge(model: ScriptedModel, on_error: Literal["fallback", "fail"] = "fallback") -> Action:
    return judging(ModelJudge(model, Prompts(), batch=2, on_error=on_error))


def failing(error: Exception, after: int = 0) -> ScriptedModel:
    """Says yes so many times, then raises."""
    calls: list[ModelRequest] = []
    yes = verdicts(lambda text: True)

    def answer(request: ModelRequest) -> str:
        calls.append(request)
        if len(calls) > after:
            raise error
        return yes(request)

    return ScriptedModel(answer)


def test_what_is_judged_irrelevant_loses_half_of_its_relevance() -> None:
    model = ScriptedModel(verdicts(lambda text: "sea" not in text))
    action = judge(model)
    # At a price of 0 no woman is served, so women lack exposure.
    run, alone = (agent(MIXED, *some, fairness=0).find("law", 4) for some in ((action,), ()))
    step = run.loop.steps[-1]
    assert (step.accepted, step.notes) == (True, ("female (gender): 2 of 4 documents judged are relevant",))
    assert step.usage.calls == len(model.requests) == 2
    now, before = run.loop.reranked, alone.loop.reranked
    assert now
    assert before
    lost = {id: before.estimates[id] - weight for id, weight in now.estimates.items()}
    assert lost == pytest.approx({id: 0.5 if "sea" in text else 0.0 for id, text in MIXED.texts.items()})


def test_a_judge_that_fails_judges_what_it_can() -> None:
    used_up = BudgetExceeded("1 call is used up")
    step = step_of(agent(MIXED, judge(failing(used_up, after=1)), fairness=0).search("law"), "judge")
    assert step.notes == (
        "female (gender): 2 of 2 documents judged are relevant",
        "2 of 4 documents were not judged: 1 call is used up",
    )
    overloaded = TransientModelError("overloaded")
    step = step_of(agent(MIXED, judge(failing(overloaded)), fairness=0).search("law"), "judge")
    assert (step.accepted, step.reason) == (False, "no document was judged")
    with pytest.raises(TransientModelError, match="overloaded"):
        agent(MIXED, judge(failing(overloaded), "fail"), fairness=0, on_error="fail").search("law")


# --- filter ------------------------------------------------------------------------------------------------------

COURT = Dense({"f1": "law woman", "f2": "law woman ship", "f3": "law woman sea", "m1": "law man", "m2": "law man"})


def fair(model: ScriptedModel) -> Action:
    return filtering(FairFilter(model, Prompts(), utility=False, workers=1))


@pytest.mark.parametrize(
    ("passes", "removed", "calls"),
    [
        (lambda text: "ship" not in text, {"f2"}, 5),
        (lambda text: True, set(), 4),
        (lambda text: False, {"f1", "f2", "f3", "m1", "m2"}, 5),
    ],
)
def test_what_is_removed_is_refilled_and_what_takes_its_place_is_read(
    passes: Callable[[str], bool], removed: set[str], calls: int
) -> None:
    model = ScriptedModel(verdicts(passes))
    run = agent(COURT, fair(model)).find("law", 4)
    step = run.loop.steps[-1]
    assert (set(run.loop.removed), len(model.requests)) == (removed, calls)
    assert len(run.pool) == min(4, 5 - len(removed))
    assert removed.isdisjoint(run.pool.ids)
    assert sorted(step.notes) == [f"{id} is removed: so it is" for id in sorted(removed)]
    assert step.reason == ("" if removed else "none of 4 documents is removed")
    assert [one.what for one in step.alarms] == [REMOVED] * (len(removed) > 1)


def test_a_filter_that_fails_leaves_what_was_reached_or_ends_the_search() -> None:
    error = BudgetExceeded("0 calls are used up")
    plain, result = (agent(COURT, *some).search("law") for some in ((), (fair(failing(error)),)))
    assert result.ranking.ids == plain.ranking.ids
    assert result.trace.stopped == "filter: 0 calls are used up"
    assert step_of(result, "filter").reason == "0 calls are used up"
    with pytest.raises(BudgetExceeded):
        agent(COURT, fair(failing(error)), on_error="fail").search("law")
