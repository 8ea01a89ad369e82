"""95 % intervals of what all items of StereoSet and CrowS-Pairs have together: SS, LMS, ICAT and CP-S, by bias type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fairagent.evaluate.run import Results
from fairagent.papers.debias_rag.benchmarks.items import ItemScores
from fairagent.papers.debias_rag.benchmarks.preference import OVERALL, PreferenceKind

RESAMPLES = 1000


def intervals(run: Results) -> Mapping[tuple[str, str, str], tuple[float, float, int]]:
    """System, bias type and measure -> the ends of the percentile bootstrap interval, and how many items it rests on.

    What is resampled, the same for all systems, are StereoSet's target terms, over which its numbers are means, and
    CrowS-Pairs' pairs. Empty for another kind of experiment.
    """
    if not isinstance(run.kind, PreferenceKind):
        return {}
    found: dict[tuple[str, str, str], tuple[float, float, int]] = {}
    for system in run.systems:
        of_term: dict[str, list[ItemScores]] = {}
        for topic in run.counted_topics:
            one = ItemScores.read(run.by_topic[topic][system].record)
            of_term.setdefault(one.target or topic, []).append(one)
        terms, rng = list(of_term.values()), np.random.default_rng(1)
        drawn: dict[tuple[str, str], list[float]] = {}
        for _ in range(RESAMPLES):
            # A term that is drawn twice counts as two.
            places = enumerate(rng.integers(len(terms), size=len(terms)))
            items = [replace(one, target=str(copy)) for copy, place in places for one in terms[place]]
            for numbers in run.kind.numbers(items):
                for name, value in numbers.values.items():
                    if numbers.part == OVERALL and value is not None:
                        drawn.setdefault((numbers.kind, name), []).append(value)
        for numbers in run.kind.numbers([one for term in terms for one in term]):
            for name in numbers.values if numbers.part == OVERALL else ():
                if values := drawn.get((numbers.kind, name)):
                    low, high = np.quantile(values, [0.025, 0.975]).tolist()
                    dimension = "" if numbers.kind == OVERALL else numbers.kind
                    found[system, dimension, name] = low, high, numbers.count
    return found
