"""How time, disk and memory grow with a collection, on this machine: docs/engines.md#large-collections has the figures.

    python benchmarks/scale.py --documents 10000 50000 200000 1000000 [--folder FOLDER] [--bm25]

Made-up texts of 100 words with two dimensions of groups. For each size: reading and indexing, light vectors, their ANN
index and the corpus graph; the milliseconds of a search (median and 95th percentile of 50 topics, after 50 others
before the clock) for BM25, BM25 with light vectors, the default and the default on BM25, at one thread and two; an
experiment of them on 50 topics; and the memory of it all. Each step is a process of its own; memory is the most that
the process, or the largest of those that it starts, had, mapped files that were read included. With --bm25 there are no
vectors.
At a million documents and more the figures that are asked for are printed beside it: 900 s for indexing, light
vectors, their ANN index and the graph, 60 ms for a search of BM25 with light vectors.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from made_up import write_made_up

from fairagent import load_collection
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.graph import prepare_graphs
from fairagent.retrieve.light import LIGHT
from fairagent.retrieve.vectors import prepare_ann, prepare_vectors
from fairagent.search.agent import FairAgent
from fairagent.search.pipeline import build, open_site
from fairagent.settings import load_settings
from fairagent.types import Topic

BUILD, SEARCH = 900.0, 60.0
LARGE = 1_000_000
ON_BM25: dict[str, dict[str, Any]] = {
    "BM25": {"profile": "engine", "engine": "bm25"},
    "default on BM25": {"engine": "bm25"},
}
SYSTEMS: dict[str, dict[str, Any]] = {**ON_BM25, "BM25 + light": {"profile": "engine", "engine": "auto"}, "default": {}}
BUILDING = ("indexing, s", "light vectors, s", "ANN index, s", "graph, s")
SEARCHING = "BM25 + light, 1 thread(s), median, ms"
Figures = dict[str, float]


def main() -> None:
    """Print a table a size, as each of its steps is done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 50_000, 200_000])
    parser.add_argument("--folder", type=Path, help="where the collections stay for the next time")
    parser.add_argument("--bm25", action="store_true")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        name, place = asked.step
        print(json.dumps(STEPS[name](Path(place), asked.bm25)))
        return
    with tempfile.TemporaryDirectory() as made:
        for documents in asked.documents:
            folder = (asked.folder or Path(made)) / str(documents)
            print(f"{documents:,} documents", flush=True)
            if not folder.exists():
                write_made_up(folder, documents)
            figures: Figures = {}
            for name in STEPS:
                command = [sys.executable, __file__, "--step", name, str(folder), *(["--bm25"] if asked.bm25 else [])]
                answered = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=folder)
                found: Figures = json.loads(answered.stdout.splitlines()[-1])
                for what, value in found.items():
                    print(f"  {what:48s}{value:12,.1f}", flush=True)
                figures |= found
            if documents >= LARGE and not asked.bm25:
                built = sum(figures[what] for what in BUILDING)
                print(f"  all that is indexed: {built:,.0f} s, {built / BUILD:.2f} of the {BUILD:g} s allowed")
                print(f"  search: {figures[SEARCHING]:.1f} ms, {figures[SEARCHING] / SEARCH:.2f} of {SEARCH:g} ms")


def index(folder: Path, bm25: bool) -> Figures:
    """The BM25 index, anew."""
    for place in folder.glob("index*"):
        shutil.rmtree(place)
    collection = load_collection(folder / "collection.yaml", folder / "index")
    start = perf_counter()
    build_index(collection, folder / "index")
    return {
        "indexing, s": perf_counter() - start,
        "indexing, CPU s": cpu(),
        "documents, MB": (folder / "docs.jsonl").stat().st_size / 1e6,
        "index, MB": size(folder / "index"),
        "indexing, memory, MB": memory(),
    }


def vectors(folder: Path, bm25: bool) -> Figures:
    """The light vectors."""
    if bm25:
        return {}
    site = open_site(folder / "collection.yaml", folder / "index")
    start = perf_counter()
    prepare_vectors(site, LIGHT, quiet)
    return {
        "light vectors, s": perf_counter() - start,
        "light vectors, MB": size(folder / "index" / LIGHT),
        "light vectors, memory, MB": memory(),
    }


def approximate(folder: Path, bm25: bool) -> Figures:
    """What is made of the vectors: their ANN index, where there are many, and the corpus graph."""
    if bm25:
        return {}
    site = open_site(folder / "collection.yaml", folder / "index")
    start = perf_counter()
    prepare_ann(site, LIGHT, "auto", quiet)
    built = perf_counter()
    prepare_graphs(site, quiet, LIGHT)
    return {
        "ANN index, s": built - start,
        "graph, s": perf_counter() - built,
        "ANN index and graph, MB": size(folder / "index" / f"{LIGHT}-ann") + size(folder / "index" / f"{LIGHT}-graph"),
        "ANN index and graph, memory, MB": memory(),
    }


def search(folder: Path, bm25: bool) -> Figures:
    """A search with each system, by one thread and by two."""
    figures: Figures = {}
    for name, row in (ON_BM25 if bm25 else SYSTEMS).items():
        settings = load_settings(overrides=row, environ={})
        start = perf_counter()
        agent = build(open_site(folder / "collection.yaml", folder / "index", settings))
        agent.search("w5 w17")
        figures[f"{name}, first search with opening, ms"] = 1000 * (perf_counter() - start)
        asked = list(agent.collection.topics.values())
        # Engines keep what they were asked: every pass has topics of its own.
        first, *passes = (asked[place::3] for place in range(3))
        for topic in first:
            agent.search(topic)
        for threads, topics in enumerate(passes, 1):
            with ThreadPoolExecutor(threads) as pool:
                start = perf_counter()
                taken = np.array(list(pool.map(timed(agent), topics)))
                figures |= {
                    f"{name}, {threads} thread(s), median, ms": float(np.median(taken)),
                    f"{name}, {threads} thread(s), 95th percentile, ms": float(np.percentile(taken, 95)),
                    f"{name}, {threads} thread(s), searches a second": len(topics) / (perf_counter() - start),
                }
    return figures | {"searching, memory, MB": memory()}


def timed(agent: FairAgent) -> Callable[[Topic], float]:
    """What tells the milliseconds of a search."""

    def ask(topic: Topic) -> float:
        start = perf_counter()
        agent.search(topic)
        return 1000 * (perf_counter() - start)

    return ask


def evaluate(folder: Path, bm25: bool) -> Figures:
    """An experiment of the systems on 50 topics, by two processes."""
    systems = ON_BM25 if bm25 else SYSTEMS
    experiment = {
        "name": "scale",
        "collection": str(folder / "collection.yaml"),
        "settings": {"index": str(folder / "index")},
        "topics": 50,
        "systems": systems,
    }
    (folder / "experiment.yaml").write_text(json.dumps(experiment))
    program = "from fairagent.cli import main; main()"
    command = [sys.executable, "-c", program, "evaluate", "experiment.yaml", "--run", "run", "--new", "--workers", "2"]
    start = perf_counter()
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    seconds, most = perf_counter() - start, memory(resource.RUSAGE_CHILDREN)
    return {f"evaluate, 50 topics x {len(systems)} systems, s": seconds, "evaluate, memory of a process, MB": most}


def quiet(what: str, done: int) -> None:
    """Nobody is told how far it is."""


def size(folder: Path) -> float:
    """The MB of the files in a folder, 0 where there is none."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def memory(who: int = resource.RUSAGE_SELF) -> float:
    """The most MB that this process has had, or one of those that it has started."""
    return resource.getrusage(who).ru_maxrss / 1024


def cpu() -> float:
    """User and system seconds of this process and those that it has started."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


STEPS: dict[str, Callable[[Path, bool], Figures]] = {
    "index": index,
    "vectors": vectors,
    "approximate": approximate,
    "search": search,
    "evaluate": evaluate,
}

if __name__ == "__main__":
    main()
