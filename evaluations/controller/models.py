"""The table of what a model buys, from the run folders of smollm2_*.yaml, in Markdown.

python evaluations/controller/models.py runs/COLLECTION ... > table.md

Gap closed is 1 - gap / gap without a loop, of the means over topics (of all dimensions together), with the 95 %
interval of 10,000 bootstrap resamples of the topics. Seconds are those that the model took for a system's requests,
each as when it was asked first: a reply from the cache counts what it took then.
Other folders with `transcript.jsonl` after `--also` are looked at for these.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

BEFORE, BASELINE = "no loop", "agent"
FIRST_TIME = 0.1
"""Seconds; a reply that took less is from the cache."""


def rows(folder: Path, took: dict[str, float]) -> list[str]:
    """The lines of one collection."""
    topics = list(csv.DictReader((folder / "topics.csv").open()))
    names = list(dict.fromkeys(row["topic"] for row in topics))
    systems = list(dict.fromkeys(row["system"] for row in topics))
    of = {system: (np.zeros(len(names)), np.zeros(len(names))) for system in systems}
    for row in topics:
        kind = row["measure"].partition("(")[0]
        if kind in ("nDCG", "gap"):
            of[row["system"]][kind == "gap"][names.index(row["topic"])] += float(row["value"])
    spent: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0, 0.0])
    usable: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for line in (folder / "journal.jsonl").read_text().splitlines():
        outcome = json.loads(line)
        counts = (outcome["calls"], outcome["input_tokens"], outcome["output_tokens"], 0.0)
        spent[outcome["system"]] = [a + b for a, b in zip(spent[outcome["system"]], counts, strict=True)]
        for step in outcome["steps"]:
            usable[outcome["system"]][0] += step["usable"]
            usable[outcome["system"]][1] += step["proposed"]
    for exchange in exchanges(folder):
        spent[exchange["system"]][3] += took.get(request(exchange), 0.0)
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, len(names), (10_000, len(names)))
    lines = [
        f"| {folder.name}, {len(names)} topics | gap | gap closed | nDCG | to the agent | calls | tokens read |"
        " written | usable | seconds a topic |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    before = of[BEFORE if BEFORE in of else BASELINE][1]
    for system in sorted(systems, key=lambda one: (one != BEFORE, one != BASELINE)):
        relevance, gap = of[system]
        closed = 1 - gap.mean() / before.mean()
        low, high = np.percentile(1 - gap[drawn].mean(axis=1) / before[drawn].mean(axis=1), [2.5, 97.5])
        change = relevance - of[BASELINE][0]
        least, most = np.percentile(change[drawn].mean(axis=1), [2.5, 97.5])
        calls, read, written, seconds = spent[system]
        good, made = usable[system]
        lines.append(
            f"| {system} | {gap.mean():.3f} | {closed:.0%} [{low:.0%}, {high:.0%}] | {relevance.mean():.3f} |"
            f" {change.mean():+.3f} [{least:+.3f}, {most:+.3f}] | {calls:.0f} | {read:,.0f} | {written:,.0f} |"
            f" {f'{good}/{made}' if made else '-'} | {seconds / len(names):.0f} |"
        )
    return [*lines, ""]


def exchanges(folder: Path) -> list[dict]:
    """The exchanges with the model."""
    file = folder / "transcript.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def request(exchange: dict) -> str:
    """What tells one request from another."""
    return json.dumps([exchange["messages"], exchange.get("seed"), exchange.get("temperature")])


def main() -> None:
    """Print the tables."""
    folders, _, also = " ".join(sys.argv[1:]).partition("--also")
    took: dict[str, float] = defaultdict(float)
    for folder in map(Path, (folders + also).split()):
        for exchange in exchanges(folder):
            if exchange["seconds"] > FIRST_TIME and not exchange["cached"]:
                took[request(exchange)] = max(took[request(exchange)], exchange["seconds"])
    for folder in map(Path, folders.split()):
        print("\n".join(rows(folder, took)))


if __name__ == "__main__":
    main()
