"""Systems as points, and the front, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairagent.report.series import Mean, points, trade_off

from .runs import MEASURES, tiny_run

NDCG, AWRF, _ = map(str, MEASURES)


def test_trade_off_takes_relevance_from_all_topics():
    a, b = trade_off(tiny_run(), "gender")
    assert (a.x.mean, a.y.mean) == pytest.approx((0.6, 0.9))
    assert (b.x.mean, b.y.mean) == pytest.approx((0.55, 0.85))
    assert (a.front, b.front) == (True, False)


def test_an_oracle_is_on_no_front_and_pushes_nobody_off():
    _, b = trade_off(tiny_run(oracle_systems=("A",)), "gender")
    assert b.front
    a, _ = trade_off(tiny_run(oracle_systems=("A",)), "gender")
    assert a.oracle
    assert not a.front


def test_equal_systems_are_both_on_the_front():
    run = tiny_run()
    same = tuple(replace(row, mean=0.5) for row in run.comparisons)
    assert [point.front for point in trade_off(replace(run, comparisons=same), "gender")] == [True, True]


def test_no_trade_off_without_both_measures():
    run = tiny_run()
    for gone in (NDCG, AWRF):
        left = tuple(row for row in run.comparisons if row.measure != gone)
        assert trade_off(replace(run, comparisons=left), "gender") == ()


def test_of_cost_less_is_better():
    def front(cheap: bool) -> list[bool]:
        pairs = {"A": (Mean(1, 1, 1), Mean(0.5, 0.4, 0.6)), "B": (Mean(2, 2, 2), Mean(0.5, 0.4, 0.6))}
        return [point.front for point in points(tiny_run(), pairs, cheap)]

    assert front(cheap=True) == [True, False]
    assert front(cheap=False) == [False, True]
