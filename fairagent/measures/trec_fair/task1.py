"""Task 1: one ranking a topic, measured by nDCG, AWRF and their product.

AWRF = 1 - JSD(exposure, target), natural logarithm, the divergence and not its root: in [1 - ln 2, 1]. On cells
that the ranking does not touch, the divergence is 1/2 ln 2 times the target's mass there, so only the touched
cells are ever looked at.
Source: TREC Fair Ranking 2022, Task1Evaluation.
"""

import math
from dataclasses import dataclass

import numpy as np

from fairagent.measures.discounts import LOG2_MAX2
from fairagent.measures.trec_fair.judgments import Judgments, ShownPages
from fairagent.measures.trec_fair.space import Amounts, totals
from fairagent.measures.trec_fair.targets import Targets
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
