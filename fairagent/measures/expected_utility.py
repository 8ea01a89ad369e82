"""Expected utility of answers to sampled rankings (Fair RAG, ICTIR 2025)."""

import math

import numpy as np
from numpy.typing import ArrayLike

from fairagent.errors import DataError
from fairagent.measures.checks import as_vector, check_finite


def expected_utility(utilities: ArrayLike) -> float:
    """EU: the mean utility of the answers to N sampled rankings, `utilities` (N,), N >= 1.

    Raises DataError for another shape and for what is not finite.

    >>> expected_utility([1.0, 0.0, 1.0, 1.0])
    0.75
    """
    values = as_vector(utilities, "utilities")
    check_finite(values, "utilities")
    return float(values.mean())


def normalized_expected_utility(expected: float, highest: float, worst: float | None = None) -> float:
    """EU divided by the `highest` utility that any ranking of the query had; 1 where that is 0.

    The paper takes the highest of all runs with the same generator, an oracle's among them, the authors' code that of
    the same retriever's runs and the oracle's: the caller chooses. `worst`: where less is better, the largest value
    there can be (4 for LaMP-3), and `highest` the smallest one seen; both sides are then what is missing to the worst.
    Raises DataError for what is not finite, negative, or an EU better than `highest`.

    >>> normalized_expected_utility(0.3, 0.6), normalized_expected_utility(1.0, 0.0, worst=4.0)
    (0.5, 0.75)
    """
    if worst is not None:
        expected, highest = worst - expected, worst - highest
    if not (math.isfinite(expected) and math.isfinite(highest)) or min(expected, highest) < 0:
        raise DataError(f"an expected utility of {expected:g} and a highest one of {highest:g}: expected 0 or more")
    if expected > highest + 1e-9 * max(1.0, highest):
        raise DataError(f"the expected utility {expected:g} is above the highest one, {highest:g}")
    return float(np.divide(expected, highest)) if highest else 1.0
