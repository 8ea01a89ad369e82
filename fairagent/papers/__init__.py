"""Published systems, a folder each: their parts, their kinds of experiments, and a README that maps paper to code.

They are add-ons: their parts and kinds come in by entry points, as those of somebody else's package would, and no room
imports them. `rivals` has the re-rankers of other papers, for comparison. What several read from files of JSON lines,
benchmarks and trainings, is read here.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from fairagent.collection.records import Faults, Record, json_records, shown

T = TypeVar("T")


def read_records(
    path: Path, what: str, read: Callable[[str, Record], tuple[str, T]], empty: str = "is empty"
) -> dict[str, T]:
    """Id -> value, in the order of the file; `read` is given q with the number of the line, and the record.

    DataError with every fault: what `read` says by a ValueError, a second entry of an id, and a file without any.
    """
    values: dict[str, T] = {}
    faults = Faults()
    for number, record in json_records(path, faults):
        try:
            id, value = read(f"q{number}", record)
            if id in values:
                raise ValueError(f"the id {shown(id)} occurs twice")
            values[id] = value
        except ValueError as error:
            faults.add(path, number, str(error))
    if not values and not faults:
        faults.add(path, None, empty)
    faults.check(what)
    return values


def text_of(record: Record, name: str) -> str:
    """A field that has to hold a text; numbers, which some of CRAG's answers are, as texts. ValueError."""
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise ValueError(f"{name!r}: expected a text, got {shown(value)}")
    return str(value)
