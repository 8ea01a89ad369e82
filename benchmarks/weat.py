"""WEAT's exact permutation test against the way of its original code, in one run.

    python benchmarks/weat.py [--seconds 1.0]

8 + 8 targets, 8 + 8 attributes, 768 dimensions, all 12,870 partitions; and 64 + 64 targets with 10,000 random ones. The
plain way does what the released code is described to do: cosines one by one, then for each partition the sums over its
two halves. Both are compared before either is timed. "authors" is what their code took on another machine, and how many
times as long as ours the lower figure is.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from timing import milliseconds

from fairagent.papers.debias_rag.benchmarks.measures import association_test

DIMENSIONS = 768


def plain(
    x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray, samples: int | None = None
) -> tuple[float, float]:
    """Effect size and p-value, a target and a partition after the other."""

    def cosine(one: np.ndarray, other: np.ndarray) -> float:
        return float(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))

    targets = [*x, *y]
    s = [np.mean([cosine(w, c) for c in a]) - np.mean([cosine(w, c) for c in b]) for w in targets]
    half = len(x)
    effect = (np.mean(s[:half]) - np.mean(s[half:])) / np.std(s, ddof=1)
    everyone = range(len(targets))
    observed = sum(s[i] for i in range(half)) - sum(s[i] for i in range(half, len(s)))
    reached = total = 0
    if samples is None:
        partitions = (set(first) for first in itertools.combinations(everyone, half))
    else:
        rng = np.random.default_rng(0)
        partitions = (set(rng.permutation(len(targets))[:half].tolist()) for _ in range(samples - 1))
        reached = total = 1
    for first in partitions:
        statistic = sum(s[i] for i in first) - sum(s[i] for i in everyone if i not in first)
        reached += statistic >= observed - 1e-12
        total += 1
    return float(effect), reached / total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0)
    seconds = parser.parse_args().seconds
    rng = np.random.default_rng(1)
    print(f"{'milliseconds':42} {'ours':>10} {'plain':>10} {'ratio':>8}     authors")
    for name, n, samples, authors in (
        ("8 + 8, exact, 12,870 partitions", 8, None, (20, 46)),
        ("64 + 64, 10,000 random partitions", 64, 10_000, (36, 39)),
    ):
        x, y = rng.normal(size=(n, DIMENSIONS)) + 0.02, rng.normal(size=(n, DIMENSIONS))
        a, b = rng.normal(size=(8, DIMENSIONS)) + 0.02, rng.normal(size=(8, DIMENSIONS))
        limit = samples or 100_000
        found, expected = association_test(x, y, a, b, limit), plain(x, y, a, b, samples)
        assert abs(found.effect - expected[0]) < 1e-9
        assert abs(found.p - expected[1]) < (0.02 if samples else 1e-12)
        fast = milliseconds(lambda: association_test(x, y, a, b, limit), seconds)  # noqa: B023
        slow = milliseconds(lambda: plain(x, y, a, b, samples), seconds)  # noqa: B023
        quoted = f"{authors[0]:g} to {authors[1]:g}  {authors[0] / fast:.1f} x"
        print(f"{name:42} {fast:10.3f} {slow:10.3f} {slow / fast:8.1f} x   {quoted}")


if __name__ == "__main__":
    main()
