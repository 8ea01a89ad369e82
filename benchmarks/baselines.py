"""The baselines against a straightforward way of computing the same, in one run.

    python benchmarks/baselines.py [--seconds 1.0]

Prints milliseconds (the median of repeated runs within the given seconds) of FA*IR's adjustment, DELTR's training, MMR,
Plackett-Luce draws and DLF's gradient, and how many times as long the plain way takes. The results of both are compared
before either is timed. "authors" is what the released packages took (fairsearchcore, fairsearchdeltr, Fair-RAG's
sampler), measured on another machine, and how many times as long as ours the lower figure is.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from scipy.stats import binom
from timing import Way, milliseconds

from fairagent.papers.rivals.deltr import JudgedQuery, TrainingBatch, deltr_gradient, fit_deltr
from fairagent.papers.rivals.dlf import exposure_loss
from fairagent.papers.rivals.fa_star_ir import adjusted, fail_probability
from fairagent.retrieve.stochastic import sample_rankings
from fairagent.search.rerank.similarity import mmr


def line(name: str, ours: Way, naive: Way, seconds: float, authors: tuple[float, float] | None = None) -> None:
    fast, slow = milliseconds(ours, seconds), milliseconds(naive, seconds)
    quoted = f"{authors[0]:,g} to {authors[1]:,g} {authors[0] / fast:,.1f} x" if authors else ""
    print(f"{name:42} {fast:10.3f} {slow:10.3f} {slow / fast:8,.0f} x   {quoted}")


def naive_table(k: int, p: float, alpha: float) -> list[int]:
    """One quantile after the other."""
    return [max(0, int(binom.ppf(alpha, i, p))) for i in range(1, k + 1)]


def naive_fail(table: list[int], p: float) -> float:
    """The same recursion with lists."""
    mass = [1.0]
    for least in table:
        grown = [0.0] * (len(mass) + 1)
        for count, share in enumerate(mass):
            grown[count] += share * (1 - p)
            grown[count + 1] += share * p
        mass = [0.0 if count < least else share for count, share in enumerate(grown)]
    return 1 - sum(mass)


def naive_adjusted(k: int, p: float, alpha: float) -> list[int]:
    """Bisection on the level until the interval is narrow, tables made anew each time."""
    low, high = 0.0, alpha
    best = naive_table(k, p, alpha)
    for _ in range(25):
        middle = (low + high) / 2
        table = naive_table(k, p, middle)
        if abs(naive_fail(table, p) - alpha) < abs(naive_fail(best, p) - alpha):
            best = table
        if naive_fail(table, p) <= alpha:
            low = middle
        else:
            high = middle
    return best


def fa_star_ir(seconds: float) -> None:
    for k, authors in ((20, (67, 86)), (40, (157, 201)), (100, (900, 1100))):
        p, alpha = 0.3, 0.1
        ours, naive = adjusted(k, p, alpha), naive_adjusted(k, p, alpha)
        assert abs(ours.fail - alpha) <= abs(naive_fail(naive, p) - alpha) + 1e-12
        assert math.isclose(fail_probability(np.array(naive), p), naive_fail(naive, p), abs_tol=1e-12)

        def once(k: int = k) -> object:
            adjusted.cache_clear()
            return adjusted(k, 0.3, 0.1)

        line(f"FA*IR adjustment, k = {k}", once, lambda k=k: naive_adjusted(k, 0.3, 0.1), seconds, authors)


def training_queries(queries: int, documents: int) -> list[JudgedQuery]:
    rng = np.random.default_rng(1)
    return [
        JudgedQuery(rng.normal(size=(documents, 3)), rng.uniform(size=documents), np.arange(documents) < documents // 3)
        for _ in range(queries)
    ]


def naive_deltr_gradient(queries: list[JudgedQuery], weights: list[float], gamma: float) -> list[float]:
    """Document by document, as the formulas are written."""
    documents = sum(len(query.labels) for query in queries)
    gradient = [0.0] * len(weights)
    for query in queries:
        rows = [[float(flag), *row] for flag, row in zip(query.protected, query.features.tolist(), strict=True)]
        exps = [math.exp(sum(w * x for w, x in zip(weights, row, strict=True))) for row in rows]
        ideals = [math.exp(label) for label in query.labels]
        p = [value / sum(exps) for value in exps]
        inside = [i for i, flag in enumerate(query.protected) if flag]
        outside = [i for i, flag in enumerate(query.protected) if not flag]
        gap = sum(p[i] for i in outside) / len(outside) - sum(p[i] for i in inside) / len(inside)
        for f in range(len(weights)):
            mean = sum(p[i] * rows[i][f] for i in range(len(rows)))
            for i in range(len(rows)):
                gradient[f] += (p[i] - ideals[i] / sum(ideals)) * rows[i][f] / math.log(documents)
            if gap > 0:
                slope = sum(p[i] * (rows[i][f] - mean) for i in outside) / len(outside)
                slope -= sum(p[i] * (rows[i][f] - mean) for i in inside) / len(inside)
                gradient[f] += gamma * 2 * gap * slope / math.log(2) ** 2
    return gradient


def deltr(seconds: float) -> None:
    for queries, documents, authors in ((1, 100, (1500, 1600)), (20, 20, (9000, 13000))):
        judged = training_queries(queries, documents)
        weights = np.array([-0.4, 0.3, 0.1, -0.2])
        batch = TrainingBatch.of(judged)
        assert np.allclose(deltr_gradient(weights, batch, 1.0), naive_deltr_gradient(judged, weights.tolist(), 1.0))

        def naive(judged: list[JudgedQuery] = judged) -> object:
            at = [0.005] * 4
            for _ in range(3):
                gradient = naive_deltr_gradient(judged, at, 1.0)
                at = [w - 0.001 * (g + 0.002 * w) for w, g in zip(at, gradient, strict=True)]
            return at

        name = f"DELTR, 3 iterations, {queries} x {documents} documents"
        line(name, lambda judged=judged: fit_deltr(judged, 1.0, iterations=3), naive, seconds, authors)


def naive_mmr(relevance: list[float], similarity: list[list[float]], weight: float, n: int) -> list[int]:
    """Every maximum taken anew at every rank."""
    picked: list[int] = []
    while len(picked) < n:
        best, best_value = -1, -math.inf
        for d, value in enumerate(relevance):
            if d in picked:
                continue
            value = weight * value - (1 - weight) * max((similarity[s][d] for s in picked), default=0.0)
            if value > best_value:
                best, best_value = d, value
        picked.append(best)
    return picked


def maximal_marginal_relevance(seconds: float) -> None:
    rng = np.random.default_rng(2)
    relevance, vectors = rng.uniform(size=500), rng.normal(size=(500, 384))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    def ours() -> list[int]:
        return mmr(relevance, lambda i: vectors @ vectors[i], 0.5, 20)

    def naive() -> list[int]:
        return naive_mmr(relevance.tolist(), (vectors @ vectors.T).tolist(), 0.5, 20)

    assert ours() == naive()
    line("MMR, 20 of 500, 384 dimensions", ours, naive, seconds)


def naive_draw(scores: list[float], k: int, rng: np.random.Generator) -> list[int]:
    """One rank after the other from what is left."""
    left, drawn = list(range(len(scores))), []
    for _ in range(k):
        top = max(scores[d] for d in left)
        chances = np.array([math.exp(scores[d] - top) for d in left])
        drawn.append(left.pop(int(rng.choice(len(left), p=chances / chances.sum()))))
    return drawn


def plackett_luce(seconds: float) -> None:
    rng = np.random.default_rng(3)
    for n, k, draws, authors in ((100, 5, 100, (0.19, 0.23)), (1000, 5, 100, (2.3, 2.9))):
        scores = rng.uniform(1, 2, n) ** 4
        log_scores, listed = np.log(scores), scores.tolist()
        first = int(scores.argmax())
        chance = float(1 / np.exp(scores - scores[first]).sum())
        share = (sample_rankings(log_scores, k, rng, 20_000)[:, 0] == first).mean()
        assert abs(share - chance) < 5 * math.sqrt(chance / 20_000)

        def ours(log_scores: np.ndarray = log_scores, k: int = k, draws: int = draws) -> object:
            return sample_rankings(log_scores, k, rng, draws)

        def naive(listed: list[float] = listed, k: int = k, draws: int = draws) -> object:
            return [naive_draw(listed, k, rng) for _ in range(draws)]

        line(f"Plackett-Luce, {draws} draws of {k} of {n}", ours, naive, seconds, authors)


def dlf(seconds: float) -> None:
    rng = np.random.default_rng(4)
    scores, rows, target = rng.normal(size=500), rng.dirichlet(np.ones(21), size=500)[:, 1:], np.full(20, 0.05)

    def naive() -> list[float]:
        steps = [scores + 1e-5 * sign * unit for unit in np.eye(500) for sign in (1, -1)]
        losses = [exposure_loss(step, rows, target)[0] for step in steps]
        return [(up - down) / 2e-5 for up, down in zip(losses[::2], losses[1::2], strict=True)]

    assert np.allclose(exposure_loss(scores, rows, target)[1], naive(), atol=1e-9)
    # The plain way is by finite differences.
    line("DLF gradient, 500 documents, 20 groups", lambda: exposure_loss(scores, rows, target), naive, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each way is repeated")
    seconds = parser.parse_args().seconds
    print(f"{'':42} {'ours, ms':>10} {'naive, ms':>10} {'ratio':>10}   authors, ms, ratio")
    for part in (fa_star_ir, deltr, maximal_marginal_relevance, plackett_luce, dlf):
        part(seconds)


if __name__ == "__main__":
    main()
