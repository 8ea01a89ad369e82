"""Divergences between two distributions over groups, shares p (what is shown) and q (the target) of shape (g,).

All take shares that add up to 1 (within 1e-6) and divide them by their sums; a DataError says what is no distribution
and where shapes differ. `smoothing` is added to every share first, p'_g = (p_g + s) / (1 + g s); then an all-zero p
(nothing labeled) counts as uniform. Results are in nats unless a base is given.
"""

import math
from collections.abc import Callable

import numpy as np

from fairagent.errors import DataError
from fairagent.measures.base import TOLERANCE, as_distribution, as_vector, check_nonnegative, check_same_length
from fairagent.types import FloatArray

SMOOTHING = 1e-6
"""Added to every share before a divergence is taken (FAIR-QR leaves its smoothing unsaid)."""
Divergence = Callable[[FloatArray, FloatArray, float], float]
"""divergence(exposure, target, smoothing) -> number of 0 or more; 0 where both are equal."""


def kl(p: FloatArray, q: FloatArray, smoothing: float = 1e-6) -> float:
    """Kullback-Leibler divergence KL(p || q) = sum_g p_g ln(p_g / q_g) in nats, in [0, inf].

    With smoothing 0, 0 ln 0 is 0 and the result is infinite where q misses a group that p has.

    >>> import numpy as np
    >>> round(kl(np.array([0.25, 0.75]), np.array([0.5, 0.5]), smoothing=0), 6)
    0.130812
    """
    pair = _smoothed(p, q, smoothing)
    if smoothing == 0.0:
        pair = pair[:, pair[0] > 0.0]
        if not pair[1].all():
            return math.inf
    log_p, log_q = np.log(pair)
    return max(0.0, float(pair[0].dot(log_p - log_q)))


def kl_reverse(p: FloatArray, q: FloatArray, smoothing: float = 1e-6) -> float:
    """KL(q || p): infinite, without smoothing, as soon as a group of the target gets no exposure.

    >>> import numpy as np
    >>> kl_reverse(np.array([1.0, 0.0]), np.array([0.5, 0.5]), smoothing=0)
    inf
    """
    return kl(q, p, smoothing)


def jensen_shannon(p: FloatArray, q: FloatArray, smoothing: float = 0.0, *, base: float = math.e) -> float:
    """Jensen-Shannon divergence KL(p || m) / 2 + KL(q || m) / 2 with m = (p + q) / 2, in [0, ln 2 / ln base].

    The divergence itself, not its square root; symmetric, and finite without smoothing whatever is zero. `base` > 1 is
    that of the logarithm (base 2 gives [0, 1]).

    >>> import numpy as np
    >>> jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0]), base=2)
    1.0
    """
    if not 1.0 < base < math.inf:
        raise DataError(f"the logarithm's base is {base}, expected more than 1")
    nats = float(jensen_shannon_terms(*_smoothed(p, q, smoothing)).sum())
    return min(max(0.0, nats), math.log(2.0)) / math.log(base)


def jensen_shannon_terms(p: FloatArray, q: FloatArray) -> FloatArray:
    """Each group's term (g,) of the Jensen-Shannon divergence in nats, p ln(p / m) / 2 + q ln(q / m) / 2.

    Of many pairs at once with a column a pair, (g, k). The sides are not checked, need not add up to 1, and may be
    touched cells alone.
    """
    pair = np.array((p, q))
    # x / m as 2 x / (p + q), which lies in (0, 2]: half of the smallest float would be zero. 0 ln 0 is 0.
    ratio = np.divide(2.0 * pair, pair[0] + pair[1], out=np.ones_like(pair), where=pair > 0.0)
    terms: FloatArray = 0.5 * (pair * np.log(ratio)).sum(axis=0)
    return terms


def total_variation(p: FloatArray, q: FloatArray, smoothing: float = 0.0) -> float:
    """Half the summed absolute differences, in [0, 1]: the exposure that would have to change hands.

    >>> import numpy as np
    >>> total_variation(np.array([0.25, 0.75]), np.array([0.5, 0.5]))
    0.25
    """
    p, q = _smoothed(p, q, smoothing)
    return min(1.0, 0.5 * float(np.abs(p - q).sum()))


DIVERGENCES: dict[str, Divergence] = {"kl": kl, "kl-reverse": kl_reverse, "js": jensen_shannon, "tv": total_variation}
"""The divergences by the names that settings use, all called as (exposure, target, smoothing)."""


TERMS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "kl": lambda p, q: p * np.log(p / q),
    "kl-reverse": lambda p, q: q * np.log(q / p),
    "js": lambda p, q: 0.5 * (p * np.log(p) + q * np.log(q)) - 0.5 * (p + q) * np.log(0.5 * (p + q)),
    "tv": lambda p, q: 0.5 * np.abs(p - q),
}
"""The same as terms that add up to the divergence, of shares p and q that are smoothed, so above 0, of any shape."""
LARGEST = {"kl": -math.log(SMOOTHING), "kl-reverse": -math.log(SMOOTHING), "js": math.log(2.0), "tv": 1.0}
"""What a list counts as that shows no labeled document: as far from any target as can be."""


def _smoothed(p: FloatArray, q: FloatArray, smoothing: float) -> FloatArray:
    """Both, smoothed and normalized, as the rows of a (2, g) array."""
    p, q = as_vector(p, "p"), as_vector(q, "q")
    check_same_length(p, q, "p and q")
    if not 0.0 <= smoothing < math.inf:
        raise DataError(f"smoothing is {smoothing}, expected a finite number of 0 or more")
    pair = np.array((p, q))
    if not pair.min() >= 0.0:
        check_nonnegative(p, "p")
        check_nonnegative(q, "q")
    totals = pair.sum(axis=1, keepdims=True)
    for name, shares, total in zip("pq", (p, q), totals.ravel().tolist(), strict=True):
        if abs(total - 1.0) > TOLERANCE and not (total == 0.0 and smoothing > 0.0):
            as_distribution(shares, name)  # says what is wrong and where
    smoothed: FloatArray = (pair + smoothing) / (totals + smoothing * p.size)
    return smoothed
