"""A ranking policy that is fair in expectation: the best doubly stochastic matrix, and the rankings that it is made of.

Singh and Joachims: Fairness of Exposure in Rankings, KDD 2018. A policy draws a ranking for each request; P_ij is the
chance that document i stands at rank j. The most relevant P under a constraint on the groups' exposure is a linear
program (their section 3), and P is a mixture of rankings (Birkhoff 1946, von Neumann 1953; their section 3.3).
"""

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.measures.amortized import attention
from fairagent.measures.base import as_memberships, as_vector, check_nonnegative
from fairagent.types import FloatArray

UNFAIR = 1e3
"""What a unit of exposure in the wrong hands costs, in units of attention-weighted relevance: the constraint first."""
NOTHING = 1e-9

Policy = list[tuple[float, list[int]]]
"""Rankings, as places of documents, best first, each with its chance."""


def fair_policy(relevance: FloatArray, rows: FloatArray, due: FloatArray, weights: FloatArray) -> Policy:
    """The most relevant policy that gives the groups what they are due in expectation, as rankings with their chances.

    `relevance` (m,) is 0 or more, `rows` (m, g) says how a document's attention is spread over the groups, `due` (g,)
    their shares of the attention; with each group's share of the relevance this is the paper's constraint of disparate
    treatment. `weights` (n,), n <= m, are those of the ranks. Where no policy gives the groups their due, the one that
    is nearest to it (the least sum of differences). Raises DataError for shapes that do not fit.

    Both are due about as much, so that the second document comes first in some rankings:

    >>> rows, due = np.eye(2), np.array([0.55, 0.45])
    >>> fair_policy(np.array([1.0, 0.9]), rows, due, np.array([1.0, 0.5]))
    [(0.65, [0, 1]), (0.35, [1, 0])]
    """
    values, rows = as_vector(relevance, "relevance"), as_memberships(rows)
    check_nonnegative(values, "relevance")
    if rows.shape != (len(values), len(due)) or len(weights) > len(values):
        raise DataError(f"rows {rows.shape}, due {due.shape} and {len(weights)} ranks of {len(values)} documents")
    near = _enough(values, rows, len(weights))
    matrix = _best_matrix(values[near], rows[near], due, attention(weights))
    return [(chance, near[order].tolist()) for chance, order in mixture(matrix)]


def mixture(matrix: FloatArray) -> list[tuple[float, NDArray[np.intp]]]:
    """The rankings that a matrix (m, n) of chances is a mixture of, the likeliest first, with their chances.

    Columns (ranks) add up to 1, rows (documents) to 1 at most: what is missing is the chance not to be shown. Raises
    DataError for other matrices.

    >>> mixture(np.array([[0.75, 0.25], [0.25, 0.75]]))
    [(0.75, array([0, 1])), (0.25, array([1, 0]))]
    """
    from scipy.optimize import linear_sum_assignment

    missing = 1.0 - matrix.sum(axis=1)
    if not np.allclose(matrix.sum(axis=0), 1.0, atol=1e-6) or matrix.min() < -1e-6 or missing.min() < -1e-6:
        raise DataError("expected chances with columns that add up to 1 and rows that add up to 1 at most")
    shown = np.flatnonzero(matrix.sum(axis=1) > NOTHING)
    n, hidden = matrix.shape[1], len(shown) - matrix.shape[1]
    # Ranks that nobody sees make it a square; what a document lacks is spread over them evenly.
    spread = np.repeat(np.maximum(missing[shown, None], 0.0) / max(hidden, 1), hidden, axis=1)
    left, found = np.hstack([np.maximum(matrix[shown], 0.0), spread]), dict[tuple[int, ...], float]()
    total = 1.0
    while total > 1e-7:
        # A matching within what is left exists as long as something is (Birkhoff); rounding ends it.
        _, order = linear_sum_assignment(np.where(left > NOTHING, -np.log(np.maximum(left, NOTHING)), 1e6).T)
        chance = float(left[order, np.arange(len(order))].min())
        if chance <= NOTHING:
            break
        left[order, np.arange(len(order))] -= chance
        total -= chance
        ranking = tuple(shown[order[:n]].tolist())
        found[ranking] = found.get(ranking, 0.0) + chance
    whole = sum(found.values())
    best = sorted(found.items(), key=lambda pair: (-round(pair[1], 9), pair[0]))
    return [(round(chance / whole, 9), np.array(order)) for order, chance in best]


def _enough(relevance: FloatArray, rows: FloatArray, n: int) -> NDArray[np.intp]:
    """The places of the n most relevant documents of each combination of groups: no other is in a best policy."""
    order = np.argsort(-relevance, kind="stable")
    _, kind = np.unique(rows[order], axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    before = np.array([(kind[:place] == one).sum() for place, one in enumerate(kind.tolist())])
    return np.sort(order[before < n])


def _best_matrix(relevance: FloatArray, rows: FloatArray, due: FloatArray, shares: FloatArray) -> FloatArray:
    """The linear program: the matrix (m, n) with the most relevance of those that are nearest to the groups' due."""
    from scipy.optimize import linprog

    m, n, groups = len(relevance), len(shares), len(due)
    # P row by row, then by how much each group gets too much, and too little.
    costs = np.concatenate([-np.kron(relevance, shares), np.full(2 * groups, UNFAIR)])
    ranks = np.hstack([np.kron(np.ones((1, m)), np.eye(n)), np.zeros((n, 2 * groups))])
    exposure = np.hstack([np.kron(rows.T, shares[None, :]), -np.eye(groups), np.eye(groups)])
    documents = np.hstack([np.kron(np.eye(m), np.ones((1, n))), np.zeros((m, 2 * groups))])
    solved = linprog(
        costs,
        A_ub=documents,
        b_ub=np.ones(m),
        A_eq=np.vstack([ranks, exposure]),
        b_eq=np.concatenate([np.ones(n), due]),
        method="highs",
    )
    if solved.x is None:
        raise DataError(f"no policy was found: {solved.message}")
    matrix: FloatArray = solved.x[: m * n].reshape(m, n)
    return matrix
