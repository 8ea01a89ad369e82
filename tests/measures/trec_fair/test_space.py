from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.measures.trec_fair import Space
from fairagent.measures.trec_fair.targets import FEW, grouped

from ..laws import law
from .worlds import G, H, J, X, made_up


def test_averaged_dimensions_come_first() -> None:
    space = Space.of([X, H, J, G])
    assert [dimension.name for dimension in space.dimensions] == ["h", "g", "x", "o"]
    assert (space.heads, space.tails, space.cells) == (12, 6, 72)
    assert [dimension.name for dimension in space.only(["o", "h"]).dimensions] == ["h", "o"]
    assert (Space.of([X]).heads, Space.of([G]).tails) == (1, 1)


@law
@given(st.integers(0, 10_000))
def test_amounts_are_the_sums_of_outer_products(seed: int) -> None:
    world, names = made_up(seed, (G, H, J, X)), ["g", "h", "o", "x"]
    pages, space, rng = world.pages(), Space.of((G, H, J, X)), np.random.default_rng(seed)
    rows, topics, weights = rng.integers(0, len(pages), 12), rng.integers(0, 3, 12), rng.random(12)
    expected = np.zeros((3, space.cells))
    for row, topic, weight in zip(rows.tolist(), topics.tolist(), weights.tolist(), strict=True):
        expected[topic] += weight * world.joint(int(pages.ids[row]), names).ravel()
    found = space.amounts(pages, rows, topics, weights)
    dense = np.zeros(3 * space.cells)
    dense[found.keys] = found.values
    assert dense == pytest.approx(expected.ravel(), abs=1e-15)
    assert (np.diff(found.keys) > 0).all()
    projected = np.zeros(3 * 6)
    np.add.at(projected, space.projected(found.keys, space.only(["g", "x"])), found.values)
    grid = expected.reshape(3, 3, 4, 3, 2)
    assert projected == pytest.approx(grid.sum(axis=(2, 3)).ravel(), abs=1e-15)


@pytest.mark.parametrize("spread", [1, 100 * FEW])
def test_grouping_does_not_depend_on_how_far_apart_the_keys_are(spread: int) -> None:
    keys, sums, counts = grouped(np.array([5, 2, 9, 5]) * spread, np.array([1.0, 2.0, 4.0, 8.0]))
    assert (keys.tolist(), sums.tolist()) == ([2 * spread, 5 * spread, 9 * spread], [2.0, 9.0, 4.0])
    assert counts.tolist() == [1, 2, 1]
