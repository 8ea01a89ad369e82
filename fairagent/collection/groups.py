"""The protocol of groups, and two implementations beside `GroupTable`: groups by topic, and several groups joined."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.table import BATCH, GroupTable, unknown_dimension
from fairagent.types import FloatArray


class Groups(Protocol):
    """The groups of a collection's documents, in one or more dimensions (gender, region ...).

    Every method raises UsageError, naming the dimensions there are, for one there is not.
    """

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the dimensions."""

    @property
    def oracle(self) -> tuple[str, ...]:
        """The dimensions whose labels were taken from the judgments: whoever uses them sees the judgments."""

    @property
    def predicted(self) -> tuple[str, ...]:
        """The dimensions whose memberships are a classifier's probabilities."""

    def labels(self, dimension: str) -> tuple[str, ...]:
        """The known labels, in the order of the columns 1 .. g."""

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Shares (n, 1 + g) of the documents `ids`; column 0 is unknown, rows sum to 1 where normalized."""

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Whether the documents `ids` (n,) are of the dimension's type; None where the collection does not say.

        A person of unknown gender is of the type of `gender`, a page about a river is not.
        """

    def shares(self, dimension: str) -> FloatArray:
        """The mean membership (1 + g,) of all documents."""

    def missing(self, dimension: str) -> float:
        """The part of `shares` whose group is not known: what is unknown of documents that can be of the type."""


class TopicGroups(GroupTable):
    """Labels that depend on the topic, e.g. the stance of a text towards a claim.

    They come from the judgments: only judged documents have one. The ids of its rows are made by `pair`; `shares` is
    the mean over all judged pairs of topic and document.
    """

    @staticmethod
    def pair(topic: str, id: str) -> str:
        """The id of a document's row for one topic (neither id holds white space)."""
        return f"{topic}\t{id}"

    @property
    def oracle(self) -> tuple[str, ...]:
        """All its dimensions."""
        return self.dimensions

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Shares (n, 1 + g) of the documents `ids` for `topic`; all unknown without a topic."""
        return super().memberships(dimension, [self.pair(topic, id) for id in ids])

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Whether the documents `ids` (n,) are of the dimension's type for `topic`; others than judged ones are not."""
        return super().of_type(dimension, [self.pair(topic, id) for id in ids])

    def batches(self, size: int = BATCH) -> Iterator[tuple[str, list[str]]]:
        """Each topic's judged documents."""
        judged: dict[str, list[str]] = {}
        for _, pairs in super().batches(size):
            for topic, _, id in (pair.partition("\t") for pair in pairs):
                judged.setdefault(topic, []).append(id)
        yield from judged.items()


class JoinedGroups:
    """Several groups with different dimensions as one; none at all where there are no parts."""

    def __init__(self, parts: Sequence[Groups]) -> None:
        self._parts = {dimension: part for part in parts for dimension in part.dimensions}
        self._oracle = tuple(name for part in parts for name in part.oracle)
        self._predicted = tuple(name for part in parts for name in part.predicted)

    @property
    def parts(self) -> tuple[Groups, ...]:
        """The groups that are joined."""
        return tuple(dict.fromkeys(self._parts.values()))

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(self._parts)

    @property
    def oracle(self) -> tuple[str, ...]:
        """The dimensions whose labels were taken from the judgments."""
        return self._oracle

    @property
    def predicted(self) -> tuple[str, ...]:
        """The dimensions whose memberships are a classifier's probabilities."""
        return self._predicted

    def labels(self, dimension: str) -> tuple[str, ...]:
        """The known labels, in the order of the columns 1 .. g."""
        return self._part(dimension).labels(dimension)

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Shares (n, 1 + g) of the documents `ids`; column 0 is unknown."""
        return self._part(dimension).memberships(dimension, ids, topic)

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Whether the documents `ids` (n,) are of the dimension's type; None where the collection does not say."""
        return self._part(dimension).of_type(dimension, ids, topic)

    def shares(self, dimension: str) -> FloatArray:
        """The mean membership (1 + g,) of all documents."""
        return self._part(dimension).shares(dimension)

    def missing(self, dimension: str) -> float:
        """What is unknown of documents that can be of the type, as a mean over all."""
        return self._part(dimension).missing(dimension)

    def _part(self, dimension: str) -> Groups:
        try:
            return self._parts[dimension]
        except KeyError:
            raise unknown_dimension(dimension, self.dimensions) from None
