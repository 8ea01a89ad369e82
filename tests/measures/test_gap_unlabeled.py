"""The measure `unlabeled`, and nDCG with grades, by hand and against others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.measures import NDCG, JudgedRanking, Log2Plus1, Unlabeled, parse_measure
from fairagent.measures.ranking import graded_ndcg
from fairagent.types import FloatArray

ROWS = np.array([[1.0, 0, 0], [0, 1.0, 0], [0.5, 0, 0.5], [0, 0, 1.0]])
TARGET = np.array([0.0, 0.75, 0.25])


def shown(rows: FloatArray = ROWS, of_type: list[bool] | None = None) -> JudgedRanking:
    nothing = np.zeros(len(rows), dtype=bool)
    return JudgedRanking(nothing, 0, rows, TARGET, of_type=None if of_type is None else np.array(of_type))


def test_the_exposure_of_what_has_no_label() -> None:
    total = 2 + 1 / math.log2(3) + 0.5
    assert Unlabeled(4)(shown()) == pytest.approx((1 + 0.5 / math.log2(3)) / total)
    assert Unlabeled(2)(shown()) == 0.5
    assert Unlabeled(4)(shown(np.zeros((0, 3)))) == 0
    people = [False, True, True, True]
    assert Unlabeled(4, of="type")(shown(of_type=people)) == pytest.approx(0.5 / math.log2(3) / total)
    with pytest.raises(DataError, match="which documents are of the type"):
        Unlabeled(4, of="type")(shown())


@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_ndcg_with_grades_is_one_function(gain: str) -> None:
    grades = {"a": 3, "b": 1, "c": 0, "d": 2, "e": -1}
    ids = ["b", "x", "a", "e", "c"]
    found = np.array([grades.get(id, np.nan) for id in ids])
    judged = JudgedRanking(found > 0, 3, grades=found, judgments=np.array(list(grades.values()), dtype=float))
    for n in (1, 3, 10):
        measure = NDCG(n, Log2Plus1(), gain)  # type: ignore[arg-type]
        assert measure(judged) == graded_ndcg(ids, grades, n, gain)  # type: ignore[arg-type]
        assert parse_measure(str(measure)) == measure
    with pytest.raises(DataError, match="needs grades"):
        NDCG(5, Log2Plus1(), "linear")(JudgedRanking(found > 0, 3))
    worthless = JudgedRanking(found > 3, 1, grades=found, judgments=np.zeros(2))
    with pytest.raises(DataError, match="not defined"):
        NDCG(5, Log2Plus1(), "linear")(worthless)
