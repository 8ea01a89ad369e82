"""A greedy re-ranker whose prefixes are as near to the target as can be, AFTER THE ABSTRACT of FGR.

Haque, Fu, Aditya, Xu, Niu: Fair RAG: End-to-End Fairness Across Retrieval and Generation, Findings of ACL 2026
(2026.findings-acl.1358). Only the abstract could be read: a "Fair Greedy Reranker" builds slates whose prefixes are
balanced toward a target mix of groups, judged by NDKL. It does not say how, so this is the plainest rule that does: at
each rank the document that leaves the prefix with the smallest Kullback-Leibler divergence from the target (NDKL's
term for that prefix), the best-placed one of those. What the paper does after retrieval (a signed NDKL, and a
calibration of a classifier's logits by it) needs a classifier and is not here.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fairagent.extend import FloatArray, Part, Pool, Ranking, Site, placed
from fairagent.papers.rivals.aspects import DECIMALS, aspects, one_by_one

FLOOR = 1e-6
"""What stands for a target of 0, so that a document of such a group is far off, and not infinitely."""


@dataclass(frozen=True, slots=True)
class FGRReranker:
    """Greedy, by the mix of groups in the prefix, summed over the dimensions, and by score where that is equal."""

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates; scores fall in equal steps, since the order is no engine's."""
        of = aspects(pool)
        return placed(pool.ranking.ids, nearest_prefixes(of.rows, of.due, pool.n))


def nearest_prefixes(rows: FloatArray, due: FloatArray, n: int) -> list[int]:
    """The indices of min(n, m) documents out of those that are best first, each for the smallest KL(prefix, target).

    `rows` (m, c) are what the documents have of each group, `due` (c,) the groups' shares; several dimensions stand
    side by side, and their divergences are summed.

    >>> rows = np.array([[1.0, 0], [1, 0], [1, 0], [0, 1]])
    >>> nearest_prefixes(rows, np.array([0.9, 0.1]), n=4)
    [0, 1, 2, 3]
    >>> nearest_prefixes(rows, np.array([0.5, 0.5]), n=4)
    [0, 3, 1, 2]
    """
    log_due = np.log(np.maximum(due, FLOOR))

    def nearest(shown: FloatArray, left: NDArray[np.bool_]) -> int:
        mix = (shown + rows) / (1 + np.count_nonzero(~left))
        divergence = (mix * (np.log(np.where(mix > 0, mix, 1)) - log_due)).sum(axis=1)
        return int(np.where(left, np.round(divergence, DECIMALS), np.inf).argmin())

    return one_by_one(rows, n, nearest)


class FGRConfig(Part):
    """After the abstract of FGR: each rank to the document that leaves the groups' mix nearest to the target."""

    of_groups: ClassVar[bool] = True
    kind: Literal["fgr"] = "fgr"

    def build(self, site: Site) -> FGRReranker:
        """The re-ranker."""
        return FGRReranker()
