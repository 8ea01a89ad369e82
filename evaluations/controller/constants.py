"""Chooses the default constants, leaving one collection out: on all public topics of all collections with group labels.

    python evaluations/controller/constants.py [--indexes FOLDER] [--encoder light] [--table FILE] [--passes 2]

The aims are those of evaluations/light: no labels that come from the judgments, no model. The value of a topic is the
product nDCG@20 * AWRF@20; a collection is worth the mean of its aims, whose worth is the mean of their topics, and the
objective is the mean over the collections: each weighs the same, however many topics it has.

Coordinate descent from what the constants were before, constant after constant over GRIDS, `passes` times. Of the
values within one standard error of the best (of the paired difference over the topics) that is taken which stands first
in its grid: what was before, then the others in turn. Each fold descends by itself over the other collections, and its
choice is measured on the one left out. What a configuration gives on a topic is measured once, for all descents;
`--table` keeps it in a file for another run (delete the file when the code has changed).
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

# One thread a worker: two workers share two cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from fairagent import build_index, load_collection
from fairagent.evaluate.judging import evaluate_topic, judged_topics, standard_measures
from fairagent.pipeline import build, open_site, with_settings
from fairagent.settings import load_settings
from fairagent.types import FloatArray

COLLECTIONS = Path(__file__).resolve().parents[1] / "collections"
AIMS: tuple[tuple[str, str], ...] = (
    ("trec22_biographies", "gender"),
    ("allsides", "leaning"),
    ("wikilead", "gender"),
    ("wikilead", "region"),
    ("reuters21578", "region"),
    ("reuters21578", "oecd1987"),
)
Config = tuple[Any, ...]
"""A value of each constant, in the order of GRIDS."""
Values = Mapping[str, Sequence[FloatArray]]
"""Collection -> for each of its aims the products of its topics (topics,)."""
GRIDS: dict[str, tuple[Any, ...]] = {
    "weight": (0.5, 0.75, 1.0),
    "fairness": (1.0, 0.5, 2.0),
    "graph": (0.4, 0.3, 0.5),
    "beta": (0.5, 0.7, 0.85),
    "terms": (0.2, 0.1, 0.0),
    "again": (100, 300),
    "prior": (0.6, 0.3),
}
"""What is tried: the vectors' weight beside BM25, the fairness of exposure, the weight of the graph re-ranker, and the
loop's constants. First stands what each was before any choice by this command, not what it is now: ties would
otherwise bring each fold what its own collection had helped to choose."""
START: Config = tuple(grid[0] for grid in GRIDS.values())


def overrides(config: Config, dimension: str, encoder: str) -> dict[str, Any]:
    """The settings that a configuration stands for."""
    named = dict(zip(GRIDS, config, strict=True))
    engines = ["bm25", {"kind": "dense", "encoder": encoder}]
    exposure = {"kind": "exposure", "fairness": named["fairness"]}
    return {
        "dimensions": [dimension],
        "encoder": encoder,
        "engine": {"kind": "fused", "engines": engines, "weights": [1.0, named["weight"]]},
        "rerank": [{"kind": "graph", "weight": named["graph"]}, exposure],
        "loop": {name: named[name] for name in ("beta", "terms", "again", "prior")},
    }


@cache
def opened(name: str, indexes: Path, encoder: str) -> Any:
    """The collection with its index, built where it is missing."""
    file = COLLECTIONS / f"{name}.yaml"
    if not (indexes / name).exists():
        engine = {"kind": "fused", "engines": ["bm25", {"kind": "dense", "encoder": encoder}]}
        build_index(load_collection(file), indexes / name, engine=engine)
    return open_site(file, indexes / name)


def products(task: tuple[tuple[str, str], Config, Path, str]) -> list[float]:
    """nDCG@20 * AWRF@20 of each topic of an aim under a configuration."""
    (name, dimension), config, indexes, encoder = task
    site = opened(name, indexes, encoder)
    settings = load_settings(overrides=overrides(config, dimension, encoder), environ={})
    agent = build(with_settings(site, settings))
    topics = [site.collection.topics[id] for id in judged_topics(site.collection, dimension).counted]
    measured = [
        evaluate_topic(site.collection, topic.id, dimension, agent.search(topic).ranking, standard_measures(20))
        for topic in topics
    ]
    return [float(values[2]) for values in measured]


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


def first_good_enough(candidates: Sequence[Values], folds: Sequence[str]) -> int:
    """The first candidate that is within one standard error of the best."""
    worth = [objective(candidate, folds) for candidate in candidates]
    best = int(np.argmax(worth))
    close = (worth[best] - worth[i] <= error(candidates[best], c, folds) for i, c in enumerate(candidates))
    return next(i for i, near in enumerate(close) if near)


def variants(config: Config, place: int) -> list[Config]:
    """The configuration with each value of the constant at `place`, in the order of its grid."""
    return [(*config[:place], value, *config[place + 1 :]) for value in list(GRIDS.values())[place]]


def descend(table: Table, descents: Sequence[Sequence[str]], passes: int) -> list[Config]:
    """What each descent over its collections ends at; all go step by step, so what they need is measured together."""
    at = [START] * len(descents)
    for _ in range(passes):
        before = list(at)
        for place in range(len(GRIDS)):
            tried = [variants(config, place) for config in at]
            table.measure(config for configs in tried for config in configs)
            for i, (configs, folds) in enumerate(zip(tried, descents, strict=True)):
                at[i] = configs[first_good_enough([table[config] for config in configs], folds)]
        if at == before:
            break
    return at


def shown(config: Config) -> str:
    """What differs from before."""
    changes = [f"{name} {now}" for name, now, old in zip(GRIDS, config, START, strict=True) if now != old]
    return ", ".join(changes) or "as before"


def report(table: Table, chosen: Config, folds: Sequence[str], of_folds: Sequence[Config]) -> Iterable[str]:
    """The lines of the answer: the choice, its sensitivity, the folds."""
    counts = {fold: [len(aim) for aim in table[chosen][fold]] for fold in folds}
    everything = sum(sum(n) for n in counts.values())
    yield f"objective: mean product of {len(folds)} collections, {len(AIMS)} aims, {everything} topics"
    yield f"before     {objective(table[START], folds):.4f}"
    yield f"the choice {objective(table[chosen], folds):.4f}: {shown(chosen)}"
    yield f"\n{'one constant varied':28s} mean product   difference (s.e.)     worst aim, to the choice"
    aims = ["/".join(aim) for aim in AIMS]
    for place, name in enumerate(GRIDS):
        for config in variants(chosen, place):
            both = table[config], table[chosen]
            change = objective(both[0], folds) - objective(both[1], folds)
            by_aim = [a.mean() - b.mean() for fold in folds for a, b in zip(both[0][fold], both[1][fold], strict=True)]
            worst = int(np.argmin(by_aim))
            text = f"{name} {config[place]}" + (" *" if config == chosen else "")
            line = f"{text:28s} {objective(both[0], folds):12.4f}   {change:+.4f} ({error(*both, folds):.4f})"
            yield line if config == chosen else f"{line}    {by_aim[worst]:+.4f} {aims[worst]}"
    yield f"\n{'left out':20s} {'n':>4s}  before   fold's   all's    its best  chosen without it"
    for fold, config in zip(folds, of_folds, strict=True):
        best = max(objective(table[tuple(map(listed, json.loads(row)))], [fold]) for row in table.rows)
        ours = (objective(table[one], [fold]) for one in (START, config, chosen))
        cells = "  ".join(f"{value:.4f} " for value in (*ours, best))
        yield f"{fold:20s} {sum(counts[fold]):4d}  {cells}  {shown(config)}"


def listed(value: Any) -> Any:
    """A value as in GRIDS, where JSON has lists for tuples."""
    return tuple(value) if isinstance(value, list) else value


def main() -> None:
    """Choose and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--indexes", type=Path, default=Path("indexes/constants"))
    parser.add_argument("--encoder", default="light")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--passes", type=int, default=2)
    given = parser.parse_args()
    folds = list(dict.fromkeys(name for name, _ in AIMS))
    for name in folds:  # Once, before two workers want the same.
        opened(name, given.indexes, given.encoder)
    opened.cache_clear()
    with ProcessPoolExecutor(2) as workers:
        table = Table(
            lambda tasks: workers.map(products, tasks), given.table, indexes=given.indexes, encoder=given.encoder
        )
        descents = [folds, *([other for other in folds if other != fold] for fold in folds)]
        chosen, *of_folds = descend(table, descents, given.passes)
        table.measure(config for place in range(len(GRIDS)) for config in variants(chosen, place))
    print(*report(table, chosen, folds, of_folds), sep="\n")


if __name__ == "__main__":
    main()
