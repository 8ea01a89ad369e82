"""The rules of TREC Fair Ranking 2021 that differ from 2022.

Task 1 leaves the cell in which everything is unknown out of exposure and target (2022 keeps it), and a ranking
that shows nothing else counts as showing all other cells alike. Task 2 counts the exposure of every listed page
(2022: of the relevant ones). The rankings are longer: 1000 instead of 500 in Task 1, 50 instead of 20 in Task 2.
Source: TREC Fair Ranking 2021, Alignments and metrics.
"""

import numpy as np

from fairagent.measures.trec_fair.space import Amounts, Space


def without_unknown(amounts: Amounts, space: Space) -> Amounts:
    """The amounts without cell 0, in which every dimension is unknown.

    >>> from fairagent.measures.trec_fair.dimensions import DIMENSIONS_2021
    >>> space = Space.of(DIMENSIONS_2021[1:])  # 4 genders
    >>> without_unknown(Amounts(np.array([0, 2, 4]), np.ones(3)), space).keys.tolist()
    [2]
    """
    known = amounts.keys % space.cells > 0
    return Amounts(amounts.keys[known], amounts.values[known])


def or_uniform(exposure: Amounts, space: Space, topics: int) -> Amounts:
    """The exposure of every topic, (t,), and one on every cell but 0 for the topics that have none.

    >>> from fairagent.measures.trec_fair.dimensions import DIMENSIONS_2021
    >>> space = Space.of(DIMENSIONS_2021[1:])
    >>> or_uniform(Amounts(np.array([5]), np.array([2.0])), space, 2).values.tolist()
    [1.0, 1.0, 1.0, 2.0]
    """
    empty = np.setdiff1d(np.arange(topics), exposure.keys // space.cells)
    added = (empty[:, None] * space.cells + np.arange(1, space.cells)).ravel()
    keys = np.concatenate((exposure.keys, added))
    order = keys.argsort()
    return Amounts(keys[order], np.concatenate((exposure.values, np.ones(added.size)))[order])
