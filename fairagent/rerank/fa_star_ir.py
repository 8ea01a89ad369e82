"""FA*IR: a ranking with at least as many documents of a protected group as chance would show (Zehlike et al. 2017)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.measures import LOG2_MAX2, Discount, parse_discount
from fairagent.rerank.base import Pool
from fairagent.rerank.fa_star_ir_tables import Compat, adjusted
from fairagent.rerank.protected import ProtectedGroup, ProtectedPart, most_lacking
from fairagent.retrieve.placed import placed
from fairagent.site import Site
from fairagent.types import FloatArray, Ranking


@dataclass(frozen=True, slots=True)
class FAStarIRReranker:
    """By relevance, but at every rank with as many protected documents as the adjusted table asks.

    The method knows one protected group. It is `group`, or where that is None the one of all dimensions whose exposure
    in the first n candidates is furthest below its target; a document belongs to it with whatever share. p is the
    group's target share, `alpha` in [0.001, 0.5] the significance. Where no group lacks anything, or candidates of the
    group run out, the rest is by relevance: that is no error, and the ranking is then not fair in FA*IR's sense.
    `compat="library"` adjusts as fairsearchcore does, which leaves the last rank untested.
    """

    alpha: float = 0.1
    group: ProtectedGroup | None = None
    compat: Compat = None
    discount: Discount = LOG2_MAX2

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates; UsageError for a `group` that the pool does not have or an odd `alpha`."""
        n = min(pool.n, len(pool.ranking))
        group = self.group or most_lacking(pool, self.discount)
        if not n or group is None:
            return placed(pool.ranking.ids, range(n))
        table = adjusted(n, group.share(pool), self.alpha, self.compat).table
        return placed(pool.ranking.ids, fa_star_ir(pool.ranking.scores, group.members(pool), table))


def fa_star_ir(scores: FloatArray, protected: NDArray[np.bool_], table: NDArray[np.intp]) -> list[int]:
    """The documents' indices in the order of FA*IR: as many ranks as `table` (k,) has, or documents there are.

    `scores` (n,) order the protected documents and the others, each for themselves, ties as they come. A rank goes to
    the better of both heads, on a tie to the protected one, unless fewer protected documents than the table asks are
    above it: then to the best protected one. Where one queue is exhausted the other goes on.

    >>> scores, protected = np.array([4.0, 3.0, 2.0, 1.0]), np.array([False, False, False, True])
    >>> fa_star_ir(scores, protected, np.array([0, 0, 1]))
    [0, 1, 3]
    """
    best_first = np.argsort(-scores, kind="stable")
    is_protected = protected[best_first]
    inside, outside = best_first[is_protected].tolist(), best_first[~is_protected].tolist()
    order: list[int] = []
    # Places of the next protected and the next other document in their queues.
    next_in = next_out = 0
    for least in table[: len(scores)].tolist():
        if next_in < len(inside) and next_out < len(outside):
            better = scores[inside[next_in]] >= scores[outside[next_out]]
            take_protected = next_in < least or better
        else:
            take_protected = next_in < len(inside)
        if take_protected:
            order.append(inside[next_in])
            next_in += 1
        else:
            order.append(outside[next_out])
            next_out += 1
    return order


class FAStarIRConfig(ProtectedPart):
    """FA*IR."""

    kind: Literal["fa-star-ir"] = "fa-star-ir"
    alpha: float = Field(0.1, ge=0.001, le=0.5)
    """The significance of the test that every prefix of the ranking passes. Larger values ask for more protected
    documents at the top."""
    compat: Compat = None
    """library: adjusted as the package fairsearchcore does, which leaves the last rank untested. null: exactly."""

    def build(self, site: Site) -> FAStarIRReranker:
        """The re-ranker."""
        return FAStarIRReranker(self.alpha, self.place(site), self.compat, parse_discount(site.settings.discount))
