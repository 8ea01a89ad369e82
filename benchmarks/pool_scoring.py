"""Scoring a given pool in one Lucene call, against asking document by document.

    python benchmarks/pool_scoring.py [--pool 500] [--topics 10]

The pool of a topic is what its query finds, with RM3's topic words added; so many of its documents hold no word of
the query itself, for which it is scored. The naive ways get the Lucene query ready-made: `explain` for each document,
or the query with the document as its filter. The faster of the two counts. Runs on the demo collection, made on the
spot, and ends with exit code 1 where one call is not at least 6 times faster or its scores differ by more than 1e-4.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fairagent.retrieve.lucene import LuceneRetriever, build_index

from fairagent.collection import Collection, load_collection
from fairagent.collection.demo import write_demo
from fairagent.retrieve.java import java_class, using_java
from fairagent.retrieve.relevance_model import RM3
from fairagent.types import FloatArray, Query

REPEATS = 5
WARM_UP = 2.0
"""Seconds that each way runs before it is timed: Java compiles what it runs often."""
FLOOR = 6.0
TOLERANCE = 1e-4


def explain(retriever: LuceneRetriever, lucene_query: Any, numbers: list[int]) -> list[float]:
    """The score of each document as Lucene explains it."""
    import jnius

    with using_java():
        # `explain` is overloaded; the cast says which one is meant.
        plain = jnius.cast("org.apache.lucene.search.Query", lucene_query)
        return [retriever._searcher.explain(plain, number).getValue().doubleValue() for number in numbers]


def one_query_each(retriever: LuceneRetriever, lucene_query: Any, numbers: list[int]) -> list[float]:
    """The score of each document as the only hit of a search of its own."""
    with using_java():
        occur = java_class("org.apache.lucene.search.BooleanClause$Occur")
        should, filter_by = occur.SHOULD, occur.FILTER
        scores = []
        for number in numbers:
            only = java_class("org.apache.lucene.document.IntPoint").newExactQuery("number", number)
            builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
            builder.add(lucene_query, should)
            builder.add(only, filter_by)
            both = builder.build()
            scores.append(retriever._searcher.search(both, 1).scoreDocs[0].score)
        return scores


def timed(ask: Callable[[], Any]) -> tuple[float, FloatArray]:
    """The best of several times, in seconds, and the answer."""
    best = np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        scores = ask()
        best = min(best, time.perf_counter() - start)
    return best, np.array(scores)


def ways(retriever: LuceneRetriever, query: Query, pool: int) -> list[Callable[[], Any]]:
    """The three ways to score the pool of one query, ready to be called."""
    expanded = RM3().expand(retriever, query, retriever.search(query, pool))
    ids = retriever.search(expanded, pool).ids
    numbers = retriever.numbers(ids).tolist()
    with using_java():
        lucene_query = retriever._lucene_query(query)
    return [
        lambda: retriever.score(query, ids),
        lambda: explain(retriever, lucene_query, numbers),
        lambda: one_query_each(retriever, lucene_query, numbers),
    ]


def warm_up(ask: Callable[[], Any]) -> float:
    """Run for a while; the seconds of the very first call."""
    start = time.perf_counter()
    ask()
    first = time.perf_counter() - start
    while time.perf_counter() - start < WARM_UP:
        ask()
    return first


def run(collection: Collection, folder: Path, pool: int, topics: int) -> bool:
    """Print the figures and say whether they are good enough."""
    build_index(collection, folder)
    retriever = LuceneRetriever(folder, collection)
    asked = [ways(retriever, Query(topic.query), pool) for topic in list(collection.topics.values())[:topics]]
    first = [warm_up(ask) * 1e3 for ask in asked[0]]
    answers = [[timed(ask) for ask in topic] for topic in asked]
    seconds = np.array([[seconds for seconds, _ in topic] for topic in answers])
    ratios = seconds[:, 1:].min(axis=1) / seconds[:, 0]
    scores = [[scores for _, scores in topic] for topic in answers]
    difference = max(np.abs(ours - other).max() for ours, *others in scores for other in others)
    print(f"{pool} documents, {len(asked)} topics of {collection.name}: median of the best of {REPEATS}, first call")
    names = ("score() in one call", "explain() for each document", "one query for each document")
    for name, warm, cold in zip(names, np.median(seconds, axis=0) * 1e3, first, strict=True):
        print(f"  {name:30} {warm:8.2f} ms {cold:8.2f} ms")
    print(f"  documents without a query word {np.mean([(ours == 0).sum() for ours, *_ in scores]):8.0f}")
    print(
        f"  the faster naive way / score() {np.median(ratios):8.1f}    (at least {FLOOR:g}; "
        f"over the topics {ratios.min():.1f} to {ratios.max():.1f})"
    )
    print(f"  largest difference of a score  {difference:8.1e}    (at most {TOLERANCE:g})")
    return bool(np.median(ratios) >= FLOOR and difference <= TOLERANCE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pool", type=int, default=500)
    parser.add_argument("--topics", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        collection = load_collection(write_demo(Path(folder) / "demo"))
        good = run(collection, Path(folder) / "index", options.pool, options.topics)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
