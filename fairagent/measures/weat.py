"""The Word Embedding Association Test: are two sets of targets associated differently with two sets of attributes?

Caliskan, Bryson and Narayanan, "Semantics derived automatically from language corpora contain human-like biases"
(2017); with sentences it is SEAT (May et al., "On Measuring Social Biases in Sentence Encoders", 2019).
"""

import math
from dataclasses import dataclass

import numpy as np

from fairagent.errors import DataError, UsageError
from fairagent.types import FloatArray

SAMPLES = 100_000
"""How many partitions are looked at: all, where there are no more of them."""
LARGEST_EXACT = 12
"""Targets a side of which all partitions are ever looked at: the sums of all 2^24 subsets still fit into memory."""
SAME = 1e-12
"""Two sums of associations that differ by no more, relative to the associations, are a tie."""

_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class Association:
    """An effect size (within [-2, 2]) with its one-sided p-value, and whether that is exact or from a sample."""

    effect: float
    p: float
    exact: bool


def association_test(
    x: FloatArray,
    y: FloatArray,
    a: FloatArray,
    b: FloatArray,
    samples: int = SAMPLES,
    rng: np.random.Generator | None = None,
) -> Association:
    """The test of targets `x`, `y` (n, d) against attributes `a` (m, d), `b` (l, d), all of them vectors.

    The p-value is that of `one_sided_p`, the effect that of `effect_size`; DataError as in both and in `associations`.
    """
    of_x, of_y = associations(x, a, b), associations(y, a, b)
    p, exact = one_sided_p(of_x, of_y, samples, rng)
    return Association(effect_size(of_x, of_y), p, exact)


def associations(targets: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """s(w) = mean cos(w, a) - mean cos(w, b) of each target w, (n,), within [-2, 2].

    DataError where a set is empty, or a vector is zero or not finite: it has no direction.

    >>> associations(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 0.0]]), np.array([[0.0, 3.0]])).tolist()
    [1.0, 0.0]
    """
    # The mean of cosines to a set is the product with the mean of its directions.
    toward: FloatArray = _directions(a, "attributes").mean(axis=0) - _directions(b, "attributes").mean(axis=0)
    found: FloatArray = _directions(targets, "targets") @ toward
    return found


def effect_size(of_x: FloatArray, of_y: FloatArray) -> float:
    """The size d = (mean s(x) - mean s(y)) / the standard deviation (ddof 1) of all s.

    `of_x` (n,) and `of_y` (k,) are the associations s of the targets; d is 0 for two sets that are the same.
    DataError where all targets are associated alike, so that d is not defined.

    >>> round(effect_size(np.array([1.0, 0.0]), np.array([0.0, -1.0])), 6)
    1.224745
    """
    every = np.concatenate([of_x, of_y])
    spread = float(np.std(every, ddof=1)) if len(every) > 1 else 0.0
    if spread <= SAME:
        raise DataError("all targets are associated alike with both sets of attributes: there is no effect size")
    return float(of_x.mean() - of_y.mean()) / spread


def one_sided_p(
    of_x: FloatArray, of_y: FloatArray, samples: int = SAMPLES, rng: np.random.Generator | None = None
) -> tuple[float, bool]:
    """The share of partitions of all targets into two halves whose first is associated as much as `of_x`, or more.

    `of_x` and `of_y` are (n,). All C(2n, n) partitions are looked at where there are at most `samples`, and True stands
    beside the p-value; else `samples` - 1 random ones, with the real one added. Ties count, up to rounding: the paper's
    code compares floats, so that sums which should be equal may count or not.

    DataError where the halves are of different sizes or empty, UsageError for fewer than 2 samples.

    >>> one_sided_p(np.array([3.0, 2.0]), np.array([1.0, 0.0]))
    (0.16666666666666666, True)
    """
    n = len(of_x)
    if n != len(of_y) or not n:
        raise DataError(f"the test compares two sets of targets of one size, not of {n} and {len(of_y)}")
    if samples < 2:
        raise UsageError(f"samples: {samples} is fewer than 2")
    every = np.concatenate([of_x, of_y])
    least = float(of_x.sum()) - SAME * float(np.abs(every).sum())
    if n <= LARGEST_EXACT and math.comb(2 * n, n) <= samples:
        sums = _sums_of_halves(every)
        return float((sums >= least).mean()), True
    rng = np.random.default_rng(0) if rng is None else rng
    reached = 1
    for first in range(1, samples, rows := max(1, _AT_ONCE // len(every))):
        chances = rng.random((min(rows, samples - first), len(every)))
        chosen = np.argpartition(chances, n - 1, axis=1)[:, :n]
        reached += int((every[chosen].sum(axis=1) >= least).sum())
    return reached / samples, False


def _sums_of_halves(values: FloatArray) -> FloatArray:
    """The sum of each subset that holds half of the `values`, (C(2n, n),)."""
    sums, sizes = np.zeros(1), np.zeros(1, dtype=np.int8)
    for value in values:
        # The subsets without it, and with it.
        sums, sizes = np.concatenate([sums, sums + value]), np.concatenate([sizes, sizes + np.int8(1)])
    halves: FloatArray = sums[sizes == len(values) // 2]
    return halves


def _directions(vectors: FloatArray, what: str) -> FloatArray:
    """The vectors (n, d) at length 1."""
    vectors = np.asarray(vectors, dtype=np.float64)
    if vectors.ndim != 2 or not len(vectors):
        raise DataError(f"a set of {what} is empty")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise DataError(f"a vector of the {what} is zero or not finite, so it has no direction")
    directions: FloatArray = vectors / lengths
    return directions
