"""What a collection was loaded from, and whether its files have changed since."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairagent.collection.forms import files_of

if TYPE_CHECKING:
    from fairagent.collection.collection import Collection

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
