"""Attribution measures: how much of the context an answer rests on, and the exposure that this gives.

`rankings` (N, k) holds N sampled contexts of a query, k item indices (0 .. n - 1) each, in rank order; `entailed`
(N, k) says with 1 or 0 (or a share in between) whether the answer to context i rests on its item j. A single context
is N = 1. Source of all: Kim & Diaz, Towards Fair RAG, ICTIR 2025, which released no code for these measures.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fairagent.errors import DataError
from fairagent.measures.checks import as_rankings, as_shares, as_shown, check_shares
from fairagent.types import FloatArray

Normalization = Literal["conditional", "unconditional", "rescaled"]
"""What an attributed disparity is measured against; see `normalized_attributed_disparity`."""


def expected_attribution_rate(entailed: ArrayLike) -> float:
    """EAR: the mean share of the context that an answer rests on, in [0, 1].

    EAR = (1/N) sum_i (1/k) sum_j entailed_ij. Raises DataError for a shape other than (N, k), N and k >= 1, and for
    values outside [0, 1].

    >>> expected_attribution_rate([[1, 0, 0], [0, 0, 1]]).__round__(4)
    0.3333
    """
    return float(_as_entailed(entailed).mean())


def attributed_exposure(rankings: ArrayLike, entailed: ArrayLike, n: int) -> FloatArray:
    """The expected attributed exposure of each of `n` items, shape (n,), in [0, 1]; the sum is k * EAR.

    e_d = (1/N) sum_i 1[d in ranking i] entailed_id: the share of the answers that rest on item d. All k places weigh
    the same, since a machine reads the whole context. Raises DataError as `expected_attribution_rate` does, and where
    the shapes differ, an index is not an item's, or a ranking names an item twice.

    >>> attributed_exposure([[0, 1], [0, 2]], [[1, 0], [1, 1]], n=3).tolist()
    [1.0, 0.0, 0.5]
    """
    weights, items = _as_entailed(entailed), as_rankings(rankings, n)
    if items.shape != weights.shape:
        raise DataError(f"rankings have shape {items.shape} and entailed {weights.shape}, expected the same (N, k)")
    return np.bincount(items.ravel(), weights.ravel(), minlength=n) / len(items)


def attributed_disparity(exposure: ArrayLike) -> float:
    """EAE-D: how unevenly answers rest on the items, ||e||^2 of the attributed exposure e (n,).

    Where everything that is shown is attributed, this is the expected exposure's disparity (EE-D). Raises DataError
    for values outside [0, 1].

    >>> attributed_disparity([1.0, 0.0, 0.5])
    1.25
    """
    return float(np.square(as_shares(exposure, "attributed exposure")).sum())


def disparity_bounds(exposure: ArrayLike, k: int, given: Normalization = "conditional") -> tuple[float, float]:
    """The least and the most EAE-D that there can be for contexts of `k` of the n items.

    With A the sum of `exposure` (n,) and k' = min(k, n):
    - conditional: given A. Least A^2/n (all items alike), most floor(A) + (A - floor(A))^2 (as many items as possible
      in every answer, the rest on one).
    - unconditional: whatever is attributed, [0, k'].
    - rescaled: those of EE-D, for an exposure scaled to the sum k': [k'^2/n, k'].

    Raises DataError for values outside [0, 1] and k < 1.

    >>> disparity_bounds([1.0, 0.0, 0.5], k=2)
    (0.75, 1.25)
    """
    values = as_shares(exposure, "attributed exposure")
    shown = as_shown(k, len(values))
    if given == "unconditional":
        return 0.0, float(shown)
    if given == "rescaled":
        return shown**2 / len(values), float(shown)
    total = float(values.sum())
    whole = math.floor(total)
    return total**2 / len(values), whole + (total - whole) ** 2


def normalized_attributed_disparity(exposure: ArrayLike, k: int, given: Normalization = "conditional") -> float:
    """EAE-D between its bounds: (EAE-D - least) / (most - least); 0 where nothing is attributed or the bounds meet.

    The paper says "theoretical bounds" alone. Conditional ones (the default) span [0, 1] whatever the attribution rate
    is, as its figures do. Unconditional ones leave a low rate near 0. Rescaling the exposure to the sum k', as for
    EE-D, makes the two comparable, but can exceed 1: a scaled item may be above 1.

    Raises DataError for values outside [0, 1] and k < 1.

    >>> normalized_attributed_disparity([1.0, 0.0, 0.5], k=2)
    1.0
    """
    values = as_shares(exposure, "attributed exposure")
    total = float(values.sum())
    least, most = disparity_bounds(values, k, given)
    if total <= 0.0 or most - least <= 1e-12 * most:
        return 0.0
    scale = as_shown(k, len(values)) / total if given == "rescaled" else 1.0
    return (attributed_disparity(values) * scale**2 - least) / (most - least)


def _as_entailed(values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise DataError(f"entailed has shape {array.shape}, expected (N, k): a row an answer, a column a place")
    check_shares(array, "entailed")
    return array
