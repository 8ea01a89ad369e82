"""AWRF and nDCG through ir-measures: the track's own numbers, and those of this package's measures."""

import json
import math
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas
import pytest
from ir_measures import Qrel, ScoredDoc
from scripted import by_letter, collection, ranking

from fairagent.collection import GroupTable
from fairagent.errors import DataError
from fairagent.evaluate.judging import evaluate_topic, standard_measures
from fairagent.guests.ir_measures import AWRF, nDCG, nDCG_AWRF
from fairagent.measures import JudgedRanking, parse_measure
from fairagent.types import Topic

HALF = {"female": 0.5, "male": 0.5}
LOWEST = 1 - math.log(2)
SINGLE = 2**-23
"""The track's code has its discounts in 32 bits."""
TABLE = by_letter(["f1", "f2", "f3", "m1", "m2", "m3", "u1", "u2"])


def run_of(**rankings: str) -> dict[str, dict[str, float]]:
    """Topic -> ids best first, scored n ... 1."""
    return {
        topic: {id: float(len(line.split()) - place) for place, id in enumerate(line.split())}
        for topic, line in rankings.items()
    }


def qrels_of(**relevant: str) -> dict[str, dict[str, int]]:
    return {topic: dict.fromkeys(line.split(), 1) for topic, line in relevant.items()}


def test_the_tracks_own_numbers(golden: Path) -> None:
    printed = json.loads((golden / "seed_systems" / "awrf.json").read_text())["cases"]
    # The track leaves documents without a group record out, which a table cannot tell from those without a group.
    cases = [case for case in printed if all(str(page) in case["alignments"] for page in case["run"])]
    assert len(cases) >= 3
    for case in cases:
        labels = case["groups"][1:]
        rows = [(id, dict(zip(labels, row[1:], strict=True))) for id, row in case["alignments"].items()]
        table = GroupTable.from_rows([(id, {"g": labels}) for id, labels in rows], {"g": labels})
        background = dict(zip(labels, case["background_known"], strict=True))
        options = {"groups": table, "dimension": "g", "population": background}
        measures = [nDCG @ case["cutoff"], AWRF(**options) @ case["cutoff"], nDCG_AWRF(**options) @ case["cutoff"]]
        qrels = qrels_of(t=" ".join(map(str, case["relevant"])))
        found = ir_measures.calc_aggregate(measures, qrels, run_of(t=" ".join(map(str, case["run"]))))
        theirs = [case["authors_ndcg"], case["authors_awrf"], case["authors_product"]]
        assert [found[measure] for measure in measures] == pytest.approx(theirs, rel=SINGLE)


@pytest.mark.parametrize("line", ["m1 m2 f1", "f1 u1 m2", "u1 m1", "m3 m2", "u1 u2", ""])
def test_they_equal_the_measures_of_an_experiment(line: str) -> None:
    made = collection(TABLE, {"gender": HALF})
    qrels = qrels_of(q="f1 f2 m1 u1")
    made.topics["q"], made.qrels["q"] = Topic("q", "q"), qrels["q"]
    ours = evaluate_topic(made, "q", "gender", ranking(line.split()), standard_measures(3))
    options = {"groups": made, "dimension": "gender", "unknown": "ignore"}
    measures = [nDCG @ 3, AWRF(**options) @ 3, nDCG_AWRF(**options) @ 3]
    run = run_of(q=line) if line else {}
    found = ir_measures.calc_aggregate(measures, qrels, run)
    assert [found[measure] for measure in measures] == pytest.approx(ours, abs=1e-12)


def test_topics_count_as_in_an_experiment() -> None:
    qrels = {**qrels_of(answered="f1 m1", missing="f1", unlabeled="u1"), "nothing": {"f1": 0}}
    run = run_of(answered="f1 m1", unlabeled="f1", nothing="f1", unjudged="m1")
    fair = AWRF(groups=TABLE, unknown="ignore") @ 2
    values = {
        (str(one.measure)[:4], one.query_id): one.value for one in ir_measures.iter_calc([fair, nDCG @ 2], qrels, run)
    }
    assert len(values) == 8
    assert values["AWRF", "answered"] == pytest.approx(1)
    assert values["AWRF", "missing"] == pytest.approx(LOWEST)
    assert math.isnan(values["AWRF", "unlabeled"])
    assert math.isnan(values["AWRF", "nothing"])
    assert [values["nDCG", topic] for topic in ("answered", "missing", "unlabeled")] == [1, 0, 0]
    assert math.isnan(values["nDCG", "nothing"])
    found = ir_measures.calc_aggregate([fair, nDCG @ 2], qrels, run)
    assert found[fair] == pytest.approx((1 + LOWEST) / 2)
    assert found[nDCG @ 2] == pytest.approx(1 / 3)
    # Unknown counted as a group, the topic with unlabeled relevant documents has a target; with log 2 the least is 0.
    counted = AWRF(groups=TABLE, log="2") @ 2
    by_topic = {one.query_id: one.value for one in ir_measures.iter_calc([counted], qrels, run)}
    assert (by_topic["missing"], by_topic["unlabeled"]) == (0, pytest.approx(0))


def test_all_forms_of_qrels_and_runs_and_ties_by_id() -> None:
    fair = AWRF(groups=TABLE) @ 1
    tied = {"q": {"m1": 2.0, "f1": 2.0}}
    forms: list[tuple[Any, Any]] = [
        ({"q": {"f1": 1}}, tied),
        ([Qrel("q", "f1", 1)], [ScoredDoc("q", "m1", 2.0), ScoredDoc("q", "f1", 2.0)]),
        (
            pandas.DataFrame({"query_id": ["q"], "doc_id": ["f1"], "relevance": [1]}),
            pandas.DataFrame({"query_id": ["q", "q"], "doc_id": ["m1", "f1"], "score": [2.0, 2.0]}),
        ),
    ]
    for qrels, run in forms:
        assert ir_measures.calc_aggregate([fair, nDCG @ 1], qrels, run) == {fair: pytest.approx(1), nDCG @ 1: 1}
    evaluator = ir_measures.evaluator([fair], {"q": {"f1": 1}})
    assert evaluator.calc_aggregate(tied)[fair] == pytest.approx(1)
    assert evaluator.calc_aggregate({"q": {"m1": 1.0}})[fair] == pytest.approx(LOWEST)


def test_a_measure_prints_as_its_definition_and_tables_are_told_apart() -> None:
    fair, other = AWRF(groups=TABLE, population=HALF) @ 20, by_letter(["f1", "m1"])
    assert str(fair) == ("AWRF(discount=log2-max2, log=e, unknown=group, population={'female': 0.5, 'male': 0.5})@20")
    assert str(nDCG @ 5) == "nDCG(discount=log2-max2)@5"
    assert str(nDCG_AWRF(groups=TABLE, dimension="gender")).endswith("unknown=group, dimension=gender)")
    assert fair == AWRF(groups=TABLE, population=HALF) @ 20
    assert fair != AWRF(groups=other, population=HALF) @ 20
    three = [AWRF(groups=TABLE) @ 1, AWRF(groups=other) @ 1, ir_measures.nDCG @ 1]
    assert len(ir_measures.calc_aggregate(three, qrels_of(q="f1"), run_of(q="f1"))) == 3


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


def test_what_is_not_ranked_and_ours_come_first() -> None:
    measure, product = parse_measure("AP"), parse_measure("P@5*AWRF@5")
    assert (measure.n, measure(by_name({"a": 1}, []))) == (None, 0)
    with pytest.raises(DataError, match="AP needs grades"):
        measure(JudgedRanking(np.array([True]), 1))
    assert str(parse_measure("nDCG@10")) == "nDCG(discount=log2-max2)@10"
    assert (product.of_groups, product.needs_labels, product.n) == (True, False, 5)
