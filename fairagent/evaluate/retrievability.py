"""Retrievability: for how many of a run's topics each document is among the first n, and how evenly.

Over all documents, also those that no topic retrieves; by group, how often a group's documents are retrieved beside all
documents'. Sources: Azzopardi & Vinay, CIKM 2008; over all topics, not within those that resemble each other as
T-Retrievability (arXiv 2508.21704) has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.evaluate.run import Results
from fairagent.evaluate.tables import Table
from fairagent.measures import gini
from fairagent.types import UNKNOWN
from fairagent.types.common import counted

FEW = 4
"""A dimension with more groups has a column for the least retrieved alone; the file has them all."""


@dataclass(frozen=True, slots=True)
class Retrievability:
    """How a system retrieves the so many `documents` of a `group` ("": all) in the first `n`.

    `gini` is that of the numbers of topics that retrieve each (0: all alike), `reached` the share that any topic
    retrieves, `beside_all` the mean of these numbers over that of all documents (1: as often as any).
    """

    system: str
    dimension: str
    group: str
    n: int
    documents: float
    gini: float
    reached: float
    beside_all: float


def retrievabilities(run: Results) -> list[Retrievability]:
    """Every system in every dimension, over the topics that all systems have answered: all, no label, each group."""
    source = run.provenance.get("collection")
    sizes = source.get("sizes", {}) if isinstance(source, Mapping) else {}
    rows = []
    for system in run.systems:
        counts, groups = Counter[str](), dict[str, Mapping[str, Mapping[str, float]]]()
        for hit in (hit for topic in run.counted_topics for hit in run.by_topic[topic][system].hits[: run.n]):
            counts[hit.id] += 1
            groups[hit.id] = hit.groups
        values = np.array([*(counts[id] for id in groups), 0.0])
        for dimension in (name for name in run.dimensions if name in sizes and groups):
            shares = [of.get(dimension, {}) for of in groups.values()]
            everything = sum(sizes[dimension].values())
            for group, size in {"": everything, **sizes[dimension]}.items():
                if group == UNKNOWN:
                    weights = [max(0.0, 1 - sum(of.values())) for of in shares]
                else:
                    weights = [of.get(group, 0.0) if group else 1.0 for of in shares]
                if size > 0:
                    members = np.array([*weights, max(0.0, size - sum(weights))])
                    beside = float(members @ values / size) / float(values.sum() / everything)
                    reached = min(1.0, sum(weights) / size)
                    about = (system, dimension, group, run.n, size)
                    rows.append(Retrievability(*about, gini(values, members), reached, beside))
    return rows


def retrievability_tables(rows: Sequence[Retrievability], topics: int) -> Iterator[Table]:
    """A table a dimension: of all documents, and of each of few groups or the least retrieved of many."""
    for dimension in dict.fromkeys(row.dimension for row in rows):
        lines, n = [], rows[0].n
        groups = dict.fromkeys(row.group for row in rows if row.dimension == dimension and row.group)
        known = [group for group in groups if group != UNKNOWN]
        for system in dict.fromkeys(row.system for row in rows):
            of = {row.group: row for row in rows if (row.system, row.dimension) == (system, dimension)}
            beside = {group: of[group].beside_all for group in groups}
            least = min(known, key=beside.__getitem__, default="")
            each = list(beside.values()) if len(known) <= FEW else [beside[least], least]
            lines.append([system, of[""].gini, of[""].reached, *each])
        documents = next(row.documents for row in rows if row.dimension == dimension and not row.group)
        names = ["no label" if one == UNKNOWN else one for one in groups] if len(known) <= FEW else ["least", "group"]
        title = f"{dimension}, retrievability@{n} ({counted(topics, 'topic')}, {documents:,.0f} documents)"
        notes = [
            "Gini of the numbers of topics for which each document is retrieved: 0 if all are alike, and no less here "
            f"than {max(0.0, 1 - topics * n / documents):.4f}; reached: the share that any topic retrieves; of a "
            "group, how often its documents are retrieved beside all documents (1: as often)"
        ]
        yield Table.of(["system", "Gini", "reached", *names], lines, title, notes, systems=True)
