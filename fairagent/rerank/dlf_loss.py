"""DLF's loss: how far the exposure that scores give groups is from its target (after Chen & Fang, ICTIR 2023).

The paper's formulas could not be read; these are this project's: the exposure of a document is its chance of being
ranked first, p = softmax(s), that of a group the sum of p times membership, as a share of what all known groups get.
"""

from typing import Literal

import numpy as np
from scipy.special import rel_entr, softmax

from fairagent.measures import min_max
from fairagent.types import FloatArray

Direction = Literal["kl", "kl-reverse"]
"""kl: KL(exposure || target); kl-reverse: KL(target || exposure), infinite where a group of the target gets nothing."""


def exposure_loss(
    scores: FloatArray,
    memberships: FloatArray,
    target: FloatArray,
    direction: Direction = "kl-reverse",
    smoothing: float = 0.0,
) -> tuple[float, FloatArray]:
    """The divergence of the groups' exposure and `target` (g,), in nats, and its gradient in `scores`, (n,).

    `memberships` (n, g) are those in the known groups: documents without a label neither count nor get a gradient.
    `smoothing` is added to every share first. Where no document has a label, both are 0.
    """
    p = softmax(scores)
    mass = p @ memberships
    total = mass.sum()
    if total <= 0:
        return 0.0, np.zeros_like(scores)
    share = mass / total
    scale = 1 + smoothing * len(target)
    e, t = (share + smoothing) / scale, (target + smoothing) / scale
    if direction == "kl-reverse":
        loss = rel_entr(t, e).sum()
        of_share = -np.divide(t, e, out=np.zeros_like(e), where=t > 0) / scale
    else:
        loss = rel_entr(e, t).sum()
        of_share = np.log(np.divide(e, t, out=np.ones_like(e), where=e > 0)) / scale
    of_mass = (of_share - share @ of_share) / total
    of_p = memberships @ of_mass
    return float(loss), np.asarray(p * (of_p - p @ of_p))


def fuse(fairness: FloatArray, relevance: FloatArray, alpha: float) -> FloatArray:
    """The sum alpha min-max(fairness) + (1 - alpha) min-max(relevance), (n,).

    >>> fuse(np.array([0.0, 4.0, 2.0]), np.array([30.0, 10.0, 20.0]), alpha=0.25).tolist()
    [0.75, 0.25, 0.5]
    """
    return alpha * min_max(fairness) + (1 - alpha) * min_max(relevance)
