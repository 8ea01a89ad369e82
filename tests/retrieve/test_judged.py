"""Documents from the judgments: drawn evenly, or by their grades."""

from __future__ import annotations

from collections import Counter

import numpy as np

from fairagent.retrieve.judged import Judged, by_grade, drawn
from fairagent.types import Query

GRADES = {"T1": {"a": 1, "b": 3, "c": 0, "d": 2}}


def test_an_oracle_finds_what_is_relevant_and_its_adversary_the_rest() -> None:
    assert set(Judged(GRADES, "drawn", False, 1).search(Query("", "T1"), 9).ids) == {"a", "b", "d"}
    assert Judged(GRADES, "drawn", True, 1).search(Query("", "T1"), 9).ids == ("c",)
    best = Judged(GRADES, "sorted", False, 1).search(Query("", "T1"), 2)
    assert (best.ids, best.scores.tolist()) == (("b", "d"), [4.0, 3.0])
    assert Judged(GRADES, "sorted", True, 1).search(Query("", "T1"), 2).ids == ("c", "a")
    assert len(Judged(GRADES, "drawn", False, 1).search(Query("no topic"), 9)) == 0


def test_scores_are_grades() -> None:
    assert Judged(GRADES, "drawn", False, 1).score(Query("", "T1"), ["b", "x"]).tolist() == [3.0, 0.0]


def test_draws_are_even() -> None:
    rng = np.random.default_rng(1)
    found = Counter(tuple(drawn(["a", "b", "c", "d"], rng)[:2]) for _ in range(6000))
    assert len(found) == 12
    # 500 each, +- 4.5 standard deviations.
    assert all(400 < count < 600 for count in found.values())


def test_fewer_than_k_are_all() -> None:
    assert sorted(drawn(["a", "b"], np.random.default_rng(0))[:5]) == ["a", "b"]
    assert drawn([], np.random.default_rng(0)) == []


def test_by_grade_keeps_the_order_of_the_judgments_within_a_grade() -> None:
    grades = {"a": 1, "b": 3, "c": 1, "d": 0, "e": 2, "f": 0}
    assert by_grade(grades) == ["b", "e", "a", "c", "d", "f"]
    assert by_grade(grades, worst_first=True) == ["d", "f", "a", "c", "e", "b"]
