"""The protocol of groups and its implementations but `GroupTable`: by topic, several joined, and intersections."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.records import Faults, listed
from fairagent.collection.table import BATCH, AnyArray, GroupTable, IntArray, LabelColumn
from fairagent.errors import UsageError
from fairagent.measures import joint_memberships
from fairagent.settings.faults import no_such
from fairagent.types import FloatArray

FEW = 30
"""A group of an intersection with fewer documents is noted as small."""


class Groups(Protocol):
    """The groups of a collection's documents, in one or more dimensions (gender, region ...).

    For a dimension that there is not, every method raises UsageError that names those there are.
    """

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the dimensions."""

    @property
    def oracle(self) -> tuple[str, ...]:
        """The dimensions whose labels were taken from the judgments: whoever uses them sees the judgments."""

    @property
    def predicted(self) -> tuple[str, ...]:
        """The dimensions whose memberships are a classifier's probabilities."""

    def labels(self, dimension: str) -> tuple[str, ...]:
        """The known labels, in the order of the columns 1 .. g."""

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Shares (n, 1 + g) of the documents `ids`; column 0 is unknown, rows sum to 1 where normalized."""

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Whether the documents `ids` (n,) are of the dimension's type, as a person of unknown gender is of `gender`'s.

        None where nothing declares it.
        """

    def shares(self, dimension: str) -> FloatArray:
        """The mean membership (1 + g,) of all documents."""

    def missing(self, dimension: str) -> float:
        """The part of `shares` whose group is not known: what is unknown of documents that can be of the type."""


class TopicGroups(GroupTable):
    """Labels that depend on the topic, e.g. the stance of a text towards a claim.

    They come from the judgments: only judged documents have one. The ids of its rows are made by `pair`; `shares` is
    the mean over all judged pairs of topic and document.
    """

    def __init__(self, ids: AnyArray, columns: Mapping[str, LabelColumn]) -> None:
        super().__init__(ids, columns)
        self.oracle = self.dimensions

    @staticmethod
    def pair(topic: str, id: str) -> str:
        """The id of a document's row for one topic (neither id holds white space)."""
        return f"{topic}\t{id}"

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Shares (n, 1 + g) of the documents `ids` for `topic`; all unknown without a topic."""
        return super().memberships(dimension, [self.pair(topic, id) for id in ids])

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Whether the documents `ids` (n,) are of the dimension's type for `topic`; others than judged ones are not."""
        return super().of_type(dimension, [self.pair(topic, id) for id in ids])

    def batches(self, size: int = BATCH) -> Iterator[tuple[str, list[str]]]:
        """Each topic's judged documents."""
        judged: dict[str, list[str]] = {}
        for _, pairs in super().batches(size):
            for topic, _, id in (pair.partition("\t") for pair in pairs):
                judged.setdefault(topic, []).append(id)
        yield from judged.items()


class JoinedGroups:
    """Several groups with different dimensions as one; none at all where there are no parts."""

    def __init__(self, parts: Sequence[Groups]) -> None:
        self._parts = {dimension: part for part in parts for dimension in part.dimensions}
        self.parts = tuple(dict.fromkeys(self._parts.values()))
        self.dimensions = tuple(self._parts)
        self.oracle = tuple(name for part in parts for name in part.oracle)
        self.predicted = tuple(name for part in parts for name in part.predicted)

    def labels(self, dimension: str) -> tuple[str, ...]:
        """See `Groups`, as for the other methods."""
        return self._part(dimension).labels(dimension)

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """(n, 1 + g)."""
        return self._part(dimension).memberships(dimension, ids, topic)

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """(n,)."""
        return self._part(dimension).of_type(dimension, ids, topic)

    def shares(self, dimension: str) -> FloatArray:
        """(1 + g,)."""
        return self._part(dimension).shares(dimension)

    def missing(self, dimension: str) -> float:
        """From 0 to 1."""
        return self._part(dimension).missing(dimension)

    def _part(self, dimension: str) -> Groups:
        if dimension not in self._parts:
            raise UsageError(no_such("dimension", dimension, self.dimensions))
        return self._parts[dimension]


def tables_of(groups: Groups) -> list[GroupTable]:
    """The tables that groups are joined of, without labels that come from judgments and what is made of others."""
    if isinstance(groups, JoinedGroups):
        return [table for part in groups.parts for table in tables_of(part)]
    return [groups] if isinstance(groups, GroupTable) and not isinstance(groups, TopicGroups) else []


class Intersection:
    """The combinations of the groups of two or more dimensions as one dimension.

    All combinations are groups, whether or not they occur, the last dimension running fastest. A row is the outer
    product of the parts' rows; column 0 collects the mass with an unknown in any part.
    """

    def __init__(self, name: str, parts: Mapping[str, GroupTable]) -> None:
        """Take the tables of the dimensions that are combined, in order."""
        self.name, self._parts = name, dict(parts)
        self.parts, self.dimensions = tuple(parts), (name,)
        self.oracle = self.dimensions if any(part in table.oracle for part, table in parts.items()) else ()
        self.predicted = self.dimensions if any(part in table.predicted for part, table in parts.items()) else ()
        cells = itertools.product(*(table.labels(dimension) for dimension, table in parts.items()))
        self._labels = tuple(" x ".join(cell) for cell in cells)

    def labels(self, dimension: str) -> tuple[str, ...]:
        """The combinations of known labels, in the order of the columns 1 .. g."""
        return self._labels

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Shares (n, 1 + g) of the documents `ids`; column 0 is unknown in any part."""
        rows = [table.memberships(name, ids, topic) for name, table in self._parts.items()]
        known = (np.indices([row.shape[1] for row in rows]) > 0).all(axis=0).ravel()
        joint = joint_memberships(rows)
        return np.column_stack([joint[:, ~known].sum(axis=1), joint[:, known]])

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Whether the documents `ids` (n,) are of the type of every part that declares one; None where no part does."""
        types = [table.of_type(name, ids, topic) for name, table in self._parts.items()]
        declared = [one for one in types if one is not None]
        return np.logical_and.reduce(declared) if declared else None

    def shares(self, dimension: str) -> FloatArray:
        """The mean membership (1 + g,) of all documents; of all judged ones where labels depend on the topic."""
        return self._counted[0]

    def missing(self, dimension: str) -> float:
        """What is unknown of documents that can be of the type, as a mean over the same documents."""
        return self._counted[2]

    @property
    def counts(self) -> IntArray:
        """How many documents (g,) are in each group, at least in part; judged ones where labels depend on the topic."""
        return self._counted[1]

    def product(self, population: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        """Label -> world share, as if the parts were independent; empty where a part has no world shares."""
        if not all(name in population for name in self._parts):
            return {}
        shares = ([population[name].get(label, 0.0) for label in t.labels(name)] for name, t in self._parts.items())
        return dict(zip(self._labels, map(math.prod, itertools.product(*shares)), strict=True))

    @cached_property
    def _counted(self) -> tuple[FloatArray, IntArray, float]:
        """Shares, counts, and what is missing."""
        tables = list(dict.fromkeys(self._parts.values()))
        # Only judged pairs of topic and document have labels that depend on a topic; and a document that the first
        # table does not have is unknown there, so that it is in no group.
        first = next((table for table in tables if isinstance(table, TopicGroups)), tables[0])
        batches = list(first.batches())
        if len(tables) > 1 and not isinstance(first, TopicGroups):
            own = {id for _, ids in batches for id in ids}
            batches.append(("", list({id for table in tables for _, ids in table.batches() for id in ids} - own)))
        sums, counts, missing = np.zeros(1 + len(self._labels)), np.zeros(len(self._labels), np.int64), 0.0
        for topic, ids in batches:
            rows, of_type = self.memberships(self.name, ids, topic), self.of_type(self.name, ids, topic)
            sums += rows.sum(axis=0)
            counts += np.count_nonzero(rows[:, 1:], axis=0)
            missing += float(rows[:, 0].sum() if of_type is None else rows[of_type, 0].sum())
        documents = sum(len(ids) for _, ids in batches)
        return sums / documents, counts, missing / documents


def check_intersections(
    wanted: Mapping[str, Sequence[str]], there: Collection[str], path: Path, faults: Faults
) -> None:
    """Add a fault for each of the `wanted` intersections (name -> parts) that cannot be of the dimensions `there`."""
    for name, parts in wanted.items():
        unknown = [part for part in parts if part not in there]
        if name in there:
            message = "this is the name of a dimension; choose another"
        elif len(set(parts)) < max(2, len(parts)):
            message = f"expected two or more different dimensions, got {listed(parts) or 'none'}"
        elif unknown:
            hint = " (an intersection is none: name its parts)" if any(part in wanted for part in unknown) else ""
            message = f"{no_such('dimension', listed(unknown), there)}{hint}"
        else:
            continue
        faults.add(path, None, f"the intersection {name!r}: {message}")


def small_groups(made: Intersection, world: Mapping[str, float]) -> Iterator[str]:
    """Notes on the small groups of an intersection, so that nobody reads too much into them."""
    things = "judged documents" if made.oracle else "documents"
    named = dict(zip(made.labels(made.name), made.counts.tolist(), strict=True))
    none = [label for label, count in named.items() if not count and world.get(label)]
    few = [f"{label} ({count})" for label, count in named.items() if count < FEW and label not in none]
    if few:
        yield f"fewer than {FEW} {things} are in these groups of {made.name!r}, so read little into them: {listed(few)}"
    if none:
        yield f"no document is in these groups of {made.name!r}, though they have a world share: {listed(none)}"
