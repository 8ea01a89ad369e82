"""Sampling rankings and measuring their exposure, against the way of Fair-RAG's released code, in one run.

    python benchmarks/sampling.py [--seconds 0.5]

For one query of n documents, N rankings of k are drawn (Plackett-Luce) and their EE-D, EE-R and EE-L are measured.
"ours" is fairagent: scores, draws and exposure, in memory. "theirs" is what the code of Fair-RAG's authors does,
written anew after a description of it: Gumbel noise from numpy's legacy generator and a partition of every row, the
rankings written to a run file and the labels (picked from the file of all queries, here 50) to a qrels file, both read
again, and the measures in plain Python. The lines "sampler alone" time the draws only.

All that is timed runs here, ours and theirs in turn, in milliseconds (medians). "quoted" is what their own code took on
another machine, and how many times as long as ours here. Before anything is timed, both measure the same rankings and
have to agree.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from fairagent.measures.expected_exposure import expected_exposure, item_exposure
from fairagent.retrieve.stochastic import sample_rankings, sampler_log_scores

SIZES = (
    # N, n, k; quoted milliseconds of their whole path and of their sampler (numpy 2.4, the faster one)
    (100, 100, 5, 3.5, 0.19),
    (1000, 100, 10, 26.0, 3.2),
    (100, 1000, 5, 14.0, 2.9),
    (1000, 1000, 10, 53.0, 21.0),
    (100, 10000, 5, 99.0, 20.0),
)
ALPHAS = (1, 2, 4, 8)
QUERIES, USEFUL = 50, 8
TURN = 0.02

Way = Callable[[], object]


def theirs_sample(scores: np.ndarray, alpha: float, k: int, draws: int) -> np.ndarray:
    """Noise on every score, the k largest of each row, in order."""
    low, high = scores.min(), scores.max()
    noisy = ((scores - low) / (high - low) + 1) ** alpha + np.random.gumbel(size=(draws, len(scores)))
    k = min(k, len(scores))
    best = np.argpartition(-noisy, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(noisy, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)


def write_run(rankings: np.ndarray, query: str, ids: list[str], file: Path) -> None:
    with file.open("w") as out:
        for number, ranking in enumerate(rankings.tolist()):
            for rank, place in enumerate(ranking, start=1):
                out.write(f"{query} {number} {ids[place]} {rank} {1 / rank} sampled\n")


def write_qrels(labels: Path, query: str, file: Path) -> None:
    """The labels of one query, from the file of all of them."""
    with file.open("w") as out:
        for id, label in json.loads(labels.read_text())[query].items():
            out.write(f"{query} 0 {id} {label}\n")


def theirs_measure(run: Path, qrels: Path, k: int) -> tuple[float, float, float]:
    """EE-D, EE-R and EE-L, not normalized, from the files; as there, the target holds useful documents alone."""
    grades: dict[str, int] = {}
    for line in qrels.read_text().splitlines():
        _, _, id, grade = line.split()
        grades[id] = int(grade)
    rankings: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for line in run.read_text().splitlines():
        _, number, id, rank, _, _ = line.split()
        rankings[number].append((int(rank), id))
    exposure: dict[str, float] = defaultdict(float)
    for ranking in rankings.values():
        for place, (_, id) in enumerate(sorted(ranking)):
            if place < k:
                exposure[id] += 1 / len(rankings)
    useful = [id for id, grade in grades.items() if grade > 0]
    target = dict.fromkeys(useful, 1.0 if len(useful) <= k else k / len(useful))
    disparity = sum(value * value for value in exposure.values())
    relevance = sum(exposure[id] * value for id, value in target.items() if id in exposure)
    everything = exposure.keys() | target.keys()
    difference = sum((exposure.get(id, 0.0) - target.get(id, 0.0)) ** 2 for id in everything)
    return round(disparity, 6), round(relevance, 6), round(difference, 6)


def milliseconds(ways: Sequence[Way], seconds: float) -> list[float]:
    """The median time of a call of each way; in turns of TURN seconds, so that what else runs slows all."""
    times: list[list[float]] = [[] for _ in ways]
    end = time.perf_counter() + seconds
    while len(times[-1]) < 5 or time.perf_counter() < end:
        for way, taken in zip(ways, times, strict=True):
            way()  # warms up: the other way has had the caches
            turn = time.perf_counter() + TURN
            while (start := time.perf_counter()) < turn:
                way()
                taken.append(time.perf_counter() - start)
    return [1000 * float(np.median(taken)) for taken in times]


def line(name: str, ours: Way, theirs: Way, seconds: float, quoted: float) -> None:
    fast, slow = milliseconds((ours, theirs), seconds)
    print(f"{name:34} {fast:9.3f} {slow:9.3f} {slow / fast:7.1f} x {quoted:9g} {quoted / fast:7.1f} x")


def compare(draws: int, n: int, k: int, folder: Path, seconds: float, quoted: float, sampler: float) -> None:
    rng = np.random.default_rng(n)
    scores = np.sort(rng.gamma(2.0, 2.0, n))[::-1]
    ids = [f"document{place}" for place in range(n)]
    useful = rng.permutation(n) < USEFUL
    labels, run, qrels = folder / "labels.json", folder / "run.txt", folder / "qrels.txt"
    every = {f"q{q}": {id: int(useful[place]) for place, id in enumerate(ids)} for q in range(QUERIES)}
    labels.write_text(json.dumps(every))
    chosen = np.flatnonzero(useful)

    for alpha in ALPHAS:

        def ours_drawn(alpha: int = alpha) -> np.ndarray:
            return sample_rankings(sampler_log_scores(scores, alpha), k, rng, draws)

        def theirs_drawn(alpha: int = alpha) -> np.ndarray:
            return theirs_sample(scores, alpha, k, draws)

        def ours(drawn: Callable[[], np.ndarray] = ours_drawn) -> object:
            return expected_exposure(item_exposure(drawn(), n), useful, k)

        def theirs(drawn: Callable[[], np.ndarray] = theirs_drawn) -> object:
            write_run(drawn(), "q7", ids, run)
            write_qrels(labels, "q7", qrels)
            return theirs_measure(run, qrels, k)

        rankings = ours_drawn()
        write_run(rankings, "q7", ids, run)
        write_qrels(labels, "q7", qrels)
        exposure, target = item_exposure(rankings, n), np.zeros(n)
        target[chosen] = min(1.0, k / len(chosen))
        expected = (exposure @ exposure, exposure @ target, ((exposure - target) ** 2).sum())
        assert np.allclose(theirs_measure(run, qrels, k), expected, atol=1e-6)
        found = expected_exposure(exposure, useful, k)
        assert math.isclose(found.disparity.raw, exposure @ exposure)

        name = f"N={draws}, n={n}, k={k}, alpha={alpha}"
        line(name, ours, theirs, seconds, quoted)
        line("  sampler alone", ours_drawn, theirs_drawn, seconds, sampler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each way is repeated")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="so many of the sizes, the smallest first")
    asked = parser.parse_args()
    print("ms: ours and theirs (written anew) measured here, theirs quoted from another machine; x is theirs / ours")
    print(f"{'':34} {'ours':>9} {'theirs':>9} {'ratio':>9} {'quoted':>9} {'ratio':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for draws, n, k, quoted, sampler in SIZES[: asked.sizes]:
            compare(draws, n, k, Path(folder), asked.seconds, quoted, sampler)


if __name__ == "__main__":
    main()
