"""The values of a topic by hand, and what a list that is too short comes to."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.papers.fair_rag.draws import Drawing, TopicDraws, values

TWO = Drawing(k=2)


def drawn(rankings: list[list[int]], useful: list[bool], rested_on: list[list[float]] | None) -> TopicDraws:
    weights = None if rested_on is None else np.array(rested_on)
    return TopicDraws(np.array(rankings, dtype=np.intp), np.array(useful), np.array([0.5, 1.0]), weights)


def test_by_hand() -> None:
    found = values(drawn([[0, 1], [0, 2]], [True, False, False, True], [[1, 0], [1, 1]]), TWO)
    # Item 0 always, 1 and 2 by turns: 1.5 of [1, 2]; one of two useful items is shown.
    assert found["EE-D"] == 0.5
    assert found["EE-R"] == 0.5
    # 1.5 - 2 + 2, of [0, 4].
    assert found["EE-L"] == 0.375
    assert (found["EU"], found["highest utility"]) == (0.75, 1.0)
    assert found["EAR"] == 0.75
    # (1, 0, .5): 1.25 of [1.5^2 / 4, 1 + .5^2].
    assert found["EAE-D"] == 1.0
    assert found["nDCG"] == pytest.approx(1 / (1 + 1 / np.log2(3)))


def test_places_that_are_left_over_are_of_no_use() -> None:
    # Only item 0 was found; 1 and 2, which are useful, were missed: one of the two that fit.
    found = values(drawn([[0], [0]], [True, True, True], None), TWO)
    assert found["EE-D"] == 1.0
    assert found["EE-R"] == 0.5
    assert 0 < found["EE-L"] < 1
    assert "EAR" not in found
    # With nothing useful in it, a short list is as bad as can be.
    worst = values(drawn([[0], [0]], [False, True, True], None), TWO)
    assert worst["EE-R"] == 0.0


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("width", [0, 1, 2])
@pytest.mark.parametrize("useful", [[True, False, False], [True, True, True], [False, False, True]])
def test_all_values_are_between_their_bounds(k: int, width: int, useful: list[bool]) -> None:
    width = min(width, k)
    rankings = [list(range(width)), list(range(width))[::-1]]
    found = values(drawn(rankings, useful, [[1.0] * width] * 2), Drawing(k=k))
    for name in ("nDCG", "EE-R", "EE-D", "EE-L", "EAR", "EAE-D"):
        assert 0.0 <= found[name] <= 1.0, name
