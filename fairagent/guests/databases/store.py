"""What a database is asked for, whichever it is, and the engine of vectors that is built on these answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from pydantic import Field

from fairagent.extend import DataError, Document, Embeddings, Encoder, GroupTable, Section, aligned, engine_time
from fairagent.guests.opensearch.groups import MOST_LABELS, labels_in
from fairagent.guests.opensearch.index import named, text_of
from fairagent.guests.servers import ServerCache, ServerVectors

TEXTS_CACHED = 5_000
TEXTS_AT_ONCE = 200

Row = Mapping[str, Any]
"""Column -> value."""


class Columns(Section):
    """Which columns hold what."""

    id: str = Field("id", min_length=1)
    """The column with the id by which groups, judgments and runs name a document; no two rows have the same."""
    title: str = ""
    """The column with the title; empty: there is none."""
    text: str = "text"
    """The column with the text that is shown and answered from."""
    vector: str = "embedding"
    """The column with the embeddings, for `by: embeddings`."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that a document is made of."""
        return tuple(filter(None, (self.title, self.text)))


class Store(Protocol):
    """A table of documents in a database. `name` says which, for messages; `most` is the longest list."""

    name: str
    most: int

    @property
    def cosine(self) -> bool:
        """Whether embeddings are compared by their cosine, and not by their inner product."""

    @property
    def dimensions(self) -> int:
        """How many numbers an embedding has; DataError where the column holds none, or they cannot be compared."""

    def count(self) -> int:
        """How many rows there are."""

    def check(self, columns: Sequence[str]) -> None:
        """Raise DataError naming columns that the table has not, BackendUnavailable where it cannot be reached."""

    def near(self, vector: Embeddings, n: int) -> list[tuple[str, float]]:
        """The `n` rows nearest to a vector (d,): ids and inner products, or cosines."""

    def rows(self, ids: Sequence[str], columns: Sequence[str]) -> dict[str, Row]:
        """The rows that there are of these ids."""

    def every(self, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """All rows."""


def fetched(store: Store, ids: Sequence[str], columns: Sequence[str]) -> dict[str, Row]:
    """The rows of these ids; DataError that counts and names ids without one."""
    rows = store.rows(ids, columns)
    if missing := [id for id in ids if id not in rows]:
        raise DataError(f"{len(missing)} document id(s) are not in {store.name}: {named(missing)}")
    return rows


def check_once(store: Store, ids: Sequence[str]) -> None:
    """Raise DataError where two rows have the same id."""
    if len(set(ids)) < len(ids):
        (twice, _), *_ = Counter(ids).most_common(1)
        raise DataError(
            f"several rows of {store.name} have the id {twice[:60]!r}: name a column whose values differ "
            "(engine.columns.id), or a view with one row a document"
        )


def read_groups(store: Store, groups: Mapping[str, str], known: Mapping[str, Mapping[str, float]]) -> GroupTable:
    """The labels of all rows, read once: dimension -> the column that holds one, a list of them, or none.

    `known` are labels that a dimension has besides, as those of world shares. Raises DataError for a column without a
    label, or with too many to be groups.
    """
    store.check(tuple(groups.values()))
    rows = (
        (id, {dimension: labels_in(id, row.get(column)) for dimension, column in groups.items()})
        for id, row in store.every(tuple(groups.values()))
    )
    table = GroupTable.from_rows(rows, dict.fromkeys(groups))
    for dimension, column in groups.items():
        labels = len(table.labels(dimension))
        if not 1 <= labels <= MOST_LABELS:
            held = f"more than {MOST_LABELS:,} values" if labels else "no value in any row"
            raise DataError(f"column {column!r} of {store.name} has {held}; is it that of {dimension!r}?")
    return aligned(table, known, [])


class StoredTexts:
    """The documents of a table; `extra` are the columns with their groups. Threads may share it."""

    def __init__(self, store: Store, columns: Columns, extra: Sequence[str] = ()) -> None:
        """Take the table, and which of its columns hold what."""
        self._store, self._columns, self._extra = store, columns, tuple(extra)
        self._texts: ServerCache[Document] = ServerCache(TEXTS_CACHED)

    @cached_property
    def _count(self) -> int:
        return self._store.count()

    def __len__(self) -> int:
        return self._count

    def document(self, id: str) -> Document:
        """The document as the table has it; DataError where it has none of that id."""
        return self.documents([id])[0]

    @engine_time("server")
    def documents(self, ids: Sequence[str]) -> list[Document]:
        """These documents, in as few requests as their texts allow; DataError naming ids that are not there."""
        texts = self._texts.all(ids, self._documents, TEXTS_AT_ONCE)
        return [texts[id] for id in ids]

    def _documents(self, ids: list[str]) -> dict[str, Document]:
        columns, documents = self._columns, {}
        for id, row in fetched(self._store, ids, (*columns.shown, *self._extra)).items():
            title = text_of(row.get(columns.title)) if columns.title else ""
            extra = {name: row.get(name) for name in self._extra}
            documents[id] = Document(id, text_of(row.get(columns.text)) if columns.text else "", title, extra)
        return documents


class DatabaseVectors(ServerVectors):
    """The documents nearest to a query's embedding, as a database finds them; see `ServerVectors`."""

    def __init__(self, store: Store, columns: Columns, encoder: Encoder, extra: Sequence[str] = ()) -> None:
        """Take the table, its columns, the encoder that made its embeddings, and further columns of documents."""
        self._store, self._column = store, columns.vector
        self._texts = StoredTexts(store, columns, extra)
        self.document, self.documents = self._texts.document, self._texts.documents
        super().__init__(store.name, encoder, store.dimensions, store.cosine, store.most, store.most)

    def __len__(self) -> int:
        return len(self._texts)

    def _neighbors(self, vector: Embeddings, n: int, about: str) -> list[tuple[str, float]]:
        nearest = self._store.near(vector, n)
        check_once(self._store, [id for id, _ in nearest])
        return nearest

    def _stored(self, ids: list[str]) -> dict[str, Any]:
        return {id: row.get(self._column) for id, row in fetched(self._store, ids, (self._column,)).items()}
