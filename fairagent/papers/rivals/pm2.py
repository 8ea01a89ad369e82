"""PM-2 over groups: ranks are given out as seats are in a parliament, with target shares in the place of votes.

Source: Dang, Croft: Diversity by Proportionality: An Election-based Approach to Search Result Diversification, SIGIR
2012, Algorithm 2: Sainte-Lague's quotients, and a seat that is shared among the aspects that its document covers. With
several dimensions these are the groups of all of them. As for xQuAD it is OURS that P(d|a) is the min-max score of a
candidate for the groups it belongs to.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.extend import FloatArray, Part, Pool, Ranking, Site, UsageError, min_max, placed
from fairagent.papers.rivals.aspects import DECIMALS, aspects, one_by_one


@dataclass(frozen=True, slots=True)
class PM2Reranker:
    """Each rank goes to the aspect with the largest quotient, and to the document that answers it and others best.

    `focus` in [0, 1] is the paper's lambda: 1 looks at that aspect alone. Ties go to the larger share, then to the
    first aspect, and among documents to the better-placed one. Raises UsageError for a `focus` outside.
    """

    focus: float = 0.5

    def __post_init__(self) -> None:
        """Check the number."""
        if not 0 <= self.focus <= 1:
            raise UsageError(f"PM-2: the weight of the aspect whose turn it is lies between 0 and 1, not {self.focus}")

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates; scores fall in equal steps, since the order is no engine's."""
        of = aspects(pool)
        coverage = min_max(pool.ranking.scores)[:, None] * of.rows
        return placed(pool.ranking.ids, pm2(coverage, of.rows, of.due, self.focus, pool.n))


def pm2(coverage: FloatArray, rows: FloatArray, due: FloatArray, focus: float, n: int) -> list[int]:
    """The indices of the min(n, m) documents that PM-2 picks, in order.

    An aspect with the share v (`due` (c,)) and s seats has the quotient v / (2 s + 1). Each rank goes to the aspect a
    with the largest one of those that a document is left for, and to the document that maximizes
    focus q_a P(d|a) + (1 - focus) sum over the others of q_b P(d|b), P(d|a) being `coverage` (m, c). Its seat is shared
    among its aspects in proportion to P(d|a), which here is that of `rows` (m, c). Where only documents are left whose
    aspects have no share, they follow in their order.

    Votes of 2/3 and 1/3. The quotients are 2/3 and 1/3, then 2/9 and 1/3, where b's only document is not good enough
    (.5 / 3 < .9 * 2 / 9), then 2/15 and 1/3; looking at b alone, its turn is its document's:

    >>> rows, due = np.array([[1.0, 0], [1, 0], [1, 0], [0, 1]]), np.array([2 / 3, 1 / 3])
    >>> covers = rows * np.array([[1.0], [0.9], [0.8], [0.5]])
    >>> pm2(covers, rows, due, focus=0.5, n=4), pm2(covers, rows, due, focus=1, n=4)
    ([0, 1, 3, 2], [0, 3, 1, 2])
    """

    def elected(seats: FloatArray, left: NDArray[np.bool_]) -> int:
        quotients = np.round(np.where(rows[left].any(axis=0), due / (2 * seats + 1), 0), DECIMALS)
        if not quotients.any():
            return int(left.argmax())
        turn = max(range(len(due)), key=lambda a: (quotients[a], due[a], -a))
        weights = np.where(np.arange(len(due)) == turn, focus, 1 - focus) * quotients
        # Of equal values, such as those of the last candidate's relevance 0, the aspect's own document.
        value = np.round(coverage @ weights, DECIMALS)
        return max(np.flatnonzero(left).tolist(), key=lambda d: (value[d], rows[d, turn] > 0, -d))

    return one_by_one(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1.0), n, elected)


class PM2Config(Part):
    """PM-2: ranks are given out to the groups as seats to parties, with target shares as votes."""

    of_groups: ClassVar[bool] = True
    kind: Literal["pm2"] = "pm2"
    focus: float = Field(0.5, ge=0, le=1)
    """The weight of the group whose turn it is, 0 to 1, the paper's lambda; the other groups have the rest. At 1 a rank
    goes to that group, however much better the others' documents are."""

    def build(self, site: Site) -> PM2Reranker:
        """The re-ranker."""
        return PM2Reranker(self.focus)
