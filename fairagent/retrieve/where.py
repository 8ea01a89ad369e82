"""`where`: an engine that gives only documents with certain values in their columns, or of certain groups.

BM25 and vectors of fairagent's indexes look at these documents alone, and so does a fusion of them: what they give is
exact and complete. Any other engine gives longer lists until enough of its documents are among them, and its order
stays; it is given up after `DEEPEST` documents, and a note says so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairagent.collection import Groups
from fairagent.collection.records import listed
from fairagent.collection.records import shown as quoted
from fairagent.errors import UsageError
from fairagent.retrieve.base import FusedEngine, Retriever, TextSource, check_length, lend, searched, shown
from fairagent.retrieve.catalog import IdTable
from fairagent.settings.faults import no_such
from fairagent.types import Document, FloatArray, Query, Ranking
from fairagent.types.clean import label_text
from fairagent.types.common import counted

DEEPEST = 10_000
"""Documents of another engine's list that are looked at."""
Value = bool | int | float | str
Where = Mapping[str, Value | Sequence[Value]]
"""Column, or dimension of groups -> the value that a document must have, or several of which it must have one."""
Key = tuple[str, Value]
"""The kind of a value (texts, numbers, true or false), and the value: 1 and 1.0 are one, 1 and true are not."""
TEXTS, NUMBERS, TRUTHS = KINDS = "texts", "numbers", "true or false"


def keys_of(value: object) -> Iterator[Key]:
    """The value of a cell, or each of a list's; nothing of an empty one and of what is nested."""
    match value:
        case bool():
            yield TRUTHS, value
        case int() | float():
            yield NUMBERS, float(value)
        case str():
            yield TEXTS, value
        case list() | tuple():
            for one in value:
                yield from keys_of(one)


def wanted_keys(value: Value, kinds: Iterable[str]) -> list[Key]:
    """What a value of a filter may be in a column with these kinds of values; none where it is of another kind.

    A text is also the number, or true or false, that it reads as, since a command line has texts alone.

    >>> wanted_keys("1999", [NUMBERS]), wanted_keys("Oslo", [NUMBERS]), wanted_keys(1999, [TEXTS])
    ([('numbers', 1999.0)], [], [])
    """
    there = list(keys_of(value))
    if isinstance(value, str):
        with suppress(ValueError):
            there.append((NUMBERS, float(value)))
        if value.lower() in ("true", "false"):
            there.append((TRUTHS, value.lower() == "true"))
    return [key for key in there if key[0] in set(kinds)]


def _checked_keys(name: str, wanted: Sequence[Value], there: Iterable[Key]) -> set[Key]:
    """What the values of a filter may be in a column with the values `there`; UsageError for one of another kind."""
    values = list(there)
    kinds = tuple(dict.fromkeys(kind for kind, _ in values))
    keys = [(value, wanted_keys(value, kinds)) for value in wanted]
    if values and (wrong := [value for value, of_kind in keys if not of_kind]):
        some, kind = listed([quoted(one) for _, one in values[:3]]), " and ".join(kinds)
        raise UsageError(f"where: column {quoted(name)} has {kind} (e.g. {some}), and {quoted(wrong[0])} is none")
    return {key for _, of_kind in keys for key in of_kind}


@dataclass(frozen=True, slots=True, eq=False)
class StoredColumn:
    """A column of an index: `values` are its distinct ones by code, `documents` and `codes` (e,) its entries.

    Documents are numbered as in `ids`.
    """

    name: str
    ids: IdTable
    values: Mapping[Key, int]
    documents: NDArray[np.int32]
    codes: NDArray[np.int32]

    @classmethod
    def read(cls, name: str, ids: IdTable, documents: Iterable[Document]) -> Self:
        """The column in these documents, in the order of their numbers; UsageError where none has it."""
        values: dict[Key, int] = {}
        entries: list[tuple[int, int]] = []
        others: dict[str, None] = {}
        there = False
        for number, document in enumerate(documents):
            there = there or name in document.extra
            if not there:
                others.update(dict.fromkeys(document.extra))
            for key in dict.fromkeys(keys_of(document.extra.get(name))):
                entries.append((number, values.setdefault(key, len(values))))
        if not there:
            raise UsageError(f"where: {no_such('column', name, others)}")
        return cls(name, ids, values, *np.array(entries, np.int32).reshape(-1, 2).T)

    def having(self, wanted: Sequence[Value]) -> NDArray[np.intp]:
        """The numbers of the documents with one of these values, rising; UsageError for a value of another kind."""
        codes = [self.values[key] for key in _checked_keys(self.name, wanted, self.values) if key in self.values]
        return np.unique(self.documents[np.isin(self.codes, codes)]).astype(np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Conditions:
    """What documents must have: one of the `values` of every column."""

    values: Mapping[str, tuple[Value, ...]]
    groups: Groups

    @classmethod
    def of(cls, where: Where, groups: Groups) -> Self:
        single = bool | int | float | str
        several = {name: (one,) if isinstance(one, single) else tuple(one) for name, one in where.items()}
        return cls(several, groups)

    def __str__(self) -> str:
        listings = {name: listed([quoted(one) for one in some], 5) for name, some in self.values.items()}
        return " and ".join(f"{name} = {listing}" for name, listing in listings.items())

    def numbers(self, column_of: Callable[[str], StoredColumn], ids: IdTable) -> NDArray[np.intp]:
        """The numbers of all documents that meet them, rising.

        Raises UsageError for a column that no document has, and for values of another kind than its own.
        """
        met = np.ones(len(ids), dtype=np.bool_)
        for name, wanted in self.values.items():
            mask = np.zeros(len(ids), dtype=np.bool_)
            try:
                column = column_of(name)
                mask[ids.moved(column.having(wanted), column.ids)] = True
            except UsageError:
                # A dimension's labels may come from another file, in other words than the documents use.
                if name not in self.groups.dimensions:
                    raise
            met &= self._or_labeled(mask, name, ids.texts())
        return np.flatnonzero(met)

    def met(self, ids: Sequence[str], columns: Sequence[Mapping[str, object]]) -> NDArray[np.bool_]:
        """Whether each of these documents (n,) with these `columns` meets them."""
        met = np.ones(len(ids), dtype=np.bool_)
        for name, wanted in self.values.items():
            keys = {key for value in wanted for key in wanted_keys(value, KINDS)}
            mask = np.array([not keys.isdisjoint(keys_of(one.get(name))) for one in columns], dtype=np.bool_)
            met &= self._or_labeled(mask, name, ids)
        return met

    def expect_possible(self, columns: Sequence[Mapping[str, object]]) -> None:
        """Raise UsageError where none of many documents has a column of the name, or none values of the kind."""
        for name, wanted in self.values.items():
            if name in self.groups.dimensions or not columns:
                continue
            if not any(name in one for one in columns):
                others = dict.fromkeys(key for one in columns for key in one)
                raise UsageError(f"where: {no_such('column', name, others)}")
            _checked_keys(name, wanted, dict.fromkeys(key for one in columns for key in keys_of(one.get(name))))

    def _or_labeled(self, mask: NDArray[np.bool_], name: str, ids: Sequence[str]) -> NDArray[np.bool_]:
        """The mask, and of a dimension of groups the documents with one of the labels as well."""
        if name not in self.groups.dimensions:
            return mask
        rows = self.groups.memberships(name, ids)[:, 1:]
        # A fraction is no label.
        names = [label_text(one) for one in self.values[name] if not isinstance(one, float) or one.is_integer()]
        columns = [label in names for label in self.groups.labels(name)]
        return np.asarray(mask | (rows[:, columns].sum(axis=1) > 0))


class AskedDeeper:
    """Any `engine`, searched for longer lists until enough of its documents meet the conditions."""

    def __init__(self, engine: Retriever, conditions: Conditions) -> None:
        self._engine, self._conditions = engine, conditions
        lend(self, engine, "document", "documents", "passages", "document_frequency", "postings", "words", "analyze")
        lend(self, engine, "bound", "vectors", "query_vector")

    def search(self, query: Query, n: int) -> Ranking:
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
        return self._engine.score(query, ids)


def columns_of(engine: Retriever, ids: Sequence[str], query: Query) -> list[Mapping[str, object]]:
    """The columns of these documents; none where the engine has no texts."""
    return [one.extra for one in shown(ids, engine, query)] if isinstance(engine, TextSource) else [{}] * len(ids)


@dataclass(frozen=True, slots=True, eq=False)
class Restriction:
    """The conditions on an engine's documents, and how many of these meet them (None: not known)."""

    conditions: Conditions
    documents: int | None

    @property
    def note(self) -> str:
        if self.documents is None:
            return f"where {self.conditions}: looked for in the first {DEEPEST:,} documents of the engine's lists"
        return f"where {self.conditions}: {counted(self.documents, 'document')}"

    def allowed(self, engine: Retriever, ids: Sequence[str], query: Query) -> list[str]:
        """Those of these documents that meet the conditions."""
        met = self.conditions.met(ids, columns_of(engine, ids, query)).tolist()
        return [id for id, one in zip(ids, met, strict=True) if one]


def restrictable(engine: object) -> bool:
    """Whether the engine, or each that it fuses, can look at some of its documents alone."""
    return hasattr(engine, "among") or hasattr(engine, "of")


def restricted(engine: Any, conditions: Conditions) -> tuple[Retriever, int | None]:
    """The engine over the documents that meet the conditions alone, and how many these are (None: not known)."""
    if isinstance(engine, FusedEngine) and hasattr(engine, "of"):
        each = [restricted(one, conditions) for one in engine.engines]
        return engine.of([one for one, _ in each]), next((count for _, count in each if count is not None), None)
    if hasattr(engine, "among") and hasattr(engine, "column"):
        numbers = conditions.numbers(engine.column, engine.ids)
        return engine.among(numbers), len(numbers)
    return AskedDeeper(engine, conditions), None
