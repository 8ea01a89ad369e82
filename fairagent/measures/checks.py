"""Validation of array arguments: a DataError that names the place, never a nan in the result.

Two depths. What the loop calls at every step (`group_exposure`, `known_part`, the divergences) looks at
minima and sums, a microsecond each: no nan, infinity or negative number gets past them, and its place is
looked for here only when one of them is off. The rest (`gaps`, `blend`, `joint_memberships`, the target of
`awrf`) is checked number by number at once.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairagent.errors import DataError
from fairagent.types import FloatArray

TOLERANCE = 1e-6
"""How far from 1 the shares of a distribution may add up."""


def as_memberships(values: ArrayLike) -> FloatArray:
    """`values` as floats of shape (n, g), g >= 1 (n may be 0); raises DataError for another shape."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or not array.shape[1]:
        raise DataError(f"memberships have shape {array.shape}, expected (n, g): a row a document, a column a group")
    return array


def as_vector(values: ArrayLike, name: str) -> FloatArray:
    """`values` as floats of shape (g,), g >= 1; raises DataError for another shape."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise DataError(f"{name} has shape {array.shape}, expected (g,): one number a group")
    return array


def as_distribution(values: ArrayLike, name: str) -> FloatArray:
    """`values` (g,) divided by their sum; raises DataError where that is not 1 within TOLERANCE."""
    shares = as_vector(values, name)
    check_nonnegative(shares, name)
    total = float(shares.sum())
    if abs(total - 1.0) > TOLERANCE:
        raise DataError(f"{name} adds up to {total:.9g}, expected 1; divide it by its sum if that is what is meant")
    return shares / total


def check_nonnegative(values: FloatArray, name: str) -> None:
    """Raise DataError, naming the first place, where a value is negative, nan or infinite."""
    fit = (values >= 0.0) & (values < math.inf)
    if not fit.all():
        place = tuple(np.argwhere(~fit)[0].tolist())
        raise DataError(f"{name}{list(place)} is {values[place]:g}, expected a finite number of 0 or more")


def check_finite(values: FloatArray, name: str) -> None:
    """Raise DataError, naming the first place, where a value is nan or infinite."""
    fit = np.isfinite(values)
    if not fit.all():
        place = tuple(np.argwhere(~fit)[0].tolist())
        raise DataError(f"{name}{list(place)} is {values[place]:g}, expected a finite number")


def check_same_length(values: FloatArray, others: FloatArray, names: str) -> None:
    """Raise DataError where two vectors do not have one number a group each."""
    if values.shape != others.shape:
        raise DataError(f"{names} have shapes {values.shape} and {others.shape}, expected the same groups in both")


def check_cutoff(n: int) -> None:
    """Raise DataError where the cut-off is not a rank."""
    if n < 1:
        raise DataError(f"the cut-off is {n}, expected a rank: 1 or more")


def as_rankings(values: ArrayLike, n: int) -> NDArray[np.int64]:
    """`values` as sampled rankings (N, k) of item indices 0 .. n - 1; raises DataError for anything else."""
    array = np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise DataError(f"rankings have shape {array.shape} and type {array.dtype}, expected (N, k) item indices")
    if array.size and not (array.min() >= 0 and array.max() < n):
        raise DataError(f"rankings hold indices {array.min()} to {array.max()}, expected those of {n} items, 0 first")
    ordered = np.sort(array, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise DataError("a ranking names an item twice")
    return array.astype(np.int64)


def check_shares(values: FloatArray, name: str) -> None:
    """Raise DataError, naming the place, where a value is no share in [0, 1]."""
    check_nonnegative(values, name)
    # Sums of shares end in rounding.
    if values.size and values.max() > 1.0 + 1e-9:
        place = np.unravel_index(int(values.argmax()), values.shape)
        raise DataError(f"{name}{[int(i) for i in place]} is {values.max():g}, expected a share in [0, 1]")


def as_shares(values: ArrayLike, name: str) -> FloatArray:
    """`values` as floats of shape (n,), n >= 1, each in [0, 1]; raises DataError for anything else."""
    shares = as_vector(values, name)
    check_shares(shares, name)
    return shares


def as_shown(k: int, n: int) -> int:
    """How many of `n` items a ranking cut at `k` shows, min(k, n); raises DataError where k < 1."""
    if k < 1:
        raise DataError(f"k = {k} items are shown, expected 1 or more")
    return min(k, n)
