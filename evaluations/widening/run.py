"""Where few documents are retrieved, as by a RAG pipeline: no loop beside loops that search again.

    python evaluations/widening/run.py [--indexes FOLDER] [--topics N] [--model BASE_URL]

For each depth (20, 40, 100, 500 documents of the fused engine) and each system: the mean over the six aims of nDCG@20,
AWRF(unknown=ignore)@20, their product with its 95 % interval (bootstrap by query: dimensions of one query together),
of the lowest recall of a group's relevant documents among the candidates, of the searches of the engine, and of the
time of a search. As `host` the same lists come from a retriever of LlamaIndex, which can be asked for nothing but
text; `by keywords` asks the model of a server, for instance that of `fairagent model serve`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from aims import AIMS, Measured, measured, opened

DEPTHS = (20, 40, 100, 500)
SYSTEMS: dict[str, dict[str, Any]] = {
    "no loop": {"loop": "none"},
    "widen": {},
    "by documents": {"loop": {"actions": ["documents"]}},
    "FAIR-QR": {"profile": "fair-qr", "engine": "auto", "refine": {"kind": "feedback", "weight": 1}},
}
MODEL: dict[str, Any] = {"loop": {"actions": ["keywords"]}, "cache": ".fairagent/replies"}
RESAMPLES = 2000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--indexes", type=Path, default=Path("indexes/light"))
    parser.add_argument("--topics", type=int, help="of each aim, the first ones")
    parser.add_argument("--model", default="", help="address of an OpenAI-compatible server, for keywords")
    given = parser.parse_args()
    systems = dict(SYSTEMS)
    if given.model:
        systems["by keywords"] = {**MODEL, "profile": "offline", "model": {"name": "local", "base_url": given.model}}
    for name, _ in AIMS:
        opened(name, given.indexes, "light")
    print(
        f"{'depth, system':24s} {'nDCG':>6s} {'AWRF':>6s} {'product':>24s} {'recall':>7s} {'searches':>9s} {'ms':>6s}"
    )
    for depth in DEPTHS:
        for name, overrides in systems.items():
            rows = {
                aim: measured(aim, {**overrides, "depth": depth}, given.indexes, "light", given.topics) for aim in AIMS
            }
            print(f"{depth:4d} {name:19s} {shown(rows)}", flush=True)
    for depth in (20, 40, 100):
        for name, overrides in {"no loop": {"loop": "none"}, "widen": {}}.items():
            print(f"{depth:4d} {f'host, {name}':19s} {shown(of_host(depth, overrides, given))}", flush=True)


def shown(rows: dict[tuple[str, str], Measured]) -> str:
    """A line of the table."""
    ndcg, awrf, product = np.mean([one.values.mean(axis=0) for one in rows.values()], axis=0)
    low, high = interval(rows)
    recall = np.mean([one.recall.mean() for one in rows.values()])
    searches, ms = (np.mean([getattr(one, what) for one in rows.values()]) for what in ("searches", "seconds"))
    within = f"{product:.4f} ({low:.4f}-{high:.4f})"
    return f"{ndcg:6.3f} {awrf:6.3f} {within:>24s} {recall:7.3f} {searches:9.2f} {1000 * ms:6.1f}"


def interval(rows: dict[tuple[str, str], Measured]) -> tuple[float, float]:
    """95 % of the mean of the aims' mean products, by resampling the queries of each collection."""
    rng, means = np.random.default_rng(1), np.zeros(RESAMPLES)
    for name in dict.fromkeys(name for name, _ in rows):
        of_aims = [(one.topics, one.values[:, 2]) for aim, one in rows.items() if aim[0] == name]
        queries = list(dict.fromkeys(topic for topics, _ in of_aims for topic in topics))
        counts = rng.multinomial(len(queries), np.full(len(queries), 1 / len(queries)), size=RESAMPLES)
        for topics, values in of_aims:
            drawn = counts[:, [queries.index(topic) for topic in topics]]
            means += (drawn @ values) / np.maximum(drawn.sum(axis=1), 1) / len(rows)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def of_host(depth: int, overrides: dict[str, Any], given: argparse.Namespace) -> dict[tuple[str, str], Measured]:
    """As a LlamaIndex retriever's list of `depth` nodes, which is all that there is of each search."""
    from time import perf_counter

    from aims import lowest_recall
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    from fairagent.evaluate.judging import evaluate_topic, judged_topics, standard_measures
    from fairagent.guests.llama_index import fair_agent
    from fairagent.search.pipeline import build, with_settings
    from fairagent.settings import load_settings
    from fairagent.types import Query

    class Host(BaseRetriever):
        """The fused engine as LlamaIndex sees it."""

        def __init__(self, engine: Any) -> None:
            super().__init__()
            self.engine, self.asked = engine, 0

        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            self.asked += 1
            ranking = self.engine.search(Query(query_bundle.query_str), depth)
            texts = [self.engine.document(id) for id in ranking.ids]
            nodes = (TextNode(id_=one.id, text=one.text, metadata={"title": one.title}) for one in texts)
            return [NodeWithScore(node=node, score=score) for node, score in zip(nodes, ranking.scores, strict=True)]

    rows = {}
    for aim in AIMS:
        site = opened(aim[0], given.indexes, "light")
        plain = load_settings(overrides={"profile": "engine", "engine": "auto"}, environ={})
        host = Host(build(with_settings(site, plain)).retriever)
        agent = fair_agent(host, site.collection, dimensions=[aim[1]], depth=depth, **overrides)
        topics = [site.collection.topics[id] for id in judged_topics(site.collection, aim[1]).counted][: given.topics]
        values, recalls, started = [], [], perf_counter()
        for topic in topics:
            result = agent.search(topic)
            values.append(evaluate_topic(site.collection, topic.id, aim[1], result.ranking, standard_measures(20))[:3])
            recalls.append(lowest_recall(site.collection, topic.id, aim[1], result.retrieved))
        seconds = (perf_counter() - started) / len(topics)
        ids = [topic.id for topic in topics]
        rows[aim] = Measured(ids, np.array(values), np.array(recalls), host.asked / len(topics), seconds)
    return rows


if __name__ == "__main__":
    main()
