"""The kinds of a collection's documents, estimated once: from labels and, where there is a corpus graph, neighbors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.collection import Collection, Groups
from fairagent.errors import UsageError
from fairagent.loop.prior import DocumentKind, kinds_of
from fairagent.memo import Memo
from fairagent.retrieve.graph import Graph
from fairagent.retrieve.strings import IdTable
from fairagent.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class KindSource:
    """For each dimension whose labels do not come from the judgments: how surely documents are of its kind.

    With `ids` and `table` (dimension -> (n,) over all documents, in their order) these are looked up; without them the
    labels alone tell, as far as they are asked for.
    """

    collection: Collection
    chances: Mapping[str, float]
    ids: IdTable | None = None
    table: Mapping[str, FloatArray] | None = None

    @classmethod
    def of_collection(cls, collection: Collection, graph: Graph | None, memo: Memo) -> KindSource:
        """With the graph's neighbors, or by labels alone."""
        groups = collection.groups
        names = [name for name in groups.dimensions if name not in groups.oracle]
        labeled = {name: share for name in names if (share := labeled_share(groups, name)) is not None}
        # Where every document has a label, or none has, its kind says nothing.
        labeled = {name: share for name, share in labeled.items() if 0 < share < 1}
        if graph is None:
            return cls(collection, labeled)

        def made() -> dict[str, FloatArray]:
            names = [name.decode() for name in graph.ids.names(np.arange(len(graph.ids))).tolist()]
            rows = {name: groups.memberships(name, names) for name in labeled}
            has = {name: (of[:, 1:].sum(axis=1) > 0).astype(np.float64) for name, of in rows.items()}
            return {name: kinds_of(of, np.asarray(graph.numbers)) for name, of in has.items()}

        table: dict[str, FloatArray] = memo.get(("kinds", id(graph)), made)
        return cls(collection, {name: float(of.mean()) for name, of in table.items()}, graph.ids, table)

    def document_kinds(self, ids: Sequence[str], topic: str) -> list[DocumentKind]:
        """The kinds of these documents."""
        if self.table is not None and self.ids is not None:
            rows = self.ids.known(ids)
            return [DocumentKind(name, self.table[name][rows], chance) for name, chance in self.chances.items()]
        groups = self.collection.groups
        return [
            DocumentKind(name, (groups.memberships(name, ids, topic)[:, 1:].sum(axis=1) > 0).astype(np.float64), chance)
            for name, chance in self.chances.items()
        ]


def labeled_share(groups: Groups, dimension: str) -> float | None:
    """The share of all documents that have a label; None where the groups of what is not found are not known."""
    try:
        return 1 - float(groups.shares(dimension)[0])
    except UsageError:
        return None
