"""What a system changes of the baseline's ranking: measures that need no judgments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.evaluate.engine.kind import Measured
from fairagent.measures import LOG2_MAX2, min_max

DEFINITIONS = {
    "changed": "the share of the first {n} documents that the baseline does not show there",
    "kept": "how much of the baseline's relevance scores the first {n} documents keep: the sum of their scores in the "
    "baseline's ranking (min-max, 0 where it lacks one), weighted by 1 / log2(max(rank, 2)), over that of its own",
}
"""Name -> what it is, at cut-off `n`."""

Scored = Sequence[tuple[str, float]]
"""Documents with their scores, best first."""


@dataclass(frozen=True, slots=True)
class AgainstBaseline:
    """`changed` or `kept` at cut-off `n`, of a system's ranking beside the baseline's."""

    name: str
    n: int

    def __str__(self) -> str:
        return f"{self.name}@{self.n}"

    @property
    def of_scores(self) -> bool:
        """Whether it looks at the scores of the baseline's ranking, and not at its order alone."""
        return self.name == "kept"

    @property
    def measured(self) -> Measured:
        """It as a measure of the experiment: to change much is neither good nor bad."""
        return Measured(str(self), DEFINITIONS[self.name].format(n=self.n), neutral=self.name == "changed")

    def value(self, own: Scored, baseline: Scored) -> float:
        """The value, in [0, 1] for `changed`; `kept` is 1 for the baseline itself, and 0 where it shows nothing.

        >>> AgainstBaseline("changed", 2).value([("a", 2.0), ("c", 1.0)], [("a", 3.0), ("b", 2.0), ("c", 1.0)])
        0.5
        >>> AgainstBaseline("kept", 2).value([("b", 2.0), ("c", 1.0)], [("a", 3.0), ("b", 2.0), ("c", 1.0)])
        0.3333333333333333
        """
        shown = [id for id, _ in own[: self.n]]
        if self.name == "changed":
            first = {id for id, _ in baseline[: self.n]}
            return sum(id not in first for id in shown) / len(shown) if shown else 0.0
        worth = min_max(np.array([score for _, score in baseline]))
        scores = dict(zip((id for id, _ in baseline), worth.tolist(), strict=True))
        kept, all = (self._sum([scores.get(id, 0.0) for id in ids]) for ids in (shown, list(scores)[: self.n]))
        return kept / all if all else 0.0

    @staticmethod
    def _sum(scores: Sequence[float]) -> float:
        return float(LOG2_MAX2(len(scores)) @ np.array(scores))


def read(text: str) -> AgainstBaseline | None:
    """The measure of a text such as `changed@20`; None where it is none of these."""
    match = re.fullmatch(rf"({'|'.join(DEFINITIONS)})@([1-9][0-9]*)", text.strip())
    return AgainstBaseline(match[1], int(match[2])) if match else None
