"""Groups as the aspects of a query or as the values of one attribute, for rivals that order by these.

Documents without a label are a group of their own in each dimension, which keeps the share that it has among the first
n candidates; the target is for the rest. A document of several groups counts for each with an equal part.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from fairagent.extend import FloatArray, Pool, joint_memberships
from fairagent.papers.rivals.representative import counting_one, raked, with_unknown

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
    rows = [counting_one(of) for of in pool.memberships]
    due = [with_unknown(of[: pool.n], target) for of, target in zip(rows, pool.targets, strict=True)]
    nothing = np.zeros((len(pool.ranking), 0))
    return Aspects(np.hstack([nothing, *rows]), np.concatenate([np.zeros(0), *due]), len(rows))


def combinations(pool: Pool) -> Aspects:
    """The combinations of groups that candidates have, as one set: the values of a single attribute.

    Their shares are on target in each dimension, and else in proportion to the candidates (`raked`); a group that no
    candidate has leaves its share to the others. With one dimension these are its groups.
    """
    if not len(pool.ranking) or not pool.memberships:
        return Aspects(np.ones((len(pool.ranking), 1)), np.ones(1), 1)
    rows = [counting_one(of) for of in pool.memberships]
    due = [with_unknown(of[: pool.n], target) for of, target in zip(rows, pool.targets, strict=True)]
    joint = joint_memberships(rows)
    sizes = joint.sum(axis=0)
    there = np.flatnonzero(sizes)
    labels = np.array(list(product(*(range(len(shares)) for shares in due))), dtype=np.intp)
    return Aspects(joint[:, there], raked(sizes[there], labels[there], due), 1)
