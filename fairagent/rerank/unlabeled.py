"""Documents without a label, or with several, where each document takes one place of a group's share."""

import numpy as np

from fairagent.types import FloatArray


def counting_one(rows: FloatArray) -> FloatArray:
    """Membership rows (m, 1 + g) that add up to 1 each; where one is all zero the group is not known.

    >>> counting_one(np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])).tolist()
    [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]
    """
    mass = rows.sum(axis=1, keepdims=True)
    return np.where(mass > 0, rows / np.where(mass > 0, mass, 1), np.eye(1, rows.shape[1]))


def with_unknown(first: FloatArray, target: FloatArray) -> FloatArray:
    """The target (1 + g,) that leaves documents without a label the share that they have among `first`.

    `first` (k, 1 + g) are memberships, the known groups get `target` (g,) of the rest.

    >>> with_unknown(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.array([0.25, 0.75])).tolist()
    [0.5, 0.125, 0.375]
    """
    unknown = float(counting_one(first)[:, 0].mean()) if len(first) else 0.0
    return np.concatenate([[unknown], (1 - unknown) * target])
