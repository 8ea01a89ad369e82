"""The loop's own time beside the search engine's, for the same queries.

    python benchmarks/loop.py                                            # the made-up demo collection
    python benchmarks/loop.py evaluations/collections/wikilead.yaml      # any other with topics

Prints the seconds for all topics with the default settings, and the ratio of the loop's own time (measuring, refining,
re-ranking) to the engine's (Lucene and the calls to it), after one pass that warms both up; the median of five passes.
Indexes go to ./indexes and are reused.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from fairagent.collection import load_collection
from fairagent.collection.demo import write_demo
from fairagent.pipeline import index_folder, open_agent
from fairagent.retrieve.lucene import build_index
from fairagent.settings import Settings

LIMIT = 0.15
PASSES = 5


def main() -> None:
    """Print the figures; exit code 1 where the ratio is above the limit."""
    file = Path(sys.argv[1]) if sys.argv[1:] else write_demo(Path(tempfile.gettempdir()) / "fairagent-benchmark-demo")
    collection = load_collection(file)
    folder = index_folder(collection, Settings())
    if not folder.exists():
        build_index(collection, folder)
    print(f"{collection.name}: {len(collection.topics)} topics; median of {PASSES} passes, own time / engine's time")
    worst = 0.0
    for dimensions in [(name,) for name in collection.groups.dimensions] + [collection.groups.dimensions]:
        agent = open_agent(collection, folder, Settings(), dimensions=dimensions)
        passes = []
        for _ in range(PASSES + 1):
            traces = [agent.search(topic).trace for topic in collection.topics.values()]
            passes.append((sum(trace.seconds for trace in traces), sum(trace.engine_seconds for trace in traces)))
        seconds = statistics.median(total for total, _ in passes[1:])
        ratio = statistics.median((total - engine) / engine for total, engine in passes[1:])
        worst = max(worst, ratio)
        print(f"{', '.join(dimensions):20s} {seconds:6.2f} s   own / engine {ratio:.3f}")
    print(f"limit {LIMIT}: {'kept' if worst <= LIMIT else 'NOT kept'}")
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
