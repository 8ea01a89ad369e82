"""Engines that know the judgments, and one that finds nothing."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.retrieve.base import Retriever, TextSource, checked
from fairagent.retrieve.run_file import EmptyRetriever, QrelsRetriever, Reading, by_grade, drawn
from fairagent.settings.parts import read_part
from fairagent.types import Query

GRADES = {
    "T1": {"a": 0, "b": 3, "c": 2, "d": -1, "e": 2},
    "T2": {f"d{n}": int(n < 20) for n in range(40)},
    "T3": {"a": 0},
}


def engine(reading: Reading = "drawn", worst: bool = False, seed: int = 0) -> QrelsRetriever:
    return QrelsRetriever(GRADES, reading, worst, seed)


def test_the_oracle_finds_what_is_relevant_and_its_adversary_the_rest() -> None:
    found = engine().search(Query("q", "T1"), 10)
    assert set(found.ids) == {"b", "c", "e"}
    assert found.scores.tolist() == [3.0, 2.0, 1.0]
    assert set(engine(worst=True).search(Query("q", "T1"), 10).ids) == {"a", "d"}


def test_sorted_is_all_of_them_by_grade_and_then_in_the_order_of_the_judgments() -> None:
    best, worst = engine("sorted"), engine("sorted", worst=True)
    assert best.search(Query("q", "T1"), 10).ids == ("b", "c", "e", "a", "d")
    assert worst.search(Query("q", "T1"), 10).ids == ("d", "a", "c", "e", "b")
    found = best.search(Query("q", "T1"), 2)
    assert (found.ids, found.scores.tolist()) == (("b", "c"), [5.0, 4.0])
    assert by_grade({}) == []


def test_a_draw_depends_on_the_seed_and_the_topic_alone() -> None:
    first = engine().search(Query("q", "T2"), 20).ids
    other = engine()
    other.search(Query("q", "T1"), 5)
    assert other.search(Query("other words", "T2"), 20).ids == first
    assert engine().search(Query("q", "T2"), 5).ids == first[:5]
    assert engine(seed=1).search(Query("q", "T2"), 20).ids != first
    assert sorted(first) == sorted(f"d{n}" for n in range(20))
    assert drawn([], np.random.default_rng(0)) == []


@pytest.mark.parametrize("topic", ["", "T3", "T9"])
def test_nothing_is_found_where_nothing_is_known(topic: str) -> None:
    found = checked(Query("q"), engine().search(Query("q", topic), 5))
    assert len(found) == 0
    assert engine().score(Query("q", "T9"), ["a", "z"]).tolist() == [0.0, 0.0]


def test_scores_are_grades_and_negative_for_the_adversary() -> None:
    assert engine().score(Query("q", "T1"), ["b", "z", "a", "d"]).tolist() == [3.0, 0.0, 0.0, -1.0]
    assert engine(worst=True).score(Query("q", "T1"), ["b", "d"]).tolist() == [-3.0, 1.0]
    assert engine().score(Query("q", "T1"), []).tolist() == []


@pytest.mark.parametrize(("kind", "worst"), [("oracle", False), ("adversarial", True)])
@pytest.mark.parametrize("reading", ["drawn", "sorted"])
def test_settings_name_them(kind: str, worst: bool, reading: Reading) -> None:
    site = type("Site", (), {"seed": 5, "collection": type("C", (), {"qrels": GRADES}), "stateless": True})
    made = read_part("engine", {"kind": kind, "reading": reading}).build(site)
    assert (made.reading, made.worst, made.seed, made.grades) == (reading, worst, 5, GRADES)


def test_no_search_at_all() -> None:
    nothing: Retriever = read_part("engine", "none").build(None)
    assert isinstance(nothing, EmptyRetriever)
    assert len(checked(Query("q"), nothing.search(Query("q", "T1"), 10))) == 0
    assert nothing.score(Query("q"), ["a", "b"]).tolist() == [0.0, 0.0]
    # It keeps texts, of no document: answers are then written from nothing, and no error is made of that.
    assert isinstance(nothing, TextSource)
    with pytest.raises(DataError, match="so there is no 'a'"):
        nothing.document("a")
