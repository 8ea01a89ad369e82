"""How far the lists of the frontier are from the best there are, and how long they take.

With every document labeled J is concave in the exposures (Jensen and Shannon's divergence is convex), so the largest J
is found by a mixed integer program (scipy's HiGHS) with tangents of the gap, more of them until they meet it. With
documents without a label, which have to keep their share within the same margin, all lists are tried.

    python benchmarks/frontier.py [--pools 200] [--timed 20]
"""

from __future__ import annotations

import argparse
from itertools import permutations
from time import process_time
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from fairagent.measures import LOG2_MAX2
from fairagent.search.rerank.base import Pool, UnlabeledColumns
from fairagent.search.rerank.exposure import TOLERANCE, ExposureReranker
from fairagent.types import FloatArray, Query, Ranking

PRICES = (0.25, 1.0, 4.0)
CLOSE = 1e-5
"""Where the bound is as near as this to the best list, that is the best."""


def made(rng: np.random.Generator, size: int, n: int, groups: int, unlabeled: float = 0.0) -> Pool:
    """Documents of one dimension with scores that fall as an engine's do."""
    rows = np.zeros((size, 1 + groups))
    rows[np.arange(size), 1 + rng.choice(groups, size, p=rng.dirichlet(np.ones(groups)))] = 1
    rows[rng.random(size) < unlabeled] = np.eye(1 + groups)[0]
    found = Ranking(tuple(map(str, range(size))), np.sort(rng.exponential(size=size))[::-1])
    own = LOG2_MAX2(n) / LOG2_MAX2(n).sum() @ rows[:n]
    none = UnlabeledColumns(rows[:, :1], own[:1], own)
    return Pool(Query("q"), found, (rows,), (rng.dirichlet(np.ones(groups)),), n, (), (none,), found)


def divergence(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of shares (..., g), smoothed as in the product, from a target, and its slope."""
    scale = 1 + 1e-6 * len(q)
    p, q = (p + 1e-6) / scale, (q + 1e-6) / scale
    value = (p * np.log(2 * p / (p + q)) + q * np.log(2 * q / (p + q))).sum(axis=-1) / 2
    return value, np.log(2 * p / (p + q)) / 2 / scale


def largest(pool: Pool, price: float) -> float:
    """The largest J of all lists of a pool in which every document has a label.

    Variables: whether document d is at rank k, and the gap, which is above all of its tangents.
    """
    size, n, target = len(pool.ranking), pool.n, pool.targets[0]
    weights = LOG2_MAX2(n) / LOG2_MAX2(n).sum()
    relevance = ExposureReranker().relevance(pool)
    exposed = (pool.memberships[0][:, None, 1:] * weights[:, None]).reshape(size * n, -1)
    gain = np.append((relevance[:, None] * weights).ravel(), -price)
    ranks, documents = np.tile(np.eye(n), size), np.repeat(np.eye(size), n, axis=1)
    zero = np.zeros((1, 1))
    limits = [
        LinearConstraint(np.hstack([ranks, np.repeat(zero, n, axis=0)]), 1, 1),
        LinearConstraint(np.hstack([documents, np.repeat(zero, size, axis=0)]), 0, 1),
    ]
    # No group falls that has less than its own: this bound is the product's.
    floor = np.minimum(pool.unlabeled[0].before[1:], target)
    limits.append(LinearConstraint(np.vstack([exposed, np.zeros(len(floor))]).T, floor - 1e-9, np.inf))
    whole, bounds = np.append(np.ones(size * n), 0), Bounds(0, np.append(np.ones(size * n), np.inf))
    best = -np.inf
    for _ in range(200):
        found: Any = milp(-gain, integrality=whole, bounds=bounds, constraints=limits)
        served = np.round(found.x[:-1])
        shares = served @ exposed
        gap, slope = divergence(shares, target)
        best = max(best, float(served @ gain[:-1] - price * gap))
        if -found.fun - best <= CLOSE:
            break
        limits.append(LinearConstraint(np.append(-exposed @ slope, 1), gap - slope @ shares, np.inf))
    return best


def largest_of_all(pool: Pool) -> FloatArray:
    """As `largest` at each price, of all lists that leave documents without a label near their share."""
    lists = np.array(list(permutations(range(len(pool.ranking)), pool.n)))
    weights = LOG2_MAX2(pool.n) / LOG2_MAX2(pool.n).sum()
    shares = np.einsum("k,lkg->lg", weights, pool.memberships[0][lists])
    due = pool.unlabeled[0]
    none, known = shares[:, :1], 1 - shares[:, 0]
    floor = np.minimum(due.before[1:], (1 - due.shares.sum()) * pool.targets[0])
    allowed = (abs(none[:, 0] - due.shares[0]) <= TOLERANCE + 1e-9) & (shares[:, 1:] >= floor - 1e-9).all(axis=1)
    lists, shares, none, known = (one[allowed] for one in (lists, shares, none, known))
    of_known = shares[:, 1:] / np.where(known > CLOSE, known, 1)[:, None]
    gap = np.where(known > CLOSE, divergence(of_known, pool.targets[0])[0], np.log(2))
    gap += divergence(np.column_stack([none, known]), np.append(due.shares, 1 - due.shares.sum()))[0]
    relevance = ExposureReranker().relevance(pool)[lists] @ weights
    return np.array([(relevance - price * gap).max() for price in PRICES])


def distances(pools: list[Pool], best: list[FloatArray]) -> None:
    """Print how far J is from the best."""
    found = []
    for pool in pools:
        lists = ExposureReranker().frontier(pool)
        found.append([float((lists.relevance - price * lists.gap).max()) for price in PRICES])
    far = np.array(best) - np.array(found)
    for price, of_price in zip(PRICES, far.T, strict=True):
        mean, worst, exact = of_price.mean(), of_price.max(), (of_price <= 2 * CLOSE).mean()
        print(f"  price {price:g}: J is {mean:.4f} below the best, {worst:.4f} at worst; in {exact:.0%} it is the best")


def main() -> None:
    """Print both distances, and the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pools", type=int, default=200)
    parser.add_argument("--timed", type=int, default=20)
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    pools = [made(rng, 12, 6, int(rng.integers(2, 5))) for _ in range(args.pools)]
    print(f"{len(pools)} pools of 12, 6 shown, every document labeled:")
    distances(pools, [np.array([largest(pool, price) for price in PRICES]) for pool in pools])
    pools = [made(rng, 8, 4, int(rng.integers(2, 4)), 0.3) for _ in range(args.pools)]
    print(f"{len(pools)} pools of 8, 4 shown, three in ten without a label:")
    distances(pools, [largest_of_all(pool) for pool in pools])
    for n, groups in ((20, 3), (20, 10), (20, 40), (100, 10), (500, 10)):
        timed = [made(rng, 500, n, groups) for _ in range(args.timed)]
        start = process_time()
        for pool in timed:
            ExposureReranker().frontier(pool)
        print(f"{n} of 500, {groups} types: {(process_time() - start) / len(timed) * 1000:.1f} ms")


if __name__ == "__main__":
    main()
