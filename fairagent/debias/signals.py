"""The two signals of a candidate: similarity to the query, and similarity to the avoided passages.

Source: DebiasRAG (arXiv 2605.16113), Eq. 4, 5 and 15. Similarities are cosines; vectors have length 1.
"""

import numpy as np
from numpy.typing import NDArray

from fairagent.measures import min_max
from fairagent.types import FloatArray

Vectors = NDArray[np.float32]
Places = NDArray[np.intp]
Flags = NDArray[np.bool_]

FLAT = 1e-12
"""A signal that varies by less is constant: what is left is rounding."""


def scaled(signal: FloatArray) -> FloatArray:
    """The signal of the candidates (n,) on [0, 1]; all 0 where it is constant, which says nothing about any of them."""
    return min_max(signal, flat=0.0, within=FLAT)


def to_query(vectors: Vectors, query: Vectors) -> FloatArray:
    """The cosine of each candidate (n, d) with the query (d,): (n,)."""
    return np.asarray(vectors @ query, dtype=np.float64)


def to_avoided(vectors: Vectors, avoided: Vectors) -> FloatArray:
    """The highest cosine of each candidate (n, d) with any passage to avoid (m, d): (n,); 0 where there is none."""
    if not len(avoided):
        return np.zeros(len(vectors))
    return np.asarray((vectors @ avoided.T).max(axis=1), dtype=np.float64)


def features(near: FloatArray, avoided: FloatArray) -> FloatArray:
    """The signals as the loss sees them, (n, 2): relevance and 1 - nearness to what is avoided, each min-max.

    >>> features(np.array([0.2, 0.6]), np.array([0.9, 0.4])).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    return np.column_stack((scaled(near), scaled(1 - avoided)))


def passing(avoided: FloatArray, tau: float, least: int, exempt: Flags) -> tuple[Places, bool]:
    """The places, in order, of candidates whose nearness to what is avoided is at most `tau`, and those `exempt`.

    Where none is left, the `least` candidates that are least near to it (ties by order), and True.
    """
    kept = np.flatnonzero((avoided <= tau) | exempt)
    if len(kept) or not len(avoided):
        return kept, False
    return np.sort(np.argsort(avoided, kind="stable")[:least]), True


def best(phi: FloatArray, theta: FloatArray, k: int) -> Places:
    """The places of the `k` candidates with the highest `phi @ theta`, the best first; ties by order."""
    return np.argsort(-(phi @ theta), kind="stable")[:k]
