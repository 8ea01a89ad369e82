"""All public topics with group labels: the aims, and what a system gives on the topics of one of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

# One thread a worker: two workers share two cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from fairagent import build_index, load_collection
from fairagent.evaluate.judging import evaluate_topic, judged_topics, standard_measures
from fairagent.search.pipeline import build, open_site, with_settings
from fairagent.settings import load_settings
from fairagent.types import FloatArray

COLLECTIONS = Path(__file__).resolve().parent / "collections"
AIMS: tuple[tuple[str, str], ...] = (
    ("trec22_biographies", "gender"),
    ("allsides", "leaning"),
    ("wikilead", "gender"),
    ("wikilead", "region"),
    ("reuters21578", "region"),
    ("reuters21578", "oecd1987"),
)
"""Collection and dimension."""
OTHERS = (("args_sigir19", "stance"), ("perspectrum", "stance"))
"""Where every document, or next to none without judgments, has a label: they show more than they choose."""


class Measured(NamedTuple):
    """What a system gives on the topics of an aim: `values` (topics, 3) nDCG@20, AWRF@20 and their product.

    `recall` (topics,) is the recall of the group that has the lowest among the candidates, `searches` how often the
    engine was asked a topic, `seconds` the time of one search.
    """

    topics: list[str]
    values: FloatArray
    recall: FloatArray
    searches: float
    seconds: float


@cache
def opened(name: str, indexes: Path, encoder: str) -> Any:
    """The collection with its index, built where it is missing."""
    file = COLLECTIONS / f"{name}.yaml"
    if not (indexes / name).exists():
        build_index(load_collection(file), indexes / name, encoder=encoder)
    return open_site(file, indexes / name, encoder=encoder)


def measured(
    aim: tuple[str, str], overrides: Mapping[str, Any], indexes: Path, encoder: str = "light", most: int | None = None
) -> Measured:
    """What the system of these settings gives on the first `most` public topics of an aim (None: all)."""
    name, dimension = aim
    site = opened(name, indexes, encoder)
    settings = load_settings(overrides={"dimensions": [dimension], "encoder": encoder, **overrides}, environ={})
    agent = build(with_settings(site, settings))
    topics = [site.collection.topics[id] for id in judged_topics(site.collection, dimension).counted][:most]
    rows, recalls, searches, started = [], [], 0, perf_counter()
    for topic in topics:
        result = agent.search(topic)
        rows.append(evaluate_topic(site.collection, topic.id, dimension, result.ranking, standard_measures(20))[:3])
        searches += sum(step.source not in ("judge", "filter", "stop") for step in result.trace.steps)
        recalls.append(lowest_recall(site.collection, topic.id, dimension, result.retrieved))
    seconds = (perf_counter() - started) / max(len(topics), 1)
    values = np.array(rows, dtype=np.float64)
    return Measured([one.id for one in topics], values, np.array(recalls), searches / len(topics), seconds)


def lowest_recall(collection: Any, topic: str, dimension: str, candidates: tuple[str, ...]) -> float:
    """Of each group's relevant documents the part that is among the candidates; the lowest of all groups."""
    relevant = [id for id, grade in collection.qrels[topic].items() if grade > 0]
    rows = collection.groups.memberships(dimension, relevant, topic)[:, 1:]
    there = np.isin(relevant, candidates)
    of_groups = rows.sum(axis=0)
    known = of_groups > 0
    return float(((rows * there[:, None]).sum(axis=0)[known] / of_groups[known]).min()) if known.any() else 1.0
