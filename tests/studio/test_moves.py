"""What a search keeps of the engine's estimated relevance, and what it pushed down, with the reasons."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairagent.studio.moves import moves_record
from fairagent.types import Exposure, Hit, Query, Ranking, SearchResult, Step, Trace, Usage

QUERY = Query("lawyers")
GENDER = ("female", "male")


def exposure(female: float, unknown: float = 0.0, due: float | None = 0.0) -> Exposure:
    shares = np.array([female, 1 - female])
    return Exposure("gender", GENDER, shares, np.array([0.5, 0.5]), unknown, 0.1, unknown_target=due)


def ranking(*ids: str) -> Ranking:
    return Ranking(ids, np.arange(len(ids), 0, -1, dtype=np.float64))


def hit(rank: int, id: str, *labels: str) -> Hit:
    return Hit(rank, id, 1.0, f"title of {id}", {"gender": dict.fromkeys(labels, 1.0)})


def result(
    own: Ranking, served: Ranking, candidates: tuple[str, ...], before: Exposure, after: Exposure
) -> SearchResult:
    step = Step("query", QUERY, own, (before,), before.divergence)
    trace = Trace(QUERY, (step,), "", "own", "exposure", (after,), 0.0, ("uniform",), False, Usage(), 0.0, 0.0)
    trace = replace(trace, relevance_kept=0.75)
    return SearchResult(QUERY, served, (), trace, candidates)


def test_what_left_comes_first_and_each_has_its_reason() -> None:
    own = ranking("a", "b", "c", "d", "e", "f")
    served = ranking("e", "c", "a")
    found = result(own, served, own.ids, exposure(0.0), exposure(0.4))
    moves = moves_record(found, [hit(1, "a", "male"), hit(2, "b", "male"), hit(3, "c", "male")])
    assert [(one["id"], one["was"], one["now"], one["text"]) for one in moves["pushed_down"]] == [
        ("b", 2, None, "2nd → out of the first 3"),
        ("a", 1, 3, "1st → 3rd"),
    ]
    reason = "its group (male) had 100% of the attention and has 60%, target 50%"
    assert {one["reason"] for one in moves["pushed_down"]} == {reason}
    assert moves["cost"] == "keeps 75% of the estimated relevance"


def pushed(place: int | None, labels: tuple[str, ...], before: Exposure, after: Exposure) -> str:
    """Why document a, first of the engine's list and at `place` by relevance, has left a list of one."""
    others = [f"o{number}" for number in range(1, 5)]
    candidates = others if place is None else [*others[: place - 1], "a", *others[place - 1 :]]
    found = result(ranking("a", *others), ranking("o1"), tuple(candidates), before, after)
    (one,) = moves_record(found, [hit(1, "a", *labels)])["pushed_down"]
    reason: str = one["reason"]
    return reason


@pytest.mark.parametrize(
    ("place", "labels", "before", "after", "said"),
    [
        (3, ("male",), exposure(0.0), exposure(1.0), "the agent's own searches put it 3rd by relevance"),
        (None, ("male",), exposure(0.0), exposure(1.0), "dropped it from the candidates"),
        (1, ("female",), exposure(0.0), exposure(0.4), "group that lacked attention came up (female: 0%, target 50%)"),
        (1, (), exposure(0.5, 0.4, 0.1), exposure(0.5, 0.2, 0.1), "no label in gender: such documents had 40%"),
        (1, (), exposure(0.5, 0.4, None), exposure(0.5, 0.4, None), "about the same relevance"),
    ],
)
def test_reasons(place: int | None, labels: tuple[str, ...], before: Exposure, after: Exposure, said: str) -> None:
    assert said in pushed(place, labels, before, after)


def test_a_list_that_stays_pushes_nothing_down() -> None:
    own = ranking("a", "b", "c")
    moves = moves_record(
        result(own, own, own.ids, exposure(0.5), exposure(0.5)), [hit(n, id, "male") for n, id in enumerate(own.ids, 1)]
    )
    assert moves["pushed_down"] == []


def test_nothing_found_and_no_dial() -> None:
    none = ranking()
    found = result(none, none, (), exposure(0.5), exposure(0.5))
    without = replace(found, trace=replace(found.trace, relevance_kept=None))
    assert moves_record(without, []) == {"cost": None, "pushed_down": []}
