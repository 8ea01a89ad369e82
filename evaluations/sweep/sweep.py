"""FAIR-QR's loop varied: every choice around the settings that were the defaults before the controller.

    python evaluations/sweep/sweep.py            # all rows, about ten minutes
    python evaluations/sweep/sweep.py depth      # the rows whose name begins so

Rankings of 20 are judged with the target `trec` (half relevant share, half population; documents without a label are
left out of both sides), natural logarithm and discount 1 / log2(max(rank, 2)); the values are nDCG@20, AWRF@20 and the
mean product of both. Indexes go to ./indexes and are reused.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.evaluate.judging import evaluate_topic, judged_topics, standard_measures
from fairagent.retrieve.site import Site
from fairagent.search.pipeline import build, open_site, with_settings
from fairagent.settings import Settings, lay, load_settings

HERE = Path(__file__).resolve().parent
PLAIN = {"profile": "engine"}
BASE = {
    "engine": "bm25",
    "expansion": {"documents": 50},
    "loop": "fair-qr",
    "rerank": {"kind": "exposure", "fairness": 0.5, "unlabeled": 1.0},
}
"""What every row is laid over."""
LOOP = {"expansion": {"documents": 0}, "refine": {"weight": 1.0}}
LIST = {"kind": "fused", "refined": 1.0}


@dataclass(frozen=True)
class Case:
    """One dimension of one collection; a topic counts with at least `per_group` relevant documents a group."""

    collection: str
    dimension: str
    per_group: int = 0


CASES = (
    Case("wikilead", "gender"),
    Case("wikilead", "region"),
    Case("reuters21578", "region"),
    Case("reuters21578", "oecd1987"),
    Case("perspectrum", "stance", per_group=3),
)

ROWS: dict[str, Mapping[str, Any]] = {
    "BM25": PLAIN,
    "base": {},
    "paper: loop alone, best list, as it is": LOOP | {"rerank": LIST},
    "paper: loop alone, best list, original BM25": LOOP | {"rerank": "original"},
    "paper: loop alone, union, original BM25": LOOP | {"rerank": "original", "candidates": "union"},
    **{
        f"paper: loop alone, first {n}, original BM25": LOOP | {"rerank": "original", "loop": {"rerank_depth": n}}
        for n in (20, 50, 100)
    },
    "paper: loop alone, best list, exposure": LOOP,
    "no refiner (topic words, exposure)": {"refine": "none"},
    "no topic words (loop, exposure)": {"expansion": {"documents": 0}},
    "exposure on the BM25 list alone": {"refine": "none", "expansion": {"documents": 0}},
    "topic words alone (RM3)": {"refine": "none", "rerank": LIST},
    **{
        f"re-ranker {kind}, {policy}": {"rerank": kind, "candidates": policy}
        for kind in ("original", "fused", "exposure")
        for policy in ("best", "last", "union")
    },
    **{f"depth {depth}": {"depth": depth} for depth in (100, 200, 1000)},
    **{f"iterations {times}": {"iterations": times} for times in (1, 3, 10)},
    **{f"target {kind}": {"target": kind} for kind in ("uniform", "corpus", "estimated", "qrels", "trec")},
    **{f"topic documents {n}": {"expansion": {"documents": n}} for n in (10, 30, 70)},
    **{f"topic terms {n}": {"expansion": {"terms": n}} for n in (20, 50, 100, 300)},
    **{f"topic weight {w}": {"expansion": {"weight": w}} for w in (0.3, 0.5, 0.8)},
    **{f"group terms {n}": {"refine": {"terms": n}} for n in (10, 50)},
    **{f"group weight {w}": {"refine": {"weight": w}} for w in (0.05, 0.3, 0.6, 1.0)},
    **{f"fairness {f}": {"rerank": {"fairness": f}} for f in (0.1, 0.3, 1.0, 3.0)},
    **{f"unlabeled {u}": {"rerank": {"unlabeled": u}} for u in (0.0, 0.5)},
    **{f"divergence {d}": {"divergence": d} for d in ("kl-reverse", "js", "tv")},
    **{f"discount {d}": {"discount": d} for d in ("log2-plus1", "uniform")},
}


def main() -> None:
    """Print one line a row: for each case nDCG@20, AWRF@20 and their product, then the time."""
    chosen = {name: row for name, row in ROWS.items() if name.startswith(tuple(sys.argv[1:]) or "")}
    opened = {name: _open(name) for name in dict.fromkeys(case.collection for case in CASES)}
    print("| settings | " + " | ".join(f"{case.collection} {case.dimension}" for case in CASES) + " | ms a topic |")
    print("|---" * (len(CASES) + 2) + "|")
    for name, row in chosen.items():
        cells, milliseconds = [], []
        for case in CASES:
            values, seconds = _evaluate(opened[case.collection], case, row)
            cells.append(" ".join(f"{value:.3f}" for value in values))
            milliseconds.append(1000 * seconds)
        print(f"| {name} | " + " | ".join(cells) + f" | {np.mean(milliseconds):.0f} |", flush=True)


def _open(name: str) -> Site:
    site = open_site(HERE.parent / "collections" / f"{name}.yaml", settings=Settings())
    site.settings.engine.prepare(site, lambda what, done: None)
    return site


def _evaluate(site: Site, case: Case, row: Mapping[str, Any]) -> tuple[tuple[float, ...], float]:
    """The means over the case's topics, and the seconds a topic."""
    settings = load_settings(overrides=lay(BASE, {"dimensions": [case.dimension], **row}), environ={})
    agent, collection = build(with_settings(site, settings)), site.collection
    topics = judged_topics(collection, case.dimension, case.per_group).counted
    results = {topic: agent.search(collection.topics[topic]) for topic in topics}
    values = [
        evaluate_topic(collection, topic, case.dimension, result.ranking, standard_measures(20))
        for topic, result in results.items()
    ]
    seconds = float(np.mean([result.trace.seconds for result in results.values()]))
    return tuple(np.mean(values, axis=0).tolist()), seconds


if __name__ == "__main__":
    main()
