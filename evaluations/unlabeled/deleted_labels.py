"""Labels deleted from collections that are labeled throughout: what the agent does, judged by the labels that it lost.

    python evaluations/unlabeled/deleted_labels.py [--seed 1] [trec22_biographies] [allsides]

30, 50 and 80 % of the labels at random, then of one group alone. Beside the engine alone, over all topics that count:
the exposure of documents without a label, AWRF and nDCG by the true labels, and on how many topics the interval that
experiments print for missing labels contains the AWRF by the true labels.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fairagent import Collection, FairAgent, GroupTable, Ranking, Topic
from fairagent.evaluate.findings import fairness_bounds
from fairagent.evaluate.judging import TARGET, Judge, evaluate_topic, judged_topics, standard_measures
from fairagent.evaluate.outcome import GroupShares
from fairagent.measures import LOG2_MAX2, group_exposure
from fairagent.retrieve.site import Site
from fairagent.search.pipeline import build, open_site, prepare, with_settings
from fairagent.settings import load_settings
from fairagent.storage.threads import Memo
from fairagent.types import FloatArray

FOLDER = Path(__file__).resolve().parents[1] / "collections"
COLLECTIONS = ("trec22_biographies", "allsides")
PARTS = (0.3, 0.5, 0.8)
N = 20
SYSTEMS = {"engine": {"profile": "engine", "engine": "auto"}, "agent": {}}


@dataclass(frozen=True)
class Deletion:
    """Which `part` of the labels is deleted: of `group`, or of all groups (""); at random, by `seed`."""

    part: float
    group: str = ""
    seed: int = 1

    def __str__(self) -> str:
        return f"{self.part:.0%} of {self.group or 'all'}" if self.part else "none"


@dataclass(frozen=True)
class Measured:
    """What a system did, a value a topic each (t,): unlabeled exposure, nDCG and AWRF by the true labels.

    `ends` (t, 2) is the interval of AWRF by the labels that are left; nan where the topic does not count by these.
    """

    unlabeled: FloatArray
    ndcg: FloatArray
    awrf: FloatArray
    ends: FloatArray

    @property
    def counted(self) -> int:
        """On how many topics there is an interval."""
        return int((~np.isnan(self.ends[:, 0])).sum())

    @property
    def covered(self) -> int:
        """On how many of these it contains the AWRF by the true labels, but for rounding."""
        low, high = self.ends.T
        return int(((low - 1e-9 <= self.awrf) & (self.awrf <= high + 1e-9)).sum())


def main() -> None:
    """Print the tables."""
    parser = ArgumentParser(description="Labels deleted from collections: what the agent does, judged by all labels.")
    parser.add_argument("collections", nargs="*", default=COLLECTIONS, help=f"by default {' '.join(COLLECTIONS)}")
    parser.add_argument("--seed", type=int, default=1, help="which labels are deleted (1)")
    given = parser.parse_args()
    for name in given.collections:
        site = open_site(FOLDER / f"{name}.yaml")
        prepare(site, lambda what, done: None)
        (dimension,) = site.collection.groups.dimensions
        topics = counted(site.collection, dimension)
        print(f"{name}, {dimension}: {len(topics)} topics")
        print(f"{'':17s} unlabeled exposure           true AWRF           true nDCG    interval contains true AWRF,")
        print(
            f"{'labels deleted':17s} engine agent difference      engine agent  lose  engine agent "
            "mean width: engine, agent"
        )
        for deletion in deletions(site.collection, dimension, given.seed):
            print(line(deletion, *measure(site, dimension, deletion, topics)), flush=True)
        print()


def line(deletion: Deletion, engine: Measured, agent: Measured) -> str:
    """A row of the table; of the difference the mean and both extremes, of AWRF also how many topics lose."""
    difference = agent.unlabeled - engine.unlabeled
    cells = [
        f"{deletion!s:17s} {engine.unlabeled.mean():6.3f} {agent.unlabeled.mean():5.3f}",
        f"{difference.mean():+.3f} [{difference.min():+.3f}, {difference.max():+.3f}]",
        f"{engine.awrf.mean():6.4f} {agent.awrf.mean():6.4f} {(agent.awrf < engine.awrf - 1e-4).sum():3d}",
        f"{engine.ndcg.mean():5.3f} {agent.ndcg.mean():5.3f}",
        *(f"{one.covered} of {one.counted}, {np.nanmean(np.diff(one.ends)):.2f}" for one in (engine, agent)),
    ]
    return "  ".join(cells)


def deletions(collection: Collection, dimension: str, seed: int = 1) -> Iterator[Deletion]:
    """None, then each part of all labels, then of each group that documents have."""
    yield Deletion(0)
    groups = [
        label
        for label, share in zip(
            collection.groups.labels(dimension), collection.groups.shares(dimension)[1:].tolist(), strict=True
        )
        if share > 0
    ]
    for group in ("", *groups):
        for part in PARTS:
            yield Deletion(part, group, seed)


def counted(collection: Collection, dimension: str) -> list[Topic]:
    """The topics that count in a dimension."""
    return [collection.topics[id] for id in judged_topics(collection, dimension).counted]


def deleted(collection: Collection, dimension: str, deletion: Deletion) -> Collection:
    """The collection with part of its labels. It does not say which documents can have one."""
    labels = collection.groups.labels(dimension)
    tables = getattr(collection.groups, "parts", (collection.groups,))
    ids = [id for table in tables for _, some in table.batches() for id in some]
    drawn = np.random.default_rng(deletion.seed).random(len(ids)) < deletion.part
    rows = collection.groups.memberships(dimension, ids)[:, 1:]

    def left(row: FloatArray, hit: bool) -> dict[str, float] | None:
        weights = {label: float(share) for label, share in zip(labels, row, strict=True) if share > 0}
        lost = hit and (not deletion.group or deletion.group in weights)
        return None if lost else weights or None

    few = ((id, {dimension: left(row, hit)}) for id, row, hit in zip(ids, rows, drawn.tolist(), strict=True))
    return replace(collection, groups=GroupTable.from_rows(few, {dimension: labels}))


def measure(site: Site, dimension: str, deletion: Deletion, topics: Sequence[Topic]) -> tuple[Measured, Measured]:
    """What the engine and the agent do where labels are deleted."""
    poorer = replace(site, collection=deleted(site.collection, dimension, deletion), memo=Memo())
    engine, agent = (
        build(with_settings(poorer, load_settings(overrides={"dimensions": [dimension], "n": N, **one}, environ={})))
        for one in SYSTEMS.values()
    )
    return of(engine, site.collection, dimension, topics), of(agent, site.collection, dimension, topics)


def of(system: FairAgent, truth: Collection, dimension: str, topics: Sequence[Topic]) -> Measured:
    """What a system does, judged by its own collection's labels and by the true ones."""
    measures = standard_measures(N)
    known = frozenset(judged_topics(system.collection, dimension).counted)
    judge = Judge(system.collection, {str(measures[1]): measures[1]}, {dimension: known}, TARGET, False, N)
    rows = []
    for topic in topics:
        ranking: Ranking = system.search(topic).ranking
        ndcg, awrf, _ = evaluate_topic(truth, topic.id, dimension, ranking, measures)
        shares = [GroupShares.of(one) for one in judge.exposures(topic.id, ranking)]
        ends = fairness_bounds(shares[0]) if shares else (np.nan, np.nan)
        memberships = system.collection.groups.memberships(dimension, ranking.ids)
        unlabeled = group_exposure(memberships, LOG2_MAX2(len(ranking)))[0]
        rows.append((unlabeled, ndcg, awrf, *ends))
    unlabeled_exposure, ndcgs, awrfs, *both = np.array(rows).T
    return Measured(unlabeled_exposure, ndcgs, awrfs, np.array(both).T)


if __name__ == "__main__":
    main()
