"""Laws of the frontier, of random pools: no dial can make a list less fair by asking for more, or worse than none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scripted import by_letter, collection

from fairagent import fair_rerank
from fairagent.collection.exposure import ExposureMeter, total_gap
from fairagent.measures import LOG2_MAX2
from fairagent.search.rerank.base import Pool, UnlabeledColumns, pool_of
from fairagent.search.rerank.exposure import TOLERANCE, ExposureReranker
from fairagent.settings import Settings
from fairagent.types import Dial, FloatArray, Query, Ranking

MODES = ("labeled", "share", "ignore")
"""Every document has a label; those without are a group; those without are ignored."""
PRICES = (0.0, 0.1, 0.25, 0.5, 1.0, 1.7, 3.0, 5.0, 10.0, 30.0, 1e9)


def random_pool(rng: np.random.Generator, mode: str) -> Pool:
    """One or two dimensions, documents of one group, of several and of none, and scores with ties."""
    size, n = int(rng.integers(10, 61)), int(rng.integers(3, 11))
    ids = tuple(f"d{place}" for place in range(size))
    values = np.round(rng.normal(scale=rng.choice([0.01, 1.0, 50.0]), size=size), int(rng.integers(0, 4)))
    found = Ranking(ids, np.sort(values)[::-1])
    memberships, targets, unlabeled = [], [], []
    weights = LOG2_MAX2(n) / LOG2_MAX2(n).sum()
    for _ in range(rng.integers(1, 3)):
        groups = int(rng.integers(2, 5))
        rows = np.zeros((size, 1 + groups))
        first = 1 + rng.choice(groups, size, p=rng.dirichlet(np.ones(groups)))
        second = np.where(rng.random(size) < rng.choice([0.0, 0.2]), 1 + rng.integers(0, groups, size), first)
        np.add.at(rows, (np.arange(size), first), 0.5)
        np.add.at(rows, (np.arange(size), second), 0.5)
        if mode != "labeled":
            rows[rng.random(size) < rng.uniform(0.05, 0.6)] = np.eye(1 + groups)[0]
        memberships.append(rows)
        targets.append(rng.dirichlet(np.ones(groups)))
        own = weights @ rows[:n]
        unlabeled.append(UnlabeledColumns(rows[:, :1], own[:1], own, counts=mode != "ignore"))
    importance = () if rng.random() < 0.5 else tuple(rng.uniform(0, 1, len(targets)).tolist())
    return Pool(Query("q"), found, tuple(memberships), tuple(targets), n, importance, tuple(unlabeled), found)


def divergence(shares: FloatArray, target: FloatArray) -> float:
    """Jensen and Shannon's, in nats, with the smoothing of the product."""
    p, q = ((one + 1e-6) / (1 + 1e-6 * len(one)) for one in (shares, target))
    return float((p * np.log(2 * p / (p + q)) + q * np.log(2 * q / (p + q))).sum() / 2)


def by_hand(pool: Pool, ids: Sequence[str]) -> tuple[float, float]:
    """R and G of a list, as their definition says."""
    place = {id: number for number, id in enumerate(pool.ranking.ids)}
    chosen = [place[id] for id in ids]
    weights = LOG2_MAX2(len(ids)) / LOG2_MAX2(len(ids)).sum()
    scores, gap = pool.ranking.scores, 0.0
    span = float(np.ptp(scores))
    relevance = (scores - scores.min()) / span if span > 0 else np.ones(len(scores))
    counts = pool.importance or (1.0,) * len(pool.targets)
    for rows, target, due, count in zip(pool.memberships, pool.targets, pool.unlabeled, counts, strict=True):
        shares = weights @ rows[chosen]
        known = shares[1:].sum()
        of_known = divergence(shares[1:] / known, target) if known > 0 else math.log(2)
        split = divergence(np.array([shares[0], known]), np.array([due.shares[0], 1 - due.shares[0]]))
        gap += count * (of_known + due.counts * split)
    return float(weights @ relevance[chosen]), gap


def check(pool: Pool, rng: np.random.Generator) -> None:
    reranker, ids = ExposureReranker(), pool.ranking.ids
    lists = reranker.frontier(pool)
    assert lists.engine is not None
    assert lists.ranking(lists.engine).ids == ids[: pool.n]
    own = by_hand(pool, ids[: pool.n])
    for number in range(len(lists.gap)):
        served = lists.ranking(number).ids
        assert len(set(served)) == len(served) == pool.n
        assert by_hand(pool, served) == pytest.approx((lists.relevance[number], lists.gap[number]), abs=1e-6)
        chosen = [int(id[1:]) for id in served]
        weights = LOG2_MAX2(pool.n) / LOG2_MAX2(pool.n).sum()
        for rows, due in zip(pool.memberships, pool.unlabeled, strict=True):
            assert abs(weights @ rows[chosen, 0] - due.shares[0]) <= TOLERANCE + 1e-6
        # Of documents that differ in nothing, the better placed is shown, and first.
        kinds: dict[bytes, list[int]] = {}
        for place in range(len(ids)):
            row = np.hstack([pool.ranking.scores[place], *(of[place] for of in pool.memberships)])
            kinds.setdefault(row.tobytes(), []).append(place)
        if number != lists.engine:
            for places in kinds.values():
                shown = [place for place in chosen if place in places]
                assert shown == places[: len(shown)]
    at = [lists.at_price(price) for price in PRICES]
    gaps, relevance = lists.gap[at], lists.relevance[at]
    assert all(after <= before + 1e-9 for before, after in pairwise(gaps))
    assert all(after <= before + 1e-9 for before, after in pairwise(relevance))
    for price, number in zip(PRICES, at, strict=True):
        assert lists.relevance[number] - price * lists.gap[number] >= own[0] - price * own[1] - 1e-6 * (1 + price)
    assert relevance[0] == pytest.approx(own[0])
    for share in (0.0, 0.5, 0.9, 1.0):
        enough = lists.relevance >= share * lists.relevance.max() - 1e-9
        assert lists.choose(Dial(keep=share)) in np.flatnonzero(enough & (lists.gap == lists.gap[enough].min()))
    for gap in (0.0, 0.01, 0.1, 1.0):
        near = lists.choose(Dial(gap=gap))
        within = lists.gap <= gap + 1e-9
        assert within[near] if within.any() else lists.gap[near] == lists.gap.min()
        assert lists.relevance[near] >= lists.relevance[within].max(initial=0.0)
    # The order of the candidates is of no account, where their scores say which is better.
    if len(np.unique(pool.ranking.scores)) == len(ids):
        order = rng.permutation(len(ids))
        mixed = pool.of(Ranking(tuple(ids[place] for place in order), pool.ranking.scores[order]))
        again, numbers = reranker.frontier(mixed), range(len(lists.gap))
        assert len(again.gap) == len(numbers)
        assert all(again.ranking(number).ids == lists.ranking(number).ids for number in numbers)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_laws_of_random_pools(mode: str, count: int) -> None:
    rng = np.random.default_rng([MODES.index(mode), count])
    for _ in range(count):
        check(random_pool(rng, mode), rng)


def letters(text: str, n: int, **more: object) -> tuple[Pool, ExposureMeter]:
    """Documents of these groups (u: no label), the first the most relevant."""
    ids = tuple(f"{letter}{place}" for place, letter in enumerate(text))
    found = Ranking(ids, np.linspace(-1, -3, len(ids)))
    table = collection(by_letter(["f_", "m_", *ids], labels=("female", "male")))
    meter = ExposureMeter.make(table, "", Settings.model_validate({"n": n, "target": "uniform", **more}), found)
    return pool_of(Query("q"), found, meter, n), meter


@pytest.mark.parametrize("unknown", ["share", "ignore", 0.1])
def test_the_gap_is_that_which_is_shown(unknown: object) -> None:
    pool, meter = letters("mmumfmmumffmuumf" * 2, 8, unknown=unknown)
    lists = ExposureReranker().frontier(pool)
    for number, gap in enumerate(lists.gap.tolist()):
        assert total_gap(meter.measure(lists.ranking(number))) == pytest.approx(gap, abs=1e-9)
    assert len(lists.gap) > 3


def test_edges() -> None:
    pool, _ = letters("mmmmmmff", 4)
    serve = ExposureReranker
    ids = pool.ranking.ids
    assert serve(Dial(fairness=0)).rerank(pool).ids == ids[:4]
    assert set(serve(Dial(fairness=1e9)).rerank(pool).ids) >= {"f6", "f7"}
    assert set(serve().rerank(replace(pool, n=99)).ids) == set(ids)
    assert serve().rerank(pool.of(pool.ranking.top(1))).ids == ids[:1]
    empty, _ = letters("", 4)
    assert serve().rerank(empty).ids == ()
    alike = pool.of(Ranking(ids, np.zeros(8)))
    assert set(serve().rerank(alike).ids) == {"m0", "m1", "f6", "f7"}
    # Nobody can serve this target: the list stays what it is.
    nobody, _ = letters("mmmmmmmm", 4)
    for price in (0.0, 1.0, 1e9):
        assert serve(Dial(fairness=price)).rerank(nobody).ids == nobody.ranking.ids[:4]


def test_five_thousand_groups_are_no_matter() -> None:
    hits = [{"id": f"d{place}", "score": 1 / (1 + place), "group": f"g{place}"} for place in range(5000)]
    assert len(fair_rerank(hits, "group", "uniform", 20).hits) == 20
