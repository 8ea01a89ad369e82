"""How time, disk and memory grow with a collection, on this machine: docs/scale.md has the figures.

    python benchmarks/scale.py --documents 10000 50000 200000 1000000 [--folder FOLDER] [--bm25]

Made-up texts of 100 words with two dimensions of groups. For each size: reading and indexing (with the forward index),
the embeddings' ANN index and the corpus graph (the embeddings themselves are drawn, since encoding takes the same time
for every document), the milliseconds of a search (median and 95th percentile of 50 topics, after 50 others before the
clock) for BM25, fused and the default, at one thread and two, an experiment of the three on 50 topics, and the memory
of it all. Each step is a process of its own; memory is the most that the process had, mapped files that
were read included, and Java's heap in it. With --bm25 nothing needs embeddings.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from made_up import Made, write_made_up

from fairagent import build_index, load_collection
from fairagent.agent import FairAgent
from fairagent.pipeline import build, open_site
from fairagent.retrieve.dense_index import build_dense_index
from fairagent.retrieve.encoder import BUNDLED
from fairagent.retrieve.graph import prepare_graph
from fairagent.retrieve.java import java_class, using_java
from fairagent.retrieve.vectors import prepare_ann
from fairagent.settings import load_settings
from fairagent.types import Topic

SYSTEMS: dict[str, dict[str, Any]] = {
    "BM25": {"profile": "engine", "engine": "bm25"},
    "fused": {"profile": "engine", "engine": "fused"},
    "default": {},
}
ON_BM25: dict[str, dict[str, Any]] = {"BM25": SYSTEMS["BM25"], "default": {"engine": "bm25"}}
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
            for name in STEPS:
                command = [sys.executable, __file__, "--step", name, str(folder), *(["--bm25"] if asked.bm25 else [])]
                answered = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=folder)
                for what, value in json.loads(answered.stdout.splitlines()[-1]).items():
                    print(f"  {what:44s}{value:12,.1f}", flush=True)


def index(folder: Path, bm25: bool) -> Figures:
    """The Lucene index with the forward index."""
    collection = load_collection(folder / "collection.yaml")
    start = perf_counter()
    build_index(collection, folder / "index")
    seconds = perf_counter() - start
    size = sum(path.stat().st_size for path in (folder / "index").rglob("*") if path.is_file())
    documents = (folder / "docs.jsonl").stat().st_size
    return {
        "indexing, s": seconds,
        "documents, MB": documents / 1e6,
        "index, MB": size / 1e6,
        "indexing, memory, MB": memory(),
    }


def vectors(folder: Path, bm25: bool) -> Figures:
    """What is made of the embeddings."""
    if bm25:
        return {}
    site = open_site(folder / "collection.yaml", folder / "index")
    build_dense_index(site.collection, folder / f"index-{BUNDLED}", Made())
    start = perf_counter()
    prepare_ann(site, BUNDLED, "auto", lambda what, done: None)
    built = perf_counter()
    prepare_graph(site, BUNDLED, lambda what, done: None)
    return {
        "embeddings, MB": (folder / f"index-{BUNDLED}" / "vectors.npy").stat().st_size / 1e6,
        "ANN index, s": built - start,
        "graph, s": perf_counter() - built,
        "ANN and graph, memory, MB": memory(),
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
    with using_java():
        runtime = java_class("java.lang.Runtime").getRuntime()
        heap = runtime.totalMemory() - runtime.freeMemory()
    return figures | {"searching, memory, MB": memory(), "of it Java's heap, MB": heap / 1e6}


def timed(agent: FairAgent) -> Callable[[Topic], float]:
    """What tells the milliseconds of a search."""

    def ask(topic: Topic) -> float:
        start = perf_counter()
        agent.search(topic)
        return 1000 * (perf_counter() - start)

    return ask


def evaluate(folder: Path, bm25: bool) -> Figures:
    """An experiment of the systems on all topics, by two processes."""
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
    seconds = perf_counter() - start
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {f"evaluate, 50 topics x {len(systems)} systems, s": seconds, "evaluate, memory of a process, MB": most}


def memory() -> float:
    """The most MB that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


STEPS: dict[str, Callable[[Path, bool], Figures]] = {
    "index": index,
    "vectors": vectors,
    "search": search,
    "evaluate": evaluate,
}

if __name__ == "__main__":
    main()
