"""What a collection was loaded from, and what stands in for it where its index is of an earlier state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairagent.collection.config import Chunks
from fairagent.collection.forms import files_of
from fairagent.collection.table import GroupTable
from fairagent.errors import UsageError
from fairagent.types import Document

if TYPE_CHECKING:
    from fairagent.collection.collection import Collection, Source

State = tuple[int, int, int]
"""Size, time of the last change (ns) and inode of a file."""
GONE: State = (-1, 0, -1)


def states_of(paths: Iterable[Path]) -> dict[Path, State]:
    """The state of each of these files, and of those in the folders of datasets."""
    states = {}
    for path in (file for place in paths for file in files_of(place)):
        try:
            stat = os.stat(path)
            states[path] = stat.st_size, stat.st_mtime_ns, stat.st_ino
        except OSError:
            states[path] = GONE
    return states


@dataclass(frozen=True, slots=True)
class Origin:
    """The settings file of a collection, and the files of its documents and groups with their states when it was read.

    A look at the states costs a moment; that they are the same says that the files are. `made` is what was read.
    """

    file: Path
    states: Mapping[Path, State]
    documents: tuple[Path, ...] = ()
    made: tuple[object, ...] = ()

    def changed(self) -> bool:
        """Whether a file is not as it was."""
        return states_of(self.states) != self.states

    def documents_changed(self) -> bool:
        """Whether one of the documents' is not."""
        now = states_of(self.documents)
        return any(self.states.get(path) != state for path, state in now.items())

    def is_of(self, collection: Collection) -> bool:
        """Whether the collection has the documents and groups that were read, and no others in their place."""
        return all(mine is its for mine, its in zip(self.made, made_of(collection), strict=True))


def made_of(collection: Collection) -> tuple[object, ...]:
    """What of a collection its documents' and groups' files say."""
    return collection.source, collection.groups, collection.chunks


@dataclass(frozen=True, slots=True, weakref_slot=True)
class IndexedSource:
    """The documents of which an index is made, known by their fingerprint, whatever has become of the files since.

    `source` are the files; they are read as long as they are `current`.
    """

    source: Source
    of_index: str
    current: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the files."""
        return self.source.notes

    def __iter__(self) -> Iterator[Document]:
        if not self.current:
            raise UsageError("the documents have changed since they were indexed; `fairagent index` updates it")
        return iter(self.source)

    def count(self) -> int:
        """About how many there are."""
        return self.source.count()

    def fingerprint(self) -> str:
        """That of the documents when they were indexed."""
        return self.of_index


@dataclass(frozen=True, slots=True)
class IndexedState:
    """A collection as it was when its index was made: `tables` of its groups (None: as they are in its files now).

    `behind` says what changed since; "" where nothing has.
    """

    source: IndexedSource
    tables: tuple[GroupTable, ...] | None = None
    behind: str = ""


AsIndexed = Callable[[str, "Source", Chunks | None, Mapping[Path, State]], IndexedState | None]
"""The state of the index of the collection of this name, whose documents, chunks and files these are now; None where
the collection is to be as it is now."""
