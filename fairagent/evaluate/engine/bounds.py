"""Bounds: what a number has to be, alone or beside the baseline's."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from fairagent.errors import UsageError
from fairagent.evaluate.engine.comparison import SAME

FORMS = "'>= .95', '< .1', '>= baseline', '>= baseline - .01'"
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_BOUND = re.compile(rf"(>=|<=|>|<)\s*(?:(-?{_NUMBER})|(baseline)(?:\s*([+-])\s*({_NUMBER}))?)")
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Bound:
    """What a number has to be: `sign` is one of >=, <=, > and <; `number` is added to the baseline's if `relative`."""

    sign: str
    number: float
    relative: bool = False

    @classmethod
    def parse(cls, text: object) -> Bound:
        """The bound that `text` says; UsageError, naming the forms, where it says none.

        >>> Bound.parse(">= baseline - .01")
        Bound(sign='>=', number=-0.01, relative=True)
        """
        found = _BOUND.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None:
            raise UsageError(f"{text!r} is no bound; the forms are: {FORMS}")
        sign, absolute, relative, add, distance = found.groups()
        if relative:
            return cls(sign, float(f"{add or '+'}{distance or 0}"), True)
        return cls(sign, float(absolute))

    def __str__(self) -> str:
        """As in a file.

        >>> str(Bound(">=", 0.95)), str(Bound(">=", -0.01, True)), str(Bound(">", 0.0, True))
        ('>= 0.95', '>= baseline - 0.01', '> baseline')
        """
        if not self.relative:
            return f"{self.sign} {self.number:.12g}"
        added = f" {'-' if self.number < 0 else '+'} {abs(self.number):.12g}" if self.number else ""
        return f"{self.sign} baseline{added}"

    def holds(self, value: float, baseline: float = 0.0) -> bool:
        """Whether it is true of `value`; what differs by 1e-9 or less is equal, as topics are tied.

        >>> Bound.parse(">= .3").holds(0.1 + 0.2), Bound.parse("> baseline").holds(0.5, baseline=0.5)
        (True, False)
        """
        limit = self.limit(baseline)
        return _HOLDS[self.sign](limit if abs(value - limit) <= SAME else value, limit)

    def limit(self, baseline: float = 0.0) -> float:
        """The number that a value is compared with."""
        return baseline + self.number if self.relative else self.number
