"""One judge: a ranking has the same value through every door, for every variant of a measure, to 1e-12."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fairagent.collection import Collection, load_collection
from fairagent.evaluate.judging import evaluate_topic, judged_value
from fairagent.evaluate.run import Results, load_run
from fairagent.measures import AWRF, NDCG, Measure, Product, parse_measure
from fairagent.measures.trec_fair import Dimension, Pages, TrackEvaluator, TrackRun
from fairagent.types import Ranking

from . import words

ir_measures = pytest.importorskip("ir_measures", reason="the package ir_measures is not installed")

SAME = 1e-12
DISCOUNTS = ("log2-max2", "log2-plus1", "geometric(0.8)", "step(3)")
FAIR = [
    f"AWRF(discount={discount}, log={log}, unknown={unknown})@10"
    for discount in DISCOUNTS
    for log in ("e", "2")
    for unknown in ("group", "ignore")
]
RELEVANT = [f"nDCG(discount={discount})@10" for discount in DISCOUNTS]
TOGETHER = [f"{RELEVANT[0]}*{FAIR[0]}", f"{RELEVANT[0]}*{FAIR[1]}"]
THEIRS = {"nDCG(discount=log2-plus1, gain=linear)@10": "nDCG@10"}
OTHERS = [*THEIRS, "AP", "AP@10", "RR", "P@5", "R@15", "Rprec", "Bpref", "Judged@10"]
MEASURES = [*RELEVANT, *FAIR, *TOGETHER, *OTHERS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parity")
    words.run(words.write(folder, f"{words.EXPERIMENT}measures: {MEASURES}\n"), folder / "run")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Results:
    return load_run(folder / "run")


@pytest.fixture(scope="module")
def collection(folder: Path) -> Collection:
    return load_collection(folder / "collection.yaml")


def values(folder: Path) -> Iterator[tuple[str, str, str, str, float]]:
    """System, topic, dimension, measure and value of every line of topics.csv."""
    for row in words.rows(folder / "run" / "topics.csv"):
        yield row["system"], row["topic"], row["dimension"], row["measure"], float(row["value"])


def rankings(folder: Path, system: str) -> dict[str, list[str]]:
    """Topic -> ids, as other programs read the run file: by falling score."""
    found: dict[str, list[tuple[float, str]]] = {}
    for doc in ir_measures.read_trec_run(str(folder / "run" / "runs" / f"{system}.txt")):
        found.setdefault(doc.query_id, []).append((-doc.score, doc.doc_id))
    return {topic: [id for _, id in sorted(scored)] for topic, scored in found.items()}


def test_python_gives_the_values_of_an_experiment(folder: Path, collection: Collection) -> None:
    listed = {system: rankings(folder, system) for system in ("plain", "fair", "random")}
    count, measured = 0, set()
    for system, topic, dimension, measure, value in values(folder):
        ids = listed[system][topic]
        found = judged_value(parse_measure(measure), collection, topic, ids, dimension)
        assert found == pytest.approx(value, abs=SAME), (system, topic, dimension, measure)
        count += 1
        measured.add(measure)
    assert measured == set(MEASURES)
    assert count > 3 * 19 * (len(RELEVANT) + len(FAIR))


def adapted(measure: Measure, collection: Collection, dimension: str) -> object:
    """The same measure as ir-measures has it with our provider."""
    from fairagent.guests.ir_measures import AWRF as Fair
    from fairagent.guests.ir_measures import nDCG, nDCG_AWRF

    if isinstance(measure, NDCG) and measure.gain == "binary":
        return nDCG(discount=str(measure.discount)) @ measure.n
    fair = measure.right if isinstance(measure, Product) else measure
    if not isinstance(fair, AWRF):
        return ir_measures.parse_measure(THEIRS.get(str(measure), str(measure)))
    options = {"discount": str(fair.discount), "log": fair.log, "unknown": fair.unknown}
    made = nDCG_AWRF if isinstance(measure, Product) else Fair
    return made(groups=collection, dimension=dimension, **options) @ fair.n


def test_ir_measures_gives_the_values_of_an_experiment(folder: Path, run: Results, collection: Collection) -> None:
    qrels = {topic: dict(grades) for topic, grades in collection.qrels.items() if grades}
    expected = {line[:4]: line[4] for line in values(folder)}
    for system in run.systems:
        ranking = list(ir_measures.read_trec_run(str(folder / "run" / "runs" / f"{system}.txt")))
        for dimension, text in dict.fromkeys((row.dimension, row.measure) for row in run.comparisons):
            theirs = adapted(parse_measure(text), collection, dimension)
            found = {one.query_id: one.value for one in ir_measures.iter_calc([theirs], qrels, ranking)}
            for topic, value in found.items():
                ours = expected.get((system, topic, dimension, text))
                assert math.isnan(value) if ours is None else value == pytest.approx(ours, abs=SAME), (text, topic)


@pytest.mark.parametrize("dimension", ["gender", "era"])
def test_the_track_gives_the_values_of_an_experiment(folder: Path, collection: Collection, dimension: str) -> None:
    """Every document has a page here; documents without one are another matter (docs/reference/differences.md)."""
    labels = collection.groups.labels(dimension)
    world = collection.population.get(dimension)
    one = Dimension(dimension, ("@UNKNOWN", *labels), tuple(world[label] for label in labels) if world else None)
    ids = [f"d{number:02d}" for number in range(40)]
    rows = collection.groups.memberships(dimension, ids)
    alignments = [
        (number, {dimension: dict(zip(one.labels, row, strict=True))}, None) for number, row in enumerate(rows.tolist())
    ]
    pages = Pages.from_alignments([one], alignments)
    qrels = {
        topic: [int(id[1:]) for id, grade in grades.items() if grade > 0] for topic, grades in collection.qrels.items()
    }
    track = TrackEvaluator(2022, 1, [dimension], pages, qrels, n=10)
    for system in ("plain", "fair", "random"):
        listed = rankings(folder, system)
        submitted = TrackRun.of(system, {topic: [[int(id[1:]) for id in ids]] for topic, ids in listed.items()})
        for row in track.evaluate(submitted).rows:
            ranking = Ranking(tuple(listed[row.topic]), -np.arange(len(listed[row.topic]), dtype=np.float64))
            ours = evaluate_topic(
                collection, row.topic, dimension, ranking, [NDCG(10), AWRF(10), Product(NDCG(10), AWRF(10))]
            )
            assert ours == pytest.approx((row.ndcg, row.awrf, row.score), abs=SAME)
