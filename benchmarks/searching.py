"""Indexing and searching, against Anserini's own way: IndexCollection and SimpleSearcher, in the same run.

    python benchmarks/searching.py [--people 3000] [--hits 500]

Both index the demo collection (made on the spot) with one thread and the same analyzer; ours also writes the forward
index. Both return ids and scores of 500 hits to Python. With several threads ours is called from Python's, while
SimpleSearcher starts Java's in `batch_search`. A ratio above 1 says that ours is faster.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fairagent.retrieve.lucene import LuceneRetriever, build_index

from fairagent.collection import Collection, load_collection
from fairagent.collection.demo import write_demo
from fairagent.retrieve.java import java_class, start_java, using_java
from fairagent.types import Query, Ranking

REPEATS = 5
THREADS = (1, 2, 4, 8)
Found = list[tuple[str, float]]


def best_time(ask: Callable[[], Any], repeats: int = REPEATS) -> float:
    """The best of several times, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        ask()
        times.append(time.perf_counter() - start)
    return min(times)


def row(name: str, ours: float, theirs: float, unit: str, ratio: float) -> None:
    print(f"  {name:28}{ours:10.2f} {unit:10}{theirs:10.2f} {unit:10}{ratio:8.2f}")


def anserini_index(collection: Collection, folder: Path) -> str:
    """Index with IndexCollection, as Anserini's documentation tells it; the folder of the index."""
    source, index = folder / "anserini-json", folder / "anserini-index"
    source.mkdir(exist_ok=True)
    with (source / "docs.jsonl").open("w", encoding="utf-8") as file:
        for document in collection.documents():
            file.write(json.dumps({"id": document.id, "contents": f"{document.title} {document.text}"}) + "\n")
    options = ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator", "-threads", "1"]
    with using_java():
        indexer = java_class("io.anserini.index.IndexCollection")
        indexer.main([*options, "-input", str(source), "-index", str(index), "-storeRaw", "-quiet"])
    return str(index)


def anserini_search(searcher: Any, text: str, hits: int) -> Found:
    with using_java():
        return [(hit.docid, hit.score) for hit in searcher.search(text, hits)]


def anserini_batch(searcher: Any, texts: list[str], hits: int, threads: int) -> list[Found]:
    with using_java():
        queries, names = java_class("java.util.ArrayList")(), java_class("java.util.ArrayList")()
        for number, text in enumerate(texts):
            queries.add(text)
            names.add(str(number))
        found = searcher.batch_search(queries, names, hits, threads)
        return [[(hit.docid, hit.score) for hit in found.get(str(number))] for number in range(len(texts))]


def compare(collection: Collection, folder: Path, hits: int) -> None:
    """Print the table."""
    start_java()
    count = build_index(collection, folder / "warm-up").documents
    anserini_index(collection, folder)
    print(f"{count:,} documents of {collection.name}; ours, Anserini's, ratio")
    ours = best_time(lambda: build_index(collection, folder / "index", workers=1), 2)
    theirs = best_time(lambda: anserini_index(collection, folder), 2)
    row("index, 1 thread", count / ours, count / theirs, "docs/s", theirs / ours)

    retriever = LuceneRetriever(folder / "index", collection)
    with using_java():
        searcher = java_class("io.anserini.search.SimpleSearcher")(str(folder / "anserini-index"))
        searcher.set_bm25(0.9, 0.4)
    # Longer than the topics' titles, so that they find enough.
    texts = [
        f"{topic.query} {topic.extra.get('description', '')} known for work" for topic in collection.topics.values()
    ]
    queries = [Query(text) for text in texts]
    found = [retriever.search(query, hits) for query in queries]
    check(found, [anserini_search(searcher, text, hits) for text in texts])
    mine = best_time(lambda: [retriever.search(query, hits) for query in queries]) / len(queries)
    other = best_time(lambda: [anserini_search(searcher, text, hits) for text in texts]) / len(queries)
    mean = np.mean([len(ranking) for ranking in found])
    row(f"search, {mean:.0f} hits", mine * 1e3, other * 1e3, "ms", other / mine)
    for threads in THREADS:
        with ThreadPoolExecutor(threads) as executor:
            mine = best_time(partial(in_threads, executor, retriever, queries, hits))
        other = best_time(partial(anserini_batch, searcher, texts, hits, threads))
        row(f"{threads} threads", len(texts) / mine, len(texts) / other, "queries/s", other / mine)


def in_threads(
    executor: ThreadPoolExecutor, retriever: LuceneRetriever, queries: list[Query], hits: int
) -> list[Ranking]:
    return list(executor.map(lambda query: retriever.search(query, hits), queries))


def check(found: list[Ranking], theirs: list[Found]) -> None:
    """What is compared must be the same search: equal scores, rank by rank, up to SimpleSearcher's rounding."""
    for ranking, other in zip(found, theirs, strict=True):
        np.testing.assert_allclose([score for _, score in other], ranking.scores, atol=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=3_000)
    parser.add_argument("--hits", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        collection = load_collection(write_demo(Path(folder) / "demo", people=options.people))
        compare(collection, Path(folder), options.hits)


if __name__ == "__main__":
    main()
