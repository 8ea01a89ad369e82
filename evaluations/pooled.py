"""Values of several runs taken together, for the scripts that print tables of all aims.

Scripts in the folders below put this folder on their path and import it. A query that counts in two dimensions gives
two values and is one witness: intervals resample queries, and the test tosses the signs of all values of a query
together.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairagent.evaluate.comparison import (
    bootstrap_intervals,
    by_query,
    holm,
    paired_randomization,
    seeded,
    smallest_p,
    wins_ties_losses,
)
from fairagent.evaluate.run import read_head
from fairagent.evaluate.tables import p_value
from fairagent.types import FloatArray

WHATS = ("product", "nDCG", "AWRF")


@dataclass(frozen=True)
class Aim:
    """A run in one dimension: its collection, the `topics` that have a product, and their values.

    `values` are product, nDCG or AWRF -> system -> (topics,).
    """

    collection: str
    topics: tuple[str, ...]
    values: Mapping[str, Mapping[str, FloatArray]]


def read(run: Path) -> Aim:
    """The values of a finished run."""
    values: dict[str, dict[str, dict[str, float]]] = {what: {} for what in WHATS}
    with (run / "topics.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            what = "product" if "*" in row["measure"] else row["measure"].split("(")[0].split("@")[0]
            if row["value"] and what in values:
                values[what].setdefault(row["system"], {})[row["topic"]] = float(row["value"])
    topics = tuple(sorted(next(iter(values["product"].values()))))
    arrays = {
        what: {name: np.array([values[what][name][topic] for topic in topics]) for name in values["product"]}
        for what in WHATS
    }
    return Aim(read_head(run)["provenance"]["collection"]["name"], topics, arrays)


def queries_of(aims: Sequence[Aim]) -> list[tuple[str, str]]:
    """Whose each value is: a collection's topic has one in each aim of the collection."""
    return [(aim.collection, topic) for aim in aims for topic in aim.topics]


def sizes(aims: Sequence[Aim]) -> str:
    """How many queries and pairs there are, e.g. "174 queries, 248 pairs of query and dimension"."""
    queries = queries_of(aims)
    return f"{len(set(queries))} queries, {len(queries)} pairs of query and dimension"


@dataclass(frozen=True)
class Difference:
    """A system less another over all pairs: mean, 95 % interval, p after Holm's correction, pairs won/tied/lost."""

    mean: float
    low: float
    high: float
    p: str
    won: str

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


def less(system: str, others: Sequence[str], aims: Sequence[Aim], what: str, *names: str) -> list[Difference]:
    """`system` less each of the `others` over the topics of all aims; `names` seed the random numbers."""
    of_aims = [aim.values[what] for aim in aims]
    table = np.array([np.concatenate([one[system] - one[other] for one in of_aims]) for other in others])
    sums, counts = by_query(table, queries_of(aims))
    corrected, least = holm(paired_randomization(sums, seeded(1, *names))), smallest_p(len(counts)) * len(others)
    ends = bootstrap_intervals(sums, seeded(1, *names), counts)
    return [
        Difference(
            float(row.mean()), float(low), float(high), p_value(p, least), "/".join(map(str, wins_ties_losses(row)))
        )
        for row, p, low, high in zip(table, corrected, *ends, strict=True)
    ]
