"""nDCG, AWRF, their product and targets against the code of the TREC Fair Ranking track's organizers.

Their code computes the rank discount, and with it nDCG, in 32-bit floats. `awrf.json` holds what it printed, so
no computation in 64 bits can come closer than a 32-bit rounding to its nDCG and product, and 1e-8 to its AWRF. The
`_f8` files come from the same code with the 32-bit types widened; against them the tolerance is 1e-9.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.measures import AWRF, LOG2_MAX2, NDCG, JudgedRanking, Product, blend, joint_memberships
from fairagent.types import UNKNOWN, FloatArray

pytestmark = pytest.mark.shared

SINGLE = float(np.finfo(np.float32).eps)


@pytest.fixture(scope="module")
def printed(shared: Path) -> dict[str, Any]:
    path = shared / "golden" / "seed_systems" / "awrf.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def judged(case: dict[str, Any], target: FloatArray) -> JudgedRanking:
    alignments, run = case["alignments"], [str(page) for page in case["run"]]
    known = np.array([page in alignments for page in run])
    rows = np.array([alignments.get(page, [0.0] * len(case["groups"])) for page in run])
    relevant = np.isin(case["run"], case["relevant"])
    return JudgedRanking(relevant, len(case["relevant"]), rows, target, known)


def test_the_discount(printed: dict[str, Any]) -> None:
    assert LOG2_MAX2(10) == pytest.approx(printed["discount_first_10"], rel=SINGLE)


def test_targets(printed: dict[str, Any]) -> None:
    for case in printed["cases"]:
        alignment = np.sum([case["alignments"][str(page)] for page in case["relevant"]], axis=0)
        target = blend(alignment, np.array(case["background_known"]))
        assert target == pytest.approx(case["target"], rel=1e-9), case["id"]


def test_ndcg_awrf_and_product(printed: dict[str, Any]) -> None:
    assert any(not judged(case, np.array(case["target"])).known.all() for case in printed["cases"])
    for case in printed["cases"]:
        ranking, n = judged(case, np.array(case["target"])), case["cutoff"]
        assert NDCG(n)(ranking) == pytest.approx(case["authors_ndcg"], rel=SINGLE), case["id"]
        assert AWRF(n)(ranking) == pytest.approx(case["authors_awrf"], rel=1e-8), case["id"]
        product = Product(NDCG(n), AWRF(n))(ranking)
        assert product == pytest.approx(case["authors_product"], rel=SINGLE), case["id"]


@dataclass(frozen=True)
class Small:
    """The track's code on 60 made-up pages, 4 topics, 3 dimensions and 3 runs, in 64 bits."""

    labels: dict[str, list[str]]
    background: dict[str, FloatArray | None]
    rows: dict[str, dict[int, FloatArray]]
    relevant: dict[str, list[int]]
    runs: dict[str, dict[str, list[int]]]
    expected: list[dict[str, str]]
    targets: dict[str, Any]

    def dimensions(self, config: str) -> list[str]:
        return config.removeprefix("1d:").split("*")

    def target(self, config: str, topic: str) -> FloatArray:
        """One dimension: its own target; several: the joint target, summed over the dimensions left out."""
        if config.startswith("1d:"):
            (name,) = self.dimensions(config)
            return np.array(self.targets["1d"][name][topic])
        joint = np.array(self.targets["int"][topic]).reshape([len(names) for names in self.labels.values()])
        left_out = [i for i, name in enumerate(self.labels) if name not in self.dimensions(config)]
        return joint.sum(axis=tuple(left_out)).ravel()

    def judged(self, run: str, config: str, topic: str) -> JudgedRanking:
        pages = self.runs[run][topic]
        first = next(iter(self.rows.values()))
        known = np.array([page in first for page in pages])
        memberships = joint_memberships(
            [
                np.array([self.rows[name].get(page, np.zeros(len(self.labels[name]))) for page in pages])
                for name in self.dimensions(config)
            ]
        )
        target = self.target(config, topic)
        relevant = np.isin(pages, self.relevant[topic])
        n_relevant = len(set(self.relevant[topic]))
        # The track divides a target by its sum inside AWRF; here the caller does.
        return JudgedRanking(relevant, n_relevant, memberships, target / target.sum(), known)


@pytest.fixture(scope="module")
def small(shared: Path) -> Small:
    folder = shared / "golden" / "trec_fair" / "small3"

    def lines(name: str) -> list[Any]:
        return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]

    def table(name: str) -> list[dict[str, str]]:
        with (folder / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter="\t"))

    dimensions = json.loads((folder / "dims.json").read_text(encoding="utf-8"))
    labels = {dimension["name"]: dimension["labels"] for dimension in dimensions}
    background = {
        dimension["name"]: np.array([dimension["background"][label] for label in dimension["labels"][1:]])
        if dimension["background"]
        else None
        for dimension in dimensions
    }
    rows = {
        name: {
            page["page_id"]: np.array([page["align"][name].get(label, 0.0) for label in names])
            for page in lines("pages.jsonl")
        }
        for name, names in labels.items()
    }
    runs: dict[str, dict[str, list[int]]] = {}
    for run in ("good", "weak", "short"):
        topics = runs.setdefault(run, {})
        for row in table(f"task1_{run}.tsv"):
            topics.setdefault(row["id"], []).append(int(row["page_id"]))
    return Small(
        labels,
        background,
        rows,
        {str(topic["id"]): topic["rel_docs"] for topic in lines("qrels.jsonl")},
        runs,
        table("expected_task1_f8.tsv"),
        json.loads((folder / "expected_targets_f8.json").read_text(encoding="utf-8"))["task1"],
    )


def test_targets_of_one_dimension_in_64_bits(small: Small) -> None:
    for name, background in small.background.items():
        for topic, target in small.targets["1d"][name].items():
            pages = [page for page in small.relevant[topic] if page in small.rows[name]]
            alignment = np.sum([small.rows[name][page] for page in pages], axis=0)
            if small.labels[name][0] != UNKNOWN:  # no background either: column 0 is a group like the others
                assert background is None
            expected = np.array(target) / np.sum(target)
            assert blend(alignment, background) == pytest.approx(expected, rel=1e-9), (name, topic)


def test_ndcg_awrf_and_product_in_64_bits(small: Small) -> None:
    assert len(small.expected) == 216
    assert not any(row["error"] for row in small.expected)
    for row in small.expected:
        n = int(row["cutoff"])
        ranking = small.judged(row["run"], row["config"], row["topic_id"])
        assert NDCG(n)(ranking) == pytest.approx(float(row["nDCG"]), rel=1e-9), row
        assert AWRF(n)(ranking) == pytest.approx(float(row["AWRF"]), rel=1e-9), row
        assert Product(NDCG(n), AWRF(n))(ranking) == pytest.approx(float(row["Score"]), rel=1e-9), row
