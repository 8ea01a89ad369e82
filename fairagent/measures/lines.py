"""The line of least squares through points."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from fairagent.measures.checks import as_vector, check_finite


@dataclass(frozen=True, slots=True)
class Line:
    """y = slope * x + intercept."""

    slope: float
    intercept: float

    def at(self, x: float) -> float:
        """Its y at `x`."""
        return self.slope * x + self.intercept


def fitted_line(x: ArrayLike, y: ArrayLike) -> Line | None:
    """That of least squares of `y` (n,) on `x` (n,); None where all x are the same.

    Raises DataError for no points, and for what is not finite.

    >>> fitted_line([0.0, 1.0, 2.0], [1.0, 2.0, 6.0])
    Line(slope=2.5, intercept=0.5)
    """
    across, up = as_vector(x, "x"), as_vector(y, "y")
    check_finite(across, "x")
    check_finite(up, "y")
    # Not by the spread: the mean of equal numbers may be off by rounding.
    if across.min() == across.max():
        return None
    spread = across - across.mean()
    slope = float(spread @ (up - up.mean()) / (spread @ spread))
    return Line(slope, float(up.mean() - slope * across.mean()))
