"""Runs the agent beside every rival on all public topics, and prints one table with paired tests.

    python evaluations/controller/rivals.py [--runs FOLDER] [--only NAME ...]

Each aim is a file of this folder; what a broken-off command has done stays. For every system the mean product of
nDCG@20 and AWRF(unknown=ignore)@20 on each aim, marked where it differs from the agent's; the mean of the six aims
whose labels do not come with the judgments; and over all pairs of query and dimension of these the differences, agent
less other, of the product and of both factors, with 95 % intervals and pairs won, tied and lost. p is that of the
paired randomization test, corrected by Holm over the other systems, of each aim and of all together, where queries are
resampled and not pairs. The two aims whose labels only judged documents have stand apart: whoever looks at labels
there looks at judgments.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fairagent.evaluate.comparison import holm, paired_randomization, seeded
from fairagent.types import FloatArray

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from pooled import WHATS, Aim, less, read, sizes  # noqa: E402

AGENT = "agent"
AIMS = {
    "trec22_biographies": "trec22",
    "wikilead_gender": "wikilead, gender",
    "wikilead_region": "wikilead, region",
    "reuters21578_region": "reuters, region",
    "reuters21578_oecd1987": "reuters, OECD",
    "allsides": "allsides",
}
ORACLES = {"args_sigir19": "args", "perspectrum": "perspectrum"}
"""Only judged documents have a label."""
MARK = 0.05
"""A corrected p below is marked."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where the run folders are")
    parser.add_argument("--only", nargs="+", choices=[*AIMS, *ORACLES], default=[*AIMS, *ORACLES])
    parser.add_argument("--print", action="store_true", help="print the finished runs, and run nothing")
    chosen = parser.parse_args(arguments)
    found = {}
    for name in chosen.only:
        run = chosen.runs / f"controller_{name}"
        if not chosen.print:
            command = [sys.executable, "-m", "fairagent", "evaluate", str(HERE / f"{name}.yaml"), "--run", str(run)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found[name] = read(run)
    print_tables(found)


def print_tables(found: Mapping[str, Aim]) -> None:
    """The table of products, and the differences over all topics together."""
    shown = {name: found[name] for name in (*AIMS, *ORACLES) if name in found}
    systems = list(next(iter(shown.values())).values["product"])
    pooled = [name for name in shown if name in AIMS]
    marks = {name: significant(aim.values["product"], name) for name, aim in shown.items()}
    titles = [f"{(AIMS | ORACLES)[name]} ({len(aim.topics)})" for name, aim in shown.items()]
    print("| nDCG@20 · AWRF@20 | " + " | ".join([*titles[: len(pooled)], "mean", *titles[len(pooled) :]]) + " |")
    print("|---" * (len(titles) + 2) + "|")
    products = {name: aim.values["product"] for name, aim in shown.items()}
    for system in systems:
        cells = [
            f"{values[system].mean():.3f}{marks[name][system]}" if system in values else "not run"
            for name, values in products.items()
        ]
        mean = np.mean([products[name][system].mean() for name in pooled]) if pooled else np.nan
        print(f"| {system} | " + " | ".join([*cells[: len(pooled)], f"{mean:.3f}", *cells[len(pooled) :]]) + " |")
    for title, names in (("all", pooled), ("oracles", [name for name in shown if name in ORACLES])):
        if names:
            print_differences(title, [found[name] for name in names])


def significant(products: Mapping[str, FloatArray], seed: str) -> dict[str, str]:
    """For each system "-" or "+" where it is below or above the agent beyond chance."""
    others = [name for name in products if name != AGENT]
    table = np.array([products[name] - products[AGENT] for name in others])
    corrected = holm(paired_randomization(table, seeded(1, seed)))
    signs = ["" if p >= MARK else "-" if row.mean() < 0 else "+" for row, p in zip(table, corrected, strict=True)]
    return dict(zip(others, signs, strict=True)) | {AGENT: ""}


def print_differences(title: str, aims: Sequence[Aim]) -> None:
    """Agent less others over these aims together, those others that were run on all of them."""
    others = [name for name in aims[0].values["product"] if name != AGENT]
    others = [name for name in others if all(name in aim.values["product"] for aim in aims)]
    cells: dict[str, list[str]] = {name: [] for name in others}
    for what in WHATS:
        for name, one in zip(others, less(AGENT, others, aims, what, title, what), strict=True):
            cells[name] += [str(one), one.p, *([one.won] if what == "product" else [])]
    print(f"\n| agent less, {title}: {sizes(aims)} | product | p | won/tied/lost | nDCG | p | AWRF | p |")
    print("|---" * 8 + "|")
    for name in others:
        print(f"| {name} | " + " | ".join(cells[name]) + " |")


if __name__ == "__main__":
    main()
