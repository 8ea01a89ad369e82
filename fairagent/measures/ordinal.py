"""Divergences between two distributions over ordered groups (levels of fame, ages): what is far off counts more.

Both take shares p (what is shown) and q (the target) of shape (g,), g >= 2, in the groups' order, which add up to 1
(within 1e-6), and lie in [0, 1]. With two groups, NMD is the total variation and so is RNOD where both have a target.
"""

import math

import numpy as np

from fairagent.errors import DataError
from fairagent.measures.checks import as_distribution, check_same_length
from fairagent.types import FloatArray


def normalized_match_distance(p: FloatArray, q: FloatArray) -> float:
    """NMD: sum_i |P_i - Q_i| / (g - 1), P and Q the cumulated shares; symmetric, the earth mover's distance scaled.

    1 where all of p is in the first group and all of q in the last. Raises DataError for less than two groups, shares
    that are no distributions and shapes that differ.
    Source: Sakai, SIGIR 2018 (after Werman et al. 1985); NTCIREVAL's GFRcompute.

    >>> import numpy as np
    >>> normalized_match_distance(np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.0, 0.5]))
    0.5
    """
    p, q = _pair(p, q)
    return min(1.0, float(np.abs(np.cumsum(p - q)[:-1]).sum()) / (p.size - 1))


def order_aware_divergence(p: FloatArray, q: FloatArray) -> float:
    """RNOD: the root of OD / (g - 1), OD the mean, over the groups i that q has, of sum_j |i - j| (p_j - q_j)^2.

    Not symmetric: the mean is over the groups with a share in the target q. Raises DataError as
    `normalized_match_distance` does.
    Source: Sakai, ACL 2021 (root normalized order-aware divergence); NTCIREVAL's GFRcompute.

    >>> import numpy as np
    >>> round(order_aware_divergence(np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.0, 0.5])), 6)
    0.5
    """
    p, q = _pair(p, q)
    places = np.arange(p.size)
    distance = np.abs(places[q > 0.0, None] - places)
    return min(1.0, math.sqrt(float(distance.dot(np.square(p - q)).mean()) / (p.size - 1)))


def _pair(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    p, q = as_distribution(p, "p"), as_distribution(q, "q")
    check_same_length(p, q, "p and q")
    if p.size < 2:
        raise DataError("an order needs two groups or more, and there is one")
    return p, q
