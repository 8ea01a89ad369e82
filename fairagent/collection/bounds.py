"""What rows, cells and iterables of a program may come to before that is an error, and how an error shows them.

A generator has no end that can be seen, and what an object says of itself is code of its own, which may raise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

import numpy as np

from fairagent.collection.records import shown
from fairagent.errors import DataError, FairAgentError
from fairagent.storage.readers import DEEPEST, MOST_COLUMNS, Malformed, too_many_columns
from fairagent.types.clean import label_text

T = TypeVar("T")

LONGEST_CELL = 1 << 24
"""Characters of a cell, or of all that a list or a mapping in it holds, each value of which counts as `VALUE` more."""
VALUE = 50
"""What a value takes, however short it is."""
STORED = (str, int, float, bool, type(None), list, dict)
"""Values of cells that an index keeps beside a document; others, such as the bytes of a picture, are left out."""
TOO_DEEP = f"more than {DEEPEST} lists and mappings within each other"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where the reading of a program's rows, hits or ids ends with an error that names the bound.

    `rows` and `seconds` hold for what has no length, such as a generator: how many it may give, and for how long by
    `clock`. `text` is how many characters the rows of a collection in memory may have together, roughly.
    """

    rows: int = 1_000_000
    seconds: float = 600.0
    text: int = 1 << 30
    clock: Callable[[], float] = time.monotonic


def bounded(given: Iterable[T], what: str, bounds: Bounds, of: object = None) -> Iterator[tuple[int, T]]:
    """All that is given, each with its number from 1; `what` is the word for one, `of` is what has their length.

    Raises DataError beyond the bounds, and where `given` itself raises.
    """
    of = given if of is None else of
    started, number = bounds.clock(), 0
    try:
        length = len(of) if isinstance(of, Sized) else None
        rest = iter(given)
    except Exception as error:
        raise DataError(f"the {what}s cannot be read: {error_text(error)}") from None
    while True:
        number += 1
        try:
            one = next(rest)
        except StopIteration:
            return
        except FairAgentError:
            raise
        except Malformed as error:
            raise DataError(f"{what} {number}: {error}") from None
        except Exception as error:
            raise DataError(f"{what} {number} cannot be read: {error_text(error)}") from None
        if number > max(bounds.rows, length or 0):
            raise DataError(f"more than {bounds.rows:,} {what}s (bound `rows`), and no end of them is in sight")
        if length is None and (passed := bounds.clock() - started) > bounds.seconds:
            raise DataError(
                f"{what} {number:,} came {passed:,.0f} s after the first was asked for (bound `seconds`: "
                f"{bounds.seconds:g}), and no end of them is in sight"
            )
        yield number, one


def error_text(error: Exception) -> str:
    """An error of somebody else's code in a message of ours.

    >>> error_text(ZeroDivisionError("division by zero"))
    "it raises ZeroDivisionError('division by zero')"
    """
    return f"it raises {shown(error, 120)}"


def plain_record(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The record with its cells as JSON has them (`plain`); Malformed, naming the column, where one cannot be."""
    if len(row) > MOST_COLUMNS:
        raise Malformed(too_many_columns(len(row)))
    record: dict[str, Any] = {}
    for name, value in islice(row.items(), MOST_COLUMNS):
        try:
            key = str(name)
        except Exception as error:
            raise Malformed(f"the name of column {len(record) + 1} cannot be read: {error_text(error)}") from None
        try:
            record[key] = plain(value)
        except Malformed as error:
            raise Malformed(f"column {shown(key)}: {error}") from None
    return record


def plain(value: Any) -> Any:
    """A cell as JSON has it: dates, decimals and UUIDs as text, what is no finite number as None.

    Anything else, such as bytes, stays what it is, and within lists and mappings becomes None. Malformed where it is
    too long, or raises when it is looked at.

    >>> from datetime import date
    >>> plain([date(2024, 5, 1), np.int64(3), float("nan"), ("a", b"b")])
    ['2024-05-01', 3, None, ['a', None]]
    """
    if type(value) in (int, bool, type(None)) or (type(value) is str and len(value) <= LONGEST_CELL):
        return value
    try:
        return _plain(value, [LONGEST_CELL], 0)
    except Malformed:
        raise
    except RecursionError:
        raise Malformed(TOO_DEEP) from None
    except Exception as error:
        raise Malformed(
            f"the cell, of type {shown(type(value).__name__)}, cannot be read: {error_text(error)}"
        ) from None


def _plain(value: Any, left: list[int], depth: int) -> Any:
    """See `plain`; `left` has the characters that the cell may still hold: lists may hold the same list many times."""

    def count(characters: int) -> None:
        left[0] -= characters
        if left[0] < 0:
            raise Malformed(
                f"holds more than {LONGEST_CELL:,} characters, or {LONGEST_CELL // VALUE:,} values (bound on a cell)"
            )

    def inside(one: Any) -> Any:
        if depth == DEEPEST:
            raise Malformed(TOO_DEEP)
        count(VALUE)
        one = _plain(one, left, depth + 1)
        return one if isinstance(one, STORED) else None

    # Of a subclass the value alone: its methods are somebody's.
    if isinstance(value, str):
        count(str.__len__(value))
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, np.generic | np.ndarray):
        count(VALUE * value.size)
        return _plain(value.tolist(), left, depth)
    if isinstance(value, float):
        number = float.__float__(value)
        return number if math.isfinite(number) else None
    if isinstance(value, Mapping):
        return {_key(_plain(name, left, depth)): inside(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [inside(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(map(inside, value), key=str)
    if isinstance(value, Decimal | UUID):
        return str(value)
    return str(value.isoformat()) if hasattr(value, "isoformat") else value


def _key(name: Any) -> str:
    """The key of a mapping, which may be a label."""
    return label_text(name) if isinstance(name, bool) or (isinstance(name, float) and name.is_integer()) else str(name)


def weight(value: Any) -> int:
    """Roughly how many characters a plain cell takes in memory."""
    if isinstance(value, str):
        return VALUE + len(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return VALUE + sum(map(weight, inner))
