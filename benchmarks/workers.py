"""An experiment with one worker and with two, with one BLAS thread and with as many as there are cores, in one run.

    python benchmarks/workers.py                                            # 20,000 made-up documents, 150 topics
    python benchmarks/workers.py evaluations/collections/wikilead.yaml      # any other with topics

BM25, the default and FAIR-QR with feedback, each on up to 150 topics, without a model: by `fairagent evaluate
--workers` as processes. Every way is a command of its own in a new process: all of
it, start, checks and tables included. Starting takes as long with two workers as with one, so with `--times 10` every
system is there ten times under other names: what workers bring to a longer run. "BLAS free" is one worker without the
limit of one thread that a run sets. The results of all ways are compared byte for byte. Ratios above 1 say that one
worker takes longer, or more CPU seconds, than the way.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from made_up import write_made_up
from timing import Cost, cost

PROGRAM = "from fairagent.cli import main\nif __name__ == '__main__':\n    main()\n"
FREE = "from contextlib import nullcontext\nfrom fairagent.storage import threads\n"
FREE += "threads.one_blas_thread = nullcontext\n"
WAYS = {
    "1 worker": ("program.py", "--workers", "1"),
    "BLAS free": ("free.py", "--workers", "1"),
    "2 workers": ("program.py", "--workers", "2"),
}
SAME = ("results.csv", "topics.csv", "runs")
HEAD = """\
name: workers
collection: {collection}
settings: {{index: {index}}}
topics: {topics}
systems:
"""
SYSTEMS = """\
  BM25{number}: {{profile: engine, engine: bm25}}
  agent{number}: {{}}
  FAIR-QR{number}: {{profile: fair-qr, engine: bm25, refine: {{kind: feedback, weight: 1}}}}
"""


def main() -> None:
    """Print the figures; exit code 1 where the ways do not give the same results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collection", nargs="?", type=Path)
    parser.add_argument("--documents", type=int, default=20_000, help="of the made-up collection")
    parser.add_argument("--topics", type=int, default=150)
    parser.add_argument("--times", type=int, nargs="+", default=[1], help="how often each system is there")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    same = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        collection = asked.collection or write_made_up(folder / "collection", asked.documents)
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        (folder / "free.py").write_text(FREE + PROGRAM, encoding="utf-8")
        for times in asked.times:
            systems = "".join(SYSTEMS.format(number=f" {number}" * (number > 0)) for number in range(times))
            head = HEAD.format(collection=collection.absolute(), index=folder / "index", topics=asked.topics)
            (folder / "experiment.yaml").write_text(head + systems, encoding="utf-8")
            evaluate(folder, "program.py", "--workers", "1", "--limit-topics", "1")
            taken: dict[str, list[Cost]] = {way: [] for way in WAYS}
            results = set()
            for _ in range(asked.rounds):
                for way, options in WAYS.items():
                    taken[way].append(evaluate(folder, *options))
                    results.add(tuple(file.read_bytes() for part in SAME for file in files(folder / "run" / part)))
            same = same and len(results) == 1
            print(f"{asked.topics} topics x {3 * times} systems, median of {asked.rounds}")
            print(f"  {'':12}{'s':>8}{'ratio':>8}{'CPU s':>8}{'ratio':>8}{'MB':>8}")
            base = medians(taken["1 worker"])
            for way, costs in taken.items():
                own = medians(costs)
                ratios = base.wall / own.wall, base.cpu / own.cpu
                print(
                    f"  {way:12}{own.wall:8.2f}{ratios[0]:8.2f}{own.cpu:8.2f}{ratios[1]:8.2f}{own.memory:8.0f}",
                    flush=True,
                )
    print("results: " + ("the same" if same else "NOT the same"))
    sys.exit(not same)


def medians(costs: list[Cost]) -> Cost:
    """Each figure's median."""
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


def evaluate(folder: Path, program: str, *options: str) -> Cost:
    """What the command costs."""
    command = (sys.executable, program, "evaluate", "experiment.yaml", "--run", "run", "--new", *options)
    return cost(command, cwd=folder)


def files(path: Path) -> list[Path]:
    """The file, or those of the folder."""
    return sorted(path.iterdir()) if path.is_dir() else [path]


if __name__ == "__main__":
    main()
