"""Values of several runs' topics taken together, for the scripts that print tables of all aims.

Scripts in the folders below put this folder on their path and import it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairagent.evaluate.comparison import bootstrap_intervals, holm, paired_randomization, seeded, wins_ties_losses
from fairagent.types import FloatArray

WHATS = ("product", "nDCG", "AWRF")
Values = Mapping[str, Mapping[str, FloatArray]]
"""Product, nDCG or AWRF -> system -> values of the topics that have a product, in the order of their ids."""


def read(run: Path) -> Values:
    """The values of a finished run."""
    values: dict[str, dict[str, dict[str, float]]] = {what: {} for what in WHATS}
    with (run / "topics.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            what = "product" if "*" in row["measure"] else row["measure"].split("(")[0].split("@")[0]
            if row["value"] and what in values:
                values[what].setdefault(row["system"], {})[row["topic"]] = float(row["value"])
    return {
        what: {
            system: np.array([values[what][system][topic] for topic in sorted(topics)])
            for system, topics in values["product"].items()
        }
        for what in WHATS
    }


@dataclass(frozen=True)
class Difference:
    """A system less another over all topics: mean, 95 % interval, p after Holm's correction, topics won/tied/lost."""

    mean: float
    low: float
    high: float
    p: float
    won: str

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


def less(system: str, others: Sequence[str], aims: Sequence[Values], what: str, *names: str) -> list[Difference]:
    """`system` less each of the `others` over the topics of all aims; `names` seed the random numbers."""
    table = np.array([np.concatenate([one[what][system] - one[what][other] for one in aims]) for other in others])
    corrected = holm(paired_randomization(table, seeded(1, *names)))
    ends = bootstrap_intervals(table, seeded(1, *names))
    return [
        Difference(float(row.mean()), float(low), float(high), float(p), "/".join(map(str, wins_ties_losses(row))))
        for row, p, low, high in zip(table, corrected, *ends, strict=True)
    ]
