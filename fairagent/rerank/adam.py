"""Adam: gradient steps scaled by running moments of the gradient (Kingma & Ba 2015)."""

from collections.abc import Sequence

import numpy as np

from fairagent.types import FloatArray


class Adam:
    """Updates `parameters` in place; `rate` is about how far one step moves a parameter."""

    def __init__(self, parameters: Sequence[FloatArray], rate: float) -> None:
        self._parameters = parameters
        self._rate = rate
        self._mean = [np.zeros_like(parameter) for parameter in parameters]
        self._square = [np.zeros_like(parameter) for parameter in parameters]
        self._steps = 0

    def step(self, gradients: Sequence[FloatArray]) -> None:
        """One step against `gradients`, with the moments' decay .9 and .999 and their bias corrected."""
        self._steps += 1
        mean_share, square_share = 1 - 0.9**self._steps, 1 - 0.999**self._steps
        for parameter, gradient, mean, square in zip(
            self._parameters, gradients, self._mean, self._square, strict=True
        ):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient**2 - square)
            parameter -= self._rate * (mean / mean_share) / (np.sqrt(square / square_share) + 1e-8)
