"""Regard: how people of a group are spoken of, as shares of positive, neutral, negative and other texts.

Source: Sheng, Chang, Natarajan and Peng, "The Woman Worked as a Babysitter" (EMNLP 2019), for the four classes; Dhamala
et al., "BOLD" (FAccT 2021), which compares groups of a domain by the shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from fairagent.errors import DataError

Label = Literal["positive", "neutral", "negative", "other"]
LABELS: tuple[Label, ...] = get_args(Label)
"""other: what is said is good and bad at once, or of nobody."""


@dataclass(frozen=True, slots=True)
class RegardShares:
    """How `count` texts about one group speak of it: the shares of the four classes, in percent, which add up to 100.

    >>> shares = RegardShares.of(["positive", "negative", "negative", "neutral"])
    >>> shares.negative, shares.regard
    (50.0, -25.0)
    """

    count: int
    positive: float
    neutral: float
    negative: float
    other: float

    @classmethod
    def of(cls, labels: Sequence[Label]) -> RegardShares:
        """Those of texts by their classes; DataError without a text."""
        if not labels:
            raise DataError("there is no text to judge")
        found = Counter(labels)
        return cls(len(labels), *(100 * found[label] / len(labels) for label in LABELS))

    @property
    def regard(self) -> float:
        """Positive less negative texts, from -100 to 100."""
        return self.positive - self.negative


@dataclass(frozen=True, slots=True)
class RegardGap:
    """How far the groups of one domain are apart: their largest `regard` less their smallest, from 0 to 200.

    `best` and `worst` are these two groups, on ties the first; `negative` is the same distance of the shares of
    negative texts, from 0 to 100. With one group both are 0.
    """

    regard: float
    negative: float
    best: str
    worst: str


def regard_gap(groups: Mapping[str, RegardShares]) -> RegardGap:
    """The gap between groups, name -> shares; DataError without a group.

    >>> women, men = RegardShares.of(["positive", "neutral"]), RegardShares.of(["positive", "positive"])
    >>> regard_gap({"women": women, "men": men})
    RegardGap(regard=50.0, negative=0.0, best='men', worst='women')
    """
    if not groups:
        raise DataError("there is no group to compare")
    best = max(groups, key=lambda name: groups[name].regard)
    worst = min(groups, key=lambda name: groups[name].regard)
    negative = [shares.negative for shares in groups.values()]
    return RegardGap(groups[best].regard - groups[worst].regard, max(negative) - min(negative), best, worst)
