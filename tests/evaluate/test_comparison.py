"""Tests between systems, and systems whose rankings equal those of another."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.evaluate.comparison import (
    Equal,
    bootstrap_intervals,
    by_query,
    compare,
    equal_systems,
    holm,
    paired_randomization,
    paired_t,
)
from fairagent.evaluate.outcome import Outcome
from fairagent.measures.base import seeded


def test_holm_by_hand() -> None:
    # 4 * .01, 3 * .02, 2 * .03, 1 * .05: the last would be smaller than the one before and is lifted to it.
    assert holm([0.02, 0.05, 0.01, 0.03]) == pytest.approx([0.06, 0.06, 0.04, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []
    assert holm([None, 0.01]) == [None, 0.01]


def test_a_system_is_resampled_alike_whatever_others_there_are() -> None:
    values = np.random.default_rng(3).random((3, 25))
    low, high = bootstrap_intervals(values, seeded(0, "x"))
    alone = bootstrap_intervals(values[1:2], seeded(0, "x"))
    assert (low[1], high[1]) == (alone[0][0], alone[1][0])
    assert paired_randomization(values, seeded(0, "y"))[2] == paired_randomization(values[2:], seeded(0, "y"))[0]


def test_intervals_resample_queries_and_not_the_values_of_one() -> None:
    values = np.random.default_rng(3).random((2, 400))
    low, high = bootstrap_intervals(values, seeded(1))
    assert (low < values.mean(axis=1)).all()
    assert (values.mean(axis=1) < high).all()
    # Two standard errors on each side, .289 / 20.
    assert high - low == pytest.approx(np.full(2, 2 * 1.96 * 0.2887 / 20), rel=0.15)
    # Each query in nine dimensions says no more than in one, and is tossed as one; clusters that are empty say nothing.
    sums, counts = by_query(np.tile(values, 9), list(range(400)) * 9)
    again = bootstrap_intervals(np.hstack([sums, np.zeros((2, 1))]), seeded(1), np.append(counts, 0.0))
    assert np.array(again) == pytest.approx(np.array([low, high]))
    assert paired_randomization(sums - 9 * 0.48, seeded(2)) == paired_randomization(values - 0.48, seeded(2))


@pytest.mark.parametrize(
    ("differences", "t", "randomization"),
    [([0.0, 0.0, 0.0], 1.0, 1.0), ([0.5, 0.5, 0.5], 0.0, 0.25), ([0.5], None, None), ([1.0, -1.0], 1.0, 1.0)],
)
def test_edges(differences: list[float], t: float | None, randomization: float | None) -> None:
    values = np.array(differences)
    assert paired_t(values) == t
    assert paired_randomization(values[None], np.random.default_rng(0)) == [randomization]


def outcome(topic: str, system: str, **values: dict[str, float]) -> Outcome:
    named = {name.removesuffix("_"): of_measure for name, of_measure in values.items()}
    return Outcome(topic, "", system, {"": {}, **named}, (), (), (), "", 0, 0, 0, 0.0, False, 0.0, None)


def test_comparisons() -> None:
    values = {"A": [0.5, 0.25, 0.75], "B": [0.75, 0.25, 0.5 + 1e-12], "C": [0.75, 0.5, 1.0]}
    topics = ["1", "2", "3"]
    answers = {
        (topic, system): outcome(topic, system, gender={"m": of_system[place]} if topic != "2" else {})
        for system, of_system in values.items()
        for place, topic in enumerate(topics)
    }
    rows = compare(answers, topics, ("A", "B", "C"), [("", "n"), ("gender", "m")], seed=0)
    assert [(row.system, row.dimension, row.measure, row.topics) for row in rows] == [
        (name, "gender", "m", 2) for name in "ABC"
    ]
    a, b, c = rows
    assert (a.mean, a.difference, a.t_p, a.t_holm, a.wins) == (0.625, None, None, None, 0)
    assert b.difference == pytest.approx(0)
    assert (b.wins, b.ties, b.losses) == (1, 0, 1)
    assert c.difference == pytest.approx(0.25)
    assert (c.wins, c.ties, c.losses, c.t_p, c.t_holm) == (2, 0, 0, 0.0, 0.0)
    # Two topics: four ways to toss two coins, two of which are as extreme; and twice that after Holm.
    assert (c.randomization_p, c.randomization_holm) == (0.5, 1.0)


def test_rounding_is_no_win() -> None:
    value = {"A": 0.1 + 0.2, "B": 0.3}
    answers = {(topic, name): outcome(topic, name, gender={"m": value[name]}) for topic in "12" for name in "AB"}
    _, b = compare(answers, ["1", "2"], ("A", "B"), [("gender", "m")], seed=0)
    assert (b.difference, b.wins, b.ties, b.losses, b.t_p, b.randomization_p) == (0.0, 0, 2, 0, 1.0, 1.0)


def test_the_first_that_ranks_so_is_named_and_one_other_topic_is_enough_to_differ() -> None:
    ranked = {"A": [["a"], ["b"]], "B": [["a"], ["c"]], "C": [["a"], ["b"]], "D": [["a"], ["b"]]}
    assert equal_systems(ranked) == (Equal("C", "A"), Equal("D", "A"))
    assert equal_systems({"A": [], "B": []}) == ()
