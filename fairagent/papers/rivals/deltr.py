"""DELTR's loss and its gradient: list-wise learning to rank with a price on exposure (Zehlike & Castillo 2020).

For a query with features X, labels y and scores s = X w, with p = softmax(s) (the chance of being ranked first):

    L = - sum softmax(y) ln p / ln N  +  gamma max(0, E_other - E_protected)^2

where E_g is the mean of p / ln 2 over the documents of g, and N the number of documents of ALL queries. Only
under-exposure of the protected group costs; a query in which either group has no document has no such cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class JudgedQuery:
    """The training documents of one query: `features` (n, f), relevance `labels` (n,), `protected` (n,)."""

    features: FloatArray
    labels: FloatArray
    protected: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingBatch:
    """All queries in a row, so that a step costs the same few array operations however many there are.

    `features` (N, 1 + f) with the protected attribute (0 or 1) in column 0, `ideal` (N,) the softmax of the labels,
    `contrast` (N,) what a document's p adds to E_other - E_protected; `query` (N,) is the query of each document and
    `starts` (q,) the first document of each.
    """

    features: FloatArray
    ideal: FloatArray
    contrast: FloatArray
    query: NDArray[np.intp]
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, queries: Sequence[JudgedQuery]) -> TrainingBatch:
        """Join the queries; DataError where shapes do not fit, a number is not finite or there are < 2 documents."""
        for number, query in enumerate(queries):
            _check(number, query, queries[0])
        sizes = np.array([len(query.labels) for query in queries], dtype=np.intp)
        if sizes.sum() < 2:
            raise DataError(f"DELTR learns from 2 documents or more, not {sizes.sum()}")
        starts = np.cumsum(sizes) - sizes
        of = np.repeat(np.arange(len(sizes)), sizes)
        protected = np.concatenate([query.protected for query in queries]).astype(np.float64)
        inside = np.add.reduceat(protected, starts)
        outside = sizes - inside
        both = (inside > 0) & (outside > 0)
        per_inside = np.where(both, -1 / np.maximum(inside, 1), 0) / math.log(2)
        per_outside = np.where(both, 1 / np.maximum(outside, 1), 0) / math.log(2)
        contrast = np.where(protected > 0, per_inside[of], per_outside[of])
        features = np.column_stack([protected, np.concatenate([query.features for query in queries])])
        ideal = top_one(np.concatenate([query.labels for query in queries]).astype(np.float64), of, starts)
        return cls(features, ideal, contrast, of, starts)


def deltr_loss(weights: FloatArray, batch: TrainingBatch, gamma: float) -> FloatArray:
    """The loss L of each query, (q,), at `weights` (1 + f,)."""
    log_p = _log_softmax(batch.features @ weights, batch.query, batch.starts)
    listwise = -np.add.reduceat(batch.ideal * log_p, batch.starts) / math.log(len(log_p))
    under = np.maximum(exposure_gap(np.exp(log_p), batch), 0)
    return np.asarray(listwise + gamma * under**2)


def deltr_gradient(
    weights: FloatArray, batch: TrainingBatch, gamma: float, per_query: FloatArray | None = None
) -> FloatArray:
    """The gradient of the summed loss in `weights`, (1 + f,); each query counts `per_query` (q,) times (once if None).

    fairsearchdeltr counts a query once a document, and its exposure part is not the gradient of its own loss.

    >>> query = JudgedQuery(np.array([[0.2], [0.9]]), np.array([0.0, 1.0]), np.array([True, False]))
    >>> deltr_gradient(np.zeros(2), TrainingBatch.of([query]), gamma=0).round(4).tolist()
    [0.3333, -0.2333]
    """
    p = top_one(batch.features @ weights, batch.query, batch.starts)
    under = np.maximum(exposure_gap(p, batch), 0)
    mean_contrast = np.add.reduceat(p * batch.contrast, batch.starts)
    # sum softmax(y) = 1, so the list-wise part is (p - softmax(y)) / ln N.
    of_scores = (p - batch.ideal) / math.log(len(p))
    if gamma:
        of_scores += gamma * 2 * under[batch.query] * p * (batch.contrast - mean_contrast[batch.query])
    if per_query is not None:
        of_scores *= per_query[batch.query]
    return np.asarray(of_scores @ batch.features)


def exposure_gap(p: FloatArray, batch: TrainingBatch) -> FloatArray:
    """E_other - E_protected of each query, (q,): positive where the protected group is under-exposed."""
    return np.add.reduceat(p * batch.contrast, batch.starts)


def top_one(scores: FloatArray, query: NDArray[np.intp], starts: NDArray[np.intp]) -> FloatArray:
    """The softmax of `scores` (N,) within each query, (N,)."""
    return np.asarray(np.exp(_log_softmax(scores, query, starts)))


def _log_softmax(scores: FloatArray, query: NDArray[np.intp], starts: NDArray[np.intp]) -> FloatArray:
    shifted = scores - np.maximum.reduceat(scores, starts)[query]
    return np.asarray(shifted - np.log(np.add.reduceat(np.exp(shifted), starts))[query])


def _check(number: int, query: JudgedQuery, first: JudgedQuery) -> None:
    n = len(query.labels)
    if not n or query.features.shape != (n, *first.features.shape[1:2]) or query.protected.shape != (n,):
        raise DataError(
            f"training query {number}: features {query.features.shape}, labels {query.labels.shape} and protected "
            f"{query.protected.shape} do not fit; expected (n, f), (n,) and (n,) with n >= 1 and one f for all queries"
        )
    if not (np.isfinite(query.features).all() and np.isfinite(query.labels).all()):
        raise DataError(f"training query {number}: a feature or label is no finite number")
