"""Indexing beside Anserini's own indexer (IndexCollection), on the same made-up documents, in the same run.

    python benchmarks/indexing.py [--documents 200000] [--workers 1 2] [--rounds 2]

Documents have 150 words each, drawn by Zipf's law from a million; both store id and text, neither positions. Each
build is a process of its own, Java's start included, and the best of its rounds counts; rounds take turns, so that
whatever else runs meets all alike. CPU seconds are those of the whole process. Ours also makes the table of ids, and
"with terms" the forward index; Anserini's counterpart to that, document vectors, is in the last row.
A ratio above 1 says that ours is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from fairagent.retrieve.lucene import build_index

from fairagent.retrieve.java import find_jar, find_java
from fairagent.types import Document

LENGTH, VOCABULARY = 150, 1_000_000
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "ol")]
FILES = 16


class Lines:
    """The documents of the JSON-lines files in a folder."""

    name = "made up"

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("*.jsonl"))

    def documents(self) -> Iterator[Document]:
        """Every document once."""
        for path in self.paths:
            with path.open(encoding="utf-8") as file:
                for line in file:
                    read = json.loads(line)
                    yield Document(read["id"], read["contents"])

    def fingerprint(self) -> str:
        """Nobody changes them."""
        return "made up"


def word(rank: int) -> str:
    """A word for each rank, the frequent ones short."""
    number, parts = rank + 1, []
    while number:
        number, place = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[place])
    return "".join(parts)


def make(folder: Path, documents: int) -> None:
    """Write the documents into 16 files, so that Anserini's threads have some each."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    words = [word(rank) for rank in range(VOCABULARY)]
    cumulative = np.cumsum(1 / (np.arange(1, VOCABULARY + 1) + 2.7))
    for part in range(FILES):
        with (folder / f"{part:02d}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(documents * part // FILES, documents * (part + 1) // FILES):
                drawn = cumulative.searchsorted(rng.random(LENGTH) * cumulative[-1])
                text = " ".join([words[rank] for rank in drawn.tolist()])
                file.write(json.dumps({"id": f"d{number}", "contents": text}) + "\n")


def anserini(folder: Path, index: Path, workers: int, vectors: bool) -> list[str]:
    """The command of Anserini's documentation."""
    command = [str(find_java() / "bin" / "java"), "-Xmx2g", "-cp", str(find_jar()), "io.anserini.index.IndexCollection"]
    command += ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator", "-storeRaw", "-quiet"]
    command += ["-input", str(folder), "-index", str(index), "-threads", str(workers)]
    return [*command, *(["-storeDocvectors"] if vectors else [])]


def ours(folder: Path, index: Path, workers: int, terms: bool) -> list[str]:
    """This file, asked for one build."""
    command = [sys.executable, __file__, "--build", str(folder), str(index), "--workers", str(workers)]
    return [*command, *(["--terms"] if terms else [])]


def measured(command: list[str], index: Path) -> tuple[float, float, float]:
    """Wall and CPU seconds of a command, and the megabytes of the index."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = sum(path.stat().st_size for path in index.rglob("*") if path.is_file())
    subprocess.run(["rm", "-r", str(index)], check=True)
    return seconds, cpu, size / 1e6


def compare(documents: int, workers: list[int], rounds: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, index = Path(temporary) / "documents", Path(temporary) / "index"
        make(folder, documents)
        cells = {
            (name, count): command(folder, index, count, more)
            for count in workers
            for name, command, more in (
                ("Anserini", anserini, False),
                ("ours", ours, False),
                ("ours with terms", ours, True),
                ("Anserini with document vectors", anserini, True),
            )
        }
        found: dict[tuple[str, int], tuple[float, float, float]] = {}
        for _ in range(rounds):
            for cell, command in cells.items():
                taken = measured(command, index)
                found[cell] = min(taken, found.get(cell, taken))
                print(*cell, *(f"{number:.1f}" for number in taken), file=sys.stderr)
    print(f"{documents:,} documents of {LENGTH} words, {os.cpu_count()} cores, best of {rounds}")
    print(f"{'workers':>7} {'':32}{'s':>7}{'CPU s':>8}{'documents/s':>13}{'MB':>7}{'ratio':>7}{'CPU ratio':>11}")
    for (name, count), (seconds, cpu, size) in found.items():
        base = found["Anserini", count]
        print(f"{count:7} {name:32}{seconds:7.1f}{cpu:8.1f}{documents / seconds:13,.0f}{size:7,.0f}", end="")
        print(f"{base[0] / seconds:7.2f}{base[1] / cpu:11.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--build", type=Path, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--terms", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.build:
        folder, index = chosen.build
        build_index(Lines(folder), index, workers=chosen.workers[0], terms=chosen.terms)
    else:
        compare(chosen.documents, chosen.workers, chosen.rounds)


if __name__ == "__main__":
    main()
