"""What systems take for a topic, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairagent.papers.fairft.graded import Agreement
from fairagent.report.series import Currency, cost_trade_off, spending

from .runs import MEASURES, Run, failed, made_run, tiny_run

PRODUCT = str(MEASURES[2])


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


def test_a_slow_first_topic_does_not_count():
    run = tiny_run()
    outcomes = [
        replace(outcome, topic=f"t{seconds}", seconds=seconds)
        for seconds in (9.0, 0.01, 0.02)
        for outcome in run.outcomes[:2]
    ]
    assert [each.milliseconds for each in spending(replace(run, outcomes=tuple(outcomes)))] == [20, 20]


def test_what_was_not_retrieved_is_not_counted():
    run = tiny_run()
    *kept, last = run.outcomes[1].steps
    nothing = replace(run.outcomes[1], steps=(*kept, replace(last, terms=())))
    outcomes = (run.outcomes[0], nothing, *run.outcomes[2:])
    assert [each.retrievals for each in spending(replace(run, outcomes=outcomes))] == [1, 2.5]


def test_only_judged_topics_count():
    run = tiny_run()
    run = replace(run, outcomes=(*run.outcomes[:3], failed(run.outcomes[3], "no")))
    assert [each.milliseconds for each in spending(run)] == [100, 100]
    assert spending(replace(run, excluded={"t1": "why"})) == ()


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
    found = cost_trade_off(spent({}, b, {}, b))
    assert (found and found.currency) == currency


def test_the_front_is_of_the_cheap_and_fair():
    found = cost_trade_off(spent({}, CALLS, {}, CALLS))
    a, b = found.points["gender"]
    assert (a.x.mean, b.x.mean) == (0, 1)
    assert b.x.low == b.x.high == 1
    assert (a.y.mean, b.y.mean) == pytest.approx(((0.40 + 0.70) / 2, (0.54 + 0.40) / 2))
    assert (a.front, b.front) == (True, False)
    dear = cost_trade_off(spent(CALLS, {}, CALLS, {}))
    assert [point.front for point in dear.points["gender"]] == [True, True]


def test_no_trade_off_where_nothing_is_judged_by_fairness():
    run = spent({}, CALLS, {}, CALLS)
    asked = Agreement(name="asked", questions={"path": "-"}, systems={"-": {}})
    assert cost_trade_off(replace(run, kind=asked)) is None
    assert cost_trade_off(replace(run, dimensions=())) is None
    assert cost_trade_off(replace(run, comparisons=())) is None
    assert set(cost_trade_off(made_run()).points) == {"gender", "region"}
