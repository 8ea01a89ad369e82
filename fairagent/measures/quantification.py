"""Quantification: what share of documents each group has, from a classifier's probabilities rather than its labels.

Counting a classifier's labels is biased wherever the groups' shares are not those that it was trained with. PCC adds
up probabilities; PACC corrects them by how they are for documents of a known group.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.errors import DataError
from fairagent.measures.checks import TOLERANCE, as_memberships, check_nonnegative
from fairagent.types import FloatArray

SINGULAR = 1e-6
"""A confusion matrix whose smallest singular value is no larger cannot be solved."""


@dataclass(frozen=True, slots=True, eq=False)
class Prevalence:
    """The estimated `shares` (g,) of the groups, which add up to 1.

    `adjusted` is False where probabilities were added up as they are: no confusion matrix, or a singular one.
    """

    shares: FloatArray
    adjusted: bool


def confusion_matrix(posteriors: FloatArray, groups: Sequence[int]) -> FloatArray:
    """The mean probabilities of validation documents by their true group, (g, g): column j is of group j.

    `posteriors` (n, g) are a classifier's probabilities for documents that it has not been trained on, `groups` (n,)
    their true groups, 0 .. g - 1. Columns add up to 1; a perfect classifier's matrix is the identity.
    Raises DataError for rows that do not add up to 1, and where a group has no document.
    Source: Bella et al., ICDM 2010 (scaled probability average), for several groups.

    >>> import numpy as np
    >>> confusion_matrix(np.array([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6]]), [0, 0, 1]).round(6).tolist()
    [[0.8, 0.4], [0.2, 0.6]]
    """
    rows, truth = as_posteriors(posteriors, "posteriors"), np.asarray(groups)
    g = rows.shape[1]
    if truth.shape != rows.shape[:1] or truth.dtype.kind not in "iu":
        raise DataError(f"{len(rows)} posteriors, but groups are {truth.dtype} of shape {truth.shape}")
    if truth.size and not (truth.min() >= 0 and truth.max() < g):
        raise DataError(f"groups are {truth.min()} to {truth.max()}, expected 0 to {g - 1}")
    if empty := sorted(set(range(g)) - set(truth.tolist())):
        raise DataError(f"no validation document is of group {empty[0]}: how it is taken for others cannot be said")
    return np.stack([rows[truth == group].mean(axis=0) for group in range(g)], axis=1)


def prevalence(mean: FloatArray, confusion: FloatArray | None = None) -> Prevalence:
    """The groups' shares in documents whose (weighted) mean probabilities are `mean` (g,), which add up to 1.

    Without `confusion` they are `mean` itself (PCC). With it (g, g), as `confusion_matrix` makes it, they are the
    distribution p that minimizes ||confusion p - mean||^2 (PACC). It is exact where documents of a group get the same
    probabilities here as in the validation set, whatever the shares of the groups are (prior probability shift). A
    singular matrix (a classifier that tells two groups no way apart) is not solved: `adjusted` is False then.

    Raises DataError for shapes that do not fit, and where `mean` or a column does not add up to 1.
    Sources: Forman, DMKD 2008 (adjusted count); Bella et al., ICDM 2010 (PACC).

    >>> import numpy as np
    >>> found = prevalence(np.array([0.5, 0.5]), np.array([[0.8, 0.4], [0.2, 0.6]]))
    >>> found.shares.round(6).tolist(), found.adjusted
    ([0.25, 0.75], True)
    """
    (counted,) = as_posteriors(np.atleast_2d(mean), "mean")
    if confusion is None:
        return Prevalence(counted, False)
    matrix = as_posteriors(np.asarray(confusion, dtype=np.float64).T, "the confusion matrix", "column").T
    if matrix.shape != (counted.size, counted.size):
        raise DataError(f"the confusion matrix has shape {matrix.shape} for {counted.size} groups, expected (g, g)")
    if np.linalg.svd(matrix, compute_uv=False)[-1] <= SINGULAR:
        return Prevalence(counted, False)
    return Prevalence(_solve(matrix, counted), True)


def _solve(matrix: FloatArray, mean: FloatArray) -> FloatArray:
    """The distribution p with the least ||matrix p - mean||.

    As p adds up to 1, that is the least ||A p|| of A = matrix - mean 1^T. Without that condition, ||A x||^2 +
    (sum x - 1)^2 has its least value over x >= 0 at a multiple of the same p: for x = s p, the best s leaves
    ||A p||^2 / (1 + ||A p||^2), which rises with ||A p||.
    """
    from scipy.optimize import nnls

    found, _ = nnls(np.vstack([matrix - mean[:, None], np.ones(mean.size)]), np.append(np.zeros(mean.size), 1.0))
    shares: FloatArray = found / found.sum()
    return shares


def as_posteriors(values: FloatArray, name: str, each: str = "row") -> FloatArray:
    """`values` as probabilities (n, g) whose rows add up to 1; DataError, naming the row, where one does not."""
    rows = as_memberships(values)
    check_nonnegative(rows, name)
    totals = rows.sum(axis=1)
    wrong = np.flatnonzero(np.abs(totals - 1.0) > TOLERANCE)
    if wrong.size:
        raise DataError(f"{name}: {each} {wrong[0]} adds up to {totals[wrong[0]]:.9g}, expected 1")
    normalized: FloatArray = rows / totals[:, None]
    return normalized
