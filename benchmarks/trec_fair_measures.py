"""The TREC Fair measures against the dense way, on made-up pages of the track's shape.

    python benchmarks/trec_fair_measures.py [--pages 100000] [--relevant 2000]

50 topics; Task 1: a ranking of 500 pages each, Task 2: 100 rankings of 20. "Dense" are the same formulas in plain
numpy as the organizers compute them: run files line by line, an array of all cells for every target and exposure
(two dense factors and one matrix product). "Organizers" is the CPU time of their own code, measured elsewhere and
quoted. Both ways read the gzipped run file; their values are compared. Times are CPU time of one thread, the best of
several passes.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from pathlib import Path
from random import Random
from typing import TypeVar

import numpy as np
from scipy.spatial.distance import jensenshannon

from fairagent.collection.trec_fair import read_run
from fairagent.measures.trec_fair import DIMENSIONS_2022, QUALITIES, Dimension, Pages, Task, TrackEvaluator
from fairagent.types import UNKNOWN

TOPICS = 50
FOUR = ("sub-geo", "gender", "age", "pop")
EIGHT = tuple(dimension.name for dimension in DIMENSIONS_2022)
ORGANIZERS = {"ranking, 4": 2.3, "ranking, 8": 320.0, "target, 8": 911.0, "EE-L, 4": 20.0}
"""Milliseconds of their code."""

T = TypeVar("T")


def alignments(random: Random, ids: Sequence[int]) -> Iterator[tuple[int, dict[str, dict[str, float]], str]]:
    """Pages with as many labels as those of Wikipedia may have: half without a region, sources in up to six."""
    regions, occupations = DIMENSIONS_2022[0].labels[1:], DIMENSIONS_2022[3].labels[1:]

    def some(labels: Sequence[str], counts: Sequence[int]) -> dict[str, float]:
        chosen = random.sample(labels, random.choice(counts))
        return dict.fromkeys(chosen, 1.0 / len(chosen)) if chosen else {UNKNOWN: 1.0}

    for id in ids:
        sources = {label: float(random.randint(1, 20)) for label in some(regions, (0, 0, 1, 1, 1, 2, 2, 3, 6))}
        person = random.random() < 0.3
        align = {
            "sub-geo": some(regions, (0, 0, 0, 0, 0, 1, 1, 1, 1, 2)),
            "src-geo": {label: count / sum(sources.values()) for label, count in sources.items()},
            "gender": {random.choices(("female", "male", "NB"), (20, 79, 1))[0] if person else UNKNOWN: 1.0},
            "occ": some(occupations, (1, 1, 1, 2, 3)) if person else {UNKNOWN: 1.0},
        }
        align |= {dimension.name: {random.choice(dimension.labels): 1.0} for dimension in DIMENSIONS_2022[4:]}
        yield id, align, random.choices(QUALITIES, (50, 25, 15, 7, 2, 1))[0]


def narrowed(pages: Pages, names: Sequence[str]) -> Pages:
    """The same pages with some of the dimensions."""
    kept = [place for place, dimension in enumerate(pages.dimensions) if dimension.name in names]
    dimensions, rows = (tuple(parts[place] for place in kept) for parts in (pages.dimensions, pages.rows))
    return Pages(dimensions, pages.ids, rows, pages.quality)


class Dense:
    """The dense way: two factors of the joint alignment, (p, heads) and (p, tails), and whole targets."""

    def __init__(self, pages: Pages, qrels: Mapping[str, Sequence[int]]) -> None:
        self.place = {page: place for place, page in enumerate(pages.ids.tolist())}
        self.averaged = [dimension for dimension in pages.dimensions if dimension.averaged]
        self.others = [dimension for dimension in pages.dimensions if not dimension.averaged]
        self.matrices = {dimension.name: pages.matrix(dimension.name) for dimension in pages.dimensions}
        self.quality, self.qrels = pages.quality, qrels
        self.targets: dict[tuple[str, int], np.ndarray] = {}

    def factor(self, dimensions: Sequence[Dimension], places: Sequence[int]) -> np.ndarray:
        """The joint alignment of these pages in these dimensions, (n, cells)."""

        def outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)

        return reduce(outer, [self.matrices[dimension.name][places] for dimension in dimensions])

    def exposure(self, ids: Sequence[int], weights: np.ndarray) -> np.ndarray:
        """The weighted sum of the pages' joint alignments, (heads, tails)."""
        places = [self.place[page] for page in ids]
        return (self.factor(self.averaged, places) * weights[:, None]).T @ self.factor(self.others, places)

    def target(self, topic: str, task: Task) -> np.ndarray:
        """The intersectional target over all cells, block by block."""
        ids = self.qrels[topic]
        weights = self.work(ids) if task == 2 else np.ones(len(ids))
        target = self.exposure(ids, weights) / weights.sum()
        tails = target.sum(axis=1, keepdims=True)
        filled = np.where(tails > 0, target, target.sum(axis=0))
        scale = filled / filled.sum(axis=1, keepdims=True)
        shape = [len(dimension.labels) for dimension in self.averaged]
        target, scale = target.reshape(*shape, -1), scale.reshape(*shape, -1)
        for known in product([True, False], repeat=len(shape)):
            if any(known):
                block = tuple(slice(1, None) if is_known else slice(0, 1) for is_known in known)
                shares = [
                    np.array(dimension.background) if is_known else np.ones(1)
                    for dimension, is_known in zip(self.averaged, known, strict=True)
                ]
                world = reduce(np.multiply.outer, shares)[..., None]
                target[block] = 0.5 * target[block] + 0.5 * target[block].sum() * world * scale[block]
        return target.ravel()

    def work(self, ids: Sequence[int]) -> np.ndarray:
        """The exposure that each page should get, (n,)."""
        quality = self.quality[[self.place[page] for page in ids]]
        exposure, start = np.zeros(6), 0
        attention = discounts(len(ids))
        for place, count in enumerate(np.bincount(quality, minlength=6).tolist()):
            exposure[place] = attention[start : start + count].mean() if count else 0.0
            start += count
        return exposure[quality]

    def task1(self, topic: str, ids: list[int]) -> tuple[float, float]:
        """NDCG and AWRF of one ranking."""
        relevant = self.relevant(topic)
        gains = np.array([page in relevant for page in ids]) * discounts(len(ids))
        ndcg = gains.sum() / discounts(min(500, len(relevant))).sum()
        exposure = self.exposure(ids, discounts(len(ids)))
        return ndcg, 1.0 - jensenshannon(exposure.ravel(), self.targets[topic, 1]) ** 2

    def task2(self, topic: str, rankings: Sequence[list[int]]) -> float:
        """EE-L of one topic."""
        relevant = self.relevant(topic)
        pairs = [
            (page, weight)
            for ranking in rankings
            for page, weight in zip(ranking, discounts(len(ranking)).tolist(), strict=True)
            if page in relevant
        ]
        exposure = self.exposure([page for page, _ in pairs], np.array([weight for _, weight in pairs]))
        delta = exposure.ravel() / len(rankings) - self.targets[topic, 2] * discounts(20).sum()
        return float(delta @ delta)

    def relevant(self, topic: str) -> set[int]:
        """The relevant pages of a topic."""
        return set(self.qrels[topic])


def discounts(n: int) -> np.ndarray:
    return 1.0 / np.log2(np.maximum(np.arange(1.0, n + 1), 2.0))


def lines_of(path: Path) -> dict[str, dict[int, list[int]]]:
    """Topic -> ranking -> pages, line by line."""
    rankings: dict[str, dict[int, list[int]]] = {}
    with gzip.open(path, "rt") as file:
        for line in file:
            cells = line.strip().split("\t")
            if cells[0] != "id":
                numbers = [int(cell) for cell in cells]
                rankings.setdefault(cells[0], {}).setdefault(numbers[-2], []).append(numbers[-1])
    return rankings


def write_run(path: Path, rankings: Mapping[str, Sequence[Sequence[int]]], task: Task) -> None:
    lines = ["id\tpage_id" if task == 1 else "id\trep_number\tpage_id"]
    for topic, of_topic in rankings.items():
        for number, ranking in enumerate(of_topic, start=1):
            lines += [f"{topic}\t{page}" if task == 1 else f"{topic}\t{number}\t{page}" for page in ranking]
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


def best(call: Callable[[], T], passes: int) -> tuple[float, T]:
    """Milliseconds of the fastest pass, and what it gave."""
    fastest = np.inf
    for _ in range(passes):
        start = time.process_time()
        found = call()
        fastest = min(fastest, time.process_time() - start)
    return 1000.0 * fastest, found


def show(name: str, ours: float, dense: float, organizers: float | None) -> None:
    line = f"{name:46} {ours:7.3f} ms   dense {dense:8.2f} ms, {dense / ours:6.1f} times"
    print(line + (f"   organizers {organizers:5.1f} ms, {organizers / ours:6.1f} times" if organizers else ""))


def measure(pages: Pages, qrels: Mapping[str, Sequence[int]], task1: Path, task2: Path, label: str, few: int) -> None:
    """Time and compare on these dimensions; the dense way on `few` topics only."""
    names = [dimension.name for dimension in pages.dimensions]
    dense, topics = Dense(pages, qrels), list(qrels)[:few]
    for task, path in ((1, task1), (2, task2)):
        making, track = best(lambda task=task: TrackEvaluator(2022, task, names, pages, qrels), 3)

        def ours(track: TrackEvaluator = track, path: Path = path, task: Task = task) -> object:
            return track.evaluate(read_run(path, 2022, task))

        seconds, evaluation = best(ours, 10)
        targeting = 0.0
        for topic in topics:
            spent, dense.targets[topic, task] = best(lambda topic=topic, task=task: dense.target(topic, task), 1)
            targeting += spent / few
        reading, run = best(lambda path=path: lines_of(path), 3)
        rows = {row.topic: row for row in evaluation.rows}
        spent = 0.0
        for topic in topics:
            if task == 1:
                took, (ndcg, awrf) = best(lambda topic=topic, run=run: dense.task1(topic, *run[topic].values()), 2)
                assert np.allclose([rows[topic].ndcg, rows[topic].awrf], [ndcg, awrf], rtol=1e-9), topic
            else:
                took, loss = best(lambda topic=topic, run=run: dense.task2(topic, list(run[topic].values())), 2)
                assert np.isclose(rows[topic].ee_l, loss, rtol=1e-9), topic
            spent += took / few
        what = "nDCG and AWRF, a ranking" if task == 1 else "EE-L, a topic"
        quoted = ORGANIZERS.get(f"{'ranking' if task == 1 else 'EE-L'}, {len(names)}")
        show(f"Task {task}, {label}: {what}", seconds / TOPICS, spent + reading / TOPICS, quoted)
        show(
            f"Task {task}, {label}: a target",
            making / TOPICS,
            targeting,
            ORGANIZERS.get(f"target, {len(names)}"),
        )
        dense.targets.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--relevant", type=int, default=2000, help="relevant pages a topic")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    ids = rng.choice(70_000_000, options.pages, replace=False)
    start = time.process_time()
    pages = Pages.from_alignments(DIMENSIONS_2022, alignments(Random(1), ids.tolist()))
    print(f"{options.pages:,} pages made up in {time.process_time() - start:.1f} s")
    qrels = {str(100 + topic): rng.choice(ids, options.relevant, replace=False).tolist() for topic in range(TOPICS)}

    def ranking(relevant: Sequence[int], length: int) -> list[int]:
        mixed = np.concatenate((rng.choice(relevant, length // 2, replace=False), rng.choice(ids, length // 2)))
        return list(dict.fromkeys(rng.permutation(mixed).tolist()))

    with tempfile.TemporaryDirectory() as folder:
        task1, task2 = Path(folder) / "task1.gz", Path(folder) / "task2.gz"
        write_run(task1, {topic: [ranking(relevant, 500)] for topic, relevant in qrels.items()}, 1)
        pools = {topic: ranking(relevant, 200) for topic, relevant in qrels.items()}
        write_run(
            task2,
            {
                topic: [rng.choice(pool, 20, replace=False).tolist() for _ in range(100)]
                for topic, pool in pools.items()
            },
            2,
        )
        measure(narrowed(pages, FOUR), qrels, task1, task2, "4 dimensions", 20)
        measure(pages, qrels, task1, task2, "8 dimensions", 3)


if __name__ == "__main__":
    main()
