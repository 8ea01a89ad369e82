"""Measures of ir-measures on arrays: what the package itself says of the same run and judgments."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.measures import JudgedRanking, parse_measure

ir_measures = pytest.importorskip("ir_measures", reason="the package ir_measures is not installed")

TEXTS = ["AP", "AP(rel=2)", "AP@5", "RR", "RR(rel=2)@3", "P@5", "R@10", "Rprec", "Bpref", "Success@3", "Judged@10"]
TEXTS += ["IPrec@0.1", "NumRet", "NumRelRet", "SetF", "infAP", "Compat(p=0.9)"]


def by_name(grades: dict[str, int], ids: list[str]) -> JudgedRanking:
    found = np.array([grades.get(id, np.nan) for id in ids])
    relevant = sum(grade > 0 for grade in grades.values())
    return JudgedRanking(found > 0, relevant, grades=found, judgments=np.array(list(grades.values()), dtype=float))


@pytest.mark.parametrize("text", TEXTS)
def test_values_are_those_of_the_package(text: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        documents = [f"d{number}" for number in range(30)]
        grades = {id: int(rng.integers(0, 3)) for id in rng.choice(documents, 12, replace=False).tolist()}
        ids = rng.permutation(documents)[: int(rng.integers(1, 25))].tolist()
        run = {"q": {id: float(100 - place) for place, id in enumerate(ids)}}
        (theirs,) = ir_measures.iter_calc([ir_measures.parse_measure(text)], {"q": grades}, run)
        measure = parse_measure(text)
        assert measure(by_name(grades, ids)) == pytest.approx(theirs.value, abs=1e-12)
        assert str(measure) == measure.label == str(ir_measures.parse_measure(text))


def test_what_is_not_ranked() -> None:
    measure = parse_measure("AP")
    assert measure.n is None
    assert measure(by_name({"a": 1}, [])) == 0
    with pytest.raises(DataError, match="AP needs grades"):
        measure(JudgedRanking(np.array([True]), 1))


def test_ours_come_first() -> None:
    assert str(parse_measure("nDCG@10")) == "nDCG(discount=log2-max2)@10"
    product = parse_measure("P@5*AWRF@5")
    assert (product.of_groups, product.needs_labels, product.n) == (True, False, 5)
