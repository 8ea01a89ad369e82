"""The targets of a year and task, computed from the topics' relevant pages."""

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np

from fairagent.measures.discounts import LOG2_MAX2
from fairagent.measures.trec_fair import y2021
from fairagent.measures.trec_fair.judgments import Judgments
from fairagent.measures.trec_fair.space import Amounts, Space, totals
from fairagent.measures.trec_fair.targets import Targets, averaged_with_world
from fairagent.measures.trec_fair.task2 import target_exposure
from fairagent.types import FloatArray

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
