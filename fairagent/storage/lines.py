"""Files of JSON lines that grow: a line is there as a whole or not at all, whatever ends the process that writes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from fairagent.storage.digests import sealed
from fairagent.storage.files import explained, force
from fairagent.storage.regular import open_to_read, open_to_write


class LineFile:
    """A file of JSON objects at `path`, a line each with a checksum, to be added to; to be used as a context.

    A torn last line is taken away first. `forced`: each line is forced to the disk, so that it outlasts a power cut; a
    `private` file is its owner's alone. Raises NotRegular where something else is at `path`.
    """

    def __init__(self, path: Path, forced: bool = True, private: bool = False) -> None:
        self.path = path
        self._forced = forced
        self._private = private
        self._descriptor = -1

    def __enter__(self) -> Self:
        with explained(self.path):
            self._descriptor = open_to_write(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, self._private)
            # Looked at first: what another process adds meanwhile is no torn line.
            size = os.fstat(self._descriptor).st_size
            whole = sum(map(len, whole_lines(self.path)))
            if whole < size:
                os.ftruncate(self._descriptor, whole)
            force(self.path.parent)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Its number may be another file's from now on.
        closed, self._descriptor = self._descriptor, -1
        os.close(closed)

    def write(self, line: str, key: str = "") -> None:
        """Write one line, sealed with `key`; BackendUnavailable where that cannot be."""
        rest = sealed(line, key).encode() + b"\n"
        with explained(self.path):
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            if self._forced:
                os.fsync(self._descriptor)


def whole_lines(path: Path, within: Path | None = None) -> Iterator[bytes]:
    """Every line that ends as lines do, with its end; none where there is no file. Errors as `open_to_read`."""
    if path.exists():
        with open_to_read(path, within) as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line
