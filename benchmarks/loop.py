"""What a search costs and what for: the engine's accounts and the agent's, for the same queries.

    python benchmarks/loop.py                                            # the made-up demo collection
    python benchmarks/loop.py --people 20000 --bm25                      # the same, of so many made-up people
    python benchmarks/loop.py evaluations/collections/wikilead.yaml      # any other with topics

Prints for the engine alone, for the paper's loop on it (FAIR-QR with feedback), and for the settings by default on BM25
and as they are, the milliseconds a topic, as a ratio to the engine alone, and where they go. The engine's: `matrix`
(BM25), `texts`, `terms` (terms of documents and the vocabulary), `vectors`, `fusion`. The agent's: `target` (the
groups' shares of the first 500 documents), `measure` (groups of documents, exposures), `weigh` (feedback and types of
documents), `re-rank` (the graph, the frontier), `result` (the hits' texts and groups), and `rest`. Each is the median
of five passes, each on an engine newly opened and asked one query to warm it. What the default engine needs is made
first; indexes of a collection go to ./indexes and are reused.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from made_up_people import write_people

from fairagent.collection.exposure import ExposureMeter
from fairagent.retrieve.base import engine_accounts, engine_time
from fairagent.search.agent import FairAgent
from fairagent.search.loop.base import FinalList
from fairagent.search.pipeline import build, open_site, parts_of, resolved
from fairagent.search.relevance import Weighing
from fairagent.search.run import SearchRun
from fairagent.settings import Settings, load_settings

PASSES = 5
SYSTEMS: dict[str, Mapping[str, Any]] = {
    "BM25": {"profile": "engine"},
    "FAIR-QR, feedback": {"profile": "fair-qr", "engine": "bm25", "refine": {"kind": "feedback", "weight": 1}},
    "default on BM25": {"engine": "bm25"},
    "default": {},
}
PARTS: Mapping[str, tuple[tuple[Any, str], ...]] = {
    "target": ((ExposureMeter, "make"),),
    "measure": ((ExposureMeter, "measure"), (ExposureMeter, "memberships")),
    "weigh": ((Weighing, "of"),),
    "re-rank": ((FinalList, "of"),),
    "result": ((SearchRun, "result"),),
}
"""What of the agent is told apart: account -> its methods."""
ACCOUNTS = ("matrix", "texts", "terms", "vectors", "fusion", *PARTS, "rest")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("collection", nargs="?", type=Path)
    parser.add_argument("--people", type=int, default=3000, help="of the made-up collection")
    parser.add_argument("--bm25", action="store_true", help="leave out the default, whose vectors take long to make")
    asked = parser.parse_args()
    folder = Path(tempfile.gettempdir()) / f"fairagent-benchmark-demo-{asked.people}"
    there = folder / "collection.yaml"
    index = "" if asked.collection else folder / "index"
    file = asked.collection or (there if folder.exists() else write_people(folder, asked.people))
    for account, methods in PARTS.items():
        for owner, name in methods:
            made = vars(owner)[name]
            timed_one = engine_time(account)(made.__func__ if isinstance(made, classmethod) else made)
            setattr(owner, name, classmethod(timed_one) if isinstance(made, classmethod) else timed_one)
    site = open_site(file, index, settings=Settings())
    shown = {name: row for name, row in SYSTEMS.items() if row or not asked.bm25}
    for row in shown.values():
        settings = load_settings(overrides=row, environ={})
        made = resolved(open_site(file, index, settings=settings), preparing=True)
        for part in parts_of(made.settings):
            part.prepare(made, lambda what, done: None)
    print(f"{site.collection.name}: {len(site.collection.topics)} topics; ms a topic, median of {PASSES} passes")
    print(f"{'':18s} {'all':>7s}" + "".join(f"{name:>8s}" for name in ACCOUNTS) + "   times BM25")
    plain = 0.0
    for name, row in shown.items():
        settings = load_settings(overrides=row, environ={})
        total, accounts = timed(lambda: build(open_site(file, index, settings=settings)))  # noqa: B023
        plain = plain or total
        columns = "".join(f"{accounts[account]:8.2f}" for account in ACCOUNTS)
        print(f"{name:18s} {total:7.2f}{columns} {total / plain:12.2f}")


def timed(opened: Callable[[], FairAgent]) -> tuple[float, Mapping[str, float]]:
    """Milliseconds a topic, in all and by account. Engines keep what they were asked: each pass opens anew."""
    passes: list[dict[str, float]] = []
    for _ in range(PASSES):
        agent = opened()
        agent.search("warm")
        topics = agent.collection.topics.values()
        before, start = engine_accounts(), perf_counter()
        for topic in topics:
            agent.search(topic)
        total = perf_counter() - start
        spent = {name: seconds - before.get(name, 0.0) for name, seconds in engine_accounts().items()}
        spent |= {"all": total, "rest": total - sum(spent.values())}
        passes.append({name: 1000 * spent.get(name, 0.0) / len(topics) for name in ("all", *ACCOUNTS)})
    median = {name: statistics.median(one[name] for one in passes) for name in ("all", *ACCOUNTS)}
    return median["all"], median


if __name__ == "__main__":
    main()
