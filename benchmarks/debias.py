"""DebiasRAG's re-ranking of a pool beside a plain way of computing the same, in one run.

    python benchmarks/debias.py [--seconds 1.0] [--pool 100] [--dimensions 384]

Prints milliseconds (the median of repeated runs within the given seconds) for one query, embeddings given: avoid
filter, signals, one step of theta, the best K; then how many times as long plain Python without arrays takes. Both are
compared before either is timed.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from timing import milliseconds

from fairagent.papers.debias_rag.avoid import unit
from fairagent.papers.debias_rag.stage import rerank
from fairagent.papers.debias_rag.theta import Theta

K, TAU = 3, 0.9


def naive(vectors: list[list[float]], query: list[float], avoided: list[list[float]]) -> list[int]:
    """The same with lists and loops."""

    def cosine(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    def scaled(values: list[float]) -> list[float]:
        low, high = min(values), max(values)
        return [0.0 if high - low <= 1e-12 else (value - low) / (high - low) for value in values]

    def softmax(values: list[float]) -> list[float]:
        weights = [math.exp(value - max(values)) for value in values]
        return [weight / sum(weights) for weight in weights]

    def loss(first: float) -> float:
        scores = [first * a + (1 - first) * b for a, b in phi]
        total = math.log(sum(math.exp(score - max(scores)) for score in scores)) + max(scores)
        return total - sum(y * score for y, score in zip(wanted, scores, strict=True))

    worst = [max(cosine(vector, other) for other in avoided) for vector in vectors]
    kept = [place for place, value in enumerate(worst) if value <= TAU]
    near = scaled([cosine(vectors[place], query) for place in kept])
    phi = list(zip(near, scaled([1 - worst[place] for place in kept]), strict=True))
    wanted = softmax(scaled([a + b for a, b in phi]))
    got = softmax([0.5 * a + 0.5 * b for a, b in phi])
    slope = [sum((p - y) * one[i] for p, y, one in zip(got, wanted, phi, strict=True)) for i in (0, 1)]
    rate, first = 1.0, 0.5
    for _ in range(51):
        first = min(max((0.5 - rate * slope[0] - 0.5 + rate * slope[1] + 1) / 2, 0), 1)
        if loss(first) <= loss(0.5):
            break
        rate /= 2
    order = sorted(range(len(kept)), key=lambda place: -(first * phi[place][0] + (1 - first) * phi[place][1]))
    return [kept[place] for place in order[:K]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--pool", type=int, default=100)
    parser.add_argument("--dimensions", type=int, default=384)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    vectors = unit(rng.normal(size=(options.pool, options.dimensions)).astype(np.float32))
    avoided = unit(rng.normal(size=(K, options.dimensions)).astype(np.float32))
    query = unit(rng.normal(size=(1, options.dimensions)).astype(np.float32))[0]
    theta, none = Theta(streaming=False), np.zeros(options.pool, dtype=bool)
    lists = vectors.tolist(), query.tolist(), avoided.tolist()
    found = rerank(vectors, query, avoided, theta, K, TAU, none).places.tolist()
    if found != naive(*lists):
        raise SystemExit(f"the two ways differ: {found} and {naive(*lists)}")
    fast = milliseconds(lambda: rerank(vectors, query, avoided, theta, K, TAU, none), options.seconds)
    slow = milliseconds(lambda: naive(*lists), options.seconds)
    print(f"re-ranking {options.pool} candidates of {options.dimensions} numbers, K = {K}")
    print(f"  fairagent {fast:.3f} ms; plain Python {slow:.2f} ms, {slow / fast:.0f} x")


if __name__ == "__main__":
    main()
