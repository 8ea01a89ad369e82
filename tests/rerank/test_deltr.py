"""DELTR: the gradient against the complex step, and what gamma and the penalty do."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.papers.rivals.deltr import (
    DELTRModel,
    DELTRReranker,
    JudgedQuery,
    TrainingBatch,
    deltr_gradient,
    deltr_loss,
    exposure_gap,
    fit_deltr,
    judged_query,
    top_one,
)
from fairagent.papers.rivals.fa_star_ir import ProtectedGroup
from fairagent.types import FloatArray

from .greedy_pools import pool


def made(rng: np.random.Generator, n: int, biased: bool = True) -> JudgedQuery:
    """A query whose protected documents are as relevant as the others, but score lower in the first feature."""
    protected = np.arange(n) % 3 == 0
    labels = rng.uniform(size=n)
    seen = labels + rng.normal(0, 0.1, n) - 0.8 * (protected & biased)
    return JudgedQuery(np.column_stack([10 * seen + 50, rng.normal(size=n)]), labels, protected)


QUERIES = [made(np.random.default_rng(seed), n) for seed, n in enumerate((5, 12, 7))]


def loss_by_definition(weights: FloatArray, gamma: float) -> complex:
    """The sum over QUERIES, written down query by query; takes complex weights."""
    total = 0j
    documents = sum(len(query.labels) for query in QUERIES)
    for query in QUERIES:
        exps = np.exp(np.column_stack([query.protected, query.features]) @ weights)
        p = exps / exps.sum()
        ideal = np.exp(query.labels) / np.exp(query.labels).sum()
        gap = p[~query.protected].mean() / np.log(2) - p[query.protected].mean() / np.log(2)
        total += -(ideal * np.log(p)).sum() / np.log(documents)
        total += gamma * gap**2 if gap.real > 0 else 0
    return total


@pytest.mark.parametrize("gamma", [0.0, 50.0])
@pytest.mark.parametrize("weights", [[0.0, 0.0, 0.0], [-0.5, 0.1, 0.3], [0.4, 0.02, -1.0]])
def test_loss_and_gradient_are_those_of_the_definition(gamma: float, weights: list[float]) -> None:
    batch, at = TrainingBatch.of(QUERIES), np.array(weights)
    assert deltr_loss(at, batch, gamma).sum() == pytest.approx(loss_by_definition(at, gamma).real, rel=1e-12)
    derivative = [loss_by_definition(at + 1e-30j * step, gamma).imag / 1e-30 for step in np.eye(3)]
    assert deltr_gradient(at, batch, gamma) == pytest.approx(derivative, rel=1e-9, abs=1e-14)


def test_only_underexposure_of_the_protected_costs_and_large_scores_do_not_overflow() -> None:
    batch = TrainingBatch.of(QUERIES)
    assert np.isfinite(deltr_loss(np.array([0.0, 1e4, 0.0]), batch, 1.0)).all()
    favored, held_back = np.array([2.0, 0, 0]), np.array([-2.0, 0, 0])
    assert (deltr_loss(favored, batch, 5.0) == deltr_loss(favored, batch, 0.0)).all()
    assert (deltr_loss(held_back, batch, 5.0) > deltr_loss(held_back, batch, 0.0)).all()


@pytest.mark.parametrize("protected", [[True, True], [False, False]])
def test_a_query_with_one_group_has_no_exposure_cost(protected: list[bool]) -> None:
    query = JudgedQuery(np.array([[0.0], [1.0]]), np.array([0.0, 1.0]), np.array(protected))
    batch, weights = TrainingBatch.of([query, query]), np.array([0.3, 0.7])
    assert deltr_loss(weights, batch, 9.0).tolist() == deltr_loss(weights, batch, 0.0).tolist()
    assert exposure_gap(top_one(batch.features @ weights, batch.query, batch.starts), batch).tolist() == [0.0, 0.0]


def test_one_step_by_hand() -> None:
    # Start from the drawn weights; standardized features are -1 and 1.
    query = JudgedQuery(np.array([[10.0], [30.0]]), np.array([0.0, 1.0]), np.array([True, False]))
    start = np.random.default_rng(3).uniform(0, 0.01, 2)
    p = np.exp([start[0] - start[1], start[1]])
    error = (p / p.sum() - np.exp([0, 1]) / np.exp([0, 1]).sum()) / np.log(2)
    step = np.array([error[0], error[1] - error[0]]) + 2 * 0.5 * start
    model = fit_deltr([query], gamma=0.0, iterations=1, rate=0.1, l2=0.5, seed=3)
    assert model.weights == pytest.approx(start - 0.1 * step, rel=1e-12)
    assert (model.mean.tolist(), model.deviation.tolist()) == ([20.0], [10.0])


def test_reranking_by_hand_and_a_pool_as_training_query() -> None:
    # Scores 4, 3, 2, 1 are 1, 2/3, 1/3, 0 in the pool; a member of the second group gains 0.5 of them.
    made, model = pool("ffmm", 3), DELTRModel(weights=np.array([0.5, 1.0]), mean=np.zeros(1), deviation=np.ones(1))
    found = DELTRReranker(model, ProtectedGroup(0, 1)).rerank(made)
    assert found.ids == ("f0", "m2", "f1")
    assert found.scores == pytest.approx([1, 5 / 6, 2 / 3])
    query = judged_query(made, {"f1": 2, "elsewhere": 1}, ProtectedGroup(0, 1))
    assert query.features.ravel() == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert query.labels.tolist() == [0, 2, 0, 0]
    assert query.protected.tolist() == [False, False, True, True]
    assert DELTRReranker(model, ProtectedGroup(0, 1)).rerank(pool("", 3)).ids == ()


@pytest.mark.parametrize(
    "queries",
    [
        [],
        [JudgedQuery(np.zeros((1, 1)), np.zeros(1), np.zeros(1, dtype=bool))],
        [JudgedQuery(np.array([[0.0], [np.nan]]), np.zeros(2), np.zeros(2, dtype=bool))],
    ],
)
def test_training_data_that_does_not_fit(queries: list[JudgedQuery]) -> None:
    with pytest.raises(DataError):
        fit_deltr(queries, 1.0)
