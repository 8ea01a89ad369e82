"""What all items of StereoSet and CrowS-Pairs have together (LMS, SS, ICAT, CP-S), with 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fairagent.evaluate.run import Results
from fairagent.papers.debias_rag.benchmarks.items import ItemScores
from fairagent.papers.debias_rag.benchmarks.preference import OVERALL, PreferenceKind

RESAMPLES = 1000
Key = tuple[str, str]
"""Bias type ("": all) and measure."""


def intervals(run: Results) -> Mapping[tuple[str, str, str], list[float | None]]:
    """System, bias type and measure -> the value, the ends of its percentile bootstrap interval, and of how many items.

    What is resampled, the same for all systems, are StereoSet's target terms, over which its numbers are means, and
    CrowS-Pairs' pairs; so `ICAT less original` has the interval of the paired difference. Empty for other kinds.
    """
    if not isinstance(run.kind, PreferenceKind):
        return {}
    values: dict[str, dict[Key, tuple[float, int]]] = {}
    drawn: dict[str, list[dict[Key, tuple[float, int]]]] = {}
    for system in run.systems:
        of_term: dict[str, list[ItemScores]] = {}
        for topic in run.counted_topics:
            one = ItemScores.read(run.by_topic[topic][system].record or {})
            of_term.setdefault(one.target or topic, []).append(one)
        terms, rng = list(of_term.values()), np.random.default_rng(1)
        values[system] = _numbers(run.kind, [one for term in terms for one in term])
        for places in rng.integers(len(terms), size=(RESAMPLES, len(terms))):
            # A term that is drawn twice counts as two.
            items = [replace(one, target=str(copy)) for copy, place in enumerate(places) for one in terms[place]]
            drawn.setdefault(system, []).append(_numbers(run.kind, items))
    found: dict[tuple[str, str, str], list[float | None]] = {}
    for system, of_system in values.items():
        for key, (value, count) in of_system.items():
            ends = np.quantile([one[key][0] for one in drawn[system] if key in one], [0.025, 0.975])
            found[system, *key] = [value, *ends.tolist(), count]
            if key[0] == "" and system != run.baseline and key in values[run.baseline]:
                pairs = zip(drawn[system], drawn[run.baseline], strict=True)
                less = [one[key][0] - other[key][0] for one, other in pairs if key in one and key in other]
                ends = np.quantile(less, [0.025, 0.975])
                difference = value - values[run.baseline][key][0]
                found[system, "", f"{key[1]} less {run.baseline}"] = [difference, *ends.tolist(), count]
    return found


def _numbers(kind: PreferenceKind, items: Sequence[ItemScores]) -> dict[Key, tuple[float, int]]:
    return {
        ("" if numbers.kind == OVERALL else numbers.kind, name): (value, numbers.count)
        for numbers in kind.numbers(items)
        if numbers.part == OVERALL
        for name, value in numbers.values.items()
        if value is not None
    }
