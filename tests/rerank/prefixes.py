"""What FA*IR asks of a ranking."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def is_fair(protected: NDArray[np.bool_], table: NDArray[np.intp]) -> bool:
    """Whether every prefix of `protected` (n,), in rank order, has what `table` (k,) asks; over the shorter of both."""
    ranks = min(len(protected), len(table))
    return bool((np.cumsum(protected[:ranks]) >= table[:ranks]).all())
