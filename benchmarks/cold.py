"""What a one-off command costs: CPU (user and system) and wall seconds of a fresh `fairagent`, the median of 5 runs.

    python benchmarks/cold.py [--documents 200000] [--runs 5] [--words 100] [--folder FOLDER]

`fairagent search` on the demo collection and on a made-up one with two dimensions of groups, with the engine bm25 and
with the default settings; `--version`, `--help` and `config`. The embeddings of the made-up collection are random
vectors beside the packaged encoder's vector of the test text: what they are makes no difference to the time. Each
search is run once before the clock, which is what keeps the group table and remembers digests; that first run is shown.
With `--folder` the collections stay there for the next time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from made_up import Made, write_made_up

from fairagent import build_index, load_collection, write_demo
from fairagent.retrieve.dense_index import build_dense_index
from fairagent.retrieve.encoder import BUNDLED

PROGRAM = (sys.executable, "-c", "from fairagent.cli import main; main()")
QUICK = {"_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""Java's quick compiler alone."""


def make(folder: Path, documents: int, words: int) -> None:
    """A made-up collection and its indexes."""
    collection = load_collection(write_made_up(folder, documents, words))
    build_index(collection, folder / "index")
    build_dense_index(collection, folder / f"index-{BUNDLED}", Made())


def demo(folder: Path) -> None:
    """The demo collection and its indexes."""
    write_demo(folder)
    subprocess.run(command("index", folder), check=True, capture_output=True)


def command(name: str, folder: Path, *more: str) -> list[str]:
    """A command of fairagent's on the collection in `folder`."""
    return [*PROGRAM, name, *more, "-c", f"{folder}/collection.yaml", "--index", f"{folder}/index"]


def cost(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[float, float]:
    """CPU and wall seconds of a process and of those that it starts."""
    start = time.perf_counter()
    process = subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environ}
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(arguments)}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start


def rows(folder: Path) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """What is measured: its name, the command, and what is set in the environment."""
    yield "--version", [*PROGRAM, "--version"], {}
    yield "--help", [*PROGRAM, "--help"], {}
    yield "config", [*PROGRAM, "config"], {}
    for place, query in (("demo", "Lawyers"), ("made-up", "w5 w17 w300")):
        for engine in ("bm25", "auto"):
            search = command("search", folder / place, query, "--set", f"engine={engine}")
            yield f"search, {place}, {engine}", search, {}
            yield f"search, {place}, {engine}, -XX:TieredStopAtLevel=1", search, QUICK


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--words", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        os.environ["XDG_CACHE_HOME"] = made
        if not (folder / "demo").exists():
            demo(folder / "demo")
        if not (folder / "made-up").exists():
            make(folder / "made-up", options.documents, options.words)
        # What has just been written is not remembered (see fairagent.remembered).
        time.sleep(3)
        print(f"{'seconds':50}{'first: CPU':>12}{'wall':>8}{'then: CPU':>12}{'wall':>8}")
        for name, arguments, environ in rows(folder):
            first = cost(arguments, environ)
            # A group table that the first run kept is hashed once it has been left alone.
            time.sleep(3)
            cost(arguments, environ)
            cpu, wall = np.median([cost(arguments, environ) for _ in range(options.runs)], axis=0)
            print(f"{name:50}{first[0]:12.2f}{first[1]:8.2f}{cpu:12.2f}{wall:8.2f}", flush=True)


if __name__ == "__main__":
    main()
