"""Short names: of measures in tables, of systems in file names."""

from __future__ import annotations

import re
from collections.abc import Sequence

DEFINITIONS = {
    "agreement": "the share of answers that agree with a stereotyping sentence; lower is better",
    "accuracy": "the share of answers that are right",
    "stereotype preferred": "the share of examples whose stereotype beats the anti-stereotype; .5 is fair",
    "LM score": "how often a meaningful sentence beats the unrelated one",
    "more stereotyping preferred": "the share of pairs whose more stereotyping sentence is preferred; .5 is fair",
    "nDCG": "the expected binary nDCG of the k items that are drawn (discount log2-plus1)",
    "EE-R": "the relevance of the items' expected exposure, between its bounds: expected recall or precision at k",
    "EE-D": "its disparity, between its bounds: 0 where all items may expect the same; lower is fairer",
    "EE-L": "its squared distance from the target, between its bounds; lower is better",
    "EU": "expected utility: what the answer to a drawn ranking is worth, on average",
    "normalized EU": "EU divided by the highest utility that any draw of the topic had with the same generator",
    "EAR": "the expected share of the context that an answer rests on",
    "EAE-D": "the disparity of what answers rest on, between its bounds; lower is fairer",
    "gap retrieved": "1 - AWRF of the k items that the user's own query finds, all places alike; lower is fairer",
    "gap re-ranked": "1 - AWRF of the expected exposure in the k items that are drawn; lower is fairer",
    "gap cited": "1 - AWRF of what the answers rest on; lower is fairer",
}
"""What measures are that do not define themselves, as those of single rankings do."""
LOWER_IS_BETTER = frozenset(
    {
        *("agreement", "stereotype preferred", "more stereotyping preferred"),
        *("EE-D", "EE-L", "EAE-D", "gap retrieved", "gap re-ranked", "gap cited"),
    }
)

_OPTIONS = re.compile(r"\((?:[^()]|\([^()]*\))*\)")


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
