"""The TREC Fair measures against the code of the track's organizers, on their own file formats.

The `_f8` files hold what that code prints with its 32-bit types widened: the tolerance is 1e-9. The others hold what
it prints as it is: 5e-7 for nDCG and Score, 1e-7 for AWRF, 1e-5 relative for expected exposure (README of the
golden files).
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.collection.trec_fair import read_metadata, read_relevant_pages, read_run
from fairagent.measures.trec_fair import (
    SUBSETS_2022,
    Dimension,
    Pages,
    Targets,
    Task,
    TrackEvaluator,
    Year,
)
from fairagent.measures.trec_fair.task2 import target_exposure

pytestmark = pytest.mark.shared

EXACT = 1e-9
NAMED = {"all8": None, "sub-geo*gender": SUBSETS_2022["2021"], **SUBSETS_2022}


def opened(path: Path) -> str:
    raw = (path if path.exists() else path.with_name(f"{path.name}.gz")).read_bytes()
    return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()


def lines(path: Path) -> Iterator[Any]:
    return map(json.loads, opened(path).splitlines())


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(opened(path).splitlines(), delimiter="\t"))


@dataclass
class Case:
    """One folder of golden files; its evaluators are made once for each task, dimensions and cut-off."""

    folder: Path
    year: Year
    pages: Pages
    qrels: Mapping[str, Any]

    def __post_init__(self) -> None:
        self.first = cache(self.first)  # type: ignore[method-assign]
        self.track = cache(self.track)  # type: ignore[method-assign]

    def first(self, task: Task, n: int | None) -> TrackEvaluator:
        return TrackEvaluator(self.year, task, [dim.name for dim in self.pages.dimensions], self.pages, self.qrels, n)

    def track(self, task: Task, config: str, n: int | None = None) -> TrackEvaluator:
        names = [dim.name for dim in self.pages.dimensions]
        dimensions = NAMED.get(config, tuple(config.removeprefix("1d:").split("*"))) or names
        return self.first(task, n).over(dimensions)

    def run(self, task: Task, name: str) -> Any:
        runs = self.folder.parent if self.year == 2021 else self.folder
        path = runs / f"task{task}_{name}.tsv"
        run = read_run(path if path.exists() else path.with_suffix(".tsv.gz"), self.year, task)
        if self.year == 2021:  # its runs are those of 2022, its topics two of theirs
            kept = [topic for topic in run.topics if topic in self.qrels]
            lists = {
                topic: [
                    run.pages[start:end].tolist()
                    for number, start, end in zip(run.topic, run.bounds, run.bounds[1:], strict=False)
                    if run.topics[number] == topic
                ]
                for topic in kept
            }
            run = type(run).of(name, lists)
        return run


def made_up(folder: Path) -> Case:
    dimensions = [
        Dimension(
            dim["name"],
            tuple(dim["labels"]),
            tuple(dim["background"][label] for label in dim["labels"][1:]) if dim["background"] else None,
        )
        for dim in json.loads(opened(folder / "dims.json"))
    ]
    alignments = ((page["page_id"], page["align"], page["quality"]) for page in lines(folder / "pages.jsonl"))
    qrels = {str(topic["id"]): topic["rel_docs"] for topic in lines(folder / "qrels.jsonl")}
    return Case(folder, 2022, Pages.from_alignments(dimensions, alignments), qrels)


@pytest.fixture(scope="module")
def cases(shared: Path) -> dict[str, Case]:
    golden = shared / "golden" / "trec_fair"
    raw, old = golden / "raw8", golden / "raw8" / "y2021"
    metadata = read_metadata(raw / "articles.jsonl", 2022)
    metadata_2021 = read_metadata(old / "metadata_2021.jsonl", 2021)
    assert metadata.notes == ()
    return {
        "small3": made_up(golden / "small3"),
        "big4": made_up(golden / "big4"),
        "raw8": Case(raw, 2022, metadata.pages, read_relevant_pages(raw / "reldocs.jsonl").qrels),
        "y2021": Case(old, 2021, metadata_2021.pages, read_relevant_pages(old / "topics_2021.jsonl").qrels),
    }


def check(case: Case, task: Task, rows: list[dict[str, str]], tolerances: Mapping[str, Any]) -> None:
    """Every row equals ours, and we have no other rows."""
    assert rows
    groups: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
    for row in rows:
        assert not row.get("error")
        groups.setdefault((row["run"], row["config"], row.get("cutoff", "")), {})[row["topic_id"]] = row
    names = {"nDCG": "ndcg", "AWRF": "awrf", "Score": "score", "EE-L": "ee_l", "EE-D": "ee_d", "EE-R": "ee_r"}
    for (name, config, cutoff), by_topic in groups.items():
        track = case.track(task, config, int(cutoff) if cutoff else None)
        evaluation = track.evaluate(case.run(task, name))
        assert {row.topic for row in evaluation.rows} == set(by_topic), (name, config)
        for ours in evaluation.rows:
            for column, tolerance in tolerances.items():
                theirs = float(by_topic[ours.topic][column])
                place = (name, config, cutoff, ours.topic, column)
                assert getattr(ours, names[column]) == pytest.approx(theirs, **tolerance), place


FULL: dict[Task, dict[str, Any]] = {
    1: {name: {"rel": EXACT, "abs": 0} for name in ("nDCG", "AWRF", "Score")},
    2: {name: {"rel": EXACT, "abs": 0} for name in ("EE-L", "EE-D", "EE-R")},
}
SINGLE: dict[Task, dict[str, Any]] = {
    1: {
        "nDCG": {"rel": 0, "abs": 5e-7},
        "AWRF": {"rel": 0, "abs": 1e-7},
        "Score": {"rel": 0, "abs": 5e-7},
    },
    2: {name: {"rel": 1e-5, "abs": 0} for name in ("EE-L", "EE-D", "EE-R")},
}


@pytest.mark.parametrize("name", ["small3", "big4", "raw8"])
@pytest.mark.parametrize("task", [1, 2])
@pytest.mark.parametrize(("suffix", "tolerances"), [("_f8", FULL), ("", SINGLE)])
def test_runs(cases: dict[str, Case], name: str, task: Task, suffix: str, tolerances: Any) -> None:
    case = cases[name]
    check(case, task, table(case.folder / f"expected_task{task}{suffix}.tsv"), tolerances[task])


@pytest.mark.parametrize("task", [1, 2])
def test_runs_of_2021(cases: dict[str, Case], task: Task) -> None:
    """There is no file in 64 bits: the tolerances are those of the code in 32."""
    rows = [row for row in table(cases["y2021"].folder / "expected_2021.tsv") if row["task"] == str(task)]
    check(cases["y2021"], task, rows, SINGLE[task])


def close(ours: np.ndarray, theirs: Any, rel: float = EXACT) -> bool:
    return bool(np.allclose(ours, theirs, rtol=rel, atol=1e-15))


def share(targets: Targets, topic: int) -> np.ndarray:
    dense = targets.dense(topic)
    return dense / dense.sum()


@pytest.mark.parametrize("name", ["small3", "big4"])
@pytest.mark.parametrize("task", [1, 2])
def test_targets(cases: dict[str, Case], name: str, task: Task) -> None:
    case = cases[name]
    expected = json.loads(opened(case.folder / "expected_targets_f8.json"))[f"task{task}"]
    for dimension in case.pages.dimensions:
        track = case.track(task, f"1d:{dimension.name}")
        for number, topic in enumerate(track.judgments.topics):
            theirs = np.array(expected["1d"][dimension.name][topic])
            assert close(share(track.targets, number), theirs / theirs.sum()), (dimension.name, topic)
    track = case.first(task, None)
    for number, topic in enumerate(track.judgments.topics):
        dense = share(track.targets, number)
        total, squares = expected["int_sum"][topic], expected["int_sumsq"][topic]
        if "int" in expected and topic in expected["int"]:
            assert close(dense, np.array(expected["int"][topic]) / total), topic
        assert float((dense**2).sum()) == pytest.approx(squares / total**2, rel=EXACT)
        ratio = track.targets.squares[number] / track.targets.total[number] ** 2
        assert ratio == pytest.approx(squares / total**2, rel=EXACT)


@pytest.mark.parametrize("task", [1, 2])
def test_targets_from_raw_metadata(cases: dict[str, Case], task: Task) -> None:
    case = cases["raw8"]
    expected = json.loads(opened(case.folder / "expected_targets_f8.json"))[f"task{task}"]
    whole = case.first(task, None)
    relevant = whole.judgments.relevant
    for dimension in case.pages.dimensions:
        alone = case.track(task, f"1d:{dimension.name}")
        columns = [dimension.labels.index(label) for label in expected["1d"][dimension.name]["labels"]]
        others = np.setdiff1d(np.arange(len(dimension.labels)), columns)
        for number, topic in enumerate(whole.judgments.topics):
            ours = share(alone.targets, number)
            theirs = np.array(expected["1d"][dimension.name]["rows"][topic])
            assert close(ours[columns], theirs / theirs.sum()), (dimension.name, topic)
            assert not ours[others].any()
            marginal = share(whole.targets.over([dimension.name]), number)[columns]
            theirs = np.array(expected["marginal_of_int"][dimension.name][topic])
            assert close(marginal, theirs / theirs.sum()), (dimension.name, topic)
    for number, topic in enumerate(whole.judgments.topics):
        total = whole.targets.total[number]
        scale = expected["int_sum"][topic] / total
        assert whole.targets.squares[number] * scale**2 == pytest.approx(expected["int_sumsq"][topic], rel=EXACT)
        pair = whole.targets.over(SUBSETS_2022["2021"]).dense(number)
        assert close(pair * scale, expected["sub-geo*gender"][topic]), topic
        if task == 1:  # Task 1's target is the sum over the relevant pages, the track's the mean
            assert total / relevant[number] == pytest.approx(expected["int_sum"][topic], rel=EXACT)


def test_targets_of_2021(cases: dict[str, Case]) -> None:
    case = cases["y2021"]
    expected = json.loads(opened(case.folder / "expected_targets_2021.json"))
    assert len(expected) == 4
    for key, by_topic in expected.items():
        name, _, config = key.partition(" ")
        task: Task = 1 if name == "task1" else 2
        track = case.track(task, config)
        for number, topic in enumerate(track.judgments.topics):
            theirs = np.array(by_topic[topic])
            dense = track.targets.dense(number)
            ours = dense[1:] if task == 1 else dense
            assert close(ours / ours.sum(), theirs / theirs.sum(), EXACT if task == 1 else 1e-6), (key, topic)


def test_alignments_from_raw_metadata(cases: dict[str, Case]) -> None:
    case = cases["raw8"]
    expected = {record["page_id"]: record["align"] for record in lines(case.folder / "expected_alignments.jsonl")}
    assert sorted(expected) == case.pages.ids.tolist()
    for dimension in case.pages.dimensions:
        ours = case.pages.matrix(dimension.name)
        theirs = [[expected[page][dimension.name].get(label, 0.0) for label in dimension.labels] for page in
                  case.pages.ids.tolist()]  # fmt: skip
        assert close(ours, theirs), dimension.name
        assert {label for align in expected.values() for label in align[dimension.name]} <= set(dimension.labels)


def test_the_work_needed_exposure_of_pages(cases: dict[str, Case]) -> None:
    case = cases["small3"]
    expected = json.loads(opened(case.folder / "expected_targets_f8.json"))["task2"]["page_target_exposure"]
    judgments = case.first(2, None).judgments
    exposures = target_exposure(judgments)
    ours = {(judgments.topics[t], str(page)): value for t, page, value in
            zip(judgments.topic, judgments.ids.tolist(), exposures.tolist(), strict=True)}  # fmt: skip
    theirs = {(topic, page): value for topic, pages in expected.items() for page, value in pages.items()}
    assert theirs
    for place, value in theirs.items():
        assert ours[place] == pytest.approx(value, rel=EXACT), place
    assert not any(value for place, value in ours.items() if place not in theirs)


def test_the_exposure_inside_awrf(cases: dict[str, Case]) -> None:
    case = cases["small3"]
    space = case.first(1, None).targets.space
    for record in lines(case.folder / "expected_exposure_task1_f8.jsonl"):
        track = case.track(1, record["config"], record["cutoff"])
        shown = track.judgments.shown_by(case.run(1, record["run"]), record["cutoff"])
        kept = np.flatnonzero((shown.row >= 0) & (shown.topic == track.judgments.topics.index(str(record["topic_id"]))))
        space = track.targets.space
        amounts = space.amounts(case.pages, shown.row[kept], shown.topic[kept] * 0, shown.attention[kept])
        dense = np.zeros(space.cells)
        dense[amounts.keys] = amounts.values
        assert close(dense / shown.attention[kept].sum(), record["exposure"])
