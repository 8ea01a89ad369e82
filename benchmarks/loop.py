"""What the default search costs beside plain BM25, for the same queries in one run.

    python benchmarks/loop.py                                            # the made-up demo collection
    python benchmarks/loop.py evaluations/collections/wikilead.yaml      # any other with topics

Prints for the settings by default, and for the same on BM25, the milliseconds a topic, how many of them the engine
takes and how many the agent (measuring, the loop, re-ranking), and the ratio to `profile: engine`; each the median of
five passes, each on an engine newly opened and asked one query to warm it. What the default engine needs is made first;
indexes go to ./indexes and are reused. Exit code 1 where the default takes more than three times as long as BM25.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fairagent.agent import FairAgent
from fairagent.collection.demo import write_demo
from fairagent.pipeline import build, open_site
from fairagent.settings import Settings, load_settings

LIMIT = 3.0
PASSES = 5
SYSTEMS: dict[str, Mapping[str, Any]] = {
    "BM25": {"profile": "engine"},
    "default on BM25": {"engine": "bm25"},
    "default": {},
}


def main() -> None:
    """Print the figures."""
    file = Path(sys.argv[1]) if sys.argv[1:] else write_demo(Path(tempfile.gettempdir()) / "fairagent-benchmark-demo")
    site = open_site(file, settings=Settings())
    site.settings.engine.prepare(site, lambda what, done: None)
    print(f"{site.collection.name}: {len(site.collection.topics)} topics; ms a topic, median of {PASSES} passes")
    print(f"{'':16s} {'all':>8s} {'engine':>8s} {'agent':>8s}   times BM25")
    plain = ratio = 0.0
    for name, row in SYSTEMS.items():
        settings = load_settings(overrides=row, environ={})
        total, engine = timed(lambda: build(open_site(file, settings=settings)))  # noqa: B023
        plain = plain or total
        ratio = total / plain
        print(f"{name:16s} {total:8.1f} {engine:8.1f} {total - engine:8.1f} {ratio:12.2f}")
    print(f"limit {LIMIT:g}: {'kept' if ratio <= LIMIT else 'NOT kept'}")
    sys.exit(ratio > LIMIT)


def timed(opened: Callable[[], FairAgent]) -> tuple[float, float]:
    """Milliseconds a topic: all of them, and the engine's. Engines keep what they were asked: each pass opens anew."""
    passes = []
    for _ in range(PASSES):
        agent = opened()
        agent.search("warm")
        topics = agent.collection.topics.values()
        traces = [agent.search(topic).trace for topic in topics]
        seconds = sum(trace.seconds for trace in traces), sum(trace.engine_seconds for trace in traces)
        passes.append([1000 * value / len(topics) for value in seconds])
    total, engine = zip(*passes, strict=True)
    return statistics.median(total), statistics.median(engine)


if __name__ == "__main__":
    main()
