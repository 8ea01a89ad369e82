"""A collection that holds groups only: its documents belong to another library."""

from collections.abc import Iterator, Mapping

from fairagent.collection import Collection, Groups
from fairagent.collection.targets import Given
from fairagent.errors import UsageError
from fairagent.types import Document

Shares = Mapping[str, Mapping[str, float]]
"""Dimension -> label -> share."""


def groups_alone(groups: Collection | Groups, population: Shares) -> Collection:
    """A collection with these groups and world shares, which are their target too; a collection stays what it is."""
    if isinstance(groups, Collection):
        return groups
    own = {dimension: Given(shares=dict(shares)) for dimension, shares in population.items()} or None
    return Collection("", {}, {}, groups, population, (), _Nowhere(), target=own)


class _Nowhere:
    """The source of documents that cannot be read here."""

    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Document]:
        raise UsageError("these groups came without documents, so there is nothing to read or to index")

    def count(self) -> int:
        return 0

    def fingerprint(self) -> str:
        return ""
