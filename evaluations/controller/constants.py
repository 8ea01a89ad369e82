"""The default constants, chosen leave-one-collection-out over all public topics.

    python evaluations/controller/constants.py [INDEXES]       # about ten minutes on two cores

The objective is the product of nDCG@20 and AWRF@20: its mean over the topics of an aim (a dimension of a collection),
over the aims of a collection, and over the collections. Each constant in turn, twice around, takes the value of its
grid that is nearest to what it is among those within `NOISE` of the best, the others being as they are. All collections
choose the constants that are printed as the choice; each fold leaves one collection out, and is judged on that one.
Printed is then what each constant alone makes of the choice. Indexes go to the folder INDEXES (./indexes) and are used
again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fairagent import build_index, load_collection
from fairagent.evaluate.judging import evaluate_topic, judged_topics, standard_measures
from fairagent.pipeline import build, open_site, with_settings
from fairagent.settings import load_settings
from fairagent.site import Site

COLLECTIONS = Path(__file__).resolve().parents[1] / "collections"
AIMS = (
    ("trec22_biographies", "gender"),
    ("allsides", "leaning"),
    ("wikilead", "gender"),
    ("wikilead", "region"),
    ("reuters21578", "region"),
    ("reuters21578", "oecd1987"),
)
"""The collections whose labels are no oracle, each a fold."""
GRIDS: Mapping[str, tuple[Any, ...]] = {
    "vectors": (0.25, 0.5, 0.75, 1.0),
    "beta": (0.3, 0.5, 0.7, 0.85),
    "terms": (0.0, 0.1, 0.2, 0.4),
    "graph": (0.2, 0.3, 0.4, 0.5),
    "fairness": (0.25, 0.5, 1.0, 2.0),
    "again": (0, 100, 300),
    "prior": (0.3, 0.6, 1.0),
}
"""Weight of the light vectors beside BM25, shares of the evidence among vectors and words, weight of the neighbors'
scores, fairness of the re-ranker, documents that the second search finds, weight of the documents' kinds."""
START: Mapping[str, Any] = {
    "vectors": 0.5,
    "beta": 0.5,
    "terms": 0.2,
    "graph": 0.4,
    "fairness": 1.0,
    "again": 300,
    "prior": 0.6,
}
"""Where the choice begins: what the constants were before it."""
NOISE = 0.002
"""Differences of the mean product that decide nothing."""

Constants = tuple[Any, ...]
Values = Mapping[tuple[str, str], float]
"""Aim -> its mean product."""


def main() -> None:
    """Choose, and print all of it."""
    indexes = Path(sys.argv[1] if sys.argv[1:] else "indexes")
    names = sorted({name for name, _ in AIMS})
    with ProcessPoolExecutor(2) as processes:
        list(processes.map(prepare, names, [indexes] * len(names)))
        table = Table(lambda wanted: measured(processes, wanted, indexes))
        chosen = choose(table, names)
        print(f"chosen over all: {shown(chosen)}  {score(table[chosen], names):.4f}")
        print(f"before:          {shown(tuple(START.values()))}  {score(table[tuple(START.values())], names):.4f}\n")
        print("each constant alone, with the others as chosen: mean product, and the largest loss of an aim")
        for place, (name, grid) in enumerate(GRIDS.items()):
            for value in grid:
                values = table[with_value(chosen, place, value)]
                loss = min(values[aim] - table[chosen][aim] for aim in AIMS)
                mark = "*" if value == chosen[place] else " "
                print(f" {mark} {name:9s} {value!s:18s} {score(values, names):.4f}  {loss:+.4f}")
        print("\nwithout a collection: what is chosen, and its product there beside that of the choice and of before")
        for left_out in names:
            fold = choose(table, [name for name in names if name != left_out])
            there = [score(table[one], [left_out]) for one in (fold, chosen, tuple(START.values()))]
            print(f"   {left_out:20s} {shown(fold)}  " + " ".join(f"{value:.4f}" for value in there), flush=True)


@dataclass
class Table:
    """What each choice of constants gives, measured once: `measure` is asked for several at a time."""

    measure: Callable[[list[Constants]], list[Values]]
    known: dict[Constants, Values] = field(default_factory=dict)

    def __getitem__(self, constants: Constants) -> Values:
        self.look_up([constants])
        return self.known[constants]

    def look_up(self, wanted: list[Constants]) -> None:
        """Measure those of them that are not known."""
        new = [one for one in dict.fromkeys(wanted) if one not in self.known]
        self.known |= dict(zip(new, self.measure(new) if new else [], strict=True))


def choose(table: Table, names: list[str], rounds: int = 2) -> Constants:
    """The constants that these collections choose."""
    chosen = tuple(START.values())
    for _ in range(rounds):
        before = chosen
        for place, grid in enumerate(GRIDS.values()):
            others, here = [with_value(chosen, place, value) for value in grid], grid.index(chosen[place])
            table.look_up(others)
            scores = [score(table[one], names) for one in others]
            good = [number for number, value in enumerate(scores) if value >= max(scores) - NOISE]
            chosen = others[min(good, key=lambda number: (abs(number - here), -scores[number]))]
        if chosen == before:
            break
    return chosen


def score(values: Values, names: list[str]) -> float:
    """The mean over these collections of the means over their aims."""
    return float(np.mean([np.mean([values[aim] for aim in AIMS if aim[0] == name]) for name in names]))


def with_value(constants: Constants, place: int, value: Any) -> Constants:
    """The constants with another value at this place."""
    return (*constants[:place], value, *constants[place + 1 :])


def shown(constants: Constants) -> str:
    """The constants with their names, in one line."""
    return ", ".join(f"{name} {value}" for name, value in zip(GRIDS, constants, strict=True))


def overrides(constants: Constants) -> dict[str, Any]:
    """The settings that these constants are."""
    vectors, beta, terms, graph, fairness, again, prior = constants
    return {
        "engine": {
            "kind": "fused",
            "engines": ["bm25", {"kind": "dense", "encoder": "light"}],
            "weights": [1, vectors],
        },
        "loop": {"beta": beta, "terms": terms, "again": again, "prior": prior},
        "rerank": [{"kind": "graph", "weight": graph}, {"kind": "exposure", "fairness": fairness}],
    }


def measured(processes: ProcessPoolExecutor, wanted: list[Constants], indexes: Path) -> list[Values]:
    """The mean product of each aim under each of the wanted constants."""
    tasks = [(aim, one, indexes) for aim in AIMS for one in wanted]
    values = list(processes.map(product, tasks))
    return [dict(zip(AIMS, values[place :: len(wanted)], strict=True)) for place in range(len(wanted))]


def product(task: tuple[tuple[str, str], Constants, Path]) -> float:
    """The mean product over all topics of one aim."""
    (name, dimension), constants, indexes = task
    site = opened(name, indexes)
    settings = load_settings(overrides={"dimensions": [dimension], **overrides(constants)}, environ={})
    agent, collection = build(with_settings(site, settings)), site.collection
    topics = judged_topics(collection, dimension).counted
    rows = [
        evaluate_topic(collection, id, dimension, agent.search(collection.topics[id]).ranking, standard_measures(20))
        for id in topics
    ]
    return float(np.mean([row[2] for row in rows]))


def prepare(name: str, indexes: Path) -> None:
    """Build the index of a collection if it is not there."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    if not (indexes / name).exists():
        build_index(load_collection(COLLECTIONS / f"{name}.yaml"), indexes / name)


@cache
def opened(name: str, indexes: Path) -> Site:
    """The collection with its index, opened once in each process."""
    return open_site(COLLECTIONS / f"{name}.yaml", indexes / name)


if __name__ == "__main__":
    main()
