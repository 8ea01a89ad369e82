"""Rankings that are drawn at random: the mean of a topic's values over its draws, and how far they spread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fairagent.evaluate.kind import JsonObject
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import Column, Table
from fairagent.measures.parse import label_of
from fairagent.types.common import counted

FILE = "draws.csv"
Values = Mapping[str, Mapping[str, float]]
"""Dimension ("" for relevance alone) -> measure -> value."""


def means(of_draws: Sequence[Values]) -> dict[str, dict[str, float]]:
    """The mean of each value over the draws of one topic, which all have the same measures.

    >>> means([{"": {"nDCG": 0.5}}, {"": {"nDCG": 1.0}}])
    {'': {'nDCG': 0.75}}
    """
    return {
        dimension: {name: float(np.mean([one[dimension][name] for one in of_draws])) for name in values}
        for dimension, values in of_draws[0].items()
    }


def spread(of_draws: Sequence[Values]) -> JsonObject:
    """How many draws there are, and the standard deviation of each value over them (n - 1; 0 of a single one).

    >>> spread([{"": {"nDCG": 0.5}}, {"": {"nDCG": 1.0}}])["spread"][""]["nDCG"] == 0.125**0.5
    True
    """
    once = len(of_draws) < 2
    return {
        "draws": len(of_draws),
        "spread": {
            dimension: {
                name: 0.0 if once else float(np.std([one[dimension][name] for one in of_draws], ddof=1))
                for name in values
            }
            for dimension, values in of_draws[0].items()
        },
    }


def _spreads(run: Run) -> Iterator[tuple[str, str, str, str, int, float, float]]:
    """Topic, system, dimension, measure, draws, mean and spread of everything that was drawn and counts."""
    topics = set(run.counted_topics)
    for outcome in run.outcomes:
        if outcome.topic in topics and outcome.record and "spread" in outcome.record:
            for dimension, values in outcome.record["spread"].items():
                for name, deviation in values.items():
                    mean, draws = outcome.values[dimension][name], outcome.record["draws"]
                    yield outcome.topic, outcome.system, dimension, name, draws, mean, deviation


def tables(run: Run) -> list[Table]:
    """A line for each drawn system and measure; none where nothing was drawn."""
    if not (spreads := list(_spreads(run))):
        return []
    by_row: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for _, system, dimension, name, _, mean, deviation in spreads:
        by_row.setdefault((system, dimension, name), []).append((mean, deviation))
    lines = [
        (system, dimension or run.kind.overall, label_of(name), len(values), *np.mean(values, axis=0).tolist())
        for (system, dimension, name), values in by_row.items()
    ]
    columns: list[str | Column] = ["system", "in", "measure", Column("topics", "d"), "mean", "spread"]
    note = "spread: the standard deviation of a topic's value over its draws, as a mean over the topics"
    return [Table.of(columns, lines, f"drawn rankings ({counted(spreads[0][4], 'draw')} a topic)", [note])]


def files(run: Run) -> Mapping[str, Table]:
    """Every topic's mean and spread."""
    lines = list(_spreads(run))
    header = ("topic", "system", "dimension", "measure", "draws", "mean", "spread")
    return {FILE: Table.of(header, lines)} if lines else {}
