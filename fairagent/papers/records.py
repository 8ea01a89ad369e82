"""Files of records that benchmarks and trainings are read from: every fault is reported with its place."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from fairagent.collection.records import Faults, Record, json_records, shown

T = TypeVar("T")
Entry = tuple[Path, int | None, str, Callable[[], tuple[str, T]]]
"""File, line, what a fault begins with, and what reads the id and the value; ValueError says what is wrong."""


def gather(path: Path, what: str, faults: Faults, entries: Iterable[Entry[T]], empty: str = "is empty") -> dict[str, T]:
    """Id -> value, in their order; DataError with every fault, a second entry of an id and a file without any too."""
    values: dict[str, T] = {}
    for file, line, where, read in entries:
        try:
            id, value = read()
            if id in values:
                raise ValueError(f"the id {shown(id)} occurs twice")
        except ValueError as error:
            faults.add(file, line, f"{where}{error}")
        else:
            values[id] = value
    if not values and not faults:
        faults.add(path, None, empty)
    faults.check(what)
    return values


def lines_of(path: Path, faults: Faults, read: Callable[[str, Record], tuple[str, T]]) -> Iterator[Entry[T]]:
    """The lines of a file (JSON lines); `read` is given q with the number of the line, and the record."""
    for number, record in json_records(path, faults):
        yield path, number, "", partial(read, f"q{number}", record)
