"""The columns that an index stores beside the texts of its documents, and which documents have one of some values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.records import listed, shown
from fairagent.errors import UsageError
from fairagent.retrieve.catalog import IdTable
from fairagent.settings.faults import no_such
from fairagent.types import Document

Value = bool | int | float | str
Key = tuple[str, Value]
"""What kind of value it is (texts, numbers, true or false), and the value: 1 and 1.0 are one, 1 and true are not."""
TEXTS, NUMBERS, TRUTHS = KINDS = "texts", "numbers", "true or false"
SHOWN = 3
"""Values of a column that a message names."""


@runtime_checkable
class ColumnSource(Protocol):
    """An engine that knows the columns of all its documents."""

    def column(self, name: str) -> StoredColumn:
        """The column of this name, looked up once; UsageError, with the nearest name, where no document has it."""


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


@dataclass(frozen=True, slots=True, eq=False)
class StoredColumn:
    """One column: `values` are its distinct ones by code, `documents` and `codes` (e,) the entries of all documents.

    Documents are numbered as in `ids`.
    """

    name: str
    ids: IdTable
    values: Mapping[Key, int]
    documents: NDArray[np.int32]
    codes: NDArray[np.int32]

    @classmethod
    def read(cls, name: str, ids: IdTable, documents: Iterable[Document]) -> StoredColumn:
        """The column in these documents, in the order of their numbers; UsageError where none has it."""
        values: dict[Key, int] = {}
        numbers: list[int] = []
        codes: list[int] = []
        others: dict[str, None] = {}
        there = False
        for number, document in enumerate(documents):
            there = there or name in document.extra
            if not there:
                others.update(dict.fromkeys(document.extra))
            for key in dict.fromkeys(keys_of(document.extra.get(name))):
                numbers.append(number)
                codes.append(values.setdefault(key, len(values)))
        if not there:
            raise UsageError(f"where: {no_such('column', name, others)}")
        return cls(name, ids, values, np.array(numbers, np.int32), np.array(codes, np.int32))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its values."""
        return tuple(dict.fromkeys(kind for kind, _ in self.values))

    def having(self, wanted: Sequence[Value]) -> NDArray[np.intp]:
        """The numbers of the documents with one of these values, rising; UsageError for a value of another kind."""
        codes = []
        for value in wanted:
            keys = wanted_keys(value, self.kinds)
            if not keys and self.values:
                raise wrong_kind(self.name, value, self.kinds, [one for _, one in islice(self.values, SHOWN)])
            codes += [self.values[key] for key in keys if key in self.values]
        return np.unique(self.documents[np.isin(self.codes, codes)]).astype(np.intp)


def wrong_kind(name: str, value: Value, kinds: Sequence[str], some: Sequence[Value]) -> UsageError:
    """The error for a value that a column cannot have."""
    return UsageError(
        f"where: column {shown(name)} has {' and '.join(kinds)} (e.g. {listed([shown(one) for one in some])}), "
        f"and {shown(value)} is none"
    )
