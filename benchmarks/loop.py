"""What a search costs and what for: the engine's accounts and the agent's, for the same queries.

    python benchmarks/loop.py                                            # the made-up demo collection
    python benchmarks/loop.py --people 50000 --bm25                      # the same, of so many made-up people
    python benchmarks/loop.py evaluations/collections/wikilead.yaml      # any other with topics

Prints for the engine alone, for the paper's loop on it (FAIR-QR with feedback), and for the settings by default on BM25
and as they are, the milliseconds a topic and where they go. The engine's: `matrix` (BM25), `texts`, `terms` (terms of
documents and the vocabulary), `vectors`, `fusion`. The agent's: `target` (the groups' shares of the first 500
documents), `measure` (groups of documents, exposures), `refine` (evidence from the terms), `re-rank`, `result` (the
hits' texts and groups), and `loop`, which is everything else. Each is the median of five passes, each on an engine
newly opened and asked one query to warm it. What the default engine needs is made first; indexes of a collection go to
./indexes and are reused.

Then what the two retrievals of a search by default take, in the best pass: `first` by the user's query, `again` by the
refined one over the whole collection, found and scored; and both as a ratio to the first, which is one search of the
engine. `evidence` is what the refined query is made of, most of which the loop needs in any case. How long the default
takes beside Lucene's BM25: `benchmarks/searching.py`.
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
from fairagent.search.loop.candidates import Candidates
from fairagent.search.loop.environment import Environment
from fairagent.search.loop.second_search import SecondSearch
from fairagent.search.pipeline import build, open_site, parts_of, resolved
from fairagent.search.refine.feedback import FeedbackRefiner
from fairagent.search.run import SearchRun
from fairagent.settings import Settings, load_settings

PASSES = 5
SYSTEMS: dict[str, Mapping[str, Any]] = {
    "BM25": {"profile": "engine"},
    "FAIR-QR, feedback": {"profile": "fair-qr", "engine": "bm25", "refine": {"kind": "feedback", "weight": 1}},
    "default on BM25": {"engine": "bm25"},
    "default": {},
}
SEARCHES: Mapping[str, tuple[tuple[Any, str], ...]] = {
    "first": ((FairAgent, "_retrieve"),),
    "again": ((SecondSearch, "documents"), (Environment, "joined")),
}
"""The two retrievals of a search -> their methods; one within another counts as the outer one."""
RETRIEVING = ("matrix", "vectors", "fusion")
"""Accounts of the engine that finding and scoring documents goes to."""
PARTS: Mapping[str, tuple[tuple[Any, str], ...]] = {
    "target": ((ExposureMeter, "make"),),
    "measure": ((ExposureMeter, "measure"), (ExposureMeter, "memberships")),
    "refine": ((FeedbackRefiner, "refine"), (Candidates, "mix"), (Environment, "_learned")),
    "re-rank": ((FairAgent, "_serve"),),
    "result": ((SearchRun, "result"),),
}
"""What of the agent is told apart: account -> its methods."""
ACCOUNTS = ("matrix", "texts", "terms", "vectors", "fusion", *PARTS, "loop")


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
            setattr(owner, name, engine_time(account)(getattr(owner, name)))
    site = open_site(file, index, settings=Settings())
    shown = {name: row for name, row in SYSTEMS.items() if row or not asked.bm25}
    for row in shown.values():
        settings = load_settings(overrides=row, environ={})
        made = resolved(open_site(file, index, settings=settings), preparing=True)
        for part in parts_of(made.settings):
            part.prepare(made, lambda what, done: None)
    print(f"{site.collection.name}: {len(site.collection.topics)} topics; ms a topic, median of {PASSES} passes")
    print(f"{'':18s} {'all':>7s}" + "".join(f"{name:>8s}" for name in ACCOUNTS) + "   times BM25  loop's share")
    plain = 0.0
    for name, row in shown.items():
        settings = load_settings(overrides=row, environ={})
        total, accounts = timed(lambda: build(open_site(file, index, settings=settings)))  # noqa: B023
        plain = plain or total
        columns = "".join(f"{accounts[account]:8.2f}" for account in ACCOUNTS)
        print(f"{name:18s} {total:7.2f}{columns} {total / plain:12.2f} {accounts['loop'] / total:13.3f}")
    stopwatch = Stopwatch()
    stopwatch.install()
    print(f"retrieval, ms a topic {'first':>9s}{'again':>9s}{'evidence':>10s}   both to the first   with evidence")
    for name in (name for name in shown if name.startswith("default")):
        settings = load_settings(overrides=shown[name], environ={})
        first, again, evidence = retrievals(lambda: build(open_site(file, index, settings=settings)), stopwatch)  # noqa: B023
        ratios = f"{(first + again) / first:18.2f}{(first + again + evidence) / first:16.2f}"
        print(f"{name:21s} {first:9.2f}{again:9.2f}{evidence:10.2f}{ratios}")


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
        spent |= {"all": total, "loop": total - sum(spent.values())}
        passes.append({name: 1000 * spent.get(name, 0.0) / len(topics) for name in ("all", *ACCOUNTS)})
    median = {name: statistics.median(one[name] for one in passes) for name in ("all", *ACCOUNTS)}
    return median["all"], median


class Stopwatch:
    """Seconds spent in the methods of `SEARCHES`: all of them, and by account of the engine."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._within = False

    def install(self) -> None:
        """Time all of them from now on."""
        for name, methods in SEARCHES.items():
            for owner, method in methods:
                setattr(owner, method, self._timed(name, getattr(owner, method)))

    def _timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any) -> Any:
            if self._within:
                return method(*given)
            before, started, self._within = engine_accounts(), perf_counter(), True
            try:
                return method(*given)
            finally:
                self._within, seconds = False, perf_counter() - started
                now = engine_accounts()
                asked = sum(now.get(account, 0.0) - before.get(account, 0.0) for account in RETRIEVING)
                self.seconds[name] = self.seconds.get(name, 0.0) + asked
                self.seconds[f"{name} evidence"] = self.seconds.get(f"{name} evidence", 0.0) + seconds - asked

        return timed


def retrievals(opened: Callable[[], FairAgent], stopwatch: Stopwatch) -> list[float]:
    """Milliseconds a topic of the first and the second retrieval, and of what the second goes by: the best pass."""
    passes = []
    for _ in range(PASSES):
        agent = opened()
        agent.search("warm")
        topics = agent.collection.topics.values()
        stopwatch.seconds.clear()
        for topic in topics:
            agent.search(topic)
        passes.append([1000 * stopwatch.seconds[name] / len(topics) for name in ("first", "again", "again evidence")])
    return min(passes, key=sum)


if __name__ == "__main__":
    main()
