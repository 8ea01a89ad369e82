"""The targets of a year and task, computed from the topics' relevant pages.

Task 1: one ranking a topic, measured by nDCG, AWRF and their product.

AWRF = 1 - JSD(exposure, target), natural logarithm, the divergence and not its root: in [1 - ln 2, 1]. On cells
that the ranking does not touch, the divergence is 1/2 ln 2 times the target's mass there, so only the touched
cells are ever looked at.
Source: TREC Fair Ranking 2022, Task1Evaluation.

Task 2: a sequence of rankings a topic, measured by expected exposure: EE-L, EE-D and EE-R.

With the system's exposure s and the target tau over all cells, EE-D = sum s^2, EE-R = sum s tau and EE-L =
sum (s - tau)^2. On cells that no ranking touches these are 0, 0 and tau^2, whose sum is that of all cells
without the touched ones.
Source: TREC Fair Ranking 2022, Task2Alignment and Task2Evaluation (Diaz et al. 2020 for expected exposure).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from fairagent.measures.discounts import LOG2_MAX2
from fairagent.measures.trec_fair import space as y2021
from fairagent.measures.trec_fair.dimensions import QUALITIES
from fairagent.measures.trec_fair.pages import IntArray
from fairagent.measures.trec_fair.runs import Judgments, ShownPages
from fairagent.measures.trec_fair.space import Amounts, Space, totals
from fairagent.measures.trec_fair.targets import Targets, averaged_with_world
from fairagent.types import FloatArray

LOWEST = 1.0 - math.log(2.0)
"""The AWRF of a ranking that shows nothing of what it should."""


@dataclass(frozen=True, slots=True)
class Task1Row:
    """One topic of a run: `ndcg` in [0, 1], `awrf` in [1 - ln 2, 1], `score` their product.

    `unknown` is the number of listed pages without metadata, which AWRF leaves out.
    """

    topic: str
    ndcg: float
    awrf: float
    score: float
    unknown: int


def ndcg(judgments: Judgments, shown: ShownPages, n: int) -> FloatArray:
    """The nDCG of every topic's ranking against the best one of `n` pages, (t,); nan for a topic without any.

    The discounts of relevant lines, divided by those of ranks 1 .. min(n, relevant pages). Relevant pages count
    whether they have metadata or not.
    """
    topics = len(judgments.topics)
    gains = totals(shown.topic, shown.attention * shown.relevant, topics)
    longest = min(n, int(judgments.relevant.max()))  # no ranking is better than one of all relevant pages
    best = np.concatenate(([np.nan], LOG2_MAX2(longest).cumsum()))
    return gains / best[np.minimum(longest, judgments.relevant)]


def awrf(exposure: Amounts, targets: Targets) -> FloatArray:
    """The AWRF of every topic's exposure, (t,), both sides divided by their sums.

    Not defined by the track where a ranking has no exposure at all (no known page): there it is `LOWEST`.

    >>> from fairagent.measures.trec_fair.dimensions import Dimension
    >>> from fairagent.measures.trec_fair.space import Space
    >>> space = Space.of([Dimension("gender", ("@UNKNOWN", "female", "male", "NB"))])
    >>> target = Amounts(np.arange(4), np.array([0.25, 0.310625, 0.435625, 0.00375]))
    >>> targets = Targets(space, target, np.zeros((1, 1)), np.zeros((1, 4)))
    >>> exposure = Amounts(np.array([0, 1, 2]), np.array([1.0, 0.63093, 1.0]))  # unknown, female, male
    >>> awrf(exposure, targets).round(6).tolist()
    [0.988707]
    """
    topics = exposure.keys // targets.space.cells
    mass = totals(topics, exposure.values, len(targets.heads))
    total = targets.total
    p = exposure.values / mass[topics]
    q = targets.at(exposure.keys) / np.where(total > 0.0, total, 1.0)[topics]
    halves = 0.5 * (p * np.log(2.0 * p / (p + q)) + _x_log(q, 2.0 * q / (p + q)))
    untouched = 1.0 - totals(topics, q, len(total))
    divergence = totals(topics, halves, len(total)) + 0.5 * math.log(2.0) * untouched
    return np.where(mass > 0.0, 1.0 - divergence.clip(0.0, math.log(2.0)), LOWEST)


def _x_log(x: FloatArray, y: FloatArray) -> FloatArray:
    """X ln y, 0 where x is."""
    return x * np.log(y, out=np.zeros_like(y), where=x > 0.0)


@dataclass(frozen=True, slots=True)
class Task2Row:
    """One topic of a run: loss EE-L (lower is better), disparity EE-D and relevance EE-R, all 0 or more.

    `rankings` is how many the topic has, `unknown` the number of lines in them whose page has no metadata.
    """

    topic: str
    ee_l: float
    ee_d: float
    ee_r: float
    rankings: int
    unknown: int


def work_needed(counts: IntArray) -> FloatArray:
    """The exposure that each relevant page of a quality class should get, (t, 6).

    `counts` (t, 6) are a topic's relevant pages in each class of `QUALITIES`. In the ideal ranking pages that
    need more work come first and those of a class share its ranks: each gets the mean of the discounts
    1 / log2(max(rank, 2)) there. An empty class has 0.

    >>> work_needed(np.array([[2, 0, 1, 0, 0, 1]])).round(5).tolist()
    [[1.0, 0.0, 0.63093, 0.0, 0.0, 0.5]]
    """
    ends = counts.cumsum(axis=1)
    attention = np.concatenate(([0.0], LOG2_MAX2(int(ends.max(initial=0))).cumsum()))
    sums = attention[ends] - attention[ends - counts]
    mean: FloatArray = np.divide(sums, counts, out=np.zeros(counts.shape), where=counts > 0)
    return mean


def target_exposure(judgments: Judgments) -> FloatArray:
    """The exposure that the page of every judgment should get, (j,): `work_needed` of its class.

    Pages without metadata or without a quality class have 0, and no rank in the ideal ranking.
    """
    classes = len(QUALITIES)
    quality = np.where(judgments.row >= 0, judgments.pages.quality.take(judgments.row, mode="clip"), -1)
    place = judgments.topic * classes + quality
    known = quality >= 0
    counts = np.bincount(place[known], minlength=len(judgments.topics) * classes).reshape(-1, classes)
    return np.where(known, work_needed(counts).ravel().take(place, mode="clip"), 0.0)


def expected_exposure(exposure: Amounts, targets: Targets) -> tuple[FloatArray, FloatArray, FloatArray]:
    """EE-L, EE-D and EE-R of every topic, (t,) each; `targets` are scaled to the attention of a full ranking.

    >>> from fairagent.measures.trec_fair.dimensions import Dimension
    >>> from fairagent.measures.trec_fair.space import Space
    >>> space = Space.of([Dimension("gender", ("@UNKNOWN", "female", "male"))])
    >>> tau = Targets(space, Amounts(np.arange(3), np.array([1.0, 2.0, 1.0])), np.zeros((1, 1)), np.zeros((1, 3)))
    >>> [value.tolist() for value in expected_exposure(Amounts(np.array([2]), np.array([1.5])), tau)]
    [[5.25], [2.25], [1.5]]
    """
    topics = exposure.keys // targets.space.cells
    s, tau = exposure.values, targets.at(exposure.keys)

    def summed(values: FloatArray) -> FloatArray:
        return totals(topics, values, len(targets.heads))

    untouched = (targets.squares - summed(tau**2)).clip(0.0)
    return summed((s - tau) ** 2) + untouched, summed(s**2), summed(s * tau)


Year = Literal[2021, 2022]
Task = Literal[1, 2]

RANKING_LENGTH: dict[Year, int] = {2021: 50, 2022: 20}
"""Task 2: how many pages a full ranking has, by year; targets are scaled to its attention."""


class Relevant:
    """The relevant pages of every topic with their weights, and the targets over any of the dimensions.

    In Task 1 every page weighs 1 and targets are not scaled; in Task 2 a page weighs what exposure it should get and
    targets are scaled to the attention of a full ranking.
    """

    def __init__(self, year: Year, task: Task, judgments: Judgments) -> None:
        self.year, self.task, self.judgments = year, task, judgments
        weights = target_exposure(judgments) if task == 2 else np.ones(judgments.row.size)
        counted = (judgments.row >= 0) & (weights > 0.0)
        self._topic, self._row, self._weight = judgments.topic[counted], judgments.row[counted], weights[counted]

    def targets(self, names: Sequence[str]) -> Targets:
        """The targets over one dimension, or over several: the intersectional ones summed over the others.

        UsageError where there is no dimension, an unknown one, or one twice.
        """
        pages = self.judgments.pages
        space = Space.of([pages.dimension(name) for name in names])
        if len(names) == 1:
            targets = averaged_with_world(space, self._alignment(space), len(self.judgments.topics))
            return targets if self.task == 1 else targets.scaled(self._attention(targets.total))
        whole = self._intersectional
        return whole if len(names) == len(pages.dimensions) else whole.over(names)

    def left_out(self, targets: Targets) -> dict[str, str]:
        """The topics without a target, and why."""
        judgments = self.judgments
        needed = "metadata and a quality class" if self.task == 2 else "metadata"
        needed = "metadata and a known label" if (self.year, self.task) == (2021, 1) else needed
        reasons = {}
        for number in np.flatnonzero(~(targets.total > 0.0)).tolist():
            count = int(judgments.relevant[number])
            none = f"none of its {count} relevant pages has {needed}"
            reasons[judgments.topics[number]] = none if count else "no page is relevant"
        return reasons

    @cached_property
    def _intersectional(self) -> Targets:
        space = Space.of(self.judgments.pages.dimensions)
        alignment = self._alignment(space)
        topics = len(self.judgments.topics)
        targets = averaged_with_world(space, alignment, topics)
        if self.task == 1:
            return targets
        # 2022 divides by the weights and not by the mass, which is more where alignments add up to more than 1.
        if self.year == 2022:
            return targets.scaled(self._attention(totals(self._topic, self._weight, topics)))
        return targets.scaled(self._attention(totals(alignment.keys // space.cells, alignment.values, topics)))

    def _alignment(self, space: Space) -> Amounts:
        """The weighted sum of the relevant pages' alignments, topic by topic to stay small."""
        pages, bounds = self.judgments.pages, np.searchsorted(self._topic, np.arange(len(self.judgments.topics) + 1))
        parts = []
        for start, end in zip(bounds.tolist(), bounds[1:].tolist(), strict=False):
            parts.append(space.amounts(pages, self._row[start:end], self._topic[start:end], self._weight[start:end]))
        keys = np.concatenate([*(part.keys for part in parts), np.zeros(0, np.int64)])
        whole = Amounts(keys, np.concatenate([*(part.values for part in parts), np.zeros(0)]))
        return y2021.without_unknown(whole, space) if (self.year, self.task) == (2021, 1) else whole

    def _attention(self, divisors: FloatArray) -> FloatArray:
        """What makes a target with this sum one of a full ranking's attention; 0 where there is no target."""
        attention = float(LOG2_MAX2(RANKING_LENGTH[self.year]).sum())
        factors: FloatArray = np.divide(attention, divisors, out=np.zeros_like(divisors), where=divisors > 0.0)
        return factors
