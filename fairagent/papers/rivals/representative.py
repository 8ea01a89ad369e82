"""A stochastic ranking that represents the groups: each rank is first given to a group by chance, then to a document.

Made after the Representative Stochastic ranker of Tikoo, Towards FairRAG (arXiv 2605.18806, 2026), of which only the
abstract could be read: this is NOT that ranker. Groups are drawn as by the ranking generator of Yang and Stoyanovich
(SSDBM 2017), documents within a group by Plackett-Luce (Kim and Diaz, ICTIR 2025). Ours: the chance of a group is its
target share; more groups than two, several dimensions, documents without a label or with several.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.retrieve.base import placed
from fairagent.retrieve.site import Site
from fairagent.retrieve.stochastic import sample_rankings, sampler_log_scores, topic_rng
from fairagent.search.rerank.base import Pool
from fairagent.settings import Part
from fairagent.types import FloatArray, Ranking


@dataclass(frozen=True, slots=True)
class RepresentativeReranker:
    """A random order whose ranks each go to a group with the chance that is its target share.

    So the expected exposure of the groups is on target at every rank, until one of them has no candidates left; its
    share then goes to the other groups. Documents without a label keep the share that they have among the first n
    candidates. A document of several groups counts, for this draw, as one of them, drawn by its memberships; of several
    dimensions combinations are drawn (`raked`). The draw depends on `seed` and the topic alone.
    """

    alpha: float = 8.0
    seed: int = 0

    def rerank(self, pool: Pool) -> Ranking:
        if not len(pool.ranking):
            return pool.ranking
        rng = topic_rng(self.seed, pool.query.id or pool.query.text)
        return placed(pool.ranking.ids, draw_order(pool, self.alpha, rng))


def draw_order(pool: Pool, alpha: float, rng: np.random.Generator) -> list[int]:
    """One draw: the places in `pool.ranking` of min(n, candidates) documents; see `RepresentativeReranker`."""
    shares = [counting_one(rows) for rows in pool.memberships]
    targets = [with_unknown(rows[: pool.n], target) for rows, target in zip(shares, pool.targets, strict=True)]
    labels = np.zeros((len(pool.ranking), len(shares)), dtype=np.intp)
    for dimension, rows in enumerate(shares):
        bounds = rows.cumsum(axis=1)
        # Divided by the last, the bounds from the last label with a share on are exactly 1.
        labels[:, dimension] = (rng.random((len(rows), 1)) >= (bounds / bounds[:, -1:])[:, :-1]).sum(axis=1)
    numbers: dict[tuple[int, ...], int] = {}
    of = np.array([numbers.setdefault(tuple(row), len(numbers)) for row in labels.tolist()], dtype=np.intp)
    combinations = np.array(list(numbers), dtype=np.intp).reshape(len(numbers), len(shares))
    sizes = np.bincount(of, minlength=len(combinations)).astype(np.float64)
    queues: list[list[int]] = []
    for number in range(len(combinations)):
        places = np.flatnonzero(of == number)
        drawn = sample_rankings(sampler_log_scores(pool.ranking.scores[places], alpha), len(places), rng)[0]
        queues.append(places[drawn[::-1]].tolist())

    order: list[int] = []
    left, bounds = np.arange(len(combinations)), np.zeros(0)
    for _ in range(min(pool.n, len(pool.ranking))):
        if not len(bounds):
            left = np.flatnonzero([bool(queue) for queue in queues])
            bounds = raked(sizes[left], combinations[left], targets).cumsum()
        # A combination without a share has the bound of the one before it: right of equal bounds it is never drawn.
        queue = queues[left[np.searchsorted(bounds, rng.random() * bounds[-1], side="right")]]
        order.append(queue.pop())
        if not queue:
            bounds = np.zeros(0)
    return order


def raked(sizes: FloatArray, combinations: NDArray[np.intp], targets: Sequence[FloatArray]) -> FloatArray:
    """The shares of combinations of groups, (k,), on target in each dimension and else in proportion to `sizes`.

    `combinations` (k, d) has a label in each dimension, `targets` a share for each label; 0 is unknown. It is iterative
    proportional fitting (Deming and Stephan 1940). Groups in no combination give their target to the other groups.
    Targets that cannot be met together are met one after the other; where they leave nothing, `sizes` decide.

    >>> both = np.array([[1, 1], [1, 2], [2, 2]])
    >>> raked(np.ones(3), both, [np.array([0, 0.5, 0.5]), np.array([0, 0.25, 0.75])]).round(6).tolist()
    [0.25, 0.25, 0.5]
    """
    start: FloatArray = sizes / sizes.sum()
    shares = start
    for _ in range(200):
        before = shares
        for labels, target in zip(combinations.T, targets, strict=True):
            mass = np.bincount(labels, weights=shares, minlength=len(target))
            due = np.where(mass > 0, target, 0)
            if due[1:].any():
                due[1:] *= target[1:].sum() / due[1:].sum()
            if due.sum() <= 0:
                return start
            shares = (due / due.sum())[labels] * (shares / np.where(mass > 0, mass, 1)[labels])
        if np.abs(shares - before).max() <= 1e-12:
            break
    return shares


class RepresentativeConfig(Part):
    """One random ranking a topic, always the same one, whose ranks go to groups by their target shares."""

    of_groups: ClassVar[bool] = True
    at_random: ClassVar[bool] = True
    kind: Literal["representative"] = "representative"
    alpha: float = Field(8.0, ge=0)
    """How closely each group's documents keep to the engine's order: 0 not at all, 8 almost exactly. Which group has
    which rank does not depend on it."""

    def build(self, site: Site) -> RepresentativeReranker:
        return RepresentativeReranker(self.alpha, site.seed)


def counting_one(rows: FloatArray) -> FloatArray:
    """Membership rows (m, 1 + g) that add up to 1 each; where one is all zero the group is not known.

    >>> counting_one(np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])).tolist()
    [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]
    """
    mass = rows.sum(axis=1, keepdims=True)
    return np.where(mass > 0, rows / np.where(mass > 0, mass, 1), np.eye(1, rows.shape[1]))


def with_unknown(first: FloatArray, target: FloatArray) -> FloatArray:
    """The target (1 + g,) that leaves documents without a label the share that they have among `first` (k, 1 + g).

    >>> with_unknown(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.array([0.25, 0.75])).tolist()
    [0.5, 0.125, 0.375]
    """
    unknown = float(counting_one(first)[:, 0].mean()) if len(first) else 0.0
    return np.concatenate([[unknown], (1 - unknown) * target])
