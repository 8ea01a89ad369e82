"""Fairness under unawareness: what AWRF and exposure can be, and are likely to be, where labels are missing.

Bounds assume nothing: the unlabeled documents' exposure is given to the groups in any way. An estimate takes a
classifier's probabilities for these documents. Counting its labels would be biased
wherever the groups' shares are not those that it was trained with: PCC adds up probabilities, PACC corrects them by how
they are for documents of a known group. Everything is over the known groups, as AWRF(unknown=ignore). References:
Jaenich et al., JAIR 2026 (arXiv 2506.04140), who estimate rankings' fairness by quantification; Manski 2003 for bounds
under missing data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.errors import DataError
from fairagent.measures.base import (
    TOLERANCE,
    as_distribution,
    as_memberships,
    as_vector,
    check_nonnegative,
)
from fairagent.measures.divergence import jensen_shannon, jensen_shannon_terms
from fairagent.types import FloatArray

ROUNDED = 5e-4
"""How far rounding to three decimals moves each number: by so much a group a row may add up to other than 1."""
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
        raise DataError(f"no validation document is of group {empty[0]}: its confusion with others is unknown")
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
    >>> corrected = prevalence(np.array([0.5, 0.5]), np.array([[0.8, 0.4], [0.2, 0.6]]))
    >>> corrected.shares.round(6).tolist(), corrected.adjusted
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
    from scipy.optimize import nnls

    # As p adds up to 1, the least ||matrix p - counted|| is the least ||A p|| of A = matrix - counted 1^T. Without that
    # condition, ||A x||^2 + (sum x - 1)^2 has its least value over x >= 0 at a multiple of the same p: for x = s p, the
    # best s leaves ||A p||^2 / (1 + ||A p||^2), which rises with ||A p||.
    g = counted.size
    solution, _ = nnls(np.vstack([matrix - counted[:, None], np.ones(g)]), np.append(np.zeros(g), 1.0))
    return Prevalence(solution / solution.sum(), True)


def as_posteriors(values: FloatArray, name: str, each: str = "row") -> FloatArray:
    """`values` as probabilities (n, g) whose rows add up to 1; DataError, naming the row, where one does not.

    Numbers of three decimals will do (`ROUNDED`): each row is divided by its sum.
    """
    rows = as_memberships(values)
    check_nonnegative(rows, name)
    totals = rows.sum(axis=1)
    wrong = np.flatnonzero(np.abs(totals - 1.0) > ROUNDED * rows.shape[1] + TOLERANCE)
    if wrong.size:
        raise DataError(f"{name}: {each} {wrong[0]} adds up to {totals[wrong[0]]:.9g}, expected 1")
    normalized: FloatArray = rows / totals[:, None]
    return normalized


LEVEL = 0.95
ROUNDING = 1e-12
"""By how much shares that fit below a distribution may add up to more than 1."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and the ends of its interval."""

    value: float
    low: float
    high: float


def exposure_bounds(exposure: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The least and the largest share of all exposure that each known group can have, (g,) each; both are reached.

    `exposure` (1 + g,) adds up to 1, with column 0 `UNKNOWN`, as `group_exposure` gives it: the least is a group's
    share as it is, where no unlabeled document is of the group, the largest is with all of them.
    Raises DataError for shares that are no distribution.

    >>> import numpy as np
    >>> [ends.round(6).tolist() for ends in exposure_bounds(np.array([0.3, 0.1, 0.6]))]
    [[0.1, 0.6], [0.4, 0.9]]
    """
    shares = _exposure(exposure)
    return shares[1:], shares[1:] + shares[0]


def awrf_bounds(
    exposure: FloatArray, target: FloatArray, base: float = math.e, target_known: FloatArray | None = None
) -> tuple[float, float]:
    """The least and the largest AWRF over the known groups that the unlabeled documents' exposure allows.

    `exposure` (1 + g,) is as in `exposure_bounds`, `target` (g,) is over the known groups. It is taken as given, unless
    `target_known` (g,) says which part of it is known whatever the missing labels are: with m for what that lacks to 1,
    the target is then target_known + m s' for some distribution s'. With u the unknown share, the exposure is
    known + u s for some distribution s. AWRF is concave in (s, s'), so that it is least where all unknowns of each are
    of one group. It is largest where the unlabeled exposure fills up the groups that have least for their target:
    e_g = max(known_g, r t_g), with r such that the sum is 1, and likewise t_g for its exposure.

    Both ends are exact for exposure that can be shared out freely, and for documents shown that are others than those
    that the target was counted from. No labels of the documents lead outside; some lead to the lower end, while the
    upper one takes documents whose weights can be shared out so. AWRF(unknown=ignore) lies in between (s as the known
    exposure). The mean over topics lies between the means of both ends. `base` is the logarithm's.

    Raises DataError for shares that are no distribution, a known part that is more than the target, and shapes that
    differ.

    >>> import numpy as np
    >>> low, high = awrf_bounds(np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.5]))
    >>> round(low, 6), high
    (0.784238, 1.0)
    >>> low, high = awrf_bounds(np.array([0.0, 1.0, 0.0]), np.array([0.5, 0.5]), target_known=np.array([0.4, 0.4]))
    >>> round(low, 6), round(high, 6)
    (0.725642, 0.836103)
    """
    shares, due = _exposure(exposure), as_distribution(target, "target")
    if due.size != shares.size - 1:
        raise DataError(f"exposure has {shares.size - 1} known groups and target {due.size}, expected the same")
    known = due if target_known is None else _part_of(due, target_known)
    missing = 0.0 if target_known is None else max(0.0, 1.0 - float(known.sum()))
    high = 1.0 - jensen_shannon(*_nearest(shares[0], shares[1:], missing, known), base=base)
    low = 1.0 - jensen_shannon(*_farthest(shares[0], shares[1:], missing, known), base=base)
    return min(low, high), high  # where nothing is unknown, both are one value, but for rounding


def _part_of(target: FloatArray, known: FloatArray) -> FloatArray:
    """The known part (g,) of a target, checked."""
    part = as_vector(known, "target_known")
    check_nonnegative(part, "target_known")
    if part.size != target.size:
        raise DataError(f"target has {target.size} groups and target_known {part.size}, expected the same")
    if (above := np.flatnonzero(part > target + TOLERANCE)).size:
        place = int(above[0])
        raise DataError(f"target_known[{place}] is {part[place]:g} of {target[place]:g}, expected a part of the target")
    return part


def _farthest(unknown: float, known: FloatArray, missing: float, due: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of the exposures and targets in which all that is unknown or missing is of one group, the two farthest apart.

    The divergence is a sum over groups, so that a group's gain changes its own term alone.
    """
    terms = jensen_shannon_terms(known, due)
    change = jensen_shannon_terms(known + unknown, due)[:, None] + jensen_shannon_terms(known, due + missing)
    change -= np.add.outer(terms, terms)
    np.fill_diagonal(change, jensen_shannon_terms(known + unknown, due + missing) - terms)
    shown, owed = np.unravel_index(int(change.argmax()), change.shape)
    corners = np.eye(known.size)
    return known + unknown * corners[shown], due + missing * corners[owed]


def _nearest(unknown: float, known: FloatArray, missing: float, due: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of the exposures at or above `known` and the targets at or above `due`, each adding up to 1, the nearest two.

    The divergence's derivative in e_g is ln(2 e_g / (e_g + t_g)) / 2, which rises with e_g / t_g: where the unlabeled
    exposure goes, that ratio is the same r, and elsewhere it is r or more. In t_g it falls with e_g / t_g: where the
    target's missing part goes, the ratio is the same R, and elsewhere it is R or less. If known exposure and target
    both fit below one distribution, that is exposure and target; if not, r < 1 < R, so that no group gets of both, and
    each side is filled up beside what is known of the other.
    """
    both = np.maximum(known, due)
    if missing > 0.0 and both.sum() <= 1.0 + ROUNDING:
        shared = both + max(0.0, 1.0 - float(both.sum())) / both.size
        return shared, shared
    return _filled(unknown, known, due), _filled(missing, due, known) if missing > 0.0 else due


def _filled(unknown: float, known: FloatArray, target: FloatArray) -> FloatArray:
    """The distribution max(known, r target), which is closest to the target of those at or above `known`."""
    due = np.flatnonzero(target > 0.0)
    order = due[np.argsort(known[due] / target[due], kind="stable")]
    # r if the first k groups of that order are filled up; it is right for the last k at which it takes none of them.
    levels = (unknown + np.cumsum(known[order])) / np.cumsum(target[order])
    level = levels[np.flatnonzero(levels >= known[order] / target[order])[-1]]
    filled = np.maximum(known, level * target)
    closest: FloatArray = filled / filled.sum()
    return closest


def _exposure(values: FloatArray) -> FloatArray:
    shares = as_distribution(values, "exposure")
    if shares.size < 2:
        raise DataError("exposure has no known group")
    return shares
