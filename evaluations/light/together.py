"""All six tables in one, and the agent against every other system over all topics together.

    python evaluations/light/together.py runs/light_*

For each aim the means of nDCG@20, AWRF@20 and their product over all public topics, the product with its 95 % interval.
Below, the differences, agent less other, over the pairs of query and dimension of all aims together: mean, 95 %
interval and p-value of the paired randomization test after Holm's correction, both over queries, and pairs won, tied
and lost. The best dull baseline is the one of DULL with the highest mean over those pairs. A system that ranks as fused
does on every topic is said to.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from fairagent.evaluate.comparison import bootstrap_intervals, seeded
from fairagent.storage.files import file_name

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pooled import WHATS, Aim, less, read, sizes

AGENT = "agent"
BASELINE = "fused"
DULL = ("fused", "labeled first", "exposure", "exposure, labels before", "graph, exposure")
"""What explains a gain without types of documents, feedback and refined queries."""


def main() -> None:
    """Print the tables of the finished runs."""
    runs = {run.name.removeprefix("light_"): run for run in map(Path, sys.argv[1:])}
    aims = {aim: read(run) for aim, run in runs.items()}
    equal = {aim: same_as_baseline(run) for aim, run in runs.items()}
    for aim, own in aims.items():
        product = own.values["product"]
        table = np.array(list(product.values()))
        print(f"\n{aim}, {table.shape[1]} topics: nDCG, AWRF, product with its 95 % interval")
        for system, row, low, high in zip(product, table, *bootstrap_intervals(table, seeded(1, aim)), strict=True):
            ndcg, awrf = (own.values[what][system].mean() for what in ("nDCG", "AWRF"))
            same = f"  ranks as {BASELINE} on every topic" if file_name(system) in equal[aim] else ""
            print(f"  {system:24s} {ndcg:.3f}  {awrf:.3f}  {row.mean():.3f} ({low:.3f}-{high:.3f}){same}")
    together(list(aims.values()))


def same_as_baseline(run: Path) -> set[str]:
    """The file names of the systems that rank the same documents in the same order as the baseline, on every topic."""

    def ranked(file: Path) -> list[tuple[str, str]]:
        lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
        return [(topic, document) for topic, _, document, *_ in lines]

    files = {file.stem: ranked(file) for file in (run / "runs").glob("*.txt")}
    baseline = files.pop(file_name(BASELINE))
    return {name for name, documents in files.items() if documents == baseline}


def together(aims: list[Aim]) -> None:
    """The agent against the others over all aims."""
    others = [name for name in aims[0].values["product"] if name != AGENT]
    for what in WHATS:
        found = less(AGENT, others, aims, what, what)
        means = {
            name: np.concatenate([aim.values[what][name] for aim in aims]).mean() for name in others if name in DULL
        }
        best = max(means, key=lambda name: means[name])
        print(f"\nagent less others, {what}, {sizes(aims)} of {len(aims)} aims")
        for name, one in zip(others, found, strict=True):
            mark = f"  best dull baseline ({means[name]:.3f})" if name == best else ""
            print(f"  {name:24s} {one}  p {one.p:7s}  {one.won}{mark}")


if __name__ == "__main__":
    main()
