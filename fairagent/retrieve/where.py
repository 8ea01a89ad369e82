"""`where`: an engine that gives only documents with certain values in their columns, or of certain groups.

BM25 and vectors of our own indexes look at these documents alone, and so does a fusion of them: what they give is exact
and complete. Any other engine is asked for longer lists until enough of its documents are among them, and its order is
kept; it is given up after `DEEPEST` documents, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fairagent.collection import Groups
from fairagent.collection.records import listed
from fairagent.collection.records import shown as quoted
from fairagent.errors import UsageError
from fairagent.retrieve.base import Retriever, TextSource, check_length, lend, searched, shown
from fairagent.retrieve.catalog import IdTable
from fairagent.retrieve.columns import (
    KINDS,
    SHOWN,
    ColumnSource,
    Value,
    keys_of,
    wanted_keys,
    wrong_kind,
)
from fairagent.settings.faults import no_such
from fairagent.types import FloatArray, Query, Ranking
from fairagent.types.clean import label_text
from fairagent.types.common import counted

DEEPEST = 10_000
"""Documents of another engine's list that are looked at."""
Where = Mapping[str, Value | Sequence[Value]]
"""Column, or dimension of groups -> the value that a document must have, or several of which it must have one."""
LENT = (
    *("document", "documents", "passages", "document_frequency"),
    *("postings", "words", "analyze", "bound", "vectors", "query_vector"),
)
"""What an engine that is asked deeper offers besides."""


@runtime_checkable
class Restrictable(Retriever, Protocol):
    """An engine that can look at some of its documents alone."""

    ids: IdTable

    def among(self, numbers: NDArray[np.intp]) -> Retriever:
        """The same over the documents with these `numbers`, which rise."""


@runtime_checkable
class RestrictableParts(Retriever, Protocol):
    """An engine of several engines."""

    def with_each(self, change: Callable[[Retriever], Retriever]) -> Retriever:
        """The same with each of its engines changed."""


@dataclass(frozen=True, slots=True, eq=False)
class Conditions:
    """What documents must have: one of the `values` of every column."""

    values: Mapping[str, tuple[Value, ...]]
    groups: Groups

    @classmethod
    def of(cls, where: Where, groups: Groups) -> Conditions:
        """The conditions of a `where`."""
        several = {
            name: (value,) if isinstance(value, bool | int | float | str) else tuple(value)
            for name, value in where.items()
        }
        return cls(several, groups)

    def __str__(self) -> str:
        return " and ".join(
            f"{name} = {listed([quoted(one) for one in some], 5)}" for name, some in self.values.items()
        )

    def numbers(self, source: ColumnSource, ids: IdTable) -> NDArray[np.intp]:
        """The numbers of all documents that meet them, rising.

        Raises UsageError for a column that no document has, and for values of another kind than its own.
        """
        met = np.ones(len(ids), dtype=np.bool_)
        for name, wanted in self.values.items():
            mask = np.zeros(len(ids), dtype=np.bool_)
            grouped = name in self.groups.dimensions
            try:
                column = source.column(name)
                mask[ids.moved(column.having(wanted), column.ids)] = True
            except UsageError:
                # A dimension's labels may be in another file, and other words than what the documents have.
                if not grouped:
                    raise
            met &= mask | self._labeled(name, wanted, ids.texts()) if grouped else mask
        return np.flatnonzero(met)

    def met(self, ids: Sequence[str], columns: Sequence[Mapping[str, object]]) -> NDArray[np.bool_]:
        """Whether each of these documents (n,) with these `columns` meets them."""
        met = np.ones(len(ids), dtype=np.bool_)
        for name, wanted in self.values.items():
            cells = [set(keys_of(one.get(name))) for one in columns]
            keys = {key for value in wanted for key in wanted_keys(value, KINDS)}
            mask = np.array([not keys.isdisjoint(cell) for cell in cells], dtype=np.bool_)
            grouped = name in self.groups.dimensions
            met &= mask | self._labeled(name, wanted, ids) if grouped else mask
        return met

    def expect_possible(self, columns: Sequence[Mapping[str, object]]) -> None:
        """Raise UsageError where none of many documents has a column of the name, or none values of the kind."""
        for name, wanted in self.values.items():
            if name in self.groups.dimensions or not columns:
                continue
            if not any(name in one for one in columns):
                known = dict.fromkeys(key for one in columns for key in one)
                raise UsageError(f"where: {no_such('column', name, known)}")
            there = list(dict.fromkeys(key for one in columns for key in keys_of(one.get(name))))
            kinds = tuple(dict.fromkeys(kind for kind, _ in there))
            for value in wanted:
                if there and not wanted_keys(value, kinds):
                    raise wrong_kind(name, value, kinds, [one for _, one in there[:SHOWN]])

    def _labeled(self, dimension: str, wanted: Sequence[Value], ids: Sequence[str]) -> NDArray[np.bool_]:
        rows = self.groups.memberships(dimension, ids)[:, 1:]
        # A fraction is no label.
        names = [label_text(one) for one in wanted if not isinstance(one, float) or one.is_integer()]
        columns = [label in names for label in self.groups.labels(dimension)]
        return np.asarray(rows[:, columns].sum(axis=1) > 0)


class AskedDeeper:
    """Any `engine`, asked for longer lists until enough of its documents meet the conditions."""

    def __init__(self, engine: Retriever, conditions: Conditions) -> None:
        self._engine, self._conditions = engine, conditions
        lend(self, engine, *LENT)

    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` of the documents that meet the conditions, as far as the engine's first `DEEPEST` have them."""
        check_length(n)
        depth = min(2 * n, DEEPEST)
        while True:
            ranking = searched(self._engine, query, depth)
            columns = columns_of(self._engine, ranking.ids, query)
            met = self._conditions.met(ranking.ids, columns)
            if met.sum() >= n or len(ranking) < depth or depth >= DEEPEST:
                break
            depth = min(4 * depth, DEEPEST)
        if not met.any():
            self._conditions.expect_possible(columns)
        places = np.flatnonzero(met)[:n]
        return Ranking(tuple(ranking.ids[place] for place in places.tolist()), ranking.scores[places])

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The engine's scores."""
        return self._engine.score(query, ids)


def columns_of(engine: Retriever, ids: Sequence[str], query: Query) -> list[Mapping[str, object]]:
    """The columns of these documents; none where the engine tells none."""
    return [one.extra for one in shown(ids, engine, query)] if isinstance(engine, TextSource) else [{}] * len(ids)


@dataclass(frozen=True, slots=True, eq=False)
class Restriction:
    """The conditions that an engine is kept to, and how many of its documents meet them (None: not known)."""

    conditions: Conditions
    documents: int | None

    @property
    def note(self) -> str:
        """What a search says of it."""
        if self.documents is None:
            return f"where {self.conditions}: looked for in the first {DEEPEST:,} documents of the engine's lists"
        return f"where {self.conditions}: {counted(self.documents, 'document')}"

    def allowed(self, engine: Retriever, ids: Sequence[str], query: Query) -> list[str]:
        """Those of these documents that meet the conditions."""
        met = self.conditions.met(ids, columns_of(engine, ids, query)).tolist()
        return [id for id, one in zip(ids, met, strict=True) if one]


def restricted(engine: Retriever, conditions: Conditions) -> tuple[Retriever, int | None]:
    """The engine over the documents that meet the conditions alone, and how many these are (None: not known)."""
    if isinstance(engine, RestrictableParts):
        counts: list[int | None] = []

        def change(one: Retriever) -> Retriever:
            made, count = restricted(one, conditions)
            counts.append(count)
            return made

        return engine.with_each(change), next((count for count in counts if count is not None), None)
    if isinstance(engine, Restrictable) and isinstance(engine, ColumnSource):
        numbers = conditions.numbers(engine, engine.ids)
        return engine.among(numbers), len(numbers)
    return AskedDeeper(engine, conditions), None
