"""Rankings whose scores encode only the rank, as greedy re-rankers and random draws return them."""

from collections.abc import Iterable

import numpy as np

from fairagent.types import Ranking


def placed(ids: tuple[str, ...], order: Iterable[int]) -> Ranking:
    """The documents `ids[i]` for i in `order`; their scores encode only the rank: from 1 down in equal steps.

    >>> placed(("a", "b", "c"), [2, 0]).scores.tolist()
    [1.0, 0.5]
    """
    chosen = tuple(ids[i] for i in order)
    return Ranking(chosen, np.linspace(1, 0, len(chosen), endpoint=False))
