"""RAG utility: what documents add to an answer's performance, its correlation with ranking quality, and BERTScore."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairagent.errors import DataError
from fairagent.types import FloatArray


def mean_performance(of_runs: Sequence[float]) -> float:
    """The mean performance of several runs of one prompt; DataError without runs or where one is not finite.

    >>> mean_performance([0.5, 0.7])
    0.6
    """
    if not of_runs or not all(map(math.isfinite, of_runs)):
        raise DataError(f"performances are finite numbers, one a run, not {list(of_runs)}")
    return math.fsum(of_runs) / len(of_runs)


def utility(with_documents: float, without: float) -> float | None:
    """U = (P_k - P_0) / P_0: what k documents add to the performance of an answer, as a share of that without any.

    None where the answer without documents is worth 0. Source: Tian et al. 2025, "Is relevance propagated from
    retriever to generator in RAG?".

    >>> utility(0.75, 0.5), utility(0.75, 0.0)
    (0.5, None)
    """
    if not (math.isfinite(with_documents) and math.isfinite(without)):
        raise DataError(f"performances are finite numbers, not {with_documents} and {without}")
    return (with_documents - without) / without if without else None


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r over n topics and its two-sided p-value."""

    r: float
    p: float
    n: int


def pearson(utilities: ArrayLike, relevance: ArrayLike) -> Correlation | None:
    """The correlation of utility with ranking quality (nDCG@k), both (n,), one number a topic.

    None for fewer than three topics, and where one side is the same everywhere. Raises DataError for other shapes or a
    number that is not finite.

    >>> of_three = pearson([0.1, 0.2, 0.4], [0.3, 0.5, 0.9])
    >>> of_three.r > 0.999, of_three.n, pearson([0.1, 0.2, 0.4], [1, 1, 1])
    (True, 3, None)
    """
    from scipy.stats import pearsonr

    x, y = _pairs(utilities, relevance)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    test = pearsonr(x, y)
    return Correlation(float(test.statistic), float(test.pvalue), len(x))


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The mean difference over n topics, Student's t and its two-sided p-value; both None where there is no spread."""

    difference: float
    t: float | None
    p: float | None
    n: int


def paired_test(values: ArrayLike, others: ArrayLike) -> PairedTest | None:
    """The paired t-test that `values` (n,) and `others` (n,) have the same mean; None for no topic.

    Without spread t has no value; p is 1 where nothing differs and 0 where everything differs by the same.

    >>> test = paired_test([1.0, 2.0, 4.0], [1.0, 1.0, 1.0])
    >>> round(test.difference, 4), round(test.t, 4), round(test.p, 4)
    (1.3333, 1.5119, 0.2697)
    """
    from scipy.stats import ttest_rel

    x, y = _pairs(values, others)
    if not len(x):
        return None
    difference = float((x - y).mean())
    if len(x) < 2:
        return PairedTest(difference, None, None, len(x))
    if np.ptp(x - y) == 0:
        return PairedTest(difference, None, float(difference == 0), len(x))
    test = ttest_rel(x, y)
    return PairedTest(difference, float(test.statistic), float(test.pvalue), len(x))


def _pairs(one: ArrayLike, other: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise DataError(f"a number a topic on either side is expected, not shapes {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError("a number of a topic is not finite; leave the topic out on both sides")
    return x, y


@dataclass(frozen=True, slots=True)
class Match:
    """Precision, recall and F1 of a candidate text against a reference text, each in [-1, 1]."""

    precision: float
    recall: float
    f1: float


def greedy_match(
    candidate: ArrayLike, reference: ArrayLike, candidate_weights: ArrayLike, reference_weights: ArrayLike
) -> Match:
    """How well the tokens of `candidate` (c, d) and `reference` (r, d) find each other by cosine.

    Every token takes the most similar token of the other text; precision is the mean over the candidate's tokens by
    their weights (c,), recall that over the reference's by theirs (r,), F1 their harmonic mean. Weights are >= 0; what
    is not defined is 0. Source: Zhang et al. 2020, BERTScore, equations 1 to 3.

    >>> match = greedy_match([[1, 0], [0, 1]], [[2, 0]], [1, 1], [1])
    >>> match.precision, match.recall, round(match.f1, 4)
    (0.5, 1.0, 0.6667)
    """
    ours, theirs = _unit(candidate), _unit(reference)
    our_weights, their_weights = (np.asarray(of, dtype=np.float64) for of in (candidate_weights, reference_weights))
    if our_weights.shape != ours.shape[:1] or their_weights.shape != theirs.shape[:1]:
        raise DataError(
            f"{our_weights.shape} and {their_weights.shape} weights do not fit {ours.shape[0]} and "
            f"{theirs.shape[0]} tokens"
        )
    if not all((weights >= 0).all() and np.isfinite(weights).all() for weights in (our_weights, their_weights)):
        raise DataError("the weights of tokens are finite numbers and not below 0")
    if not our_weights.sum() or not their_weights.sum():
        return Match(0.0, 0.0, 0.0)
    if ours.shape[1] != theirs.shape[1]:
        raise DataError(f"token vectors have {ours.shape[1]} and {theirs.shape[1]} dimensions")
    alike = ours @ theirs.T
    precision = float(our_weights @ alike.max(axis=1) / our_weights.sum())
    recall = float(their_weights @ alike.max(axis=0) / their_weights.sum())
    both = precision + recall
    return Match(precision, recall, 2 * precision * recall / both if both else 0.0)


def best_of_references(of_label: Mapping[int, Sequence[float]], labels: Sequence[int]) -> float | None:
    """The highest of the values that a text has against the references of these relevance `labels`; None without any.

    >>> best_of_references({2: [0.6, 0.71], 3: [0.7]}, (2, 3)), best_of_references({2: [0.5]}, (3,))
    (0.71, None)
    """
    return max((value for label in labels for value in of_label.get(label, ())), default=None)


def _unit(vectors: ArrayLike) -> FloatArray:
    """The vectors with length 1; one of length 0 stays, and is like none."""
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.size == 0:
        return np.zeros((rows.shape[0] if rows.ndim else 0, 0))
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise DataError(f"token vectors are finite numbers of shape (tokens, dimensions), not {rows.shape}")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
