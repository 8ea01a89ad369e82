"""FA*IR: a ranking with at least as many documents of a protected group as chance would show (Zehlike et al. 2017).

A ranking is seen as tosses of a coin that shows "protected" with probability p. A prefix of length i fails when so few
protected documents are as unlikely as `alpha`. A fair ranking has to pass at every prefix, so the whole test fails
fair coins more often than `alpha`; the adjustment looks for a milder level for the prefixes that makes up for it.
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import bdtr

from fairagent.collection.exposure import dimensions_of
from fairagent.errors import UsageError
from fairagent.measures import LOG2_MAX2, Discount, group_exposure, known_part, most_underexposed, parse_discount
from fairagent.retrieve.base import placed
from fairagent.retrieve.site import Site
from fairagent.search.rerank.base import Pool
from fairagent.settings import Part
from fairagent.settings.faults import no_such
from fairagent.types import FloatArray, Ranking

Compat = Literal["library"] | None
"""None: all prefixes count, at the best level; "library": fairsearchcore's probability and search."""


@dataclass(frozen=True, slots=True, eq=False)
class AdjustedTable:
    """A table (k,) with the level `alpha` of its prefixes and the probability `fail` that a fair coin fails it."""

    alpha: float
    table: NDArray[np.intp]
    fail: float


def minimum_protected(k: int, p: float, alpha: float) -> NDArray[np.intp]:
    """The fewest protected documents in the first 1..k ranks, shape (k,): the smallest m with F(m; i, p) >= alpha.

    F is the binomial distribution function. Raises UsageError where k < 1, p is not in [0, 1] or alpha not in [0.001,
    0.5].

    >>> minimum_protected(10, p=0.5, alpha=0.1).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    """
    _check(k, p, alpha)
    return _table(_levels(k, p, alpha), alpha)


def fail_probability(table: NDArray[np.intp], p: float, compat: Compat = None) -> float:
    """The probability that tosses with probability `p` fall below `table` (k,) at some prefix, in [0, 1].

    `compat="library"` leaves out the last rank, as fairsearchcore's auxiliary table does. A ranking can fail only where
    the table rises, so the steps go from rise to rise, with only the counts below the last entry.

    >>> table = minimum_protected(20, p=0.25, alpha=0.1)
    >>> round(fail_probability(table, 0.25), 6), round(fail_probability(table, 0.25, compat="library"), 6)
    (0.146887, 0.115175)
    """
    positions = table[:-1] if compat == "library" else table
    # mass[c]: the probability of c protected documents so far without a failure; tosses[i][c]: of c in i tosses.
    mass, tosses = np.ones(1), [np.ones(1)]
    done, failed = 0, 0.0
    for rise in np.flatnonzero(np.diff(positions, prepend=0)).tolist():
        ranks, done = rise + 1 - done, rise + 1
        while len(tosses) <= ranks:
            tosses.append(np.convolve(tosses[-1], [1 - p, p]))
        mass = np.convolve(mass, tosses[ranks])[: positions[-1]]
        least = positions[rise]
        # What falls out is added up: 1 - (what is left) would lose small probabilities to rounding.
        failed += mass[:least].sum()
        mass[:least] = 0.0
    return float(failed)


@lru_cache(maxsize=1024)
def adjusted(k: int, p: float, alpha: float, compat: Compat = None) -> AdjustedTable:
    """The table with a level in [0, alpha] whose fail probability is closest to `alpha`; of two, the milder.

    The bisection is over the values of the distribution function, where alone the table changes, and ends at the exact
    optimum; `compat="library"` bisects the level itself, as fairsearchcore does. The table is read-only.

    >>> adjusted(20, p=0.25, alpha=0.1).table.tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]
    """
    _check(k, p, alpha)
    if compat == "library":
        adjusted = _as_the_library(k, p, alpha)
    else:
        levels = _levels(k, p, alpha)
        steps = np.append(np.unique(levels[levels < alpha]), alpha)

        def tried(step: int) -> AdjustedTable:
            table = _table(levels, steps[step])
            return AdjustedTable(float(steps[step]), table, fail_probability(table, p))

        # The first step above `alpha`; at step 0 nothing is required, so that nothing fails.
        high = bisect_right(range(len(steps)), alpha, lo=1, key=lambda step: tried(step).fail)
        adjusted = min(map(tried, range(high - 1, min(high + 1, len(steps)))), key=lambda one: abs(one.fail - alpha))
    adjusted.table.flags.writeable = False
    return adjusted


def _as_the_library(k: int, p: float, alpha: float) -> AdjustedTable:
    """The search of fairsearchcore 1.0.4: halve the interval of levels until its ends' tables differ in one place."""
    from scipy.stats import binom

    ranks = np.arange(1, k + 1)

    def tried(level: float) -> AdjustedTable:
        # scipy's quantile, not ours: where a level is a value of the distribution function rounding decides, and theirs
        # at p = .9 says that (1 - .9)^2 is below .01, but 1 - .9 not below .1.
        table = np.maximum(binom.ppf(level, ranks, p), 0).astype(np.intp)
        return AdjustedTable(level, table, fail_probability(table, p, "library"))

    mild, middle, strict = tried(0.0), tried(alpha / 2), tried(alpha)
    while mild.table.sum() < strict.table.sum() and middle.fail != alpha:
        if middle.fail < alpha:
            mild = middle
        else:
            strict = middle
        middle = tried((mild.alpha + strict.alpha) / 2)
        below, above = (int((b.table - a.table).sum()) for a, b in ((mild, middle), (middle, strict)))
        if below + above == 1 or strict.alpha - mild.alpha <= 1e-16:
            return min(mild, strict, key=lambda one: abs(one.fail - alpha))
        if below == above == 1:
            return min(middle, mild, strict, key=lambda one: abs(one.fail - alpha))
    return middle


def _levels(k: int, p: float, alpha: float) -> FloatArray:
    """F(m; i, p) for i = 1..k in rows and every m that alpha can ask for in columns; infinite where m >= i."""
    # F falls with i: what is not below alpha at i = k is so nowhere.
    most = int((bdtr(np.arange(k), k, p) < alpha).sum())
    i, m = np.arange(1, k + 1)[:, None], np.arange(most + 1)[None, :]
    return np.where(m < i, bdtr(np.minimum(m, i), i, p), np.inf)


def _table(levels: FloatArray, alpha: float) -> NDArray[np.intp]:
    # With a margin for rounding: F(3; 7, 1/2) is 1/2, and not below it.
    return np.asarray((levels < alpha * (1 - 1e-12)).sum(axis=1))


def _check(k: int, p: float, alpha: float) -> None:
    if k < 1 or not 0 <= p <= 1 or not 0.001 <= alpha <= 0.5:
        given = f"not k={k}, p={p:g}, alpha={alpha:g}"
        raise UsageError(f"FA*IR needs k >= 1, p in [0, 1] and alpha in [0.001, 0.5], {given}")


class ProtectedGroup(NamedTuple):
    """A group by its place in a pool: the dimension, and the group among its known ones, both counted from 0.

    With the labels ("female", "male") of the first dimension, `ProtectedGroup(0, 1)` is male.
    """

    dimension: int
    group: int

    def share(self, pool: Pool) -> float:
        return float(pool.targets[self.dimension][self.group])

    def members(self, pool: Pool) -> NDArray[np.bool_]:
        """Which candidates belong to the group, with whatever share, (n,)."""
        return pool.memberships[self.dimension][:, 1 + self.group] > 0


def most_lacking(pool: Pool, discount: Discount) -> ProtectedGroup | None:
    """The group of `measures.most_underexposed` in the first `pool.n` candidates; None where none lacks anything."""
    weights = discount(len(pool.ranking.top(pool.n)))
    shares = [known_part(group_exposure(rows[: len(weights)], weights)) for rows in pool.memberships]
    place = most_underexposed(shares, pool.targets)
    return ProtectedGroup(*place) if place else None


class ProtectedPart(Part):
    """A re-ranker that knows one protected group."""

    of_groups: ClassVar[bool] = True
    group: dict[str, str] = Field(default={}, max_length=1)
    """The protected group, e.g. {gender: female}. Empty: the one that lacks most exposure among the first n candidates;
    for `deltr`, in most of the topics that it learns from."""

    def check(self, site: Site) -> None:
        self.place(site)

    def place(self, site: Site) -> ProtectedGroup | None:
        """The group's place in a pool, None where none is named; UsageError where there is no such group."""
        for dimension, label in self.group.items():
            dimensions = dimensions_of(site.collection, site.settings)
            if dimension not in dimensions:
                raise UsageError(f"group: {dimension!r} is none of the system's dimensions ({', '.join(dimensions)})")
            labels = site.collection.groups.labels(dimension)
            if label not in labels:
                raise UsageError(f"{dimension!r} has {no_such('group', label, labels)}")
            return ProtectedGroup(dimensions.index(dimension), labels.index(label))
        return None


@dataclass(frozen=True, slots=True)
class FAStarIRReranker:
    """By relevance, but at every rank with as many protected documents as the adjusted table asks.

    The protected group is `group`, or the one of all dimensions whose exposure in the first n candidates is furthest
    below its target; p is its target share, `alpha` in [0.001, 0.5] the significance. Where no group lacks anything, or
    candidates of the group run out, the rest is by relevance.
    """

    alpha: float = 0.1
    group: ProtectedGroup | None = None
    compat: Compat = None
    discount: Discount = LOG2_MAX2

    def rerank(self, pool: Pool) -> Ranking:
        n = min(pool.n, len(pool.ranking))
        group = self.group or most_lacking(pool, self.discount)
        if not n or group is None:
            return placed(pool.ranking.ids, range(n))
        table = adjusted(n, group.share(pool), self.alpha, self.compat).table
        return placed(pool.ranking.ids, fa_star_ir(pool.ranking.scores, group.members(pool), table))


def fa_star_ir(scores: FloatArray, protected: NDArray[np.bool_], table: NDArray[np.intp]) -> list[int]:
    """The documents' indices in the order of FA*IR: as many ranks as `table` (k,) has, or documents there are.

    A rank goes to the better of the best protected document and the best other one, on a tie to the protected one,
    unless fewer protected documents than the table asks are above it. Where one queue is exhausted the other goes on.

    >>> scores, protected = np.array([4.0, 3.0, 2.0, 1.0]), np.array([False, False, False, True])
    >>> fa_star_ir(scores, protected, np.array([0, 0, 1]))
    [0, 1, 3]
    """
    best_first = np.argsort(-scores, kind="stable")
    is_protected = protected[best_first]
    inside, outside = best_first[is_protected].tolist(), best_first[~is_protected].tolist()
    order: list[int] = []
    above = 0
    for least in table[: len(scores)].tolist():
        others = len(order) - above
        next_in, next_out = inside[above : above + 1], outside[others : others + 1]
        if next_in and (not next_out or above < least or scores[next_in[0]] >= scores[next_out[0]]):
            order += next_in
            above += 1
        else:
            order += next_out
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
        return FAStarIRReranker(self.alpha, self.place(site), self.compat, parse_discount(site.settings.discount))
