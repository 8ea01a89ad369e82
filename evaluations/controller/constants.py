"""Chooses the default constants, leaving one collection out: on all public topics of all collections with group labels.

    python evaluations/controller/constants.py [--indexes FOLDER] [--encoder light] [--table FILE]

The aims are those of evaluations/light: no labels that come from the judgments, no model. The value of a topic is the
product nDCG@20 * AWRF@20; a collection is worth the mean of its aims, whose worth is the mean of their topics, and the
objective is the mean over the collections: each weighs the same, however many topics it has.

All combinations of CHOSEN are measured, and the best is the choice. Each fold chooses by itself from the other
collections, and its choice is measured on the one left out, beside the mean of all combinations: what a choice at
random would give. The constants of FIXED are not chosen; the answer shows what others than theirs would do.
`--table` keeps what was measured in a file for another run (delete the file when the code has changed).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from aims import AIMS, measured, opened

from fairagent.types import FloatArray

Config = tuple[Any, ...]
"""A value of each constant, in the order of NAMES."""
Values = Mapping[str, Sequence[FloatArray]]
"""Collection -> for each of its aims the products of its topics (topics,)."""
CHOSEN: dict[str, tuple[Any, ...]] = {
    "mix": (0.0, 0.3, 0.5, 0.7),
    "longest": (2, 4),
    "types": (0.0, 0.3, 0.5, 1.0),
}
"""Relevance feedback: its share, and the longest query that it is for; the weight of the types of documents."""
FIXED: dict[str, tuple[Any, ...]] = {
    "dial": ("fairness 1", "fairness 0.5", "fairness 2", "keep 0.97", "keep 0.95", "keep 0.9", "gap 0.01"),
    "graph": (0.4, 0.2, 0.3, 0.5),
    "documents": (20, 10, 40),
}
"""First what is used. The dial is what a user decides, no product of two measures; the others were there before."""
NAMES = (*CHOSEN, *FIXED)


def overrides(config: Config) -> dict[str, Any]:
    """The settings that a configuration stands for."""
    named = dict(zip(NAMES, config, strict=True))
    dial, value = named["dial"].split()
    exposure = {"kind": "exposure", dial: float(value)}
    return {
        "rerank": [{"kind": "graph", "weight": named["graph"]}, exposure],
        "feedback": {name: named[name] for name in ("mix", "longest", "documents")},
        "types": named["types"],
        "loop": "none",
    }


def products(task: tuple[tuple[str, str], Config, Path, str]) -> list[float]:
    """nDCG@20 * AWRF@20 of each topic of an aim under a configuration."""
    aim, config, indexes, encoder = task
    return [float(one) for one in measured(aim, overrides(config), indexes, encoder).values[:, 2]]


class Table:
    """What each configuration gives on each topic, measured when it is first needed."""

    def __init__(self, run: Callable[[Iterable[Any]], Iterable[list[float]]], file: Path | None, **how: Any) -> None:
        self.run, self.file, self.how = run, file, how
        self.rows: dict[str, dict[str, list[float]]] = {}
        if file and file.exists():
            self.rows = json.loads(file.read_text(encoding="utf-8"))

    def measure(self, configs: Iterable[Config]) -> None:
        """Measure those that are not in the table."""
        missing = [config for config in dict.fromkeys(configs) if json.dumps(config) not in self.rows]
        tasks = [(aim, config, *self.how.values()) for config in missing for aim in AIMS]
        rows = iter(self.run(tasks))
        for config in missing:
            self.rows[json.dumps(config)] = {"/".join(aim): next(rows) for aim in AIMS}
            if self.file:
                self.file.write_text(json.dumps(self.rows), encoding="utf-8")

    def __getitem__(self, config: Config) -> Values:
        row = self.rows[json.dumps(config)]
        folds: dict[str, list[FloatArray]] = {}
        for name, dimension in AIMS:
            folds.setdefault(name, []).append(np.array(row[f"{name}/{dimension}"]))
        return folds


def objective(values: Values, folds: Sequence[str]) -> float:
    """The mean over the collections `folds` of the mean over their aims."""
    return float(np.mean([[np.mean([aim.mean() for aim in values[fold]])] for fold in folds]))


def error(values: Values, others: Values, folds: Sequence[str]) -> float:
    """The standard error of the difference of two objectives, paired by topic; aims of a collection as independent."""
    variance = 0.0
    for fold in folds:
        pairs = list(zip(values[fold], others[fold], strict=True))
        of_aims = [np.var(ours - theirs, ddof=1) / len(ours) for ours, theirs in pairs]
        variance += float(sum(of_aims)) / len(of_aims) ** 2
    return float(np.sqrt(variance) / len(folds))


def combinations() -> list[Config]:
    """All combinations of the constants that are chosen."""
    fixed = tuple(values[0] for values in FIXED.values())
    return [(*chosen, *fixed) for chosen in product(*CHOSEN.values())]


def varied(config: Config) -> dict[str, list[Config]]:
    """The configuration with each value of each constant."""
    grids = CHOSEN | FIXED
    return {
        name: [(*config[:place], value, *config[place + 1 :]) for value in sorted(grids[name])]
        for place, name in enumerate(NAMES)
    }


def report(table: Table, folds: Sequence[str]) -> Iterable[str]:
    """The lines of the answer: the choice, its sensitivity, the folds."""
    configs = combinations()
    worth = {config: np.array([objective(table[config], [fold]) for fold in folds]) for config in configs}
    chosen = max(configs, key=lambda config: float(worth[config].mean()))
    alternatives = varied(chosen)
    table.measure(config for one in alternatives.values() for config in one)
    counts = {fold: [len(aim) for aim in table[chosen][fold]] for fold in folds}
    pairs = f"{sum(sum(n) for n in counts.values())} pairs of query and dimension"
    yield f"mean product of {len(folds)} collections, {len(AIMS)} aims, {pairs}, {len(configs)} combinations"
    yield f"the choice   {worth[chosen].mean():.4f}: {shown(chosen)}"
    yield f"all, mean    {np.mean([one.mean() for one in worth.values()]):.4f}"
    yield f"all, worst   {min(one.mean() for one in worth.values()):.4f}"
    yield f"\n{'one varied':20s} product   difference (s.e.)     worst aim, to the choice         mean of all with it"
    aims = ["/".join(aim) for aim in AIMS]
    for name, ones in alternatives.items():
        for config in ones:
            both = table[config], table[chosen]
            change = objective(both[0], folds) - objective(both[1], folds)
            by_aim = [a.mean() - b.mean() for fold in folds for a, b in zip(both[0][fold], both[1][fold], strict=True)]
            worst, place = int(np.argmin(by_aim)), NAMES.index(name)
            of_all = [float(worth[one].mean()) for one in configs if one[place] == config[place]]
            loss = "" if config == chosen else f"{by_aim[worst]:+.4f} {aims[worst]}"
            text = f"{name} {config[place]}" + (" *" if config == chosen else "")
            mean = f"{np.mean(of_all):.4f}" if name in CHOSEN else ""
            row = f"{objective(both[0], folds):7.4f}   {change:+.4f} ({error(*both, folds):.4f})      {loss:32s} {mean}"
            yield f"{text:20s} {row}".rstrip()
    yield f"\n{'left out':20s} {'n':>4s}   fold's   all's    at random  its best  chosen without it"
    gains = []
    for place, fold in enumerate(folds):
        others = [i for i in range(len(folds)) if i != place]
        config = max(configs, key=lambda config: float(worth[config][others].mean()))
        of_fold = [float(one[place]) for one in worth.values()]
        gains.append(float(worth[config][place] - np.mean(of_fold)))
        cells = (worth[config][place], worth[chosen][place], np.mean(of_fold), max(of_fold))
        yield f"{fold:20s} {sum(counts[fold]):4d}   {'   '.join(f'{cell:.4f}' for cell in cells)}    {shown(config)}"
    yield f"a fold's choice on what it left out, less the mean of all combinations there: {np.mean(gains):+.4f}"


def shown(config: Config) -> str:
    """The constants that are chosen."""
    return ", ".join(f"{name} {value}" for name, value in zip(CHOSEN, config, strict=False))


def main() -> None:
    """Choose and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--indexes", type=Path, default=Path("indexes/light"))
    parser.add_argument("--encoder", default="light")
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    folds = list(dict.fromkeys(name for name, _ in AIMS))
    for name in folds:  # Once, before two workers want the same.
        opened(name, given.indexes, given.encoder)
    opened.cache_clear()
    with ProcessPoolExecutor(2) as workers:
        table = Table(
            lambda tasks: workers.map(products, tasks), given.table, indexes=given.indexes, encoder=given.encoder
        )
        table.measure(combinations())
        print(*report(table, folds), sep="\n")


if __name__ == "__main__":
    main()
