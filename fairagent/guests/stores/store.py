"""A table of documents in a store, whichever it is, and the part and the engine that search it by embeddings."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

import numpy as np
from pydantic import Field

from fairagent.collection import GroupTable
from fairagent.collection.load import aligned
from fairagent.collection.table import JoinedGroups
from fairagent.errors import BackendUnavailable, DataError, FairAgentError, SettingsError, UsageError
from fairagent.retrieve.base import check_length, engine_time
from fairagent.retrieve.encoders import BUNDLED, Embeddings, Encoder
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import encoder
from fairagent.settings import Part, Section
from fairagent.settings.parts import Progress
from fairagent.types import Document, FloatArray, Query, Ranking
from fairagent.types.clean import label_text
from fairagent.types.common import Check

T = TypeVar("T")
Row = Mapping[str, Any]
"""Column -> value."""
Label = str | int | float | bool

MOST_LABELS = 1_000
"""Labels of a dimension; a column of more is no group's."""
ROWS_AT_ONCE = 1_000
TEXTS_CACHED, NUMBERS_CACHED = 5_000, 1 << 26
CHECKED_IDS = 200_000
"""Ids of a group table that `fairagent doctor` looks for in the store."""
COSINES = ("cosine", "cosinesimil", "cosine_ops")
PRODUCTS = ("dot_product", "max_inner_product", "innerproduct", "ip", "ip_ops")


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


class Store(ABC):
    """A table of documents in a store, which is only read; `where` holds for lists. Threads may share it."""

    name: str
    """Which it is, for messages; never with a password."""
    most: int
    """The longest list."""

    @abstractmethod
    def check(self, columns: Sequence[str]) -> None:
        """Raise DataError naming columns that there are not, BackendUnavailable where it cannot be reached."""

    @abstractmethod
    def count(self) -> int:
        """How many rows there are that `where` lets through."""

    @abstractmethod
    def rows(self, ids: Sequence[str], columns: Sequence[str]) -> list[tuple[str, Row]]:
        """The rows that there are of these ids, at most ROWS_AT_ONCE."""

    @abstractmethod
    def every(self, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """All rows."""

    @property
    @abstractmethod
    def compared(self) -> tuple[str, int]:
        """The store's name for what embeddings are compared by, and how many numbers they have (0: not known).

        Raises DataError where the column holds none.
        """

    @abstractmethod
    def near(self, vector: Embeddings, n: int) -> Sequence[str]:
        """The ids of the `n` rows nearest to a vector (d,)."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def by_cosine(self) -> bool:
        """Whether embeddings are compared by cosine; DataError for a metric whose scores are no inner products."""
        metric = self.compared[0].lower()
        if metric not in (*COSINES, *PRODUCTS):
            raise DataError(
                f"{self.name} compares embeddings by {metric.upper() or 'nothing'}, and scores of that are no inner "
                "products; make the index by cosine or inner product"
            )
        return metric in COSINES

    def lacking(self, columns: Sequence[str], there: Sequence[str]) -> DataError:
        """The error that names columns which are not there."""
        return DataError(
            f"{self.name} has no column {', '.join(map(repr, columns))} (engine.columns, engine.groups, engine.where); "
            f"it has: {', '.join(list(there)[:20]) or 'none'}"
        )

    def fetched(self, ids: Sequence[str], fetch: Callable[[Sequence[str]], Sequence[tuple[str, T]]]) -> dict[str, T]:
        """The value of each of these ids, fetched some at a time; DataError that counts and names those without."""
        wanted, values = list(dict.fromkeys(ids)), dict[str, T]()
        for start in range(0, len(wanted), ROWS_AT_ONCE):
            # What no store reads as text is the id of nothing.
            rows = fetch([id for id in wanted[start : start + ROWS_AT_ONCE] if "\0" not in id and is_text(id)])
            self.check_once([id for id, _ in rows])
            values.update(rows)
        if missing := [id for id in wanted if id not in values]:
            raise DataError(f"{len(missing)} document id(s) are not in {self.name}: {_first(missing)}")
        return values

    def check_once(self, ids: Sequence[str]) -> None:
        """Raise DataError where two rows have the same id."""
        if len(set(ids)) < len(ids):
            (twice, _), *_ = Counter(ids).most_common(1)
            raise DataError(
                f"several rows of {self.name} have the id {twice[:60]!r}: name a column whose values differ, or a "
                "view with one row a document"
            )

    def check_length(self, n: int) -> None:
        """Raise UsageError for an `n` that is too small, or larger than the store gives at once."""
        check_length(n)
        if n > self.most:
            raise UsageError(f"{n:,} documents were requested, and {self.name} gives at most {self.most:,} at a time")


class StoreConfig(Part):
    """A table of documents that is searched where it is, and only read."""

    on_server: ClassVar[bool] = True
    groups: dict[str, str] = Field(default={})
    """Dimension -> the column with its labels, where the collection has no groups of its own. They are read once, of
    all rows."""
    where: dict[str, Label | tuple[Label, ...]] = Field(default={})
    """Column -> the value, or the values, that a row must have one of to be in a list."""
    encoder: str = Field(BUNDLED, min_length=1)
    """The encoder that made the embeddings; named as for `engine: dense`."""
    timeout: float = Field(30.0, gt=0)
    """The longest time of one answer, in seconds."""

    @abstractmethod
    def connect(self, environ: Mapping[str, str] | None = None) -> Any:
        """The table; BackendUnavailable where its package is not installed. Nothing is requested yet."""

    @property
    def held(self) -> Any:
        """Which columns hold what."""
        return self.columns  # type: ignore[attr-defined]

    @property
    def allowed(self) -> dict[str, list[Label]]:
        """Column -> the values of `where`."""
        return {name: list(one) if isinstance(one, tuple) else [one] for name, one in self.where.items()}

    def searched(self) -> tuple[str, ...]:
        """The columns that are searched."""
        return (self.held.vector,)

    def opened(self, site: Site) -> Any:
        """The table, which the parts of a pipeline share, if it has the columns that are named; see `Store.check`."""
        store = site.memo.get((self.kind, self.model_dump_json()), self.connect)
        named = (self.held.id, *self.held.shown, *self.searched(), *self.groups.values(), *self.where)
        store.check(tuple(dict.fromkeys(named)))
        return store

    def group_table(self, site: Site) -> GroupTable:
        """The groups in the columns."""
        key, known = (self.kind, "groups", self.model_dump_json()), site.collection.population
        table: GroupTable = site.memo.get(key, lambda: read_groups(self.opened(site), self.groups, known))
        return table

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the table cannot be reached, DataError for columns that it lacks."""
        self.build(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        """Nothing: the table is never written to."""

    def with_parts_of(self, site: Site) -> Site:
        """With the groups in the columns; SettingsError for a dimension that is there already."""
        if not self.groups:
            return site
        groups = site.collection.groups
        if twice := sorted(set(groups.dimensions) & set(self.groups)):
            raise SettingsError(
                f"engine.groups: collection {site.collection.name!r} has groups of {', '.join(twice)} already; leave "
                "them out here or there"
            )
        joined = JoinedGroups([groups, self.group_table(site)])
        return replace(site, collection=replace(site.collection, groups=joined))

    def build(self, site: Site) -> Any:
        """The engine; SettingsError in an experiment whose collection does not have the groups, else as `check`."""
        if site.stateless and not set(self.groups) <= set(site.collection.groups.dimensions):
            raise SettingsError(
                "an experiment judges by the groups of its collection: write those of the store into a table once "
                "(guests/stores/README.md), name it in the collection's settings file, and leave out engine.groups"
            )
        return self.engine(site, self.opened(site))

    def engine(self, site: Site, store: Any) -> Any:
        """The engine over the table."""
        return StoreVectors(store, self.held, tuple(self.groups.values()), encoder(site, self.encoder))

    def diagnose(self, site: Site) -> Iterator[Check]:
        """The table, what is searched, the groups, and ids of the collection's groups that it lacks."""
        try:
            store = self.opened(site)
            if not (rows := store.count()):
                yield Check(self.kind, "problem", f"{store.name} is empty", "name another (or another engine.where)")
                return
            yield Check(self.kind, "ok", f"{store.name}: {rows:,} rows, which are only read")
            if not self.tells_words:
                likeness = "cosine" if store.by_cosine else "inner product"
                yield Check("embeddings", "ok", f"compared by {likeness}; {self.encoder}")
            name, groups = "groups in columns", site.collection.groups
            if self.groups:
                table = self.group_table(site)
                told = (
                    f"{one}: {len(table.labels(one))} labels, {table.missing(one):.0%} without" for one in self.groups
                )
                yield Check(name, "ok", "; ".join(told))
            elif isinstance(groups, GroupTable):
                checked, missing = 0, list[str]()
                for _, ids in groups.batches(ROWS_AT_ONCE):
                    there = {id for id, _ in store.rows(ids, ())}
                    checked, missing = checked + len(ids), missing + [id for id in ids if id not in there]
                    if checked >= CHECKED_IDS:
                        break
                detail = f"{len(missing):,} of {checked:,} ids of the group table are not in {store.name}"
                fix = f"the first: {_first(missing)}; if all are missing, the id is another column" if missing else ""
                yield Check(
                    name, "ok" if not missing else "problem" if len(missing) == checked else "note", detail, fix
                )
        except FairAgentError as error:
            yield Check(self.kind, "problem", str(error), "mend this first; nothing else of it was checked")


class StoredTexts:
    """The documents of a table; `extra` are the columns with their groups. Threads may share it."""

    def __init__(self, store: Store, columns: Columns, extra: Sequence[str] = ()) -> None:
        """Take the table, and which of its columns hold what."""
        self.store, self._columns, self._extra = store, columns, tuple(extra)
        self._texts: dict[str, Document] = {}

    @cached_property
    def _count(self) -> int:
        return self.store.count()

    def __len__(self) -> int:
        return self._count

    def document(self, id: str) -> Document:
        """The document as the table has it; DataError where it has none of that id."""
        return self.documents([id])[0]

    @engine_time("server")
    def documents(self, ids: Sequence[str]) -> list[Document]:
        """These documents, in as few requests as their texts allow; DataError naming ids that are not there."""

        def read(id: str, row: Row) -> Document:
            title, text = (text_of(row.get(name)) if name else "" for name in (self._columns.title, self._columns.text))
            return Document(id, text, title, {name: row.get(name) for name in self._extra})

        return self.read(self._texts, ids, (*self._columns.shown, *self._extra), read, TEXTS_CACHED)

    def read(
        self, cache: dict[str, T], ids: Sequence[str], columns: Sequence[str], value: Callable[[str, Row], T], most: int
    ) -> list[T]:
        """What `value` makes of the rows of these ids; those not in the cache, which is emptied when full, are read."""
        values = {id: one for id in ids if (one := cache.get(id)) is not None}
        if unknown := [id for id in dict.fromkeys(ids) if id not in values]:
            rows = self.store.fetched(unknown, lambda some: self.store.rows(some, columns))
            new = {id: value(id, row) for id, row in rows.items()}
            values |= new
            if len(cache) + len(new) > most:
                cache.clear()
            cache.update(new)
        return [values[id] for id in ids]


class StoreVectors(StoredTexts):
    """The documents nearest to a query's embedding, as a store finds them (its index may miss some).

    A score is the inner product, or where the store compares directions the cosine, of the embeddings, computed here;
    ties are ordered by id. A blank query has no hits. Threads may share it.
    """

    def __init__(self, store: Store, columns: Columns, extra: Sequence[str], encoder: Encoder) -> None:
        """Take the table, its columns, further columns of its documents, and the encoder that made its embeddings."""
        super().__init__(store, columns, extra)
        self._encoder, self._cosine = encoder, store.by_cosine
        self._vectors: dict[str, Embeddings] = {}
        # The query of a search is often scored against a pool afterwards.
        self._encoded = lru_cache(maxsize=64)(lambda text: encoder.queries([text])[0])

    @engine_time("server")
    def search(self, query: Query, n: int) -> Ranking:
        """The `n` nearest documents (fewer where the store has fewer)."""
        self.store.check_length(n)
        return self.nearest(self.query_vector(query), n) if str(query).strip() else Ranking((), np.zeros(0))

    @engine_time("server")
    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        """The `n` documents nearest to `vector` (d,), as for `search`; none for zeros."""
        ids = self.store.near(vector, int(n)) if vector.any() else ()
        self.store.check_once(ids)
        return best_of(list(zip(ids, self._products(vector, ids).tolist(), strict=True)), n)

    @engine_time("server")
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The inner products (or cosines) of the given documents, (n,); 0 for a blank query."""
        if not len(ids) or not str(query).strip():
            return np.zeros(len(ids))
        return self._products(self.query_vector(query), ids)

    def _products(self, vector: Embeddings, ids: Sequence[str]) -> FloatArray:
        rows, query = self.vectors(ids).astype(np.float64), vector.astype(np.float64)
        # Row by row, so that a document's score does not depend on what is scored with it.
        products = np.einsum("ij,j->i", rows, query)
        if self._cosine:
            products /= np.maximum(np.linalg.norm(rows, axis=1) * np.linalg.norm(query), np.finfo(np.float64).tiny)
        return np.asarray(products)

    @engine_time("server")
    def vectors(self, ids: Sequence[str]) -> Embeddings:
        """The embeddings of these documents, (n, d); DataError naming ids without one."""
        column, length = self._columns.vector, self.dimensions

        def read(id: str, row: Row) -> Embeddings:
            try:
                vector = np.array(() if row.get(column) is None else row[column], dtype=np.float32)
            except (TypeError, ValueError):
                vector = np.zeros(0, np.float32)
            if vector.shape != (length,) or not np.isfinite(vector).all():
                raise DataError(f"document {id[:60]!r} of {self.store.name} has no embedding of {length} numbers")
            return vector

        vectors = self.read(self._vectors, ids, (column,), read, NUMBERS_CACHED // length)
        return np.stack(vectors) if vectors else np.zeros((0, length), np.float32)

    @cached_property
    def dimensions(self) -> int:
        """How many numbers an embedding has, by the store, or else by the encoder."""
        return self.store.compared[1] or len(self._encoder.queries(["fair"])[0])

    def query_vector(self, query: Query) -> Embeddings:
        """The embedding of a query's text and keywords, (d,)."""
        vector: Embeddings = self._encoded(str(query))
        if len(vector) != self.dimensions:
            raise DataError(
                f"the embeddings of {self.store.name} have {self.dimensions} numbers, and {self._encoder.name} makes "
                f"{len(vector)}: they are another encoder's; set engine.encoder to it"
            )
        return vector


def read_groups(store: Store, groups: Mapping[str, str], known: Mapping[str, Mapping[str, float]]) -> GroupTable:
    """The labels of all rows, read once: dimension -> the column that holds one, a list of them, or none.

    `known` are labels that a dimension has besides, as those of world shares. Raises DataError for a column without a
    label, or with too many to be groups.
    """
    columns = tuple(groups.values())
    store.check(columns)
    rows = (
        (id, {dimension: labels_in(id, row.get(column)) for dimension, column in groups.items()})
        for id, row in store.every(columns)
    )
    table = GroupTable.from_rows(rows, dict.fromkeys(groups))
    for dimension, column in groups.items():
        if not 1 <= (labels := len(table.labels(dimension))) <= MOST_LABELS:
            held = f"more than {MOST_LABELS:,} values" if labels else "no value in any row"
            raise DataError(f"column {column!r} of {store.name} has {held}; is it that of {dimension!r}?")
    return aligned(table, known, [])[0]


def labels_in(id: str, content: object) -> tuple[str, ...]:
    """The distinct labels of a value.

    >>> labels_in("a", ["x", True, 7, "x", ""]), labels_in("a", None)
    (('x', 'true', '7'), ())
    """
    parts = content if isinstance(content, list | tuple) else [content]
    try:
        return tuple(dict.fromkeys(label_text(part) for part in parts if part not in (None, "")))
    except ValueError as error:
        raise DataError(f"document {id[:60]!r}: {error}") from None


def best_of(scores: Sequence[tuple[str, float]], n: int) -> Ranking:
    """The best `n` of documents (id, score), ties by the bytes of their ids."""
    best = sorted(scores, key=lambda one: (-one[1], one[0].encode("utf-8", "surrogatepass")))[:n]
    return Ranking(tuple(id for id, _ in best), np.array([score for _, score in best], dtype=np.float64))


def text_of(content: Any) -> str:
    """A column's value as text: several values are joined by a space.

    >>> text_of(["a", "b"]), text_of(None), text_of(1901)
    ('a b', '', '1901')
    """
    if isinstance(content, list | tuple):
        return " ".join(filter(None, map(text_of, content)))
    return "" if content is None else str(content)


def is_text(text: str) -> bool:
    """Whether it is valid Unicode."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def _first(ids: Sequence[str]) -> str:
    return ", ".join(f"{id[:60]!r}" for id in ids[:5])


def host_of(url: str, instead: str) -> str:
    """The host of a server's address; SettingsError for an address with a secret in it, or that is none."""
    try:
        parts = urlsplit(url.strip())
        name, _ = parts.hostname, parts.port
    except ValueError:
        name = None
    if not name or parts.scheme not in ("http", "https"):
        raise SettingsError("engine.url is no address of a server; expected e.g. https://search.example.org:9200")
    if "@" in parts.netloc or parts.query:
        raise SettingsError(
            f"engine.url of {name} has a user, a password or a key in it, which settings and runs would keep; name the "
            f"environment variable that holds it: {instead}"
        )
    return parts.netloc


def secret(variable: str, environ: Mapping[str, str] | None, host: str) -> str:
    """What an environment variable holds, "" for none; BackendUnavailable where it is not set."""
    value = (os.environ if environ is None else environ).get(variable, "").strip() if variable else ""
    if variable and not value:
        raise BackendUnavailable(f"{host} is signed in to with {variable}, which is not set")
    return value
