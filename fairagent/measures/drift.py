"""Has something changed: the means of two windows of requests compared by permutations."""

import numpy as np

from fairagent.errors import DataError
from fairagent.types import FloatArray

PERMUTATIONS = 2_000
BATCH = 100


def window_p_values(
    before: FloatArray, after: FloatArray, rng: np.random.Generator, permutations: int = PERMUTATIONS
) -> FloatArray:
    """The two-sided p-values (s,) that s means are the same in two windows of requests, (a, s) and (b, s), a, b >= 1.

    The permutation test: of the `permutations` ways to deal all requests anew into two windows of these sizes, the
    share (with the one observed counted among them) with a difference of means as large as the one observed. It is
    exact where requests can be exchanged, which those of a drifting mix of queries cannot. Raises DataError for an
    empty window and for shapes that do not fit.
    Source: Good, Permutation, Parametric and Bootstrap Tests of Hypotheses, 2005, chapter 3.

    >>> rng = np.random.default_rng(1)
    >>> low, high = np.zeros((20, 1)), np.ones((20, 1))
    >>> window_p_values(low, high, rng).round(4).tolist(), window_p_values(low, low, rng).tolist()
    ([0.0005], [1.0])
    """
    if before.ndim != 2 or after.ndim != 2 or not len(before) or not len(after) or before.shape[1] != after.shape[1]:
        raise DataError(f"windows of the shapes {before.shape} and {after.shape}, expected (a, s) and (b, s)")
    values = np.vstack([before, after])
    total, first = values.sum(axis=0), len(before)

    def differences(sums: FloatArray) -> FloatArray:
        return np.asarray(np.abs(sums / first - (total - sums) / len(after)))

    observed = differences(before.sum(axis=0))
    reached = np.ones(values.shape[1])
    for start in range(0, permutations, BATCH):
        many = min(BATCH, permutations - start)
        # Which requests are dealt to the first window: those with the smallest of random numbers.
        dealt = np.argpartition(rng.random((many, len(values))), first - 1, axis=1)[:, :first]
        chosen = np.zeros((many, len(values)))
        np.put_along_axis(chosen, dealt, 1.0, axis=1)
        reached += (differences(chosen @ values) >= observed - 1e-12).sum(axis=0)
    return reached / (permutations + 1)
