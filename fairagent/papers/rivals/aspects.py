"""Groups as the aspects of a query or as the values of one attribute, for rivals that order by these.

Documents without a label are a group of their own in each dimension, which keeps the share that it has among the first
n candidates; the target is for the rest. A document of several groups counts for each with an equal part.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from fairagent.extend import FloatArray, Pool, joint_memberships
from fairagent.papers.rivals.representative import raked, shares_and_targets

DECIMALS = 12
"""What lies below this decimal of a share or a value is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Aspects:
    """Which candidate covers which aspect, `rows` (m, c), and the aspects' shares, `due` (c,), of `dimensions` sets.

    Within each set a row, and the shares, add up to 1.
    """

    rows: FloatArray
    due: FloatArray
    dimensions: int


def aspects(pool: Pool) -> Aspects:
    """The groups of all dimensions side by side, a set a dimension; without dimensions there are none."""
    rows, due = shares_and_targets(pool)
    nothing = np.zeros((len(pool.ranking), 0))
    return Aspects(np.hstack([nothing, *rows]), np.concatenate([np.zeros(0), *due]), len(rows))


def combinations(pool: Pool) -> Aspects:
    """The combinations of groups that candidates have, as one set: the values of a single attribute.

    Their shares are on target in each dimension, and else in proportion to the candidates (`raked`); a group that no
    candidate has leaves its share to the others. With one dimension these are its groups.
    """
    if not len(pool.ranking) or not pool.memberships:
        return Aspects(np.ones((len(pool.ranking), 1)), np.ones(1), 1)
    rows, due = shares_and_targets(pool)
    joint = joint_memberships(rows)
    sizes = joint.sum(axis=0)
    there = np.flatnonzero(sizes)
    labels = np.array(list(product(*(range(len(shares)) for shares in due))), dtype=np.intp)
    return Aspects(joint[:, there], raked(sizes[there], labels[there], due), 1)


def one_by_one(rows: FloatArray, n: int, choose: Callable[[FloatArray, NDArray[np.bool_]], int]) -> list[int]:
    """The indices of min(n, m) documents, each chosen by what those before it have of each group.

    `rows` (m, c) are what a document adds to the groups. `choose` is given their sums (c,) and which documents are
    `left` (m,), and gives the index of one of these.
    """
    had, left = np.zeros(rows.shape[1]), np.ones(len(rows), dtype=np.bool_)
    order: list[int] = []
    for _ in range(min(n, len(rows))):
        chosen = choose(had, left)
        order.append(chosen)
        left[chosen] = False
        had += rows[chosen]
    return order
