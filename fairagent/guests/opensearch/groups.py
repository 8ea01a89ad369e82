"""Groups that the documents of a server's index carry in fields of their own: read from lists as they come."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.extend import DataError, FloatArray, GroupTable, UsageError, at_path, listed, shown, unknown_dimension
from fairagent.guests.opensearch.index import WHOLE, ServerHit, ServerIndex, understood
from fairagent.guests.servers import ServerCache

LABELS_CACHED = 500_000
MOST_LABELS = 1_000
"""Labels of a dimension; a field of more is no group's."""
UNCOUNTABLE = ("text", "match_only_text", "dense_vector", "knn_vector", "object", "nested")


class ServerGroups:
    """The `Groups` of an index: dimension -> the field (`keyword`, a number, a boolean) that holds its labels.

    A field may hold several labels, which share a document equally; without any the group is not known. Labels are
    those that the index has, and those of the population, in order. Documents of lists bring their labels with them;
    those of others are fetched. Threads may share it.
    """

    oracle: tuple[str, ...] = ()
    predicted: tuple[str, ...] = ()

    def __init__(
        self, index: ServerIndex, fields: Mapping[str, str], population: Mapping[str, Mapping[str, float]]
    ) -> None:
        """Take the index, the `fields` of the dimensions and world shares; nothing is requested yet."""
        self._index, self._by_dimension, self._population = index, dict(fields), population
        self._values: ServerCache[tuple[tuple[str, ...], ...]] = ServerCache(LABELS_CACHED)
        self._counted: dict[str, dict[str, int]] = {}
        self._lock = threading.Lock()

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that a document's labels are read from."""
        return tuple(self._by_dimension.values())

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(self._by_dimension)

    def check(self) -> None:
        """Raise DataError for fields that the index has not, or cannot count."""
        self._index.check_fields(self.fields)
        for dimension, field in self._by_dimension.items():
            type_ = self._index.mapping[field].get("type")
            if type_ in UNCOUNTABLE:
                keyword = f"{field}.keyword"
                hint = f"name {keyword}" if keyword in self._index.mapping else "give it a sub-field of type keyword"
                raise DataError(
                    f"field {field!r} of index {self._index} ({dimension}) is of type {type_}, whose values a server "
                    f"cannot count; {hint} (engine.groups)"
                )

    def counts(self, dimension: str) -> Mapping[str, int]:
        """Label -> the documents of the whole index that have it; "": those without any."""
        if dimension not in self._by_dimension:
            raise unknown_dimension(dimension, self.dimensions)
        with self._lock:
            if not self._counted:
                self.check()
                self._counted = self.count()
            return self._counted[dimension]

    def count(self, query: Mapping[str, Any] | None = None) -> dict[str, dict[str, int]]:
        """Dimension -> label -> the documents (of those that match `query`) that have it; "": none."""
        aggregations: dict[str, Any] = {}
        for number, field in enumerate(self.fields):
            aggregations[f"labels{number}"] = {"terms": {"field": field, "size": MOST_LABELS}}
            aggregations[f"none{number}"] = {"missing": {"field": field}}
        body: dict[str, Any] = {"size": 0, "track_total_hits": False, "aggs": aggregations}
        answer = self._index.search(body | ({"query": query} if query else {}), exact=WHOLE)
        counts: dict[str, dict[str, int]] = {}
        with understood(self._index.server):
            results = answer["aggregations"]
            for number, (dimension, field) in enumerate(self._by_dimension.items()):
                labels = results[f"labels{number}"]
                if labels.get("sum_other_doc_count"):
                    raise DataError(
                        f"field {field!r} of index {self._index} has more than {MOST_LABELS:,} values; is it that of "
                        f"{dimension!r}?"
                    )
                named = {str(one.get("key_as_string", one["key"])): int(one["doc_count"]) for one in labels["buckets"]}
                named[""] = int(results[f"none{number}"]["doc_count"]) + named.pop("", 0)
                counts[dimension] = named
        return counts

    def labels(self, dimension: str) -> tuple[str, ...]:
        """The known labels, in the order of the columns 1 .. g."""
        return tuple(sorted({*self.counts(dimension), *self._population.get(dimension, ())} - {""}))

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Shares (n, 1 + g) of the documents `ids`; column 0 is unknown. `topic` makes no difference."""
        column = {label: place for place, label in enumerate(self.labels(dimension), start=1)}
        place = self.dimensions.index(dimension)
        values = self._values.all(ids, self._fetch, self._index.window)
        rows = np.zeros((len(ids), 1 + len(column)))
        for row, id in zip(rows, ids, strict=True):
            labels = values[id][place]
            try:
                row[[column[label] for label in labels] or [0]] = 1 / max(1, len(labels))
            except KeyError as error:
                raise DataError(
                    f"document {id[:60]!r} of index {self._index} has {dimension} {error}, which no document had when "
                    "the labels were counted; start again"
                ) from None
        return rows

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Not known: None. Raises UsageError for an unknown dimension."""
        self.counts(dimension)
        return None

    def shares(self, dimension: str) -> FloatArray:
        """The mean membership (1 + g,) of all documents."""
        counts, labels = self.counts(dimension), self.labels(dimension)
        total, documents = sum(counts.values()), self._index.count()
        if total != documents:
            raise UsageError(
                f"{total:,} labels of {dimension!r} are on {documents:,} documents of index {self._index}: some have "
                "several, so counts do not tell the groups' shares; use a target other than 'corpus'"
            )
        return np.array([counts[""], *(counts.get(label, 0) for label in labels)], dtype=np.float64) / documents

    def missing(self, dimension: str) -> float:
        """The share of all documents that have no label, where none has several."""
        counts = self.counts(dimension)
        return counts[""] / sum(counts.values())

    def table(self) -> GroupTable:
        """The labels of all documents as a table to save, which experiments need; it takes a request for 10,000."""
        field = self._index.fields.id
        if field == "_id":
            raise UsageError("to go through an index takes a keyword field with the id (engine.fields.id)")
        self.check()
        known = {dimension: self.labels(dimension) for dimension in self.dimensions}
        table = GroupTable.from_rows(self._rows(field), known)
        if len(table) != (documents := self._index.count()):
            raise DataError(f"{len(table):,} of {documents:,} documents of index {self._index} were read; start again")
        return table

    def _rows(self, field: str) -> Iterator[tuple[str, dict[str, tuple[str, ...]]]]:
        after: dict[str, Any] = {}
        size = self._index.window
        while True:
            body = {"query": {"match_all": {}}, "size": size, "sort": [{field: "asc"}], **after}
            hits = self._index.hits(body, self.fields, "", WHOLE)
            for one in hits:
                yield one.id, dict(zip(self.dimensions, self._labels(one), strict=True))
            if len(hits) < size:
                return
            after = {"search_after": [hits[-1].id]}

    def see(self, hits: Sequence[ServerHit]) -> None:
        """Cache the labels of documents that came with their fields."""
        self._values.keep({one.id: self._labels(one) for one in hits})

    def _fetch(self, ids: list[str]) -> dict[str, tuple[tuple[str, ...], ...]]:
        return {id: self._labels(one) for id, one in self._index.fetch(ids, self.fields).items()}

    def _labels(self, hit: ServerHit) -> tuple[tuple[str, ...], ...]:
        values = (at_path(hit.source, self._index.source_of(field)) for field in self.fields)
        return tuple(labels_in(hit.id, one) for one in values)


def labels_in(id: str, content: object) -> tuple[str, ...]:
    """The distinct labels of a value as a server counts them."""
    labels: dict[str, None] = {}
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str | int | float):
            labels[str(part).lower() if isinstance(part, bool) else str(part)] = None
        elif part is not None:
            raise DataError(f"document {id[:60]!r}: {shown(part)} is no label; expected {listed(['text', 'a number'])}")
    labels.pop("", None)
    return tuple(labels)
