"""What a store is asked for, whichever it is, and the part and the two engines that are built on its answers."""

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
from fairagent.collection.groups import JoinedGroups
from fairagent.collection.load import aligned
from fairagent.errors import BackendUnavailable, DataError, FairAgentError, SettingsError, UsageError
from fairagent.guests.terms import LocalTerms
from fairagent.retrieve.base import check_length, engine_time, term_weights
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
TEXTS_CACHED = 5_000
NUMBERS_CACHED = 1 << 26
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
    """A table of documents in a store, which is only read. Threads may share it."""

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
        """What embeddings are compared by, as the store calls it, and how many numbers they have (0: not known).

        Raises DataError where the column holds none.
        """

    @abstractmethod
    def near(self, vector: Embeddings, n: int) -> Sequence[str]:
        """The ids of the `n` rows nearest to a vector (d,)."""

    def matching(self, weights: Mapping[str, float], n: int) -> list[tuple[str, float]]:
        """The best `n` rows that hold any word of these texts, each with the sum of weight times score."""
        raise NotImplementedError

    def scores(self, weights: Mapping[str, float], ids: Sequence[str]) -> list[tuple[str, float]]:
        """These rows (at most ROWS_AT_ONCE), scored so; 0 where no word matches."""
        raise NotImplementedError

    def frequency(self, text: str) -> int:
        """How many rows hold the words of a text."""
        raise NotImplementedError

    def lacking(self, columns: Sequence[str], there: Sequence[str]) -> DataError:
        """The error that names columns which are not there."""
        return DataError(
            f"{self.name} has no column {', '.join(map(repr, columns))} (engine.columns, engine.groups, engine.where); "
            f"it has: {', '.join(list(there)[:20]) or 'none'}"
        )

    def fetched(self, ids: Sequence[str], ask: Callable[[Sequence[str]], Sequence[tuple[str, T]]]) -> dict[str, T]:
        """What `ask` says of each of these ids, some at a time; DataError that counts and names those without."""
        wanted, found = list(dict.fromkeys(ids)), dict[str, T]()
        for start in range(0, len(wanted), ROWS_AT_ONCE):
            # What no store reads as text is the id of nothing.
            rows = ask([id for id in wanted[start : start + ROWS_AT_ONCE] if "\0" not in id and _is_text(id)])
            self.check_once([id for id, _ in rows])
            found.update(rows)
        if missing := [id for id in wanted if id not in found]:
            raise DataError(f"{len(missing)} document id(s) are not in {self.name}: {named(missing)}")
        return found

    def check_once(self, ids: Sequence[str]) -> None:
        """Raise DataError where two rows have the same id."""
        if len(set(ids)) < len(ids):
            (twice, _), *_ = Counter(ids).most_common(1)
            raise DataError(
                f"several rows of {self.name} have the id {twice[:60]!r}: name a column whose values differ, or a "
                "view with one row a document"
            )


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
    def connect(self, environ: Mapping[str, str] | None = None) -> Store:
        """The table; BackendUnavailable where its package is not installed. Nothing is requested yet."""

    @property
    @abstractmethod
    def held(self) -> Columns:
        """Which columns hold what."""

    @property
    def tells_words(self) -> bool:
        """Whether it tells the terms of its documents."""
        return getattr(self, "by", "embeddings") == "text"

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns that it reads."""
        held = self.held
        searched = () if self.tells_words else (held.vector,)
        return tuple(dict.fromkeys((held.id, *held.shown, *searched, *self.groups.values(), *self.where)))

    def opened(self, site: Site) -> Any:
        """The table; the parts of a pipeline share it."""
        return site.memo.get((self.kind, self.model_dump_json()), self.connect)

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
        own = site.collection.groups
        if twice := sorted(set(own.dimensions) & set(self.groups)):
            raise SettingsError(
                f"engine.groups: collection {site.collection.name!r} has groups of {', '.join(twice)} already; leave "
                "them out here or there"
            )
        joined = JoinedGroups([own, self.group_table(site)])
        return replace(site, collection=replace(site.collection, groups=joined))

    def build(self, site: Site) -> StoreVectors | StoreWords:
        """The engine; SettingsError in an experiment whose collection does not have the groups, else as `check`."""
        if site.stateless and not set(self.groups) <= set(site.collection.groups.dimensions):
            raise SettingsError(
                "an experiment judges by the groups of its collection: write those of the store into a table once "
                "(guests/stores/README.md), name it in the collection's settings file, and leave out engine.groups"
            )
        store, extra = self.opened(site), tuple(self.groups.values())
        store.check(self.wanted)
        if self.tells_words:
            return StoreWords(store, self.held, extra)
        return StoreVectors(store, self.held, extra, encoder(site, self.encoder))

    def diagnose(self, site: Site) -> Iterator[Check]:
        """The table, what is searched, the groups, and ids of the collection's groups that it lacks."""
        try:
            store = self.opened(site)
            store.check(self.wanted)
            if not (rows := store.count()):
                yield Check(self.kind, "problem", f"{store.name} is empty", "name another (or another engine.where)")
                return
            yield Check(self.kind, "ok", f"{store.name}: {rows:,} rows, which are only read")
            if not self.tells_words:
                likeness = "cosine" if by_cosine(store) else "inner product"
                yield Check("embeddings", "ok", f"compared by {likeness}; {self.encoder}")
            yield self._groups(site, store)
        except FairAgentError as error:
            yield Check(self.kind, "problem", str(error), "mend this first; nothing else of it was checked")

    def _groups(self, site: Site, store: Store) -> Check:
        name, groups = "groups in columns", site.collection.groups
        if self.groups:
            table = self.group_table(site)
            words = (f"{one}: {len(table.labels(one))} labels, {table.missing(one):.0%} without" for one in self.groups)
            return Check(name, "ok", "; ".join(words))
        if not isinstance(groups, GroupTable):
            return Check(name, "ok", "none; the collection's are used")
        checked, missing = 0, list[str]()
        for _, ids in groups.batches(ROWS_AT_ONCE):
            there = {id for id, _ in store.rows(ids, ())}
            checked, missing = checked + len(ids), missing + [id for id in ids if id not in there]
            if checked >= CHECKED_IDS:
                break
        detail = f"{len(missing):,} of {checked:,} ids of the group table are not in {store.name}"
        if missing:
            fix = f"the first: {named(missing)}; if all are missing, the id is another column"
            return Check(name, "problem" if len(missing) == checked else "note", detail, fix)
        return Check(name, "ok", detail)


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
        return recalled(self._texts, ids, self._documents, TEXTS_CACHED)

    def _documents(self, ids: list[str]) -> dict[str, Document]:
        columns = self._columns
        wanted = (*columns.shown, *self._extra)
        documents = {}
        for id, row in self.store.fetched(ids, lambda some: self.store.rows(some, wanted)).items():
            title, text = (text_of(row.get(name)) if name else "" for name in (columns.title, columns.text))
            documents[id] = Document(id, text, title, {name: row.get(name) for name in self._extra})
        return documents


class StoreWords(StoredTexts):
    """The ranking of a store's own search of words: the sum of weight times its score.

    A document is found if it holds any word of the query. Ties are ordered by the bytes of ids. Threads may share it.
    """

    def __init__(self, store: Store, columns: Columns, extra: Sequence[str] = ()) -> None:
        """Take the table, its columns, and further columns of its documents."""
        super().__init__(store, columns, extra)
        self._terms = LocalTerms(self)
        self.words, self.analyze = self._terms.words, self._terms.analyze

    @engine_time("server")
    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents with a score above 0; empty where no word of the query is in the table."""
        n = checked_length(self.store, n)
        found = self.store.matching(weights, n) if (weights := term_weights(query, whole)) else []
        self.store.check_once([id for id, _ in found])
        return best_of([(id, score) for id, score in found if score > 0], n)

    @engine_time("server")
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The scores of the documents `ids`, (n,); 0 where no word matches. DataError naming ids that are not there."""
        weights = term_weights(query, whole)
        if not len(ids) or not weights:
            return np.zeros(len(ids))
        scores = self.store.fetched(ids, lambda some: self.store.scores(weights, some))
        return np.array([scores[id] for id in ids])

    @engine_time("server")
    def document_frequency(self, word: str) -> int:
        """How many documents hold `word` (all words of several); 0 where none does."""
        return self.store.frequency(one) if (one := " ".join(whole(word))) else 0

    def postings(self, ids: Sequence[str]) -> Any:
        """The words of these documents, from their texts, as they stand; their shares are those among these alone."""
        # All texts at once; then they are cached.
        self.documents(ids)
        return self._terms.postings(ids)


class StoreVectors(StoredTexts):
    """The documents nearest to a query's embedding, as a store finds them (its index may miss some).

    A score is the inner product, or where the store compares directions the cosine, of the embeddings, computed here;
    ties are ordered by id. A blank query has no hits. Threads may share it.
    """

    def __init__(self, store: Store, columns: Columns, extra: Sequence[str], encoder: Encoder) -> None:
        """Take the table, its columns, further columns of its documents, and the encoder that made its embeddings."""
        super().__init__(store, columns, extra)
        self._encoder, self._cosine = encoder, by_cosine(store)
        self._vectors: dict[str, Embeddings] = {}
        # The query of a search is often scored against a pool afterwards.
        self._query_vector = lru_cache(maxsize=64)(self._encoded)

    @engine_time("server")
    def search(self, query: Query, n: int) -> Ranking:
        """The `n` nearest documents (fewer where the store has fewer)."""
        n = checked_length(self.store, n)
        return self.nearest(self.query_vector(query), n) if str(query).strip() else Ranking((), np.zeros(0))

    @engine_time("server")
    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        """The `n` documents nearest to `vector` (d,), as for `search`; none for zeros, which know nothing."""
        ids = self.store.near(vector, n) if vector.any() else ()
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
        vectors = recalled(self._vectors, ids, self._read, NUMBERS_CACHED // self.dimensions)
        return np.stack(vectors) if vectors else np.zeros((0, self.dimensions), np.float32)

    @cached_property
    def dimensions(self) -> int:
        """How many numbers an embedding has, by the store, or else by the encoder."""
        return self.store.compared[1] or len(self._encoder.queries(["fair"])[0])

    def query_vector(self, query: Query) -> Embeddings:
        """The embedding of a query's text and keywords, (d,)."""
        vector: Embeddings = self._query_vector(str(query))
        return vector

    def _encoded(self, text: str) -> Embeddings:
        vector: Embeddings = self._encoder.queries([text])[0]
        if len(vector) != self.dimensions:
            raise DataError(
                f"the embeddings of {self.store.name} have {self.dimensions} numbers, and {self._encoder.name} makes "
                f"{len(vector)}: they are another encoder's; set engine.encoder to it"
            )
        return vector

    def _read(self, ids: list[str]) -> dict[str, Embeddings]:
        vectors, column = dict[str, Embeddings](), self._columns.vector
        for id, row in self.store.fetched(ids, lambda some: self.store.rows(some, (column,))).items():
            try:
                vector = vectors[id] = np.array(() if row.get(column) is None else row[column], dtype=np.float32)
            except (TypeError, ValueError):
                vector = np.zeros(0, np.float32)
            if vector.shape != (self.dimensions,) or not np.isfinite(vector).all():
                raise DataError(
                    f"document {id[:60]!r} of {self.store.name} has no embedding of {self.dimensions} numbers"
                )
        return vectors


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


def recalled(
    cache: dict[str, T], keys: Sequence[str], fetch: Callable[[list[str]], Mapping[str, T]], most: int
) -> list[T]:
    """The values of all keys; those not in the cache, which starts again when it is full, are fetched."""
    values = {key: value for key in keys if (value := cache.get(key)) is not None}
    if unknown := [key for key in dict.fromkeys(keys) if key not in values]:
        new = fetch(unknown)
        values |= new
        if len(cache) + len(new) > most:
            cache.clear()
        cache.update(new)
    return [values[key] for key in keys]


def by_cosine(store: Store) -> bool:
    """Whether a store compares embeddings by cosine; DataError for a metric whose scores are no inner products."""
    metric, _ = store.compared
    if metric.lower() not in (*COSINES, *PRODUCTS):
        raise DataError(
            f"{store.name} compares embeddings by {metric or 'nothing'}, and scores of that are no inner products; "
            "make the index by cosine or inner product"
        )
    return metric.lower() in COSINES


def checked_length(store: Store, n: int) -> int:
    """`n` as an int; UsageError for one that is too small, or larger than the store gives at once."""
    check_length(n)
    if n > store.most:
        raise UsageError(f"{n:,} documents were requested, and {store.name} gives at most {store.most:,} at a time")
    return int(n)


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


def whole(text: str) -> list[str]:
    """A text of a query as one piece, [] of a blank one; DataError for what no store reads as text."""
    if not _is_text(text):
        raise DataError("the query holds half of a surrogate pair, which is no Unicode text")
    text = text.replace("\0", " ")
    return [text] if text.strip() else []


def _is_text(text: str) -> bool:
    return not any("\ud800" <= one <= "\udfff" for one in text)


def named(ids: Sequence[str]) -> str:
    """The first of some ids, for a message."""
    return ", ".join(f"{id[:60]!r}" for id in ids[:5])


def as_values(content: Label | tuple[Label, ...]) -> list[Label]:
    """The values that a condition of `where` lets through."""
    return list(content) if isinstance(content, tuple) else [content]


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
