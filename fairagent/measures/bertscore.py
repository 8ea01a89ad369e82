"""BERTScore's greedy matching of token vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairagent.errors import DataError
from fairagent.types import FloatArray


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
    their weights (c,), recall that over the reference's by theirs (r,), F1 their harmonic mean. Weights are >= 0; a
    special token weighs 0 and may be found all the same. What is not defined (a text without weight, precision and
    recall that add up to 0) is 0. No inverse document frequencies and no rescaling by a baseline.
    Source: Zhang et al. 2020, BERTScore, equations 1 to 3.

    Raises DataError where the shapes do not fit or a number is not finite.

    >>> match = greedy_match([[1, 0], [0, 1]], [[2, 0]], [1, 1], [1])
    >>> match.precision, match.recall, round(match.f1, 4)
    (0.5, 1.0, 0.6667)
    """
    ours, theirs = _unit(candidate), _unit(reference)
    our_weights = np.asarray(candidate_weights, dtype=np.float64)
    their_weights = np.asarray(reference_weights, dtype=np.float64)
    if our_weights.shape != ours.shape[:1] or their_weights.shape != theirs.shape[:1]:
        raise DataError(
            f"{our_weights.shape} and {their_weights.shape} weights do not fit {ours.shape[0]} and "
            f"{theirs.shape[0]} tokens"
        )
    if not (_weights_are_right(our_weights) and _weights_are_right(their_weights)):
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
    """The highest of the values that a text has against the references of these relevance `labels`.

    None where no reference has any of them: the topic is left out.
    Source: Tian et al. 2025, P(a) = max over the relevant passages of BERTScore-F1.

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


def _weights_are_right(weights: FloatArray) -> bool:
    return bool(np.isfinite(weights).all() and (weights >= 0).all())
