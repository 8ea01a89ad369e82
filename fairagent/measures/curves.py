"""Curves over sampled rankings at several alphas: slope, area, and intervals of disparity (Fair RAG, ICTIR 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from fairagent.errors import DataError
from fairagent.measures.base import as_vector
from fairagent.types import FloatArray

EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Of the five intervals of normalized EE-D, each without its upper end: [0, .2), ..., [.8, 1)."""

DECIMALS = 12
"""Disparities are rounded to so many before they are put into intervals: what lies below is rounding."""


@dataclass(frozen=True, slots=True)
class DisparityInterval:
    """The normalized EU of what lies in one interval of EE-D.

    `count` values, their `mean`, its `difference` from the mean of the deterministic ranking, and the p-value of an
    unpaired Student t-test of both; None where there are no values, or too few to test (two on either side).
    """

    low: float
    high: float
    count: int
    mean: float | None
    difference: float | None
    p: float | None

    @property
    def name(self) -> str:
        """What tables call it.

        >>> DisparityInterval(0.0, 0.2, 0, None, None, None).name
        '[0, 0.2)'
        """
        return interval_name(self.low, self.high)


def interval_name(low: float, high: float) -> str:
    """What tables call an interval.

    >>> interval_name(0.8, 1.0)
    '[0.8, 1)'
    """
    return f"[{low:g}, {high:g})"


def disparity_intervals(
    disparity: ArrayLike, utility: ArrayLike, deterministic: ArrayLike
) -> tuple[DisparityInterval, ...]:
    """The five intervals of `disparity` (v,), with the `utility` (v,) there, beside that of `deterministic` (q,).

    As in the paper's Table 2 the last is [.8, 1): where the disparity is 1 all rankings show the same items, as the
    deterministic one does, and such values belong to no interval. With them it would compare that ranking with itself.
    Raises DataError for shapes that do not fit, what is not finite and a disparity outside [0, 1].

    >>> [row.count for row in disparity_intervals([0.1, 0.9, 1.0], [0.5, 0.7, 0.9], [0.8, 0.8])]
    [1, 0, 0, 0, 1]
    """
    where, values = _pair(disparity, utility)
    own = as_vector(deterministic, "deterministic", finite=True)
    _check_shares(where)
    number = np.searchsorted(EDGES, np.round(where, DECIMALS), side="right") - 1
    rows = []
    for place, (low, high) in enumerate(pairwise(EDGES)):
        inside = values[number == place]
        mean = float(inside.mean()) if len(inside) else None
        difference = None if mean is None else mean - float(own.mean())
        rows.append(DisparityInterval(low, high, len(inside), mean, difference, _unpaired_t(inside, own)))
    return tuple(rows)


def area_under_curve(disparity: ArrayLike, relevance: ArrayLike) -> float:
    """The area under EE-R over EE-D in [0, 1], by trapezoids between the points in the order of EE-D.

    Left of the first and right of the last point the curve goes on level; of equal disparities the mean counts.
    Raises DataError for shapes that do not fit, what is not finite and a disparity outside [0, 1].

    >>> area_under_curve([0.5, 0.0, 1.0], [0.5, 0.0, 1.0])
    0.5
    """
    x, y = _pair(disparity, relevance)
    _check_shares(x)
    at, which = np.unique(x, return_inverse=True)
    height = np.bincount(which, y) / np.bincount(which)
    return float(np.trapezoid([height[0], *height, height[-1]], [0.0, *at, 1.0]))


def _unpaired_t(first: FloatArray, second: FloatArray) -> float | None:
    """The two-sided p-value of Student's t-test with pooled variance; 1 or 0 where nothing varies, None for n < 2."""
    from scipy.stats import t

    n, m = len(first), len(second)
    if min(n, m) < 2:
        return None
    difference = float(first.mean() - second.mean())
    pooled = float(np.square(first - first.mean()).sum() + np.square(second - second.mean()).sum()) / (n + m - 2)
    if pooled <= 1e-24:
        return 1.0 if abs(difference) <= 1e-12 else 0.0
    return float(2 * t.sf(abs(difference) / np.sqrt(pooled * (1 / n + 1 / m)), n + m - 2))


def _pair(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = (as_vector(values, f"the {nth} values", True) for nth, values in (("first", first), ("second", second)))
    if x.shape != y.shape:
        raise DataError(f"{len(x)} and {len(y)} values do not go together")
    return x, y


def _check_shares(disparity: FloatArray) -> None:
    if disparity.min() < 0 or disparity.max() > 1:
        raise DataError(f"disparities lie in [{disparity.min():g}, {disparity.max():g}], expected [0, 1]")


@dataclass(frozen=True, slots=True)
class Line:
    """The line y = slope * x + intercept."""

    slope: float
    intercept: float

    def at(self, x: float) -> float:
        """Its y at `x`."""
        return self.slope * x + self.intercept


def fitted_line(x: ArrayLike, y: ArrayLike) -> Line | None:
    """That of least squares of `y` (n,) on `x` (n,); None where all x are the same.

    Raises DataError for no points, shapes that do not fit, and what is not finite.

    >>> fitted_line([0.0, 1.0, 2.0], [1.0, 2.0, 6.0])
    Line(slope=2.5, intercept=0.5)
    """
    across, up = _pair(x, y)
    # Not by the spread: the mean of equal numbers may be off by rounding.
    if across.min() == across.max():
        return None
    spread = across - across.mean()
    slope = float(spread @ (up - up.mean()) / (spread @ spread))
    return Line(slope, float(up.mean() - slope * across.mean()))
