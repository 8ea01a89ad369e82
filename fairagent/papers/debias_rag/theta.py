"""DebiasRAG's two signals of a candidate, and their weights: a listwise loss and projected gradient steps.

The signals are similarity to the query, and to the avoided passages: cosines of vectors of length 1. Source: DebiasRAG
(arXiv 2605.16113), Eq. 4 to 8, 15, and Algorithm 2, whose call of the optimizer is read as once a query.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from fairagent.errors import DataError, UsageError
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
    passed = np.flatnonzero((avoided <= tau) | exempt)
    if len(passed) or not len(avoided):
        return passed, False
    return np.sort(np.argsort(avoided, kind="stable")[:least]), True


def best(phi: FloatArray, theta: FloatArray, k: int) -> Places:
    """The places of the `k` candidates with the highest `phi @ theta`, the best first; ties by order."""
    return np.argsort(-(phi @ theta), kind="stable")[:k]


START = (0.5, 0.5)
RATE = 1.0
"""The step size that is tried first; the paper does not give its own."""
MOST_HALVINGS = 50


@dataclass(frozen=True, slots=True, eq=False)
class ThetaStep:
    """One step: the weights after it, (s,), the loss before and after, and the rate that was accepted at last.

    Where `halvings` were of no avail, the weights are those before the step, and `rate` is 0.
    """

    theta: FloatArray
    loss_before: float
    loss_after: float
    rate: float
    halvings: int


def target(phi: FloatArray) -> FloatArray:
    """The distribution over candidates (n,) that a ranking should have: softmax of the min-max sum of the signals.

    `phi` is (n, s), the signals of each candidate in [0, 1]. Needs no labels (Eq. 6).
    """
    return np.asarray(softmax(scaled(phi.sum(axis=1))))


def loss(phi: FloatArray, theta: FloatArray) -> float:
    """The cross entropy, in nats, of the ranking by `phi @ theta` to its target (Eq. 7); convex in `theta` (s,)."""
    scores = phi @ theta
    return float(logsumexp(scores) - target(phi) @ scores)


def gradient(phi: FloatArray, theta: FloatArray) -> FloatArray:
    """The loss's gradient by `theta`, (s,): sum_c (p_c - y_c) phi(c)."""
    return np.asarray((softmax(phi @ theta) - target(phi)) @ phi)


def project(v: FloatArray) -> FloatArray:
    """The point of the simplex {theta >= 0, sum 1} that is nearest to `v`, (s,) finite with s >= 1.

    For two weights theta_1 = clip((v_1 - v_2 + 1) / 2, 0, 1); else by sorting (Duchi et al. 2008).

    >>> project(np.array([0.9, 0.5])).round(6).tolist()
    [0.7, 0.3]
    """
    if len(v) == 2:
        first = min(max((v[0] - v[1] + 1) / 2, 0.0), 1.0)
        return np.array([first, 1 - first])
    descending = np.sort(v)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, len(v) + 1)
    last = np.flatnonzero(descending > excess)[-1]
    return np.asarray(np.maximum(v - excess[last], 0.0))


def step(phi: FloatArray, theta: FloatArray, rate: float = RATE) -> ThetaStep:
    """One projected gradient step from `theta`, the rate halved until the loss does not rise (at most 50 times)."""
    before, slope = loss(phi, theta), gradient(phi, theta)
    for halvings in range(MOST_HALVINGS + 1):
        moved = project(theta - rate * slope)
        after = loss(phi, moved)
        if after <= before:
            return ThetaStep(moved, before, after, rate, halvings)
        rate /= 2
    return ThetaStep(theta, before, before, 0.0, MOST_HALVINGS)


class Theta:
    """The weights that queries begin with, and, where they are `streaming`, leave for the next; threads may share it.

    Which query begins with what depends on their order then; without `streaming` each begins at `start`.
    """

    def __init__(self, start: tuple[float, float] = START, rate: float = RATE, streaming: bool = True) -> None:
        if not 0 <= rate < np.inf:
            raise UsageError(f"the step's rate is {rate}; expected a number of 0 or more, 0 leaving theta as it is")
        if not (min(start) >= 0 and abs(sum(start) - 1) <= 1e-9):
            raise UsageError(f"theta are two weights of 0 or more that add up to 1, not {list(start)}")
        self._theta = np.array(start, dtype=np.float64)
        self._rate = rate
        self._streaming = streaming
        self._lock = threading.Lock()

    @property
    def now(self) -> FloatArray:
        """The weights that the next query begins with, (2,)."""
        return self._theta

    def move(self, phi: FloatArray) -> tuple[FloatArray, ThetaStep]:
        """The weights that a query with the signals `phi` (n, 2) begins with, and the step that it takes from there."""
        with self._lock:
            before = self._theta
            taken = step(phi, before, self._rate)
            if self._streaming:
                self._theta = taken.theta
            return before, taken


def grid(points: int) -> list[tuple[float, float]]:
    """Evenly spaced weights (first, second) from (0, 1) to (1, 0), `points` (>= 2) of them; UsageError for fewer.

    >>> grid(3)
    [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)]
    """
    if points < 2:
        raise UsageError(f"to search theta takes at least 2 points, not {points}")
    shares = [number / (points - 1) for number in range(points)]
    return [(round(share, 12), round(1 - share, 12)) for share in shares]


def search_theta(
    objective: Callable[[tuple[float, float]], float], points: int = 21
) -> tuple[tuple[float, float], float]:
    """The weights with the highest `objective`, and its value: the paper's other way (its section 4.2.3).

    The objective, such as ICAT on some optimization questions, is evaluated at `points` (>= 2) evenly spaced weights;
    ties go to the more even ones. The questions must not be those of the test. Raises UsageError for fewer points,
    DataError where a value is nan.

    >>> search_theta(lambda theta: -abs(theta[0] - 0.7), points=11)[0]
    (0.7, 0.3)
    """
    tried = grid(points)
    values = [objective(theta) for theta in tried]
    if np.isnan(values).any():
        raise DataError("the objective is nan at some theta; it has to be a number everywhere")
    best = max(range(len(tried)), key=lambda number: (values[number], -abs(tried[number][0] - 0.5)))
    return tried[best], values[best]
