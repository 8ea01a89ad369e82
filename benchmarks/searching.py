"""Searching, scores of a pool and weighted queries beside Lucene's BM25 on the same documents, in one run.

    python benchmarks/searching.py [COLLECTION.yaml] [--people 20000] [--hits 500]

The documents and topics are those of a collection, or of the made-up demo of so many people. Lucene's index is made by
Anserini's IndexCollection with document vectors, and searched by `AnseriniRetriever`; its lists and scores are compared
with ours before either is timed, and exit code 1 says that they differ. All return ids and scores to Python.

* a search for each topic: Lucene's, ours, what pyserini wraps (SimpleSearcher), and the agents of the default
  settings, on BM25 and with light vectors
* a query of 200 weighted terms, from the topic's first documents
* the scores of a pool: what the topic and its feedback find, so that many documents hold no word of the query itself
* searches by several threads

Engines of ours and agents remember what they were asked, so they are opened anew for each of the passes, of which the
best counts, after one that warms up. CPU is that of the whole process, Java's compiler included. Ratios are
of Lucene's milliseconds to those of the row (of wall time; then of CPU): above 1, the row is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from made_up_people import write_people

from fairagent import load_collection
from fairagent.collection import Collection
from fairagent.guests.lucene.bm25 import AnseriniRetriever
from fairagent.guests.lucene.java import java_class, start_java, using_java
from fairagent.retrieve.base import Retriever, full_text
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.relevance_model import RM3
from fairagent.search.pipeline import build, open_site, parts_of, resolved
from fairagent.settings import load_settings
from fairagent.storage.threads import one_blas_thread
from fairagent.types import Query, Ranking

PASSES = 3
TERMS = 200
THREADS = (1, 2)
TOLERANCE = 1e-4
AGENTS: dict[str, dict[str, Any]] = {"default agent on BM25": {"engine": "bm25"}, "default agent": {}}
Ask = Callable[[Any], object]


def lucene_index(collection: Collection, folder: Path) -> Path:
    """Index with IndexCollection, as Anserini's documentation tells it; the folder of the index."""
    source, index = folder / "anserini-json", folder / "anserini-index"
    source.mkdir()
    with (source / "docs.jsonl").open("w", encoding="utf-8") as file:
        for document in collection.documents():
            file.write(json.dumps({"id": document.id, "contents": full_text(document)}) + "\n")
    options = ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator", "-threads", "1"]
    options += ["-input", str(source), "-index", str(index), "-storeRaw", "-storeDocvectors", "-quiet"]
    with using_java():
        java_class("io.anserini.index.IndexCollection").main(options)
    return index


def best(opened: Callable[[], Ask], asked: Sequence[Any]) -> tuple[float, float]:
    """Milliseconds that one of these takes, and CPU milliseconds: the best of several passes after another."""
    passes = []
    for _ in range(1 + PASSES):
        ask = opened()
        ask(asked[0])
        wall, cpu = time.perf_counter(), time.process_time()
        for one in asked:
            ask(one)
        passes.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = np.min(passes[1:], axis=0) * 1e3 / len(asked)
    return float(wall), float(cpu)


def row(name: str, taken: tuple[float, float], lucene: tuple[float, float]) -> None:
    """A line of the table."""
    ratios = [theirs / ours for ours, theirs in zip(taken, lucene, strict=True)]
    print(f"  {name:40}{taken[0]:9.2f}{taken[1]:9.2f}{ratios[0]:9.2f}{ratios[1]:11.2f}", flush=True)


def simple_searcher(index: Path, hits: int) -> Ask:
    """Pyserini's own way: Anserini's SimpleSearcher, asked for the text of a query."""
    with using_java():
        searcher = java_class("io.anserini.search.SimpleSearcher")(str(index))
        searcher.set_bm25(0.9, 0.4)

    def ask(query: Query) -> object:
        with using_java():
            return [(hit.docid, hit.score) for hit in searcher.search(query.text, hits)]

    return ask


def weighted(engine: BM25Retriever, topic: Query) -> Query:
    """A query of `TERMS` weighted terms of the topic's first documents, or as many as they have."""
    return RM3(terms=TERMS).expand(engine, topic, engine.search(topic, 100))


def same(ours: Sequence[Ranking], theirs: Sequence[Ranking]) -> tuple[float, float]:
    """The share of lists whose first 100 are the same in the same order, and the largest difference of a score."""
    alike = [one.ids[:100] == other.ids[:100] for one, other in zip(ours, theirs, strict=True)]
    differences = [
        np.abs(np.array(one.scores) - np.array(other.scores)).max(initial=0)
        for one, other in zip(ours, theirs, strict=True)
        if len(one) == len(other)
    ]
    return float(np.mean(alike)), float(max(differences, default=np.inf))


def compare(collection: Collection, folder: Path, hits: int) -> bool:
    """Print the table; whether ours and Lucene's are the same."""
    build_index(collection, folder / "index")
    start_java()
    built = lucene_index(collection, folder)

    def ours() -> BM25Retriever:
        return BM25Retriever(folder / "index", collection)

    lucene, engine = AnseriniRetriever(built), ours()
    topics = [Query(topic.query) for topic in collection.topics.values()]
    long = [weighted(engine, query) for query in topics]
    pools = [(query, engine.search(more, hits).ids) for query, more in zip(topics, long, strict=True)]
    found = [engine.search(query, hits) for query in topics]
    alike, difference = same(found, [lucene.search(query, hits) for query in topics])
    pooled = max(np.abs(engine.score(*pool) - lucene.score(*pool)).max(initial=0) for pool in pools)
    good = alike >= 0.98 and max(difference, pooled) <= TOLERANCE
    mean = np.mean([len(ranking) for ranking in found])
    print(f"{len(engine):,} documents of {collection.name}, {len(topics)} topics, {mean:.0f} hits in the mean")
    print(f"the first 100 are the same for {alike:.1%}; scores differ by {max(difference, pooled):.1e} at most")
    print(f"  {'milliseconds':40}{'wall':>9}{'CPU':>9}{'ratio':>9}{'CPU ratio':>11}")

    base = best(lambda: searching(lucene, hits), topics)
    row("Lucene: search", base, base)
    row("Lucene: search, SimpleSearcher", best(lambda: simple_searcher(built, hits), topics), base)
    row("BM25: search", best(lambda: searching(ours(), hits), topics), base)
    agents(folder, collection, base)
    of_long = best(lambda: searching(lucene, hits), long)
    row(f"Lucene: {TERMS} weighted terms", of_long, of_long)
    row(f"BM25: {TERMS} weighted terms", best(lambda: searching(ours(), hits), long), of_long)
    of_pools = best(lambda: scoring(lucene), pools)
    row("Lucene: scores of a pool", of_pools, of_pools)
    row("BM25: scores of a pool", best(lambda: scoring(ours()), pools), of_pools)
    for threads in THREADS:
        theirs = together(searching(lucene, hits), topics, threads)
        row(f"Lucene: search, {threads} thread(s)", theirs, theirs)
        row(f"BM25: search, {threads} thread(s)", together(searching(ours(), hits), topics, threads), theirs)
    return good


def searching(engine: Retriever, hits: int) -> Ask:
    """What searches for a query."""
    return lambda query: engine.search(query, hits)


def scoring(engine: Retriever) -> Ask:
    """What scores a pool."""
    return lambda pool: engine.score(*pool)


def agents(folder: Path, collection: Collection, base: tuple[float, float]) -> None:
    """The rows of the default settings' agents."""
    for name, overrides in AGENTS.items():
        settings = load_settings(overrides=overrides, environ={})
        made = resolved(open_site(collection, folder / "index", settings), preparing=True)
        for part in parts_of(made.settings):
            part.prepare(made, lambda what, done: None)

        def opened(settings: Any = settings) -> Ask:
            return build(open_site(collection, folder / "index", settings)).search

        row(name, best(opened, list(collection.topics.values())), base)


def together(ask: Ask, queries: Sequence[Query], threads: int) -> tuple[float, float]:
    """Milliseconds a query where several threads ask, and CPU milliseconds: the best of several passes."""
    with ThreadPoolExecutor(threads) as pool:
        wall, cpu = best(lambda: lambda every: list(pool.map(ask, every)), [queries])
    return wall / len(queries), cpu / len(queries)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collection", nargs="?", type=Path)
    parser.add_argument("--people", type=int, default=20_000, help="of the made-up demo collection")
    parser.add_argument("--hits", type=int, default=500)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        collection = load_collection(asked.collection or write_people(folder / "demo", asked.people))
        with one_blas_thread():
            good = compare(collection, folder, asked.hits)
    sys.exit(not good)


if __name__ == "__main__":
    main()
