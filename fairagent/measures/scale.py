"""Scores of one list on another scale."""

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


def standard(scores: FloatArray) -> FloatArray:
    """Scores (n,) less their mean, in standard deviations; all 0 where they do not vary.

    >>> import numpy as np
    >>> standard(np.array([3.0, 1.0])).tolist(), standard(np.array([2.0, 2.0])).tolist()
    ([1.0, -1.0], [0.0, 0.0])
    """
    deviation = float(scores.std()) if len(scores) else 0.0
    return (scores - scores.mean()) / deviation if deviation > 1e-12 else np.zeros(len(scores))


def on_scale_of(scores: FloatArray, others: FloatArray) -> FloatArray:
    """Scores (n,) with the mean and the standard deviation of `others`; those themselves where scores do not vary.

    >>> import numpy as np
    >>> on_scale_of(np.array([30.0, 10.0]), np.array([0.25, 0.75])).tolist()
    [0.75, 0.25]
    """
    own = standard(scores)
    return np.asarray(others.mean() + others.std() * own) if own.any() else others
