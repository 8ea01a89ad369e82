"""Task 2: a sequence of rankings a topic, measured by expected exposure: EE-L, EE-D and EE-R.

With the system's exposure s and the target tau over all cells, EE-D = sum s^2, EE-R = sum s tau and EE-L =
sum (s - tau)^2. On cells that no ranking touches these are 0, 0 and tau^2, whose sum is that of all cells
without the touched ones.
Source: TREC Fair Ranking 2022, Task2Alignment and Task2Evaluation (Diaz et al. 2020 for expected exposure).
"""

from dataclasses import dataclass

import numpy as np

from fairagent.measures.discounts import LOG2_MAX2
from fairagent.measures.trec_fair.dimensions import QUALITIES
from fairagent.measures.trec_fair.judgments import Judgments
from fairagent.measures.trec_fair.lookup import IntArray
from fairagent.measures.trec_fair.space import Amounts, totals
from fairagent.measures.trec_fair.targets import Targets
from fairagent.types import FloatArray


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
