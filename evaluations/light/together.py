"""All six tables in one, and the agent against every other system over all topics together.

    python evaluations/light/together.py runs/light_*

For each aim the means of nDCG@20, AWRF@20 and their product over all public topics, the product with its 95 % interval.
Below, the differences of the products, agent less other, over the topics of all aims together: mean, 95 % interval,
p-value of the paired randomization test after Holm's correction, and topics won, tied and lost.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from fairagent.evaluate.engine.statistics import (
    bootstrap_intervals,
    holm,
    paired_randomization,
    seeded,
    wins_ties_losses,
)
from fairagent.types import FloatArray

AGENT = "agent"
Values = dict[str, dict[str, dict[str, float]]]
"""nDCG, AWRF or product -> system -> topic of a run -> value."""


def main() -> None:
    """Print the tables of the finished runs."""
    aims = {run.name.removeprefix("light_"): read(run) for run in map(Path, sys.argv[1:])}
    for aim, values in aims.items():
        product = values["product"]
        table = np.array([array(topics) for topics in product.values()])
        print(f"\n{aim}, {table.shape[1]} topics: nDCG, AWRF, product with its 95 % interval")
        for system, row, low, high in zip(product, table, *bootstrap_intervals(table, seeded(1, aim)), strict=True):
            ndcg, awrf = (array(values[what][system]).mean() for what in ("nDCG", "AWRF"))
            print(f"  {system:24s} {ndcg:.3f}  {awrf:.3f}  {row.mean():.3f} ({low:.3f}-{high:.3f})")
    together(aims)


def read(run: Path) -> Values:
    """The values of a run's topics."""
    found: Values = {"nDCG": {}, "AWRF": {}, "product": {}}
    with (run / "topics.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["value"]:
                what = "product" if "*" in row["measure"] else row["measure"].split("(")[0].split("@")[0]
                found[what].setdefault(row["system"], {})[row["topic"]] = float(row["value"])
    # Every topic has an nDCG; those count that have both.
    for what in ("nDCG", "AWRF"):
        found[what] = {
            system: {topic: found[what][system][topic] for topic in topics}
            for system, topics in found["product"].items()
        }
    return found


def together(aims: dict[str, Values]) -> None:
    """The agent against the others over all aims."""
    others = [name for name in next(iter(aims.values()))["product"] if name != AGENT]
    for what in ("product", "nDCG", "AWRF"):
        table = np.array(
            [
                np.concatenate([array(values[what][AGENT]) - array(values[what][name]) for values in aims.values()])
                for name in others
            ]
        )
        print(f"\nagent less others, {what}, {table.shape[1]} topics of {len(aims)} aims")
        corrected = holm(paired_randomization(table, seeded(1, what)))
        ends = bootstrap_intervals(table, seeded(1, what))
        for name, differences, p, low, high in zip(others, table, corrected, *ends, strict=True):
            won = "/".join(map(str, wins_ties_losses(differences)))
            equal = "" if differences.any() else "  equal on every topic"
            print(f"  {name:24s} {differences.mean():+.3f} ({low:+.3f} to {high:+.3f})  p {p:.4f}  {won}{equal}")


def array(topics: dict[str, float]) -> FloatArray:
    """The values in the order of the topics' ids."""
    return np.array([topics[topic] for topic in sorted(topics)])


if __name__ == "__main__":
    main()
