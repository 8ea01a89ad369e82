"""What starting costs: CPU seconds of fresh processes, ours beside numpy alone, the median of 5.

    python benchmarks/starting.py [--documents 20000] [--engine bm25] [--runs 5]

`import fairagent`; `fairagent search` on the demo collection and on a made-up one; the studio from its start to its
first answer (wall seconds, since a user waits for it). "numpy alone" imports numpy and maps an array of 4 bytes a
document. Each search is run once before the clock, which keeps the group table. Bytecode is kept, as it is where the
package is installed, whatever PYTHONDONTWRITEBYTECODE says.
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
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from made_up import write_made_up

from fairagent import build_index, load_collection, write_demo

NUMPY = "import sys, numpy; print(numpy.load(sys.argv[1], mmap_mode='r').sum())"


def cpu(arguments: Sequence[str]) -> float:
    """User and system seconds of a process."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(arguments)}")
    return usage.ru_utime + usage.ru_stime


def first_answer(options: Sequence[str], query: str) -> float:
    """Seconds from the studio's start to the answer to a search."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    body = json.dumps({"query": query}).encode()
    start = time.perf_counter()
    command = (sys.executable, "-m", "fairagent", "serve", "--no-token", "--port", str(port), *options)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--engine", default="bm25")
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.update(XDG_CACHE_HOME=name, PYTHONPYCACHEPREFIX=f"{name}/bytecode")
        files = {
            "demo": write_demo(folder / "demo"),
            "made-up": write_made_up(folder / "made-up", asked.documents, 100),
        }
        places = {}
        for place, file in files.items():
            collection = load_collection(file)
            build_index(collection, folder / place / "index")
            np.save(folder / f"{place}.npy", np.zeros(3_120 if place == "demo" else asked.documents, np.float32))
            options = ("-c", str(file), "--index", str(folder / place / "index"), "--set", f"engine={asked.engine}")
            places[place] = options
        queries = {"demo": "Lawyers", "made-up": "w5 w17 w300"}
        python = (sys.executable, "-c")
        # Files that have just been written are not remembered by their dates (see fairagent.remembered).
        time.sleep(3)
        print(f"{'CPU seconds':36}{'ours':>8}{'numpy alone':>13}{'ratio':>8}")
        for what, ours, place in (
            ("import fairagent", (*python, "import fairagent"), "demo"),
            *(
                (f"search, {place}", (sys.executable, "-m", "fairagent", "search", queries[place], *options), place)
                for place, options in places.items()
            ),
        ):
            alone = (*python, NUMPY, str(folder / f"{place}.npy"))
            cpu(ours)
            both = [(cpu(ours), cpu(alone)) for _ in range(asked.runs)]
            mine, other = (statistics.median(column) for column in zip(*both, strict=True))
            print(f"{what:36}{mine:8.3f}{other:13.3f}{mine / other:8.1f}", flush=True)
        waited = statistics.median(first_answer(places["demo"], queries["demo"]) for _ in range(asked.runs))
        print(f"{'studio, start to first answer (wall)':36}{waited:8.3f}")


if __name__ == "__main__":
    main()
