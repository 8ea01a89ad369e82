"""Short names: of measures in tables, of systems in file names."""

from __future__ import annotations

import re
from collections.abc import Sequence

DEFINITIONS = {
    "agreement": "the share of answers that agree with a stereotyping sentence; lower is better",
    "accuracy": "the share of answers that are right",
}
"""What measures of answers are; those of rankings define themselves."""
LOWER_IS_BETTER = frozenset({"agreement"})

_OPTIONS = re.compile(r"\((?:[^()]|\([^()]*\))*\)")
_ODD = re.compile(r"[^A-Za-z0-9._+-]+")


def measure_label(measure: str) -> str:
    """A measure's definition without its options.

    >>> measure_label("nDCG(discount=log2-max2)@20*AWRF(discount=geometric(0.9), log=e, unknown=ignore)@20")
    'nDCG@20*AWRF@20'
    """
    return _OPTIONS.sub("", measure)


def gain(measure: str, value: float, baseline: float) -> float:
    """By how much `value` is better than the baseline's.

    >>> gain("nDCG@20", 0.5, 0.25), gain("agreement", 0.5, 0.25)
    (0.25, -0.25)
    """
    return baseline - value if measure in LOWER_IS_BETTER else value - baseline


def measure_labels(measures: Sequence[str]) -> dict[str, str]:
    """Definition -> label; where two measures would share a label, both keep their definition."""
    labels = [measure_label(measure) for measure in measures]
    return {m: label if labels.count(label) == 1 else m for m, label in zip(measures, labels, strict=True)}


def file_name(system: str) -> str:
    """The system's name as the name of a file and the tag of a TREC run.

    >>> file_name("agent, FA*IR (0.1)")
    'agent_FA_IR_0.1'
    """
    return _ODD.sub("_", system).strip("_.") or "system"
