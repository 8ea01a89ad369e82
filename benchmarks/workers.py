"""An experiment with one worker and with two, in one run: `fairagent evaluate --workers` as processes, and on Dask.

    python benchmarks/workers.py                                            # the made-up demo collection
    python benchmarks/workers.py evaluations/collections/wikilead.yaml      # any other with topics

BM25, the default on BM25 and FAIR-QR with feedback, each on up to 60 topics, without a model. Every way is a command of
its own in a new process: all of it, start, checks and tables included. Starting takes as long with two workers as with
one, so the same is done with every system ten times under other names: what the workers bring to a longer run. The
results of all ways are compared byte for byte. A ratio above 1 says that the way is faster than one worker.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from fairagent.collection.demo import write_demo

WAYS = {
    "1 worker": ("--workers", "1"),
    "2 workers": ("--workers", "2"),
    "Dask, 2": ("--dask", "local", "--workers", "2"),
}
SAME = ("results.csv", "topics.csv", "runs")
PROGRAM = "from fairagent.cli import main\nif __name__ == '__main__':\n    main()\n"
HEAD = """\
name: workers
collection: {collection}
settings: {{index: {index}, engine: bm25}}
topics: 60
systems:
"""
SYSTEMS = """\
  BM25{number}: {{profile: engine}}
  agent{number}: {{}}
  FAIR-QR{number}: {{profile: fair-qr, refine: {{kind: feedback, weight: 1}}}}
"""


def main() -> None:
    """Print the figures; exit code 1 where the ways do not give the same results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("collection", nargs="?", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--people", type=int, default=3000, help="of the made-up collection")
    asked = parser.parse_args()
    same = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        collection = asked.collection or write_demo(folder / "demo", people=asked.people)
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        print(f"seconds, median of {asked.repeats}{'':10s}" + "".join(f"{way:>12s}{'ratio':>8s}" for way in WAYS))
        for times in (1, 10):
            systems = "".join(SYSTEMS.format(number=f" {number}" * (number > 0)) for number in range(times))
            head = HEAD.format(collection=collection.absolute(), index=folder / "index")
            (folder / "experiment.yaml").write_text(head + systems, encoding="utf-8")
            evaluate(folder, ("--workers", "1", "--limit-topics", "1"))
            seconds: dict[str, list[float]] = {way: [] for way in WAYS}
            results = set()
            for _ in range(asked.repeats):
                for way, options in WAYS.items():
                    seconds[way].append(evaluate(folder, options))
                    results.add(tuple(file.read_bytes() for part in SAME for file in files(folder / "run" / part)))
            same = same and len(results) == 1
            medians = [statistics.median(taken) for taken in seconds.values()]
            columns = "".join(f"{median:12.2f}{medians[0] / median:8.2f}" for median in medians)
            print(f"60 topics x {3 * times:2d} systems{'':10s}{columns}", flush=True)
    print("results: " + ("the same" if same else "NOT the same"))
    sys.exit(not same)


def evaluate(folder: Path, options: tuple[str, ...]) -> float:
    """Seconds of the command."""
    command = (sys.executable, "program.py", "evaluate", "experiment.yaml", "--run", "run", "--new", *options)
    start = perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return perf_counter() - start


def files(path: Path) -> list[Path]:
    """The file, or those of the folder."""
    return sorted(path.iterdir()) if path.is_dir() else [path]


if __name__ == "__main__":
    main()
