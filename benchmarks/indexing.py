"""Indexing beside Anserini's own indexer (IndexCollection), and updating beside indexing, in one run.

    python benchmarks/indexing.py [COLLECTION.yaml] [--documents 20000] [--workers 1 2] [--rounds 2]

The documents are those of a collection, or made up: 100 words each by Zipf's law. Every build is a process of its own
with its start (Python's or Java's) and the reading of the documents; rounds take turns, so that whatever else runs
meets all alike, and the best counts. Anserini stores the texts, and with `terms` document vectors, of which feedback
takes the terms of documents; ours always has both. "default" is what `fairagent index` makes by default: BM25, light
vectors, the corpus graph, and an ANN index where there are many. Of a made-up collection one percent of the documents
is changed, and the index brought up to date. CPU seconds are those of all processes; memory is that of the largest one.
Ratios above 1 say that ours is faster than Anserini's indexer (with terms), or updating than indexing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from made_up import write_made_up
from timing import FAIRAGENT, Cost, cost, megabytes

from fairagent import load_collection
from fairagent.errors import BackendUnavailable
from fairagent.guests.lucene.java import find_jar, find_java
from fairagent.retrieve.base import full_text

FILES = 16
THEIRS = "Anserini with terms"
ENGINES = {"BM25": "bm25", "default": "auto"}
Command = Callable[[Path], list[str]]
"""The command that makes an index at a place."""


def written(collection: Path, folder: Path) -> None:
    """The documents as Anserini reads them, in several files, so that its threads have some each."""
    folder.mkdir()
    files = [(folder / f"{part:02d}.jsonl").open("w", encoding="utf-8") for part in range(FILES)]
    for number, document in enumerate(load_collection(collection).documents()):
        line = {"id": document.id, "contents": full_text(document)}
        files[number % FILES].write(json.dumps(line) + "\n")
    for file in files:
        file.close()


def anserini(source: Path, index: Path, workers: int, terms: bool) -> list[str]:
    """The command of Anserini's documentation."""
    java = str(find_java()[0] / "bin" / "java")
    command = [java, "-Xmx2g", "-cp", str(find_jar()), "io.anserini.index.IndexCollection"]
    command += ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator", "-storeRaw", "-quiet"]
    command += ["-input", str(source), "-index", str(index), "-threads", str(workers)]
    return [*command, *(["-storeDocvectors"] if terms else [])]


def ours(collection: Path, index: Path, engine: str) -> list[str]:
    """`fairagent index`."""
    command = [*FAIRAGENT, "index", "-c", str(collection), "--index", str(index)]
    return [*command, "--set", f"engine={engine}"]


def change(folder: Path) -> None:
    """Change one document of each hundred in a made-up collection."""
    lines = (folder / "docs.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    for number in np.random.default_rng(5).choice(len(lines), max(1, len(lines) // 100), replace=False).tolist():
        record = json.loads(lines[number])
        lines[number] = json.dumps(record | {"text": record["text"] + " w7 w77"}) + "\n"
    (folder / "docs.jsonl").write_text("".join(lines), encoding="utf-8")


def removed(index: Path) -> None:
    """Remove an index and what is beside it."""
    for place in index.parent.glob(f"{index.name}*"):
        shutil.rmtree(place)


def rounds(
    commands: Mapping[str, Command], index: Path, count: int, earlier: Path | None = None
) -> dict[str, tuple[Cost, float]]:
    """The best of some rounds of every command, and the MB that it makes; updates begin with what is in `earlier`."""
    best: dict[str, tuple[Cost, float]] = {}
    for _ in range(count):
        for name, command in commands.items():
            if earlier is not None and name.startswith("update"):
                shutil.copytree(earlier, index.parent, dirs_exist_ok=True)
            taken = cost(command(index)), megabytes(index)
            best[name] = min(taken, best.get(name, taken))
            removed(index)
    return best


def show(name: str, found: tuple[Cost, float], other: tuple[Cost, float] | None) -> None:
    """A row; ratios to `other`, where there is one."""
    taken, size = found
    ratios = f"{other[0].wall / taken.wall:8.2f}{other[0].cpu / taken.cpu:11.2f}" if other else ""
    print(f"{name:34}{taken.wall:8.1f}{taken.cpu:8.1f}{size:8.0f}{taken.memory:9.0f}{ratios}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("collection", nargs="?", type=Path)
    parser.add_argument("--documents", type=int, default=20_000, help="of the made-up collection")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        index = folder / "made" / "index"
        index.parent.mkdir()
        collection = asked.collection or write_made_up(folder / "collection", asked.documents)
        with_java = java_is_here()
        if with_java:
            written(collection, folder / "source")
        print(
            f"{load_collection(collection).source.count():,} documents, {os.cpu_count()} cores, best of {asked.rounds}"
        )
        print(f"{'':34}{'s':>8}{'CPU s':>8}{'MB':>8}{'memory':>9}{'ratio':>8}{'CPU ratio':>11}")
        for workers in asked.workers:
            commands: dict[str, Command] = {
                name: partial(ours, collection, engine=engine) for name, engine in ENGINES.items()
            }
            if with_java:
                made = partial(anserini, folder / "source", workers=workers)
                commands |= {"Anserini": partial(made, terms=False), THEIRS: partial(made, terms=True)}
            best = rounds(commands, index, asked.rounds)
            for name, found in best.items():
                show(f"{workers} at once: {name}", found, best.get(THEIRS))
        if asked.collection:
            return
        workers = asked.workers[-1]
        for engine in ENGINES.values():
            cost(ours(collection, folder / engine / index.name, engine))
        change(collection.parent)
        for name, engine in ENGINES.items():
            ways = (f"build, {name}", f"update of 1 %, {name}")
            again = dict.fromkeys(ways, partial(ours, collection, engine=engine))
            best = rounds(again, index, asked.rounds, folder / engine)
            for way, found in best.items():
                show(f"{workers} at once: {way}", found, best[ways[0]])


def java_is_here() -> bool:
    """Whether Anserini's jar is; without it there is nothing to compare with."""
    try:
        find_jar()
    except BackendUnavailable as error:
        print(f"without Anserini: {error}")
        return False
    return True


if __name__ == "__main__":
    main()
