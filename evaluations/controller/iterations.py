"""Gap and relevance by iteration: the controller beside FAIR-QR's loop and pooled feedback, on every collection.

    python evaluations/controller/iterations.py [FILE.svg]

No re-ranker of exposure, no model, no prior: what is shown is what refinement alone does, on all public topics; a topic
whose loop has ended keeps its last list. Writes docs/loop_iterations.svg, prints the figures.

- controller: the default engine, each group's evidence under weights that follow what it lacks
- pooled: the same engine and share of feedback, learned from the first 20 documents of the last list, whoever they are
- FAIR-QR: BM25, keywords from the documents of the most under-exposed group, the first 20 re-ranked by the user's query
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from fairagent.search.loop.candidates import Candidates
from fairagent.search.loop.evidence import learn_from

from fairagent import FairAgent, Ranking, Topic
from fairagent.collection.exposure import total_gap
from fairagent.evaluate.judging import evaluate_topic, judged_topics, standard_measures
from fairagent.search.loop.base import Search
from fairagent.search.pipeline import build, open_site, with_settings
from fairagent.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
COLLECTIONS = ("trec22_biographies", "wikilead", "reuters21578", "allsides", "perspectrum", "args_sigir19")
ITERATIONS = 5
FEEDBACK = 20
CONTROLLER: Mapping[str, Any] = {
    "rerank": "none",
    "loop": {"kind": "controller", "steps": ITERATIONS, "rocchio": 0, "prior": 0, "worse": 1e9},
}
FAIR_QR: Mapping[str, Any] = {
    "profile": "fair-qr",
    "refine": {"kind": "feedback", "weight": 1},
    "loop": {"rerank_depth": 20},
}


@dataclass(frozen=True)
class Curve:
    """Means over the topics: the gap that the loop measures, nDCG and AWRF, each (iterations + 1,)."""

    gap: np.ndarray
    ndcg: np.ndarray
    awrf: np.ndarray


def main() -> None:
    """Draw and print."""
    curves = {}
    figure, *files = sys.argv[1:] or [ROOT / "docs" / "loop_iterations.svg"]
    for file in map(Path, files or [ROOT / "evaluations" / "collections" / f"{name}.yaml" for name in COLLECTIONS]):
        site, name = open_site(file), file.stem
        for dimension in site.collection.groups.dimensions:
            curves[f"{name}, {dimension}"] = dict(systems(site, dimension))
            show(f"{name}, {dimension}", curves[f"{name}, {dimension}"])
    draw(curves, Path(figure))


def systems(site: Any, dimension: str) -> Iterator[tuple[str, Curve]]:
    """The curve of each way to refine."""

    def opened(settings: Mapping[str, Any]) -> FairAgent:
        return build(with_settings(site, load_settings(overrides={"dimensions": [dimension], **settings}, environ={})))

    collection = site.collection
    topics = [collection.topics[id] for id in judged_topics(collection, dimension).counted]
    agent = opened(CONTROLLER)
    ways = {
        "controller": lambda topic: controlled(agent, topic),
        "pooled": lambda topic: pooled(agent, topic),
    }
    papers = [opened({**FAIR_QR, "iterations": number}) for number in range(ITERATIONS + 1)]
    ways["FAIR-QR"] = lambda topic: [one.search(topic).ranking for one in papers]
    meters = {topic.id: agent.find(topic, 20).meter for topic in topics}
    for name, way in ways.items():
        rows = []
        for topic in topics:
            meter = meters[topic.id]
            for ranking in way(topic):
                values = evaluate_topic(collection, topic.id, dimension, ranking, standard_measures(20))
                rows.append([min(total_gap(meter.measure(ranking)), 20.0), *values[:2]])
        means = np.array(rows).reshape(len(topics), ITERATIONS + 1, 3).mean(axis=0)
        yield name, Curve(*means.T)


def controlled(agent: FairAgent, topic: Topic) -> list[Ranking]:
    """What would be served after each step of the controller."""
    rankings: list[Ranking] = []
    for step in agent.search(topic).trace.steps:
        if step.accepted or not rankings:
            served = step.ranking.top(20)
            rankings.append(served)
        else:
            rankings.append(rankings[-1])
    return (rankings + rankings[-1:] * ITERATIONS)[: ITERATIONS + 1]


def pooled(agent: FairAgent, topic: Topic) -> list[Ranking]:
    """What Rocchio's feedback gives, from the first documents of the last list, with the controller's share."""
    found = agent.find(topic, 20)
    first, rankings = found.loop.steps[0].ranking, []
    scores = first.scores
    of_engine = (agent.retriever, 20, lambda asked: first, lambda pool: pool.ranking.top(20))
    search = Search(found.query, found.loop.steps[:1], found.meter, *of_engine)
    candidates = Candidates(first, search, found.meter, agent.loop.mixer)
    for _ in range(ITERATIONS + 1):
        order = np.argsort(-scores, kind="stable")
        rankings.append(Ranking(tuple(first.ids[place] for place in order[:20]), scores[order[:20]]))
        everybody = np.tile([0.0, 1.0], (len(first), 1))
        learned = learn_from(scores, [everybody], FEEDBACK)
        scores = candidates.mix(learned).scores(np.zeros(len(first)), np.ones(1))
    return rankings


def show(title: str, curves: Mapping[str, Curve]) -> None:
    """Gap, nDCG and AWRF of each way, a column an iteration."""
    print(title)
    for name, curve in curves.items():
        for label, values in (("gap", curve.gap), ("nDCG@20", curve.ndcg), ("AWRF@20", curve.awrf)):
            print(f"  {name:12s} {label:8s}", *(f"{value:7.4f}" for value in values), flush=True)


def draw(curves: Mapping[str, Mapping[str, Curve]], file: Path) -> None:
    """The gap above, nDCG below, a column a collection and dimension."""
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "fairagent"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, len(curves), figsize=(2.1 * len(curves), 4.4), layout="constrained")
    styles = {"controller": ("C0", "o", "-"), "pooled": ("C1", "s", "--"), "FAIR-QR": ("C2", "^", ":")}
    for column, (title, ways) in enumerate(curves.items()):
        for name, curve in ways.items():
            color, marker, line = styles[name]
            for row, values in enumerate((curve.gap, curve.ndcg)):
                axes[row, column].plot(values, color=color, marker=marker, ls=line, ms=3, lw=1.2, label=name)
        axes[0, column].set_title(title.replace(", ", "\n"), fontsize=8)
        axes[1, column].set_xlabel("iteration", fontsize=8)
    for axis in axes.flat:
        axis.tick_params(labelsize=7)
        axis.set_xticks(range(ITERATIONS + 1))
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("gap (KL, nats)", fontsize=8)
    axes[1, 0].set_ylabel("nDCG@20", fontsize=8)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    figure.savefig(file, metadata={"Date": None})
    print(f"written: {file.name}")


if __name__ == "__main__":
    main()
