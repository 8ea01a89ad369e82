"""An index that is brought up to date beside one that is built again, in the same run, on a made-up collection.

    python benchmarks/updating.py [--documents 200000] [--rounds 2]

Documents of 100 words; 1,000 are added, at the end of the file, or 1,000 added, 500 changed and 500 removed all over
it. Each build and update is a process of its own, Java's start and the reading of the collection included; rounds take
turns, so that whatever else runs meets all alike, and the best counts. A ratio above 1 says that updating is faster.
Embeddings are not in it: those of documents that have not changed are copied, whatever the encoder.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from fairagent.retrieve.lucene import build_index, update_index

from fairagent.collection import load_collection

ADDED, OTHERS = 1_000, 500


def change(folder: Path, added: int, others: int) -> None:
    """Add so many documents, and change and remove `others` each: the last at the end, all others anywhere."""
    lines = (folder / "docs.jsonl").read_text().splitlines(keepends=True)
    chance = np.random.default_rng(5)
    chosen = chance.choice(len(lines), 2 * others, replace=False).tolist()
    for number in chosen[:others]:
        record = json.loads(lines[number])
        lines[number] = json.dumps(record | {"text": record["text"] + " w7 w77"}) + "\n"
    for number in chosen[others:]:
        lines[number] = ""
    for number in range(added):
        text = " ".join(f"w{rank}" for rank in chance.zipf(1.2, 100) % 50_000)
        lines.append(json.dumps({"id": f"new{number}", "title": f"New page {number}", "text": text}) + "\n")
    (folder / "docs.jsonl").write_text("".join(lines))


def measured(what: str, collection: Path, index: Path, terms: bool) -> tuple[float, float]:
    """Wall and CPU seconds of a build or an update in a process of its own."""
    command = [sys.executable, __file__, "--do", what, str(collection), str(index), *(["--terms"] if terms else [])]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(documents: int, rounds: int) -> None:
    """Print the table."""
    # Here and not above: a build and an update import nothing of it.
    from made_up import write_made_up

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_made_up(folder / "old", documents)
        for name, others in (("added", 0), ("changed", OTHERS)):
            shutil.copytree(folder / "old", folder / name)
            change(folder / name, ADDED, others)
        best: dict[tuple[bool, str], tuple[float, float]] = {}
        for terms in (False, True):
            index = folder / f"index-{terms}"
            build_index(load_collection(folder / "old" / "collection.yaml"), index, terms=terms)
            for _ in range(rounds):
                for what, name in (("build", "changed"), ("update", "added"), ("update", "changed")):
                    place = folder / "made"
                    if what == "update":
                        shutil.copytree(index, place)
                    row = "built again" if what == "build" else f"updated, {name}"
                    found = measured(what, folder / name / "collection.yaml", place, terms)
                    shutil.rmtree(place)
                    best[terms, row] = min(found, best.get((terms, row), found))
                    print(terms, row, *(f"{number:.1f}" for number in found), file=sys.stderr)
    print(f"{documents:,} documents of 100 words, {os.cpu_count()} cores, best of {rounds}")
    print(f"{'':34}{'s':>7}{'CPU s':>8}{'ratio':>7}{'CPU ratio':>11}")
    for (terms, row), (seconds, cpu) in best.items():
        base = best[terms, "built again"]
        name = row + (", with terms" if terms else "")
        print(f"{name:34}{seconds:7.1f}{cpu:8.1f}{base[0] / seconds:7.2f}{base[1] / cpu:11.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--do", nargs=3, metavar=("WHAT", "COLLECTION", "INDEX"), help=argparse.SUPPRESS)
    parser.add_argument("--terms", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if not chosen.do:
        compare(chosen.documents, chosen.rounds)
        return
    what, collection, index = chosen.do
    if what == "build":
        build_index(load_collection(Path(collection)), Path(index), terms=chosen.terms)
    else:
        update_index(load_collection(Path(collection)), Path(index))


if __name__ == "__main__":
    main()
