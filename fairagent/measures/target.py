"""The TREC Fair Ranking track's target for one dimension: relevant documents' shares averaged with the world's."""

import math

import numpy as np

from fairagent.errors import DataError
from fairagent.measures.checks import as_distribution, as_vector, check_nonnegative
from fairagent.types import FloatArray


def blend(alignment: FloatArray, background: FloatArray | None = None) -> FloatArray:
    """The target shares (g,) of a topic, its relevant documents' averaged with the world's; they add up to 1.

    `alignment` (g,) is the sum or the mean of the relevant documents' membership rows (weighted or not:
    only proportions count), column 0 `UNKNOWN`. `background` (g - 1,) are the world's shares of the known
    groups. With K the known mass, t_g = r_g / 2 + K b_g / 2 for known g, and t_0 = r_0: the unknown share
    is kept, so a topic whose relevant documents are all unknown gets no background. Without one, t = r.
    Source: TREC Fair Ranking 2022 (Task 1 targets of one dimension), divided by their sum.

    Raises DataError for shapes that do not fit, an `alignment` without mass or with a negative, nan or
    infinite number, and a `background` that does not add up to 1 (within 1e-6).

    >>> import numpy as np
    >>> relevant = np.array([[0, 0, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]])  # unknown first
    >>> blend(relevant.sum(axis=0), np.array([0.495, 0.495, 0.01])).round(6).tolist()
    [0.25, 0.310625, 0.435625, 0.00375]
    """
    alignment = as_vector(alignment, "alignment")
    check_nonnegative(alignment, "alignment")
    total = float(alignment.sum())
    if not 0.0 < total < math.inf:
        raise DataError(
            f"the relevant documents' alignment adds up to {total:g}: none of them has a group record, so "
            "there is no target; leave the topic out or use another target"
        )
    target = alignment / total
    if background is None:
        return target
    background = as_distribution(background, "background")
    if background.size != target.size - 1:
        raise DataError(
            f"{background.size} background shares for {target.size - 1} known groups; expected one each, "
            "without UNKNOWN"
        )
    known = target[1:]
    return np.concatenate((target[:1], 0.5 * known + 0.5 * known.sum() * background))
