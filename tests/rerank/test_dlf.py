"""DLF: gradients against the complex step, what training reaches, and the fusion with relevance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.papers.rivals.dlf import DLFReranker, exposure_loss, fit_dlf
from fairagent.search.rerank.base import Pool
from fairagent.types import FloatArray, Query, Ranking

RNG = np.random.default_rng(11)
VECTORS = {f"d{i}": RNG.normal(size=4) for i in range(12)}


def features(candidates: Pool) -> FloatArray:
    return np.array([VECTORS[id] for id in candidates.ranking.ids])


def pool(start: int = 0, targets: Sequence[Sequence[float]] = ((0.5, 0.5), (0.2, 0.3, 0.5)), n: int = 5) -> Pool:
    """Eight documents in two dimensions; some have no label, some several."""
    ids = tuple(f"d{i}" for i in range(start, start + 8))
    rng = np.random.default_rng(start)
    rows = []
    for target in targets:
        membership = rng.dirichlet(np.full(len(target) + 1, 0.5), size=8)
        membership[0] = [1.0] + [0.0] * len(target)
        rows.append(membership)
    ranking = Ranking(ids, np.arange(8, 0, -1, dtype=np.float64))
    return Pool(Query("q"), ranking, tuple(rows), tuple(np.array(target) for target in targets), n)


def loss_by_definition(scores: Any, known: FloatArray, target: FloatArray, direction: str, smoothing: float) -> Any:
    """The divergence of the known groups' exposure, written down; takes complex scores."""
    mass = np.exp(scores) / np.exp(scores).sum() @ known
    e = (mass / mass.sum() + smoothing) / (1 + smoothing * len(target))
    t = (target + smoothing) / (1 + smoothing * len(target))
    return (e * np.log(e / t)).sum() if direction == "kl" else (t * np.log(t / e)).sum()


@pytest.mark.parametrize("direction", ["kl", "kl-reverse"])
@pytest.mark.parametrize("smoothing", [0.0, 1e-6, 0.01])
def test_loss_and_gradient_where_some_have_no_label(direction: Any, smoothing: float) -> None:
    known, target = pool().memberships[1][:, 1:], pool().targets[1]
    scores = np.random.default_rng(5).normal(size=8)
    loss, gradient = exposure_loss(scores, known, target, direction, smoothing)
    assert loss == pytest.approx(loss_by_definition(scores, known, target, direction, smoothing), rel=1e-12)
    steps = [scores + 1e-30j * step for step in np.eye(8)]
    derivative = [loss_by_definition(step, known, target, direction, smoothing).imag / 1e-30 for step in steps]
    assert gradient == pytest.approx(derivative, rel=1e-9, abs=1e-15)
    # Softmax does not know a common shift, and a document without a label is no group's.
    assert gradient.sum() == pytest.approx(0, abs=1e-15)
    assert gradient[0] == pytest.approx(0, abs=1e-15)


def test_training_brings_exposure_nearer_to_the_targets_of_all_dimensions() -> None:
    pools = [pool(0), pool(4)]
    before, after = (
        sum(
            exposure_loss(features(one) @ weights, members[:, 1:], target)[0]
            for one in pools
            for members, target in zip(one.memberships, one.targets, strict=True)
        )
        for weights in (fit_dlf(pools, features, epochs=0), fit_dlf(pools, features, epochs=300, rate=0.02))
    )
    assert after < 0.5 * before


def test_reranking_by_hand() -> None:
    # Fairness is the first number of the embedding.
    candidates = pool(n=8)
    first = {id: float(VECTORS[id][0]) for id in candidates.ranking.ids}
    weights = np.eye(4)[0]
    fairest = sorted(first, key=lambda id: -first[id])
    assert DLFReranker(weights, features, alpha=1).rerank(candidates).ids == tuple(fairest)
    assert DLFReranker(weights, features, alpha=0).rerank(candidates).ids == candidates.ranking.ids
    half = DLFReranker(weights, features).rerank(candidates)
    low, high = min(first.values()), max(first.values())
    fused = {id: 0.5 * (first[id] - low) / (high - low) + 0.5 * (7 - i) / 7 for i, id in enumerate(first)}
    assert half.ids == tuple(sorted(fused, key=lambda id: -fused[id]))
    assert half.scores == pytest.approx(sorted(fused.values(), reverse=True))


def test_training_data_that_does_not_fit() -> None:
    with pytest.raises(DataError, match="pools with candidates"):
        fit_dlf([], features)
    with pytest.raises(DataError, match=r"\[1, 2\]"):
        fit_dlf([pool(0), pool(4)], lambda candidates: np.zeros((8, 1 if candidates.ranking.ids[0] == "d0" else 2)))
