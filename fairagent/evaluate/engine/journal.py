"""The journal of a run: a line for each topic and system, on the disk before anything else happens.

A process may die at any moment. Then the last line may be torn; it is ignored, and its topic is done again. A line that
is whole was forced to the disk, so what was paid for once is not paid for twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from fairagent.errors import DataError, Fault
from fairagent.evaluate.engine.outcome import Outcome, from_line, to_line
from fairagent.files import explained, force_folder


class LineFile:
    """A file of lines at `path`, to be added to; to be used as a context. A torn last line is taken away first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    def __enter__(self) -> Self:
        with explained(self.path):
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            os.ftruncate(self._descriptor, sum(map(len, whole_lines(self.path))))
            force_folder(self.path.parent)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def write(self, line: str) -> None:
        """Write one line and force it to the disk; BackendUnavailable where that cannot be."""
        rest = line.encode() + b"\n"
        with explained(self.path):
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            os.fsync(self._descriptor)


class Journal(LineFile):
    """The journal of a run."""

    def add(self, outcome: Outcome) -> None:
        """See `LineFile.write`."""
        self.write(to_line(outcome))


def read_journal(path: Path) -> list[Outcome]:
    """Every whole line in order; none where there is no file. DataError with every line that is not an outcome."""
    outcomes: list[Outcome] = []
    faults: list[Fault] = []
    for number, line in enumerate(whole_lines(path), start=1):
        try:
            outcomes.append(from_line(line))
        except ValueError as error:
            faults.append(Fault(path, number, f"no outcome of a topic ({type(error).__name__}: {error})"))
    if faults:
        raise DataError("the journal is damaged; remove these lines to have their topics done again", faults)
    return outcomes


def whole_lines(path: Path) -> Iterator[bytes]:
    """Every line that ends as lines do, with its end; none where there is no file."""
    if path.exists():
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line
