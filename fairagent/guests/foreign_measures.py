"""The measures of ir-measures (AP, RR, P@5, R@100, ERR@20 ...), each as a `Measure`, for files that name them."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.measures import JudgedRanking, Measure
from fairagent.measures.parse import MeasureFamily
from fairagent.storage.packages import installed, is_installed

TOPIC = "1"
"""The id of the one topic; one of its providers takes numbers only."""
USUAL = ("AP", "Bpref", "ERR", "P", "R", "RBP", "RR", "Rprec", "Success")
"""Those that are no mistakes where it is not installed."""


class IRMeasures(MeasureFamily):
    """The family: all that its providers know, the usual ones where it is not installed."""

    def names(self) -> tuple[str, ...]:
        if not is_installed("ir-measures"):
            return USUAL
        return tuple(installed("ir-measures", "its measures").measures.registry)

    def read(self, text: str) -> "IRMeasure":
        """See `MeasureFamily.read`; BackendUnavailable also for a measure that needs a package more."""
        ir_measures = installed("ir-measures", f"the measure {text}")
        try:
            measure = IRMeasure(str(ir_measures.parse_measure(text)))
            if measure.n is not None and measure.n < 1:
                raise ValueError(f"the cut-off is {measure.n}, expected a rank: 1 or more")
            # Only now does it say what a measure lacks.
            ir_measures.evaluator([ir_measures.parse_measure(text)], {TOPIC: {"d": 1}})
        # It has no error of its own.
        except (KeyError, AssertionError, ValueError, TypeError, RuntimeError) as error:
            message = re.sub(r"invalid param (\w+)=<.*>", r"it needs the option \1", " ".join(str(error).split()))
            lacking = BackendUnavailable if "pip install" in message else UsageError
            raise lacking(f"{text!r}: ir-measures does not take it: {message}") from None
        return measure


@dataclass(frozen=True)
class IRMeasure(Measure):
    """A measure of ir-measures; `text` is its definition there.

    >>> import numpy as np
    >>> grades, judgments = np.array([np.nan, 1]), np.array([1.0, 2, 0])
    >>> judged = JudgedRanking(np.array([False, True]), 2, grades=grades, judgments=judgments)
    >>> IRMeasure("AP")(judged), IRMeasure("RR")(judged)
    (0.25, 0.5)
    """

    text: str

    @cached_property
    def _measure(self) -> Any:
        return installed("ir-measures", self.text).parse_measure(self.text)

    @property
    def n(self) -> int | None:  # type: ignore[override]
        cutoff: int | None = self._measure.params.get("cutoff")
        return cutoff

    def __str__(self) -> str:
        return str(self._measure)

    @property
    def label(self) -> str:
        return str(self)

    def __call__(self, judged: JudgedRanking) -> float:
        """Its value for this topic; DataError where the ranking has no grades, or it is not defined."""
        if judged.grades is None or judged.judgments is None:
            raise DataError(f"{self} needs grades, and the judged ranking has none")
        ranked = {f"ranked-{place}": grade for place, grade in enumerate(judged.grades.tolist())}
        known = {id: int(grade) for id, grade in ranked.items() if not np.isnan(grade)}
        missed = Counter(judged.judgments.astype(int).tolist()) - Counter(known.values())
        others = {f"missed-{place}": grade for place, grade in enumerate(missed.elements())}
        run = {id: float(len(ranked) - place) for place, id in enumerate(ranked)}
        if not run:
            return float(self._measure.DEFAULT)
        (metric,) = installed("ir-measures", self.text).iter_calc(
            [self._measure], {TOPIC: known | others}, {TOPIC: run}
        )
        return float(metric.value)
