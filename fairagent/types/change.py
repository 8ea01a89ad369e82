"""What a ranking changes for the groups of one dimension, in one sentence: the verdict that everybody reads first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fairagent.types.clean import in_line

ABOUT = 0.01
"""Shares that differ by less (a percentage point) are called the same."""

SHOWN_CHANGE = 5e-4
"""A divergence (nats), or AWRF, that changes by less is the same: half of the third decimal, as half a point of a share
is what rounding to whole percents takes away."""

Verdict = Literal["fairer", "less fair", "no measurable difference"]

Rows = Sequence[tuple[str, float, float | None]]
"""(label, share, target) of each group, last the documents without a label (their target may be None)."""


def percent(share: float) -> str:
    """A share as a whole percentage; what is there but would round to nothing is "<1%"."""
    rounded = f"{100 * share:.0f}%"
    return "<1%" if rounded == "0%" and share > 0 else rounded


def seen_change(before: Rows, after: Rows, rise: float) -> Verdict:
    """Whether one list is fairer than another, whose divergence from the same targets is less by `rise`.

    Of a single query nothing can be tested: it is where rounding hides neither the divergence nor a group's share.

    >>> seen_change([("f", 0.20, 0.5), ("m", 0.80, 0.5)], [("f", 0.19, 0.5), ("m", 0.81, 0.5)], 0.0059)
    'less fair'
    >>> seen_change([("f", 0.203, 0.5), ("m", 0.797, 0.5)], [("f", 0.2, 0.5), ("m", 0.8, 0.5)], 0.0018)
    'no measurable difference'
    """
    moved = any(abs(now - was) >= ABOUT / 2 for (_, was, _), (_, now, _) in zip(before, after, strict=True))
    if not (moved and abs(rise) >= SHOWN_CHANGE):
        return "no measurable difference"
    return "less fair" if rise > 0 else "fairer"


def as_verdict(dimension: str, verdict: Verdict, test: str) -> str:
    """The verdict on a dimension, and the test that it rests on, as a sentence begins.

    >>> as_verdict("gender", "fairer", "AWRF +0.0200, p = .0020")
    'gender is fairer (AWRF +0.0200, p = .0020)'
    """
    return f"{dimension} {'shows' if verdict == 'no measurable difference' else 'is'} {verdict} ({test})"


@dataclass(frozen=True, slots=True)
class ExposureChange:
    """One group's share of the attention `before` (None: nothing to compare with) and `after`, and its `target`.

    It is the group that lacked most, or where the dimension became less fair, that which moved furthest from its
    target. `label` is "" where every group has about what it should have, or where nothing shown has a label (then
    `after` is 0). The `verdict` is that of a `test` over topics, or by `seen_change` without one; None: nothing to
    compare with. The text is the sentence, in one line.

    >>> print(ExposureChange("gender", "female", 0.0, 0.112, 0.33))
    gender: female gets 11% of the attention instead of 0%; it should have 33%
    """

    dimension: str
    label: str
    before: float | None
    after: float
    target: float
    verdict: Verdict | None = None
    test: str = ""
    source: str = ""
    """The name of what says what it should have."""
    likely: tuple[float, float, float] | None = None
    """AWRF and its 95 % interval under the errors of labels that were made."""

    @property
    def worse(self) -> bool:
        """Whether it is less fair."""
        return self.verdict == "less fair"

    @property
    def moved_away(self) -> float:
        """By how much its share is further from the target than before; below 0: nearer."""
        return abs(self.after - self.target) - abs((self.before or 0.0) - self.target)

    def record(self) -> dict[str, Any]:
        """As JSON has it, with whether it is `worse` and the sentence as `text`."""
        return {**asdict(self), "worse": self.worse, "text": str(self)}

    def __str__(self) -> str:
        of_labels = (
            "" if self.likely is None else "; AWRF {:.2f} [{:.2f}, {:.2f}] under label error".format(*self.likely)
        )
        return in_line(self._sentence + of_labels)

    @property
    def _sentence(self) -> str:
        start = f"{self.dimension}{' is less fair' * self.worse}: "
        if self.verdict and self.test:
            start = f"{as_verdict(self.dimension, self.verdict, self.test)}: "
        if not self.label and not self.after:
            return f"{start}nothing that is shown has a label"
        if not self.label:
            return (
                f"{start}every group gets about the attention that it should have{self.source and f' ({self.source})'}"
            )
        now, due, source = percent(self.after), percent(self.target), self.source and f" ({self.source})"
        was = "" if self.before is None else percent(self.before)
        instead = f" instead of {was}" if was not in ("", now) else ", as before" if was else ""
        should = f", as it should{source}" if now == due else f"; it should have {due}{source}"
        # The engine's list may be unfair to several; who lacked most need not be who gained.
        yet = not (self.worse or self.test) and self.before is not None and self.moved_away >= ABOUT
        but = f", though {self.dimension} as a whole is no less fair" if yet else ""
        return f"{start}{self.label} gets {now} of the attention{instead}{should}{but}"


def exposure_change(dimension: str, before: Rows | None, after: Rows, **about: Any) -> ExposureChange:
    """The change of one dimension. `before` and `after` have the same groups; the targets are those of `after`.

    `about` are the verdict, its test, the target's name (`source`) and whatever does not depend on the group. Documents
    without a label are named only where the dimension is less fair: theirs is a share of all, and nobody's aim.
    """
    was = [None] * len(after) if before is None else [share for _, share, _ in before]
    groups = [
        ExposureChange(dimension, label, old, new, due, **about)
        for old, (label, new, due) in zip(was, after, strict=True)
        if due is not None
    ]
    if groups and groups[0].worse:
        # Of two groups one loses what the other gains: then who lacks it is named.
        return max(groups, key=lambda one: (round(one.moved_away, 6), one.target - one.after))
    groups = groups[: len(after) - 1]
    if not any(one.after for one in groups):
        return ExposureChange(dimension, "", None, 0.0, 0.0, **about)
    # Who lacked most before; where nobody did, who lacks most now.
    first = max(groups, key=lambda one: one.target - (one.after if one.before is None else one.before))
    last = max(groups, key=lambda one: one.target - one.after)
    if first.before is not None and first.target - first.before >= ABOUT:
        return first
    return last if last.target - last.after >= ABOUT else ExposureChange(dimension, "", None, 1.0, 1.0, **about)
