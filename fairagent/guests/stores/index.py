"""An index on an OpenSearch server, through opensearch-py: what is asked of it, and what is made of its answers."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from pydantic import Field

from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.retrieve.base import check_length, unknown_ids
from fairagent.search.hits import at_path
from fairagent.settings import Section
from fairagent.types.clean import visible

T = TypeVar("T")
Row = Mapping[str, Any]
"""Field -> value."""
WINDOW = 10_000
"""Hits of one request, unless the index allows another number (`index.max_result_window`)."""
ROWS_AT_ONCE = 1_000


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
