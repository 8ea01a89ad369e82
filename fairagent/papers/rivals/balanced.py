"""Groups in turn, each with its best document, AFTER THE ABSTRACT of FAIR-RAG.

FAIR-RAG: An End-to-End Framework for Mitigating Political Bias through Fair Retrieval-Augmented Generation, SIGIR 2026.
Of the paper the abstract and the beginning of its repository's page could be read: documents carry a political stance,
and the first of three stages retrieves in a balanced way. It is OURS that balanced means turns: one document of each
group, then a second of each, whatever the target. The annotation by models with personas, the stages that fit the
context together and that guide the generator, and the measures are not here.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fairagent.extend import FloatArray, Part, Pool, Ranking, Site, placed
from fairagent.papers.rivals.aspects import DECIMALS, combinations, one_by_one


@dataclass(frozen=True, slots=True)
class BalancedReranker:
    """At each rank the best document of the groups that have had least; documents without a label take no turn.

    With several dimensions these are combinations of groups. Where only documents without a label are left they follow
    in their order, and so where there are no dimensions.
    """

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates; scores fall in equal steps, since the order is no engine's."""
        rows = combinations(pool).rows
        labeled = np.ones(len(rows), dtype=np.bool_)
        for of in pool.memberships:
            labeled &= of[:, 1:].any(axis=1)
        return placed(pool.ranking.ids, in_turn(np.where(labeled[:, None], rows, 0.0), pool.n))


def in_turn(rows: FloatArray, n: int) -> list[int]:
    """The indices of min(n, m) documents out of those that are best first, the groups in turn.

    `rows` (m, c) are what the documents have of each group; a document of several counts for each with its part, and
    one with a row of zeros comes when no other is left.

    >>> in_turn(np.array([[1.0, 0], [1, 0], [0, 0], [0, 1]]), n=4)
    [0, 3, 1, 2]
    """

    def next_in_turn(had: FloatArray, left: NDArray[np.bool_]) -> int:
        there = rows[left].any(axis=0)
        turn = there & (np.round(had, DECIMALS) == np.round(had[there], DECIMALS).min(initial=np.inf))
        members = left & rows[:, turn].any(axis=1)
        return int((members if members.any() else left).argmax())

    return one_by_one(rows, n, next_in_turn)


class BalancedConfig(Part):
    """After the abstract of FAIR-RAG: the groups in turn, each with its best document, whatever the target."""

    of_groups: ClassVar[bool] = True
    kind: Literal["balanced"] = "balanced"

    def build(self, site: Site) -> BalancedReranker:
        """The re-ranker."""
        return BalancedReranker()
