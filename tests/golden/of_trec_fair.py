"""The rows of golden files about the TREC Fair measures, in the track's own formats.

The `_f8` files hold what the organizers' code prints with its 32-bit types widened, the others what it prints as it is.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.collection.trec_fair import read_metadata, read_relevant_pages, read_run
from fairagent.measures import AWRF, NDCG, JudgedRanking, Product, joint_memberships
from fairagent.measures.trec_fair import SUBSETS_2022, Dimension, Pages, Targets, Task, TrackEvaluator, Year

from .rows import Near, Row, reads_lines

NAMED = {"all8": None, "sub-geo*gender": SUBSETS_2022["2021"], **SUBSETS_2022}
COLUMNS = {"nDCG": "ndcg", "AWRF": "awrf", "Score": "score", "EE-L": "ee_l", "EE-D": "ee_d", "EE-R": "ee_r"}
FULL = Near(1e-9, 0)
SINGLE = {
    **{name: Near(0, 5e-7) for name in ("nDCG", "Score")},
    "AWRF": Near(0, 1e-7),
    **{name: Near(1e-5, 0) for name in ("EE-L", "EE-D", "EE-R")},
}
SHARE = Near(1e-9, 1e-15)
SINGLE_SHARE = Near(1e-6, 1e-8)


def opened(path: Path) -> str:
    raw = (path if path.exists() else path.with_name(f"{path.name}.gz")).read_bytes()
    return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()


def lines(path: Path) -> Iterator[Any]:
    return map(json.loads, opened(path).splitlines())


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(opened(path).splitlines(), delimiter="\t"))


@dataclass
class Track:
    """One folder of golden files; its evaluators are made once for each task, dimensions and cut-off."""

    folder: Path
    year: Year
    pages: Pages
    qrels: Mapping[str, Any]

    def __post_init__(self) -> None:
        self.first = cache(self.first)  # type: ignore[method-assign]
        self.evaluator = cache(self.evaluator)  # type: ignore[method-assign]
        self.values = cache(self.values)  # type: ignore[method-assign]

    def first(self, task: Task, n: int | None = None) -> TrackEvaluator:
        return TrackEvaluator(self.year, task, [dim.name for dim in self.pages.dimensions], self.pages, self.qrels, n)

    def evaluator(self, task: Task, config: str, n: int | None = None) -> TrackEvaluator:
        names = [dim.name for dim in self.pages.dimensions]
        dimensions = NAMED.get(config, tuple(config.removeprefix("1d:").split("*"))) or names
        return self.first(task, n).over(dimensions)

    def values(self, task: Task, name: str, config: str, n: int | None) -> dict[str, Any]:
        """The values of each topic of a run."""
        return {row.topic: row for row in self.evaluator(task, config, n).evaluate(self.run(task, name)).rows}

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


@cache
def track_in(folder: Path) -> Track:
    if (folder / "metadata_2021.jsonl").exists():
        metadata = read_metadata(folder / "metadata_2021.jsonl", 2021)
        return Track(folder, 2021, metadata.pages, read_relevant_pages(folder / "topics_2021.jsonl").qrels)
    if (folder / "articles.jsonl").exists():
        metadata = read_metadata(folder / "articles.jsonl", 2022)
        return Track(folder, 2022, metadata.pages, read_relevant_pages(folder / "reldocs.jsonl").qrels)
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
    return Track(folder, 2022, Pages.from_alignments(dimensions, alignments), qrels)


# --- runs


def runs(path: Path) -> Iterator[tuple[str, Row]]:
    """The rows of a table of values; those where the code ended in an error have none."""
    of_file = path.name.removeprefix("expected_task")[:1]
    rows = [{"task": of_file, "cutoff": "", **row} for row in table(path)]
    topics = defaultdict(set)
    for row in rows:
        topics[row["task"], row["run"], row["config"], row["cutoff"]].add(row["topic_id"])
    for row in rows:
        if row.get("error"):
            continue
        task, cutoff = row["task"], row["cutoff"]
        values = {column: float(row[column]) for column in COLUMNS if row.get(column)}
        where = {"task": int(task), "run": row["run"], "config": row["config"], "topic": row["topic_id"]}
        id = " ".join(filter(None, (f"task {task}", row["run"], row["config"], cutoff, row["topic_id"])))
        where["topics"] = topics[task, row["run"], row["config"], cutoff]
        yield id, {**where, **values, "cutoff": int(cutoff) if cutoff else None, "track": track_in(path.parent)}


@reads_lines("expected_task?.tsv", runs, SINGLE)
@reads_lines("expected_2021.tsv", runs, SINGLE)
@reads_lines("expected_task?_f8.tsv", runs, {"": FULL})
def measured(row: Row) -> Row:
    by_topic = row["track"].values(row["task"], row["run"], row["config"], row["cutoff"])
    assert by_topic.keys() <= row["topics"], "topics that they have not"
    found = by_topic[row["topic"]]
    return {column: getattr(found, name) for column, name in COLUMNS.items() if column in row}


def of_tables(path: Path) -> Iterator[tuple[str, Row]]:
    """Rows that the measures of rankings can be asked for as well: made-up pages with few cells."""
    if (path.parent / "dims.json").exists() and track_in(path.parent).first(1).targets.space.cells <= 1000:
        yield from runs(path)


@reads_lines("expected_task1.tsv", of_tables, SINGLE)
@reads_lines("expected_task1_f8.tsv", of_tables, {"": FULL})
def measured_as_any_ranking(row: Row) -> Row:
    """By the measures of rankings, from rows of memberships and the track's targets."""
    track: Track = row["track"]
    config, topic = row["config"], row["topic"]
    targets = json.loads(opened(track.folder / "expected_targets_f8.json"))["task1"]
    names = config.removeprefix("1d:").split("*")
    labels = {dim.name: dim.labels for dim in track.pages.dimensions}
    if config.startswith("1d:"):
        target = np.array(targets["1d"][names[0]][topic])
    else:
        joint = np.array(targets["int"][topic]).reshape([len(of) for of in labels.values()])
        target = joint.sum(axis=tuple(i for i, name in enumerate(labels) if name not in names)).ravel()
    shown = [int(one["page_id"]) for one in table(track.folder / f"task1_{row['run']}.tsv") if one["id"] == topic]
    aligned = {page["page_id"]: page["align"] for page in lines(track.folder / "pages.jsonl")}
    known = np.array([page in aligned for page in shown])
    of_shown = [aligned.get(page, {}) for page in shown]
    memberships = joint_memberships(
        [
            np.array([[align.get(name, {}).get(label, 0.0) for label in labels[name]] for align in of_shown])
            for name in names
        ]
    )
    relevant = track.qrels[topic]
    # The track divides a target by its sum inside AWRF; here the caller does.
    judged = JudgedRanking(
        np.isin(shown, list(relevant)), len(set(relevant)), memberships, target / target.sum(), known
    )
    n = row["cutoff"]
    return {"nDCG": NDCG(n)(judged), "AWRF": AWRF(n)(judged), "Score": Product(NDCG(n), AWRF(n))(judged)}


# --- targets


def shares(values: Any) -> np.ndarray:
    found = np.array(values)
    return found / found.sum()


def targets_of(path: Path) -> Iterator[tuple[str, Row]]:
    """Their targets, divided by their sums, one row for each task, dimension (or all of them) and topic."""
    for name, parts in json.loads(opened(path)).items():
        task, track = int(name[-1]), track_in(path.parent)
        for kind, by_dimension in {key: parts[key] for key in ("1d", "marginal_of_int") if key in parts}.items():
            for dimension, topics in by_dimension.items():
                labels = parts["1d"][dimension].get("labels")
                for topic, values in topics.get("rows", topics).items():
                    where = {"track": track, "task": task, "kind": kind, "dimension": dimension, "topic": topic}
                    expected = {"target": shares(values).tolist(), "other": False}
                    yield f"{name} {kind} {dimension} {topic}", where | expected | {"labels": labels}
        for topic, total in parts["int_sum"].items():
            expected = {"squares": parts["int_sumsq"][topic] / total**2, "total": total}
            expected |= {"target": shares(parts["int"][topic]).tolist()} if parts.get("int") else {}
            pair = parts.get("sub-geo*gender", {}).get(topic)
            expected |= {"pair": pair} if pair else {}
            yield f"{name} all {topic}", {"track": track, "task": task, "kind": "all", "topic": topic} | expected
        for topic, pages in parts.get("page_target_exposure", {}).items():
            where = {"track": track, "task": task, "kind": "pages", "topic": topic}
            yield f"{name} pages {topic}", where | {"pages": pages, "other": False}


SINGLE_TARGETS = dict.fromkeys(["", "target", "pair", "total", "squares", "pages"], SINGLE_SHARE)


@reads_lines("expected_targets.json*", targets_of, SINGLE_TARGETS)
@reads_lines("expected_targets_f8.json*", targets_of, {"": SHARE})
def target(row: Row) -> Row:
    track: Track = row["track"]
    whole = track.first(row["task"])
    number = whole.judgments.topics.index(row["topic"])
    if "dimension" in row:
        name = row["dimension"]
        alone = track.evaluator(row["task"], f"1d:{name}").targets
        dense = share(alone if row["kind"] == "1d" else whole.targets.over([name]), number)
        labels = next(dim.labels for dim in track.pages.dimensions if dim.name == name)
        columns = [labels.index(label) for label in row["labels"] or labels]
        others = np.setdiff1d(np.arange(len(labels)), columns)
        return {"target": dense[columns], "other": bool(dense[others].any())}
    if row["kind"] == "pages":
        judgments = whole.judgments
        of = whole.weights[judgments.topic == number].tolist()
        ids = judgments.ids[judgments.topic == number].tolist()
        ours = {str(page): value for page, value in zip(ids, of, strict=True)}
        other = any(ours[page] for page in ours.keys() - row["pages"].keys())
        return {"pages": {page: ours[page] for page in row["pages"]}, "other": other}
    total = whole.targets.total[number]
    found: Row = {"squares": whole.targets.squares[number] / total**2}
    if "target" in row:
        found["target"] = share(whole.targets, number)
    if "pair" in row:
        found["pair"] = whole.targets.over(SUBSETS_2022["2021"]).dense(number) * row["total"] / total
        if row["task"] == 1:  # Task 1's target is the sum over the relevant pages, the track's the mean
            found["total"] = total / whole.judgments.relevant[number]
    return found


def targets_of_2021(path: Path) -> Iterator[tuple[str, Row]]:
    track = track_in(path.parent)
    for key, topics in json.loads(opened(path)).items():
        for topic, values in topics.items():
            name, _, config = key.partition(" ")
            where = {"track": track, "task": int(name[-1]), "config": config, "topic": topic}
            yield f"{key} {topic}", where | {f"target of {name}": shares(values).tolist()}


@reads_lines("expected_targets_2021.json", targets_of_2021, {"target of task2": Near(1e-6, 1e-15), "": SHARE})
def target_of_2021(row: Row) -> Row:
    targets = row["track"].evaluator(row["task"], row["config"]).targets
    dense = targets.dense(row["track"].first(row["task"]).judgments.topics.index(row["topic"]))
    # Task 1's leaves out the unknown.
    return {f"target of task{row['task']}": shares(dense[1:] if row["task"] == 1 else dense)}


# --- alignments and exposures


def alignments(path: Path) -> Iterator[tuple[str, Row]]:
    for record in lines(path):
        yield f"page {record['page_id']}", record | {"track": track_in(path.parent)}


@reads_lines("expected_alignments.jsonl", alignments, {"": SHARE})
def alignment(row: Row) -> Row:
    pages: Pages = row["track"].pages
    (at,) = np.flatnonzero(pages.ids == row["page_id"])
    found = {}
    for dimension in pages.dimensions:
        values = pages.matrix(dimension.name)[at].tolist()
        found[dimension.name] = {label: value for label, value in zip(dimension.labels, values, strict=True) if value}
    assert {name: set(of) for name, of in found.items()} == {name: set(of) for name, of in row["align"].items()}
    return {"align": found}


def exposures(path: Path) -> Iterator[tuple[str, Row]]:
    for record in lines(path):
        id = " ".join(str(record[key]) for key in ("run", "config", "cutoff", "topic_id"))
        yield id, record | {"track": track_in(path.parent)}


@reads_lines("expected_exposure_task1.jsonl", exposures, {"": Near(1e-6, 1e-8)})
@reads_lines("expected_exposure_task1_f8.jsonl", exposures, {"": SHARE})
def exposure(row: Row) -> Row:
    """The exposure that AWRF compares with the target."""
    track: Track = row["track"]
    evaluator = track.evaluator(1, row["config"], row["cutoff"])
    shown, space = evaluator.judgments.shown_by(track.run(1, row["run"]), row["cutoff"]), evaluator.targets.space
    kept = np.flatnonzero((shown.row >= 0) & (shown.topic == evaluator.judgments.topics.index(str(row["topic_id"]))))
    amounts = space.amounts(track.pages, shown.row[kept], shown.topic[kept] * 0, shown.attention[kept])
    dense = np.zeros(space.cells)
    dense[amounts.keys] = amounts.values
    return {"exposure": dense / shown.attention[kept].sum()}


def share(targets: Targets, topic: int) -> np.ndarray:
    return shares(targets.dense(topic))
