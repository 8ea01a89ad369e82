"""DetGreedy, DetCons and DetRelaxed: every prefix has at least the whole number of documents that each target asks.

Source: Geyik, Ambler, Kenthapadi: Fairness-Aware Ranking in Search & Recommendation Systems with Application to
LinkedIn Talent Search, KDD 2019 (arXiv 1905.01989), Algorithms 1 and 2. Several dimensions become one attribute whose
values are combinations of groups, as there. OURS: a document of several groups counts for each with an equal part;
values without candidates leave their share to the others; where all values that may have the next rank have run out,
it goes to one that is below its upper bound, or else to the best document there is.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fairagent.extend import FloatArray, Part, Pool, Ranking, Site, placed
from fairagent.papers.rivals.aspects import DECIMALS, combinations, one_by_one

Rule = Literal["greedy", "cons", "relaxed"]


@dataclass(frozen=True, slots=True)
class DetGreedyReranker:
    """By score, but after k ranks each value with the share p has floor(k p) documents where that can be, see `rule`.

    The next rank goes to the best document of the values that would otherwise have too few. Where none has, `rule`
    decides among those with fewer than ceil(k p): `greedy` takes the best document; `cons` the value whose next
    document becomes due first, the smallest ceil(k p) / p; `relaxed` the best document of the values for whom that,
    rounded up to a rank, is smallest. Ties go to the better-placed candidate.
    """

    rule: Rule = "greedy"

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates; scores fall in equal steps, since the order is no engine's."""
        of = combinations(pool)
        return placed(pool.ranking.ids, det_greedy(of.rows, of.due, pool.n, self.rule))


def det_greedy(rows: FloatArray, due: FloatArray, n: int, rule: Rule = "greedy") -> list[int]:
    """The indices of min(n, m) documents in the order of `rule`, out of documents that are best first.

    `rows` (m, c) are their parts in each value of the attribute, `due` (c,) the values' shares.

    >>> women = np.array([[1.0, 0], [1, 0], [1, 0], [0, 1], [0, 1]])
    >>> det_greedy(women, np.array([0.5, 0.5]), n=4)
    [0, 3, 1, 4]
    """

    def next_due(counts: FloatArray, left: NDArray[np.bool_]) -> int:
        # Rounded, so that 10 times a tenth is 1.
        wanted = np.round((1 + np.count_nonzero(~left)) * due, DECIMALS)
        short = np.round(counts - np.floor(wanted), DECIMALS) < 0
        below = np.round(counts - np.ceil(wanted), DECIMALS) < 0
        for values in (short, _chosen(below & rows[left].any(axis=0), wanted, due, rule), below):
            of = left & rows[:, values].any(axis=1)
            if of.any():
                return int(of.argmax())
        return int(left.argmax())

    return one_by_one(rows, n, next_due)


def _chosen(below: NDArray[np.bool_], wanted: FloatArray, due: FloatArray, rule: Rule) -> NDArray[np.bool_]:
    """Which of the values `below` their upper bound may have the next rank."""
    if rule == "greedy" or not below.any():
        return below
    rank = np.full(len(due), np.inf)
    rank[below] = np.round(np.ceil(wanted[below]) / due[below], DECIMALS)
    if rule == "relaxed":
        rank = np.ceil(rank)
    return np.asarray(below & (rank == rank.min()))


class DetGreedyConfig(Part):
    """In every prefix as many documents of each group as its target asks, rounded down (Geyik et al. 2019)."""

    of_groups: ClassVar[bool] = True
    kind: Literal["det-greedy"] = "det-greedy"
    rule: Rule = "greedy"
    """Who has a rank that no group must have. greedy: the best document of those that may (DetGreedy). cons: the group
    whose next document is due first (DetCons). relaxed: the best of the groups with about the same due rank
    (DetRelaxed)."""

    def build(self, site: Site) -> DetGreedyReranker:
        """The re-ranker."""
        return DetGreedyReranker(self.rule)
