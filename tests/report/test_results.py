"""The numbers behind the page, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairagent.evaluate.findings import findings, main_measure
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.results import not_judged
from fairagent.papers.fairft.graded import Agreement
from fairagent.report.results import (
    Currency,
    Mean,
    cost_trade_off,
    gains,
    gap_paths,
    points,
    result_tables,
    spending,
    trade_off,
)

from .runs import MEASURES, ORACLE, SYSTEMS, Run, failed, made_run, tiny_run

NDCG, AWRF, PRODUCT = map(str, MEASURES)


def changed(run, place: int, **changes):
    """`run` with one outcome changed."""
    outcomes: list[Outcome] = list(run.outcomes)
    outcomes[place] = replace(outcomes[place], **changes)
    return replace(run, outcomes=tuple(outcomes))


def test_counted_topics_leave_out_what_failed_what_is_excluded_and_what_is_not_done():
    run = tiny_run()
    assert run.counted_topics == ("t1", "t2")
    assert replace(run, excluded={"t1": "why"}).counted_topics == ("t2",)
    assert replace(run, outcomes=run.outcomes[:3]).counted_topics == ("t1",)
    assert replace(run, outcomes=(*run.outcomes[:3], failed(run.outcomes[3], "no"))).counted_topics == ("t1",)


def test_a_dimension_is_won_by_the_product_or_else_by_awrf():
    run = tiny_run()
    assert main_measure(run, "gender") == PRODUCT
    without = tuple(row for row in run.comparisons if row.measure != PRODUCT)
    assert main_measure(replace(run, comparisons=without), "gender") == AWRF
    assert main_measure(replace(run, comparisons=()), "gender") is None


def test_gains_topic_by_topic():
    gained = gains(tiny_run(), "gender", PRODUCT)
    assert list(gained) == ["B"]
    assert gained["B"] == pytest.approx({"t1": 0.6 * 0.9 - 0.5 * 0.8, "t2": 0.5 * 0.8 - 0.7 * 1.0})


def test_mean_exposures():
    a, b = tiny_run().mean_exposures("gender")
    assert a.labels == ("female", "male")
    np.testing.assert_allclose(a.shares, [0.3, 0.7])
    np.testing.assert_allclose(b.shares, [0.45, 0.55])
    np.testing.assert_allclose(b.target, [0.5, 0.5])


def test_mean_exposures_are_over_the_topics_that_count_for_the_dimension():
    run = tiny_run()
    for place in (2, 3):
        run = changed(run, place, values={"": run.outcomes[place].values[""]})
    a, _ = run.mean_exposures("gender")
    np.testing.assert_allclose(a.shares, [0.2, 0.8])
    assert a.topics == 1
    assert not_judged(run) == {"gender": ("t2",)}


def test_gap_paths_stay_where_a_refinement_was_discarded():
    (paths,) = gap_paths(tiny_run())
    assert paths.system == 1
    np.testing.assert_allclose(paths.gaps, [[0.4, 0.3, 0.3]] * 2)


def test_infinite_gaps_are_counted_and_left_out():
    run = tiny_run()
    first, *others = run.outcomes[1].steps
    (paths,) = gap_paths(changed(run, 1, steps=(replace(first, gap=float("inf")), *others)))
    assert paths.infinite == 1
    np.testing.assert_allclose(paths.gaps, [[0.4, 0.3, 0.3]])


def test_a_table_has_relevance_and_the_measures_of_its_dimension():
    run = tiny_run(expected={"B": {"gender": {AWRF: 0.9}}})
    (columns,) = result_tables(run).values()
    assert [(column.dimension, column.measure) for column in columns] == [
        ("", NDCG),
        ("gender", AWRF),
        ("gender", PRODUCT),
    ]
    a, b = zip(*(column.cells for column in columns), strict=True)
    assert [cell.best for cell in a] == [True, True, True]
    assert [cell.expected for cell in b] == [None, 0.9, None]
    assert b[1].comparison.difference == pytest.approx(-0.05)


def test_the_best_mean_is_never_an_oracles():
    tables = result_tables(made_run())
    assert list(tables) == ["gender", "region"]
    for column in (column for columns in tables.values() for column in columns):
        assert [name for name, cell in zip(SYSTEMS, column.cells, strict=True) if cell.best] == ["agent, exposure"]


def test_the_finding_is_the_best_system_that_saw_no_judgments():
    for finding in findings(made_run()):
        assert finding.best.system == "agent, exposure"
        assert finding.best.system != ORACLE
        assert finding.baseline.system == SYSTEMS[0]
        assert finding.verdict == "better"
        assert [best.measure for best, _ in finding.others] == [NDCG, AWRF]
    (finding,) = findings(tiny_run())
    assert finding.best.difference == pytest.approx((0.54 - 0.40 + 0.40 - 0.70) / 2)
    assert finding.verdict == ""


# --- systems as points, and the front


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


def test_of_cost_less_is_better():
    def front(cheap: bool) -> list[bool]:
        pairs = {"A": (Mean(1, 1, 1), Mean(0.5, 0.4, 0.6)), "B": (Mean(2, 2, 2), Mean(0.5, 0.4, 0.6))}
        return [point.front for point in points(tiny_run(), pairs, cheap)]

    assert front(cheap=True) == [True, False]
    assert front(cheap=False) == [False, True]


# --- what systems take for a topic


def spent(*amounts: dict[str, object]) -> Run:
    """The tiny run, whose outcomes (A and B on t1, then on t2) took these amounts."""
    run = tiny_run()
    outcomes = (replace(outcome, **amount) for outcome, amount in zip(run.outcomes, amounts, strict=True))
    return replace(run, outcomes=tuple(outcomes))


def test_means_but_the_median_of_time():
    run = spent(
        {"seconds": 0.002},
        {"calls": 3, "input_tokens": 100, "output_tokens": 10, "cost": 0.002, "seconds": 0.5},
        {"seconds": 0.004},
        {"calls": 1, "input_tokens": 30, "output_tokens": 0, "cost": 0.001, "seconds": 0.1},
    )
    a, b = spending(run)
    assert (a.system, a.retrievals, a.calls, a.tokens, a.dollars) == (0, 1, 0, 0, 0)
    assert a.milliseconds == pytest.approx(3)
    assert (b.retrievals, b.calls, b.tokens) == (3, 2, 70)
    assert b.dollars == pytest.approx(1.5)


CALLS = {"calls": 1, "cost": 0.001}


@pytest.mark.parametrize(
    ("b", "currency"),
    [
        ({}, None),
        ({"seconds": 0.2}, Currency.MILLISECONDS),
        (CALLS, Currency.DOLLARS),
        (CALLS | {"seconds": 0.2}, Currency.DOLLARS),
        (CALLS | {"cost": None}, Currency.CALLS),
    ],
)
def test_dollars_then_calls_then_time(b, currency):
    cost = cost_trade_off(spent({}, b, {}, b))
    assert (cost and cost.currency) == currency


def test_the_front_is_of_the_cheap_and_fair():
    cost = cost_trade_off(spent({}, CALLS, {}, CALLS))
    a, b = cost.points["gender"]
    assert (a.x.mean, b.x.mean) == (0, 1)
    assert b.x.low == b.x.high == 1
    assert (a.y.mean, b.y.mean) == pytest.approx(((0.40 + 0.70) / 2, (0.54 + 0.40) / 2))
    assert (a.front, b.front) == (True, False)
    dear = cost_trade_off(spent(CALLS, {}, CALLS, {}))
    assert [point.front for point in dear.points["gender"]] == [True, True]


def test_no_trade_off_where_nothing_is_judged_by_fairness():
    run = spent({}, CALLS, {}, CALLS)
    agreement = Agreement(name="agreement", questions={"path": "-"}, systems={"-": {}})
    assert cost_trade_off(replace(run, kind=agreement)) is None
    assert cost_trade_off(replace(run, dimensions=())) is None
    assert cost_trade_off(replace(run, comparisons=())) is None
    assert set(cost_trade_off(made_run()).points) == {"gender", "region"}
