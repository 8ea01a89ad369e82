"""The control law: weights of the groups' evidence that follow what each group lacks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.collection import Target
from fairagent.types import Exposure, FloatArray

HALVINGS = 2
"""How often a step that overshoots is halved."""
Reached = tuple[FloatArray, tuple[Exposure, ...]]
"""The weights (g,) of a step, and the exposures that came of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    """How far refinement has come: `made` steps, the last of them halved `halved` times.

    `part` is how much of the evidence's share (beta) this query bears: half as much after each first step that led too
    far from it. `reached` is what the next step starts from: the last step that was accepted, or that changed
    nothing, None before there is one; `ended` says why there is no next step.
    """

    made: int = 0
    halved: int = 0
    part: float = 1.0
    reached: Reached | None = None
    ended: str = ""


def start(targets: Sequence[Target], has: FloatArray) -> FloatArray:
    """The targets' shares over the groups that have evidence (`has` is 1), dimensions side by side, (g,)."""
    sizes = [len(target.shares) for target in targets]
    shares = np.concatenate([target.shares for target in targets]) * has
    return np.concatenate([_normalized(part) for part in np.split(shares, np.cumsum(sizes)[:-1])])


def moved(weights: FloatArray, exposures: Sequence[Exposure], eta: float, smoothing: float) -> FloatArray:
    """The weights (g,) after one step: w ((t + smoothing) / (e + smoothing))^eta, normalized in each dimension.

    A group that has half of its share gains on one that has more than its share:

    >>> shown = Exposure("gender", ("f", "m"), np.array([0.25, 0.75]), np.array([0.5, 0.5]), 0.0, 0.1)
    >>> moved(np.array([0.5, 0.5]), [shown], 1.0, 1e-9).round(3).tolist()
    [0.75, 0.25]
    """
    sizes = [len(exposure.shares) for exposure in exposures]
    parts = []
    for old, exposure in zip(np.split(weights, np.cumsum(sizes)[:-1]), exposures, strict=True):
        lack = (exposure.target + smoothing) / (exposure.shares + smoothing)
        parts.append(_normalized(old * lack**eta))
    return np.concatenate(parts)


def _normalized(shares: FloatArray) -> FloatArray:
    return shares / shares.sum() if shares.sum() > 0 else shares
