"""The finite-pool test against every order of small pools, and what it says of lists."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import hypergeom

from fairagent.errors import DataError
from fairagent.measures import JudgedRanking, PoolTest, parse_measure, pool_test


def lateness(order: tuple[int, ...], n: int) -> float:
    """The smallest tail of the prefixes, as the definition has it."""
    size, group, shown = len(order), sum(order), np.cumsum(order)
    return float(min(hypergeom.cdf(shown[i - 1], size, group, i) for i in range(1, min(n, size) + 1)))


@pytest.mark.parametrize(
    ("pool", "n"), [("1100", 4), ("11000", 3), ("100000", 4), ("1110000", 7), ("11110", 5), ("111", 2), ("00", 2)]
)
def test_it_is_the_share_of_all_orders_that_are_as_late(pool: str, n: int) -> None:
    late = {order: lateness(order, n) for order in set(permutations(map(int, pool)))}
    for order, smallest in late.items():
        share = sum(one <= smallest * (1 + 1e-9) for one in late.values()) / len(late)
        assert pool_test(np.array(order, dtype=bool), n) == pytest.approx(share, abs=1e-9)


def test_a_pool_that_runs_out_is_not_tested_like_a_coin() -> None:
    """Ten of a hundred, the first of them at rank 20: as tosses .12 (.9^20), of this pool 80!/70! * 90!/100! = .095.

    More at once, where the prefixes before count: no order without one in 19 ranks is as late.
    """
    shown = np.zeros(100, dtype=bool)
    shown[90:] = True
    assert pool_test(shown, 20) == pytest.approx(hypergeom.cdf(0, 100, 10, 20), rel=1e-9)
    assert pool_test(shown, 100) < 1e-12


def test_the_measure_takes_the_group_that_is_shown_latest_times_the_groups() -> None:
    rows = np.repeat(np.eye(3)[[1, 2]], 5, axis=0)
    judged = JudgedRanking(np.ones(10, dtype=bool), 10, rows, np.array([0, 0.5, 0.5]))
    assert PoolTest(10)(judged) == pytest.approx(2 * pool_test(rows[:, 2] > 0.5, 10))
    assert PoolTest(10)(judged) == pytest.approx(2 / 252)
    mixed = JudgedRanking(np.ones(4, dtype=bool), 4, np.eye(3)[[1, 2, 1, 2]], np.array([0, 0.5, 0.5]))
    assert PoolTest(4)(mixed) == 1.0
    assert parse_measure("PoolTest@20") == PoolTest(20)


def test_what_is_not_defined() -> None:
    with pytest.raises(DataError):
        pool_test(np.array([], dtype=bool), 1)
    with pytest.raises(DataError):
        pool_test([0.5, 1.0], 1)
    with pytest.raises(DataError):
        pool_test([True], 0)
    with pytest.raises(DataError):
        PoolTest(1)(JudgedRanking(np.ones(1, dtype=bool), 1, np.array([[1.0, 0]]), np.array([0, 1.0])))
