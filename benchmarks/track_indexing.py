"""The track's corpus and metadata at scale: made-up articles in the official files' formats.

    python benchmarks/track_indexing.py [--documents 100000] [--folder DIR]

Prints seconds, documents a second, bytes and peak memory of indexing, of a first and a second load of the collection,
and of reading all dimensions for `fairagent evaluate-run`, and what that makes for the track's 6.46 million articles.
The parts of indexing are those of `fairagent index`, and an ANN index, which it makes of more than 200,000 articles.
The articles are those of made_up_track.py. CPU seconds are those of all processes: compare them where other programs
run beside it. Each part runs in a process of its own, so that its peak memory is its own: with the mapped files that it
has read, and without ("of its own").
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from made_up_track import CORPUS, METADATA, write_track

from fairagent.collection.trec_fair import load_track, read_metadata
from fairagent.retrieve.site import Site
from fairagent.search.pipeline import open_site

ARTICLES = 6_475_537
"""The articles of the corpus of 2022."""


def make(folder: Path, documents: int) -> dict[str, float]:
    write_track(folder, documents)
    return {}


def index(folder: Path, documents: int) -> dict[str, float]:
    from fairagent.retrieve.bm25.build import build_index

    collection, start = load_track(folder), time.perf_counter()
    build_index(collection, folder / "index")
    seconds = time.perf_counter() - start
    terms = int(np.load(folder / "index" / "columns.starts.npy", mmap_mode="r").size - 1)
    return {"seconds": seconds, "bytes": size(folder / "index"), "terms": terms}


def vectors(folder: Path, documents: int) -> dict[str, float]:
    from fairagent.retrieve.vectors import prepare_vectors

    site, start = site_of(folder), time.perf_counter()
    prepare_vectors(site, "light", lambda what, done: None)
    return {"seconds": time.perf_counter() - start, "bytes": size(folder / "index" / "light")}


def ann(folder: Path, documents: int) -> dict[str, float]:
    from fairagent.retrieve.vectors import prepare_ann

    site, start = site_of(folder), time.perf_counter()
    prepare_ann(site, "light", "always", lambda what, done: None)
    return {"seconds": time.perf_counter() - start, "bytes": size(folder / "index" / "light-ann")}


def graph(folder: Path, documents: int) -> dict[str, float]:
    from fairagent.retrieve.graph import prepare_graphs

    site, start = site_of(folder), time.perf_counter()
    prepare_graphs(site, lambda what, done: None, "light")
    return {"seconds": time.perf_counter() - start, "bytes": size(folder / "index" / "light-graph")}


def site_of(folder: Path) -> Site:
    return open_site(load_track(folder), folder / "index")


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def load(folder: Path, documents: int) -> dict[str, float]:
    start = time.perf_counter()
    load_track(folder)
    return {"seconds": time.perf_counter() - start}


def pages(folder: Path, documents: int) -> dict[str, float]:
    start = time.perf_counter()
    read_metadata(folder / METADATA[2022])
    return {"seconds": time.perf_counter() - start}


def nothing(folder: Path, documents: int) -> dict[str, float]:
    return {"seconds": 0.0}


PARTS = {
    "make": make,
    "nothing": nothing,
    "first load": load,
    "second load": load,
    "all dimensions": pages,
    "BM25 index": index,
    "light vectors": vectors,
    "ANN index": ann,
    "corpus graph": graph,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="keep the files here")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part:
        own = Own()
        found = PARTS[chosen.part](chosen.folder, chosen.documents)
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        found |= {
            "peak": usages[0].ru_maxrss * 1024,
            "own": own.most,
            "cpu": sum(usage.ru_utime + usage.ru_stime for usage in usages),
        }
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{chosen.documents:,} made-up articles; in brackets: extrapolated to the track's 6.46 million")
        for part in PARTS:
            command = [sys.executable, __file__, "--part", part, "--folder", str(folder)]
            command += ["--documents", str(chosen.documents)]
            report(part, json.loads(subprocess.check_output(command)), chosen.documents)
            if part == "make":
                print("corpus, gz      " + scaled((folder / CORPUS[2022]).stat().st_size / 1e6, chosen.documents, "MB"))


def report(part: str, found: dict[str, float], documents: int) -> None:
    if part in ("make", "nothing"):
        print(f"{part:15} peak {found['peak'] / 1e6:,.0f} MB")
        return
    print(
        f"{part:15} {scaled(found['seconds'], documents, 's')}, {documents / found['seconds']:,.0f} documents/s, ",
        end="",
    )
    print(
        f"CPU {scaled(found['cpu'], documents, 's')}, peak {found['peak'] / 1e6:,.0f} MB, "
        f"of its own {found['own'] / 1e6:,.0f} MB"
    )
    if "bytes" in found:
        print(f"{'':15} {scaled(found['bytes'] / 1e6, documents, 'MB')}")
    if "terms" in found:
        print(f"{'':15} {found['terms']:,.0f} distinct terms")


class Own(threading.Thread):
    """The most bytes of its own, without mapped files, that this process had; Linux only."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.start()

    def run(self) -> None:
        """Look ten times a second."""
        while True:
            lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
            (line,) = (line for line in lines if line.startswith("RssAnon:"))
            self.most = max(self.most, 1024 * int(line.split()[1]))
            time.sleep(0.1)


def scaled(value: float, documents: int, unit: str) -> str:
    return f"{value:,.1f} {unit} ({value * ARTICLES / documents:,.0f} {unit})"


if __name__ == "__main__":
    main()
