"""`Faults`: errors in a collection's files, collected so that all are reported at once."""

from collections.abc import Collection
from pathlib import Path

from fairagent.errors import DataError, Fault

KEPT = 1000
"""So many faults are kept word for word; further ones are counted."""


class Faults:
    """A growing list of faults; readers add to it and go on, `check` raises them together."""

    def __init__(self) -> None:
        self.kept: list[Fault] = []
        self.count = 0

    def __bool__(self) -> bool:
        return self.count > 0

    def add(self, path: Path, line: int | None, message: str) -> None:
        """Note one fault; `line` counts from 1, None means the file as a whole."""
        self.count += 1
        if len(self.kept) < KEPT:
            self.kept.append(Fault(path, line, message))

    def check(self, what: str) -> None:
        """Raise one DataError with all faults of `what`; do nothing where there is none."""
        if self:
            beyond = "" if self.count <= KEPT else f" (the first {KEPT} are kept)"
            raise DataError(f"{what}: {self.count} fault{'s' * (self.count != 1)}{beyond}", self.kept)


def shown(value: object, most: int = 60) -> str:
    """`value` as it stands in an error message: quoted, and cut where it is long.

    >>> shown("T1 0 D1 1", most=7)
    "'T1 0 D ..."
    """
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]} ..."


def listed(names: Collection[str], most: int = 20) -> str:
    """`names` in one line, in order; beyond `most` the rest is counted.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    first = ", ".join(list(names)[:most])
    return first if len(names) <= most else f"{first} and {len(names) - most} more"
