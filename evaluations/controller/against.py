"""The agent against every other system of finished runs, not against one baseline alone.

    python evaluations/controller/against.py runs/controller_*

For each run, dimension and measure the difference of the means, the p-value of the paired randomization test over the
topics, corrected by Holm over the other systems, and topics won, tied and lost by the agent.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from fairagent.evaluate.comparison import holm, paired_randomization, seeded, wins_ties_losses

AGENT = "agent"


def main() -> None:
    """Print a table a run, dimension and measure."""
    for run in map(Path, sys.argv[1:]):
        values: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        with (run / "topics.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["value"]:
                    measured = row["dimension"], row["measure"]
                    values[measured][row["system"]][row["topic"]] = float(row["value"])
        for (dimension, measure), systems in values.items():
            print(f"\n{run.name} {dimension} {measure}")
            show(systems, f"{dimension} {measure}")


def show(systems: dict[str, dict[str, float]], seed: str) -> None:
    """A line for each other system; the agent's topics are those of all."""
    topics = sorted(systems[AGENT])
    others = [name for name in systems if name != AGENT]
    table = np.array([[systems[AGENT][topic] - systems[name][topic] for topic in topics] for name in others])
    corrected = holm(paired_randomization(table, seeded(1, seed)))
    for name, differences, p in zip(others, table, corrected, strict=True):
        won = "/".join(map(str, wins_ties_losses(differences)))
        print(f"  {name:30s} {differences.mean():+.4f}  p {p:.4f}  {won}")


if __name__ == "__main__":
    main()
