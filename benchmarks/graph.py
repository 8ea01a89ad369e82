"""The corpus graph by cells beside comparing every document with all others, in one run.

    python benchmarks/graph.py [COLLECTION.yaml] [--documents 10000 40000] [--neighbors 10]

The vectors are the light ones of a collection, or made up: mixtures of topics (`benchmarks/dense.py`). Both ways use
one thread, and seconds are of CPU. Recall is the share of the exact neighbors that cells find; the ratio is of seconds,
above 1 where cells are faster. A graph of up to `fairagent.retrieve.graph.EXACT` documents is exact; here cells are
made of those too. So many documents of a collection are the first ones.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from dense import Mixtures
from numpy.typing import NDArray

from fairagent import load_collection
from fairagent.retrieve import graph
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.dense import VECTORS
from fairagent.retrieve.light import build_light

Table = NDArray[np.int32]


def light(file: Path, folder: Path) -> NDArray[np.float16]:
    """The light vectors of a collection."""
    collection = load_collection(file)
    build_index(collection, folder / "index")
    build_light(BM25Retriever(folder / "index", collection), folder / "light")
    return np.asarray(np.load(folder / "light" / VECTORS))


def made_up(documents: int) -> NDArray[np.float16]:
    """Vectors in clusters."""
    encoder, size = Mixtures(), 10_000
    blocks = [encoder.documents([str(start)] * min(size, documents - start)) for start in range(0, documents, size)]
    return np.vstack(blocks).astype(np.float16)


class Stored:
    """What a graph is made from: documents' vectors, of a model that has none."""

    manifest = SimpleNamespace(fingerprint="made up", model="mixtures")

    def __init__(self, vectors: NDArray[np.float16]) -> None:
        self.stored = vectors

    def __len__(self) -> int:
        return len(self.stored)


def timed(vectors: NDArray[np.float16], k: int, exact: int, folder: Path) -> tuple[float, Table]:
    """CPU seconds, and the neighbors; exact for up to `exact` documents."""
    graph.EXACT = exact
    start = time.process_time()
    graph.build_graph(Stored(vectors), folder / "graph", k)
    return time.process_time() - start, np.load(folder / "graph" / graph.TABLE)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collection", nargs="?", type=Path)
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 40_000])
    parser.add_argument("--neighbors", type=int, default=graph.NEIGHBORS)
    asked = parser.parse_args()
    print(f"{'documents':>10}{'cells, s':>10}{'all, s':>10}{'ratio':>8}{f'recall@{asked.neighbors}':>11}")
    with tempfile.TemporaryDirectory() as folder:
        every = light(asked.collection, Path(folder)) if asked.collection else None
        for documents in asked.documents:
            vectors = made_up(documents) if every is None else every[:documents]
            seconds, cells = timed(vectors, asked.neighbors, 0, Path(folder))
            plain, exact = timed(vectors, asked.neighbors, len(vectors), Path(folder))
            shares = [len(np.intersect1d(*rows)) / len(rows[1]) for rows in zip(cells, exact, strict=True)]
            recall = float(np.mean(shares))
            print(f"{len(vectors):10,}{seconds:10.2f}{plain:10.2f}{plain / seconds:8.1f}{recall:11.3f}", flush=True)


if __name__ == "__main__":
    main()
