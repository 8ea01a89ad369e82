"""Vector search: exact against the ANN index, in one run.

    python benchmarks/dense.py [--documents 200000] [--depth 500]

The vectors are made up: of length 1, each a mixture of some of 4,000 topics of which few are common, and noise. Queries
are vectors drawn in the same way and not stored; each is searched with one thread, as in a request. Both searches give
the same scores; memory is what the process holds of its own (anonymous) and of mapped files while it searches.
A ratio above 1 says that the second way is faster, or takes less. Linux only, for its account of memory.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairagent.retrieve.ann import build_ann, open_ann
from fairagent.retrieve.dense import DenseRetriever, build_dense_index
from fairagent.retrieve.encoders import Embeddings
from fairagent.storage.threads import one_blas_thread
from fairagent.types import Document, Query

SIZE, TOPICS, NOISE = 384, 4000, 0.9
QUERIES = 100


class Mixtures:
    """An encoder whose vectors are made up: a text is the seed of its vector, chunk by chunk."""

    name = "mixtures"

    def __init__(self) -> None:
        chance = np.random.default_rng(1)
        broad = chance.standard_normal((60, SIZE), dtype=np.float32)
        topics = broad[chance.integers(0, 60, TOPICS)] + chance.standard_normal((TOPICS, SIZE), dtype=np.float32)
        self._topics = topics / np.linalg.norm(topics, axis=1, keepdims=True)
        weights = 1 / np.arange(1, TOPICS + 1) ** 0.7
        self._weights = weights / weights.sum()

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d), by the number of the first text."""
        seed = int(texts[0]) if texts[0].strip().isdigit() else 0
        chance, count = np.random.default_rng([2, seed]), len(texts)
        drawn = chance.choice(TOPICS, (count, 3), p=self._weights)
        shares = np.hstack((np.ones((count, 1)), 0.6 * chance.random((count, 2)))).astype(np.float32)
        vectors = np.einsum("nt,ntd->nd", shares, self._topics[drawn])
        vectors += NOISE / SIZE**0.5 * chance.standard_normal((count, SIZE), dtype=np.float32)
        unit: Embeddings = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d) that no document has."""
        return np.vstack([self.documents([str(10**9 + int(text))]) for text in texts])


@dataclass(frozen=True)
class Numbers:
    """A collection of so many documents, whose texts are their numbers."""

    count: int
    name: str = "numbers"

    def documents(self) -> Iterator[Document]:
        """Each with its number."""
        return (Document(f"d{number:08}", str(number)) for number in range(self.count))

    def fingerprint(self) -> str:
        """The number of documents says all."""
        return str(self.count)


def row(name: str, first: float, second: float, unit: str) -> None:
    print(f"  {name:34}{first:10.2f}{second:10.2f} {unit:8}{first / second:8.2f}", flush=True)


def memory() -> tuple[float, float]:
    """Megabytes of this process that are its own, and those of mapped files."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    return int(lines["RssAnon"].split()[0]) / 1e3, int(lines["RssFile"].split()[0]) / 1e3


@one_blas_thread()
def searches(retriever: DenseRetriever, depth: int) -> tuple[list[tuple[str, ...]], list[float]]:
    """What is found for all queries, and the milliseconds of each; vectors of queries are made beforehand."""
    queries = [Query(str(number)) for number in range(QUERIES)]
    found, times = [], []
    for query in queries:
        retriever.query_vector(query)
        start = time.perf_counter()
        found.append(retriever.search(query, depth).ids)
        times.append(1e3 * (time.perf_counter() - start))
    return found, times


def compare_searches(documents: int, depth: int, folder: Path) -> None:
    encoder = Mixtures()
    start = time.perf_counter()
    build_dense_index(Numbers(documents), folder / "dense", encoder)
    made = time.perf_counter() - start
    exact = DenseRetriever(folder / "dense", encoder)
    start = time.perf_counter()
    report = build_ann(exact, folder / "ann")
    built = time.perf_counter() - start
    size = sum(path.stat().st_size for path in (folder / "ann").iterdir()) / 1e6
    print(f"{documents:,} vectors of {SIZE} numbers, {exact.stored.nbytes / 1e6:.0f} MB, stored in {made:.0f} s")
    print(f"ANN index: built and measured in {built:.0f} s, {size:.0f} MB; {report}")
    print(f"  {'the first ' + str(depth) + ' documents':34}{'exact':>10}{'ANN':>10} {'':8}{'ratio':>8}")
    del exact
    answers, times, held = {}, {}, {}
    for name in ("exact", "ANN"):
        gc.collect()
        before = memory()
        index = open_ann(folder / "ann", folder / "dense") if name == "ANN" else None
        retriever = DenseRetriever(folder / "dense", encoder, ann=index)
        searches(retriever, depth)
        answers[name], times[name] = searches(retriever, depth)
        held[name] = np.subtract(memory(), before)
        del index, retriever
    for what, at in (("median", 50), ("95th percentile", 95)):
        row(f"a search, {what}", float(np.percentile(times["exact"], at)), float(np.percentile(times["ANN"], at)), "ms")
    row("memory, of its own", *(max(0.1, float(held[name][0])) for name in ("exact", "ANN")), "MB")
    row("memory, mapped", *(max(0.1, float(held[name][1])) for name in ("exact", "ANN")), "MB")
    for at in sorted({10, 100, depth}):
        shares = [len({*a[:at]} & {*b[:at]}) / at for a, b in zip(answers["exact"], answers["ANN"], strict=True)]
        row(f"recall@{at}", 1.0, float(np.mean(shares)), "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--depth", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare_searches(options.documents, options.depth, Path(folder))


if __name__ == "__main__":
    main()
