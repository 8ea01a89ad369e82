"""Min-max scaling of the scores of one list."""

import numpy as np

from fairagent.types import FloatArray


def min_max(scores: FloatArray, flat: float = 1.0, within: float = 0.0) -> FloatArray:
    """Scores (n,) on [0, 1]: (score - lowest) / (highest - lowest); no scores give none.

    `flat` is what all of them get where they differ by no more than `within`, so that they say nothing about any
    document: 1 where they still stand for relevance, as the scores of what was found; 0 where a signal that does not
    vary should count for nothing.

    >>> import numpy as np
    >>> min_max(np.array([5.0, 3.0, 1.0])).tolist(), min_max(np.array([2.0, 2.0])).tolist()
    ([1.0, 0.5, 0.0], [1.0, 1.0])
    """
    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    if low == high or high - low <= within:
        return np.full_like(scores, flat)
    return np.asarray((scores - low) / (high - low))
