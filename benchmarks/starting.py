"""What starting costs: CPU seconds of fresh processes, ours beside numpy alone, the median of 5.

    python benchmarks/starting.py [--documents 20000] [--engines bm25 auto] [--runs 5] [--folder FOLDER]

`import fairagent`; `fairagent --version`, `--help` and `config`; `fairagent search` on the demo collection and on a
made-up one, once before the clock (which keeps the group table and remembers digests) and then again; the studio from
its start to its first answer (wall seconds, since a user waits for it). "numpy alone" imports numpy and maps an array
of 4 bytes a document. Bytecode is kept, as it is where the package is installed, whatever PYTHONDONTWRITEBYTECODE says.
With `--folder` the collections stay there for the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from made_up import write_made_up
from timing import FAIRAGENT, cost

from fairagent import write_demo

NUMPY = "import sys, numpy; print(numpy.load(sys.argv[1], mmap_mode='r').sum())"
QUERIES = {"demo": "Lawyers", "made-up": "w5 w17 w300"}
LEFT_ALONE = 3.0
"""Seconds after which a file's date is trusted (see `fairagent.storage.digests`)."""


def first_answer(options: Sequence[str], query: str) -> float:
    """Seconds from the studio's start to the answer to a search."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    body = json.dumps({"query": query}).encode()
    start = time.perf_counter()
    command = (*FAIRAGENT, "serve", "--no-token", "--port", str(port), *options)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while time.perf_counter() < start + 60:
            asked = urllib.request.Request(f"{url}/api/search", body, {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(asked) as answer:
                    answer.read()
                return time.perf_counter() - start
            except ConnectionError:
                time.sleep(0.01)
            except urllib.error.URLError as error:
                if not isinstance(error.reason, ConnectionError):
                    raise
                time.sleep(0.01)
        raise SystemExit("the studio gave no answer within a minute")
    finally:
        process.terminate()
        process.wait()


def made(folder: Path, documents: int) -> None:
    """The two collections and their indexes, where they are not there."""
    for place in QUERIES:
        if not (folder / place).exists():
            file = write_demo(folder / place) if place == "demo" else write_made_up(folder / place, documents)
            cost((*FAIRAGENT, "index", "-c", str(file), "--index", str(folder / place / "index")))
        count = sum(1 for _ in (folder / place / "docs.jsonl").open("rb"))
        np.save(folder / f"{place}.npy", np.zeros(count, np.float32))


def rows(folder: Path, engines: Sequence[str]) -> Iterator[tuple[str, Sequence[str], str]]:
    """What is measured: its name, the command, and the collection whose size an array has."""
    yield "import fairagent", (sys.executable, "-c", "import fairagent"), "demo"
    for name in ("--version", "--help", "config"):
        yield name, (*FAIRAGENT, name), "demo"
    for place, query in QUERIES.items():
        for engine in engines:
            command = (*FAIRAGENT, "search", query, *options(folder, place, engine))
            yield f"search, {place}, engine {engine}", command, place


def options(folder: Path, place: str, engine: str) -> tuple[str, ...]:
    """The command line's for a collection and engine."""
    return "-c", f"{folder / place}/collection.yaml", "--index", f"{folder / place}/index", "--set", f"engine={engine}"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--engines", nargs="+", default=["bm25", "auto"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as name:
        folder = asked.folder or Path(name)
        os.environ.update(XDG_CACHE_HOME=name, PYTHONPYCACHEPREFIX=f"{name}/bytecode")
        made(folder, asked.documents)
        time.sleep(LEFT_ALONE)
        print(f"{'CPU seconds':36}{'first':>8}{'then':>8}{'numpy alone':>13}{'ratio':>8}")
        for what, ours, place in rows(folder, asked.engines):
            alone = (sys.executable, "-c", NUMPY, str(folder / f"{place}.npy"))
            first = cost(ours).cpu
            if what.startswith("search"):
                # A group table that the first one has written is hashed once it has been left alone.
                time.sleep(LEFT_ALONE)
                cost(ours)
            both = [(cost(ours).cpu, cost(alone).cpu) for _ in range(asked.runs)]
            mine, other = (statistics.median(column) for column in zip(*both, strict=True))
            print(f"{what:36}{first:8.3f}{mine:8.3f}{other:13.3f}{mine / other:8.1f}", flush=True)
        for engine in asked.engines:
            studio = options(folder, "demo", engine)
            waited = statistics.median(first_answer(studio, QUERIES["demo"]) for _ in range(asked.runs))
            print(f"{f'studio, {engine}: first answer (wall)':36}{waited:16.3f}", flush=True)


if __name__ == "__main__":
    main()
