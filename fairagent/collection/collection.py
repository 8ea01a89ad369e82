"""A collection: what is searched, what is asked, what was judged, and who is in the documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fairagent.collection.groups import Groups
from fairagent.types import Document, Topic


class Source(Protocol):
    """Where the documents of a collection come from."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the last complete pass found odd, though it is no fault."""

    def __iter__(self) -> Iterator[Document]:
        """Read the documents."""

    def count(self) -> int:
        """About how many documents there are, for a progress bar."""

    def fingerprint(self) -> str:
        """A hash that changes whenever the documents do."""


@dataclass(frozen=True, slots=True, eq=False)
class Collection:
    """Everything about a collection but its documents is in memory; those are streamed.

    `topics` are in the order of their file. `qrels` has an entry for each topic: document -> grade, where
    a grade > 0 is relevant and 0 is judged and not relevant. `population` maps dimension -> label -> world
    share. `notes` say what was left out or is worth knowing, though it is no fault.
    """

    name: str
    topics: Mapping[str, Topic] = field(repr=False)
    qrels: Mapping[str, Mapping[str, int]] = field(repr=False)
    groups: Groups
    population: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...]
    source: Source = field(repr=False)

    def documents(self) -> Iterator[Document]:
        """Read the documents, in order; DataError with all faults at the end of a pass that meets any."""
        return iter(self.source)

    def fingerprint(self) -> str:
        """SHA-256 (hex) of what an index depends on: the bytes of the document files and the fields used."""
        return self.source.fingerprint()
