"""An index on an OpenSearch server as an engine, through opensearch-py: its words, by the similarity in its mapping."""

import hashlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar
from urllib.parse import urlsplit

import numpy as np
from pydantic import Field

from fairagent.collection import GroupTable
from fairagent.collection.load import aligned
from fairagent.collection.table import JoinedGroups
from fairagent.errors import BackendUnavailable, DataError, FairAgentError, SettingsError, UsageError
from fairagent.guests.terms import LocalTerms
from fairagent.retrieve.base import check_length, engine_time, term_weights, unknown_ids
from fairagent.retrieve.site import Site
from fairagent.search.hits import at_path
from fairagent.settings import Part, Section
from fairagent.storage.packages import installed
from fairagent.types import Document, FloatArray, Query, Ranking
from fairagent.types.clean import label_text, visible
from fairagent.types.common import Check

T = TypeVar("T")
Row = Mapping[str, Any]
"""Field -> value."""
WINDOW = 10_000
"""Hits of one request, unless the index allows another number (`index.max_result_window`)."""
ROWS_AT_ONCE = 1_000
Label = str | int | float | bool

MOST_LABELS = 1_000
"""Labels of a dimension; a field of more is no group's."""
TEXTS_CACHED = 5_000
CHECKED_IDS = 200_000
"""Ids of a group table that `fairagent doctor` looks for in the index."""


class Fields(Section):
    """Which fields of the index hold what."""

    id: str = Field("_id", min_length=1)
    """The field with the id by which groups, judgments and runs name a document (`keyword`), or the server's `_id`."""
    title: str = ""
    """The field with the title; empty: there is none."""
    text: str = Field("text", min_length=1)
    """The field with the text that is shown and answered from."""
    search: tuple[str, ...] = ()
    """The fields that are searched; a score is the sum of theirs. Empty: the title (if there is one) and the text."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The fields that a document is made of."""
        return tuple(filter(None, (self.title, self.text)))

    @property
    def words(self) -> tuple[str, ...]:
        """The fields whose words are searched."""
        return self.search or self.shown


class OpenSearchIndex:
    """One index, or one name for several, on a server; it is never written to. Threads may share it."""

    # One more than wanted shows whether a tie goes across the cut.
    most = WINDOW - 1

    def __init__(self, client: Any, host: str, index: str, fields: Fields, where: Mapping[str, Any]) -> None:
        """Take the client, where it leads, the index, its fields, and what its documents must have."""
        self._client, self._host, self._index, self._fields = client, host, index, fields
        self._where = [{"terms": {field: values}} for field, values in where.items()]
        self.name = f"index {index} on {host}"

    def ask(self, call: Callable[[], T]) -> T:
        """What the client answers; BackendUnavailable or DataError without the client's words, which know the key."""
        from opensearchpy import exceptions as faults

        fault: Exception
        try:
            return call()
        except faults.NotFoundError:
            fault = DataError(f"there is no {self.name} (engine.index)")
        except (faults.AuthenticationException, faults.AuthorizationException) as error:
            fault = BackendUnavailable(
                f"{self._host} does not let this user read {self._index} ({error.status_code}); check what the "
                "environment variables of engine.api_key_env, or of engine.user_env and engine.password_env, hold"
            )
        except faults.ConnectionError as error:
            fault = BackendUnavailable(
                f"no connection to {self._host} ({type(error).__name__}); is a search server running at engine.url?"
            )
        except faults.TransportError as error:
            reason = _reason(error.info) if isinstance(error.info, Mapping) else ""
            fault = BackendUnavailable(f"{self._host} answered {error.status_code}{reason}")
        except (faults.OpenSearchException, UnicodeError, KeyError, TypeError, ValueError, AttributeError) as error:
            fault = BackendUnavailable(
                f"{self._host} answered in a form that no search server uses ({type(error).__name__})"
            )
        # Out of the handler, so that the client's error, which knows the request, is not its context.
        raise fault

    @cached_property
    def _mapping(self) -> dict[str, Mapping[str, Any]]:
        """Field -> what the index says of it, sub-fields as "a.b"."""

        def read() -> dict[str, Mapping[str, Any]]:
            about = self._client.indices.get_mapping(index=self._index)
            return {
                name: of for one in about.values() for name, of in _flat(one["mappings"].get("properties", {})).items()
            }

        return self.ask(read)

    def check(self, columns: Sequence[str]) -> None:
        """Raise DataError naming fields that the index has not."""
        if missing := [name for name in columns if name != "_id" and name not in self._mapping]:
            lacking, there = ", ".join(map(repr, missing)), ", ".join(sorted(self._mapping)[:20]) or "none"
            raise DataError(
                f"{self.name} has no field {lacking} (engine.fields, engine.groups, engine.where); it has: {there}"
            )

    def count(self, text: str = "") -> int:
        """How many documents there are; of a `text`, those that hold all of its words in one of the fields."""
        clauses = [{"match": {field: {"query": text, "operator": "and"}}} for field in self._fields.words]
        holding = [{"bool": {"should": clauses, "minimum_should_match": 1}}] if text else []
        body = {"query": {"bool": {"filter": [*self._where, *holding]}}}
        return self.ask(lambda: int(complete(self._client.count(index=self._index, body=body), self._host)["count"]))

    def rows(self, ids: Sequence[str], columns: Sequence[str]) -> list[tuple[str, Row]]:
        """The documents that there are of these ids."""
        hits = self._search({"bool": {"filter": [self._among(ids)]}}, len(ids) + 1, columns)
        return [(id, row) for id, _, row in hits]

    def every(self, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """All documents, by a scroll."""
        from opensearchpy import helpers

        body = {"query": {"bool": {"filter": self._where}}, "_source": self._sources(columns) or False}
        hits = helpers.scan(self._client, query=body, index=self._index, size=WINDOW, raise_on_error=True)

        def read() -> tuple[str, Row] | None:
            hit = next(hits, None)
            return self._read(hit, columns) if hit else None

        while one := self.ask(read):
            yield one

    def matching(self, weights: Mapping[str, float], n: int) -> list[tuple[str, float]]:
        """The best documents by the index's similarity, with document frequencies of the whole index."""
        query = {"bool": {"should": self._clauses(weights), "minimum_should_match": 1, "filter": self._where}}
        hits = self._search(query, n + 1, (), about=weights)
        if len(hits) > n and hits[n - 1][1] == hits[n][1]:
            # A tie across the cut: only all of it can be ordered by id.
            hits = self._search(query, WINDOW, (), about=weights)
        return [(id, score) for id, score, _ in hits]

    def scores(self, weights: Mapping[str, float], ids: Sequence[str]) -> list[tuple[str, float]]:
        """These documents, scored so."""
        # SHOULD, not MUST: documents of the pool without any query term stay in the answer, with score 0.
        clauses = {"should": self._clauses(weights), "minimum_should_match": 0, "filter": [self._among(ids)]}
        return [(id, score) for id, score, _ in self._search({"bool": clauses}, len(ids) + 1, (), about=weights)]

    def _clauses(self, weights: Mapping[str, float]) -> list[Any]:
        return [
            {"match": {field: {"query": text, "boost": weight}}}
            for text, weight in weights.items()
            for field in self._fields.words
        ]

    def _among(self, ids: Sequence[str]) -> dict[str, Any]:
        if self._fields.id == "_id":
            return {"ids": {"values": list(ids)}}
        return {"terms": {self._fields.id: list(ids)}}

    def _search(
        self, query: Any, size: int, columns: Sequence[str], about: Mapping[str, float] | None = None
    ) -> list[tuple[str, float, Row]]:
        """Id, score and fields of each hit of a whole answer; of words `about`, with exact frequencies."""
        body = {"query": query, "size": size, "_source": self._sources(columns) or False, "track_total_hits": False}
        # A shard that fails fails the search.
        options = {"allow_partial_search_results": "false"}
        if about is not None:
            # Copies of a shard differ in what they have not yet forgotten, and so in their scores: the same each time.
            words = hashlib.sha256(repr(sorted(about)).encode()).hexdigest()[:8]
            options |= {"search_type": "dfs_query_then_fetch", "preference": words}

        def read() -> list[tuple[str, float, Row]]:
            answer = complete(self._client.search(index=self._index, body=body, params=options), self._host)
            read_hits = ((self._read(hit, columns), float(hit.get("_score") or 0.0)) for hit in answer["hits"]["hits"])
            return [(id, score, row) for (id, row), score in read_hits]

        return self.ask(read)

    def _sources(self, columns: Sequence[str]) -> list[str]:
        return [self._source_of(name) for name in (self._fields.id, *columns) if name != "_id"]

    def _source_of(self, field: str) -> str:
        """Where a document's own record has the value of a field: `a.keyword` is made from `a`."""
        return str(self._mapping.get(field, {}).get("made of", field)) if "." in field else field

    def _read(self, hit: Mapping[str, Any], columns: Sequence[str]) -> tuple[str, Row]:
        source, field = hit.get("_source") or {}, self._fields.id
        id = hit["_id"] if field == "_id" else at_path(source, self._source_of(field))
        if isinstance(id, bool) or not isinstance(id, str | int) or id == "":
            raise DataError(f"a document of {self.name} has no id in {field!r} (engine.fields.id)")
        return str(id), {name: at_path(source, self._source_of(name)) for name in columns}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def fetched(self, ids: Sequence[str], fetch: Callable[[Sequence[str]], Sequence[tuple[str, T]]]) -> dict[str, T]:
        """The value of each of these ids, fetched some at a time; DataError that counts and names those without."""
        wanted, values = list(dict.fromkeys(ids)), dict[str, T]()
        for start in range(0, len(wanted), ROWS_AT_ONCE):
            # What no server reads as text is the id of nothing.
            rows = fetch([id for id in wanted[start : start + ROWS_AT_ONCE] if "\0" not in id and is_text(id)])
            self.check_once([id for id, _ in rows])
            values.update(rows)
        if missing := [id for id in wanted if id not in values]:
            raise unknown_ids(missing, self.name)
        return values

    def check_once(self, ids: Sequence[str]) -> None:
        """Raise DataError where two documents have the same id."""
        if len(set(ids)) < len(ids):
            (twice, _), *_ = Counter(ids).most_common(1)
            raise DataError(
                f"several documents of {self.name} have the id {twice[:60]!r}; name a field whose values differ"
            )

    def check_length(self, n: int) -> None:
        """Raise UsageError for an `n` that is too small, or larger than the index gives at once."""
        check_length(n)
        if n > self.most:
            raise UsageError(f"{n:,} documents were requested, and {self.name} gives at most {self.most:,} at a time")


def is_text(text: str) -> bool:
    """Whether it is valid Unicode."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def complete(answer: Mapping[str, Any], host: str) -> Mapping[str, Any]:
    """The answer, if every shard gave its part in time; BackendUnavailable else, never a shorter list."""
    shards = answer.get("_shards", {})
    total, failed = int(shards.get("total", 0)), int(shards.get("failed", 0))
    if lacking := max(failed, total - int(shards.get("successful", total))):
        reason = next((_reason(one.get("reason")) for one in shards.get("failures") or ()), "")
        raise BackendUnavailable(
            f"{lacking} of {total} shards on {host} did not answer, so the list would be incomplete{reason}"
        )
    if answer.get("timed_out") or answer.get("terminated_early"):
        raise BackendUnavailable(f"{host} broke a search off, so the list would be incomplete; ask again")
    return answer


def _reason(error: Any) -> str:
    """What a server says of an error, for the end of a message; "" where it says nothing."""
    error = error.get("error", error) if isinstance(error, Mapping) else error
    if isinstance(error, Mapping):
        # The first cause says what is wrong; the error itself only that all shards failed.
        cause = next(iter(error.get("root_cause") or ()), error)
        error = f"{cause.get('type', '')}, {cause.get('reason', '')}"
    return f": {visible(str(error))[:200]}" if error else ""


def _flat(properties: Mapping[str, Any], before: str = "") -> dict[str, Mapping[str, Any]]:
    """Field -> what a mapping says of it; `made of` of a sub-field is the field whose value it has."""
    fields: dict[str, Mapping[str, Any]] = {}
    for name, about in properties.items():
        path = f"{before}{name}"
        if "properties" in about:
            fields |= _flat(about["properties"], f"{path}.")
        else:
            fields[path] = about
        fields |= {f"{path}.{sub}": {**of, "made of": path} for sub, of in about.get("fields", {}).items()}
    return fields


class OpenSearchConfig(Part):
    """An index on an OpenSearch server, which is only read: its words, by the similarity in its mapping."""

    on_server: ClassVar[bool] = True
    kind: Literal["opensearch"] = "opensearch"
    url: str = Field("http://localhost:9200", min_length=1)
    """The server's address; any node of a cluster, or what stands before it."""
    index: str = Field(min_length=1)
    """The index, or a name for several."""
    fields: Fields = Fields()
    """Which fields of the index hold what."""
    api_key_env: str = ""
    """The environment variable with an API key, or with a whole `Bearer` token; empty: none is needed."""
    user_env: str = ""
    """The environment variable with the user's name."""
    password_env: str = ""
    """The environment variable with the user's password."""
    ca: str = ""
    """A file with the certificate of the authority that signed the server's; empty: the usual ones."""
    verify: bool = True
    """Whether the server's certificate is checked; false lets anybody between read and change everything."""
    groups: dict[str, str] = Field(default={})
    """Dimension -> the field with its labels, where the collection has no groups of its own. They are read once, of
    all documents."""
    where: dict[str, Label | tuple[Label, ...]] = Field(default={})
    """Field -> the value, or the values, that a document must have one of to be in a list."""
    timeout: float = Field(30.0, gt=0)
    """The longest time of one answer, in seconds."""

    def relative_to(self, folder: Path) -> Self:
        return self.model_copy(update={"ca": str((folder / self.ca).absolute())}) if self.ca else self

    @property
    def tells_words(self) -> bool:
        return True

    def connect(self, environ: Mapping[str, str] | None = None) -> OpenSearchIndex:
        """The index; SettingsError for an address or a sign-in that is none. Nothing is requested yet."""
        client_of = installed("opensearch-py", "engine: opensearch")
        try:
            parts = urlsplit(self.url.strip())
            name, _ = parts.hostname, parts.port
        except ValueError:
            name = None
        if not name or parts.scheme not in ("http", "https"):
            raise SettingsError("engine.url is no address of a server; expected e.g. https://search.example.org:9200")
        if "@" in (host := parts.netloc) or parts.query:
            raise SettingsError(
                f"engine.url of {name} has a user, a password or a key in it, which settings and runs would keep; name "
                "the environment variable that holds it: engine.password_env or engine.api_key_env"
            )
        if any(one in self.index for one in "/*?,") or self.index.startswith(("_", "-", ".")):
            raise SettingsError(f"engine.index: {self.index[:80]!r} is no name of one index")
        if bool(self.user_env) != bool(self.password_env) or (self.api_key_env and self.user_env):
            raise SettingsError("sign in with engine.api_key_env, or with engine.user_env and engine.password_env")
        key = secret(self.api_key_env, environ, host)
        signing_in: dict[str, Any] = {}
        if key:
            sign = key if key.startswith(("Bearer ", "Basic ", "ApiKey ")) else f"ApiKey {key}"
            signing_in = {"headers": {"authorization": sign}}
        elif self.user_env:
            signing_in = {"http_auth": (secret(self.user_env, environ, host), secret(self.password_env, environ, host))}
        if self.url.strip().startswith("https:"):
            signing_in |= {"verify_certs": self.verify, "ssl_show_warn": False, "ca_certs": self.ca or None}
        # Its own log would print every request that failed, with a traceback, before it is raised.
        logging.getLogger("opensearch").setLevel(logging.CRITICAL)
        client = client_of.OpenSearch(
            [self.url.strip()], timeout=self.timeout, max_retries=2, retry_on_status=(429, 502, 503, 504), **signing_in
        )
        where = {name: list(one) if isinstance(one, tuple) else [one] for name, one in self.where.items()}
        return OpenSearchIndex(client, host, self.index, self.fields, where)

    def opened(self, site: Site) -> Any:
        """The index, which the parts of a pipeline share; DataError where it lacks a field that is named."""
        store = site.memo.get((self.kind, self.model_dump_json()), self.connect)
        store.check((self.fields.id, *self.fields.shown, *self.fields.words, *self.groups.values(), *self.where))
        return store

    def group_table(self, site: Site) -> GroupTable:
        """The groups in the fields."""
        key, known = (self.kind, "groups", self.model_dump_json()), site.collection.population
        table: GroupTable = site.memo.get(key, lambda: read_groups(self.opened(site), self.groups, known))
        return table

    def check(self, site: Site) -> None:
        self.build(site)

    def with_parts_of(self, site: Site) -> Site:
        """With the groups in the fields; SettingsError for a dimension that is there already."""
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
                "an experiment judges by the groups of its collection: write those of the index into a table once "
                "(guests/stores/README.md), name it in the collection's settings file, and leave out engine.groups"
            )
        return StoreWords(self.opened(site), self.fields, tuple(self.groups.values()))

    def diagnose(self, site: Site) -> Iterator[Check]:
        try:
            store = self.opened(site)
            if not (rows := store.count()):
                yield Check(self.kind, "problem", f"{store.name} is empty", "name another (or another engine.where)")
                return
            yield Check(self.kind, "ok", f"{store.name}: {rows:,} documents, which are only read")
            name, groups = "groups in fields", site.collection.groups
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
                first = ", ".join(f"{id[:60]!r}" for id in missing[:5])
                fix = f"the first: {first}; if all are missing, the id is another field" if missing else ""
                yield Check(
                    name, "ok" if not missing else "problem" if len(missing) == checked else "note", detail, fix
                )
        except FairAgentError as error:
            yield Check(self.kind, "problem", str(error), "mend this first; nothing else of it was checked")


def read_groups(
    store: OpenSearchIndex, groups: Mapping[str, str], known: Mapping[str, Mapping[str, float]]
) -> GroupTable:
    """The labels of all documents, read once: dimension -> the field that holds one, a list of them, or none.

    `known` are labels that a dimension has besides, as those of world shares. Raises DataError for a field without a
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
            held = f"more than {MOST_LABELS:,} values" if labels else "no value in any document"
            raise DataError(f"field {column!r} of {store.name} has {held}; is it that of {dimension!r}?")
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


def text_of(content: Any) -> str:
    """A field's value as text: several values are joined by a space.

    >>> text_of(["a", "b"]), text_of(None), text_of(1901)
    ('a b', '', '1901')
    """
    if isinstance(content, list | tuple):
        return " ".join(filter(None, map(text_of, content)))
    return "" if content is None else str(content)


class StoreWords:
    """The ranking of the index's own search of words: the sum of weight times its score.

    A document is a hit if it holds any word of the query. Ties are ordered by the bytes of ids. Threads may share it.
    """

    def __init__(self, store: OpenSearchIndex, fields: Fields, extra: Sequence[str] = ()) -> None:
        """Take the index, its fields, and further fields of its documents."""
        self.store, self._fields, self._extra = store, fields, tuple(extra)
        self._texts: dict[str, Document] = {}
        self._terms = LocalTerms(self)
        self.words, self.analyze = self._terms.words, self._terms.analyze

    @cached_property
    def _count(self) -> int:
        return self.store.count()

    def __len__(self) -> int:
        return self._count

    def document(self, id: str) -> Document:
        return self.documents([id])[0]

    @engine_time("server")
    def documents(self, ids: Sequence[str]) -> list[Document]:
        """These documents, in as few requests as their texts allow; DataError naming ids that are not there."""
        found = {id: one for id in ids if (one := self._texts.get(id)) is not None}
        if unknown := [id for id in dict.fromkeys(ids) if id not in found]:
            of, columns = self._fields, (*self._fields.shown, *self._extra)
            rows = self.store.fetched(unknown, lambda some: self.store.rows(some, columns))
            new = {
                id: Document(
                    id,
                    text_of(row.get(of.text)),
                    text_of(row.get(of.title)),
                    {name: row.get(name) for name in self._extra},
                )
                for id, row in rows.items()
            }
            found |= new
            if len(self._texts) + len(new) > TEXTS_CACHED:
                self._texts.clear()
            self._texts.update(new)
        return [found[id] for id in ids]

    @engine_time("server")
    def search(self, query: Query, n: int) -> Ranking:
        self.store.check_length(n)
        hits = self.store.matching(weights, n) if (weights := term_weights(query, whole)) else []
        self.store.check_once([id for id, _ in hits])
        shown = [one for one in hits if one[1] > 0]
        best = sorted(shown, key=lambda one: (-one[1], one[0].encode("utf-8", "surrogatepass")))[:n]
        return Ranking(tuple(id for id, _ in best), np.array([score for _, score in best], dtype=np.float64))

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
        return self.store.count(one) if (one := " ".join(whole(word))) else 0

    def postings(self, ids: Sequence[str]) -> Any:
        """The words of these documents, from their texts, as they stand; their shares are those among these alone."""
        # All texts at once; then they are cached.
        self.documents(ids)
        return self._terms.postings(ids)


def whole(text: str) -> list[str]:
    """A text of a query as one piece, [] of a blank one; DataError for what no server reads as text."""
    if not is_text(text):
        raise DataError("the query holds half of a surrogate pair, which is no Unicode text")
    text = text.replace("\0", " ")
    return [text] if text.strip() else []


def secret(variable: str, environ: Mapping[str, str] | None, host: str) -> str:
    """What an environment variable holds, "" for none; BackendUnavailable where it is not set."""
    value = (os.environ if environ is None else environ).get(variable, "").strip() if variable else ""
    if variable and not value:
        raise BackendUnavailable(f"{host} is signed in to with {variable}, which is not set")
    return value
