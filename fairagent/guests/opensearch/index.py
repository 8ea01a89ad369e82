"""An index on a server: its fields, its documents, and searches of it that are complete.

An answer that is not complete, or not of the form, is an error and never a shorter list.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import Field

from fairagent.extend import BackendUnavailable, DataError, Section, SettingsError, at_path
from fairagent.guests.opensearch.server import Forbidden, NotThere, Server
from fairagent.guests.servers import ServerCache


@dataclass(frozen=True, slots=True)
class ServerHit:
    """A document of an answer: its id, score and fields, and (`address`) how requests name where the server has it.

    A name may stand for several indexes, and documents may be routed.
    """

    id: str
    address: Mapping[str, str]
    score: float
    source: Mapping[str, Any]


@contextmanager
def understood(server: Server) -> Iterator[None]:
    """Raise BackendUnavailable where what is read inside is not what the protocol says."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise BackendUnavailable(
            f"{server.host} answered in a form that neither OpenSearch nor Elasticsearch uses "
            f"({type(error).__name__}: {str(error)[:100]})"
        ) from None


def complete(server: Server, answer: Any) -> Mapping[str, Any]:
    """The answer to a search, if every shard gave its part in time; BackendUnavailable else."""
    with understood(server):
        if "error" in answer:
            raise BackendUnavailable(f"a search on {server.host} failed{server.quoted(_reason(answer['error']))}")
        shards = answer.get("_shards", {})
        total, failed = int(shards.get("total", 0)), int(shards.get("failed", 0))
        if lacking := max(failed, total - int(shards.get("successful", total))):
            reasons = [failure["reason"] for failure in shards.get("failures") or ()]
            raise BackendUnavailable(
                f"{lacking} of {total} shards on {server.host} did not answer, so the list would be incomplete"
                f"{server.quoted(_reason(reasons[0]) if reasons else '')}"
            )
        if answer.get("timed_out") or answer.get("terminated_early"):
            raise BackendUnavailable(f"{server.host} broke a search off, so the list would be incomplete; ask again")
        whole: Mapping[str, Any] = answer
    return whole


def _reason(error: Any) -> str:
    return error if isinstance(error, str) else f"{error.get('type', '')}: {error.get('reason', '')}"


def hits(server: Server, answer: Mapping[str, Any], id_field: str) -> list[ServerHit]:
    """The documents of a complete answer, in its order; BackendUnavailable where one has no id or no score."""
    rows = []
    with understood(server):
        for hit in answer["hits"]["hits"]:
            address = {"_index": hit["_index"], "_id": hit["_id"]}
            if hit.get("_routing"):
                address["routing"] = hit["_routing"]
            id = hit["_id"] if id_field == "_id" else _id(at_path(hit["_source"], id_field))
            score = hit.get("_score")
            rows.append(ServerHit(id, address, 0.0 if score is None else float(score), hit.get("_source") or {}))
    return rows


def text_of(content: Any) -> str:
    """A field's value as text: several values are joined by a space.

    >>> text_of(["a", "b"]), text_of(None), text_of(1901)
    ('a b', '', '1901')
    """
    if isinstance(content, Sequence) and not isinstance(content, str):
        return " ".join(filter(None, map(text_of, content)))
    return "" if content is None else str(content)


def _id(content: Any) -> str:
    if isinstance(content, bool) or not isinstance(content, str | int) or content == "":
        raise ValueError("a document without an id")
    return str(content)


WINDOW = 10_000
"""Hits of one request, unless the index allows another number (`index.max_result_window`)."""
MOST_COUNTED = 1 << 50
"""Documents; a server that counts more does not count."""
TEXTS_AT_ONCE = 200
ADDRESSES_CACHED = 500_000
SPOKEN = {"elasticsearch": ((7, 10), (9, 99)), "opensearch": ((1, 0), (3, 99))}
"""The oldest and the newest version of each server that is known to speak this protocol."""
WHOLE = {"allow_partial_search_results": "false"}
"""A shard that fails fails the search."""
EXACT = {**WHOLE, "search_type": "dfs_query_then_fetch"}
"""Document frequencies are those of the whole index and not of a shard."""


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
    vector: str = ""
    """The field with the embeddings (`dense_vector` or `knn_vector`), for `by: embeddings`."""

    @property
    def searched(self) -> tuple[str, ...]:
        """The fields that are searched."""
        return self.search or tuple(filter(None, (self.title, self.text)))


LOADED = Fields(id="id", title="title", text="text", search=("contents",), vector="vector")
"""The fields of an index that fairagent made; `contents` is title and text in one, as `bm25` searches them."""


@dataclass(frozen=True, slots=True)
class Version:
    """What a server says it is."""

    name: str
    number: str

    @property
    def is_opensearch(self) -> bool:
        """Whether it is OpenSearch and not Elasticsearch."""
        return self.name == "opensearch"

    @property
    def numbers(self) -> tuple[int, ...]:
        """Its major and minor version; () where it names none."""
        return tuple(int(part) for part in re.findall(r"\d+", self.number)[:2])

    @property
    def hides_vectors(self) -> bool:
        """Whether it leaves embeddings out of what it shows of a document, unless the request says not to."""
        return not self.is_opensearch and self.numbers >= (9, 2)

    def __str__(self) -> str:
        return f"{'OpenSearch' if self.is_opensearch else 'Elasticsearch'} {self.number}"


class ServerIndex:
    """One index, or one name for several, on a `Server`. Only `load` of `bulk.py` ever writes to one.

    Mapping, number of documents and the addresses of documents are requested once.
    """

    def __init__(self, server: Server, name: str, fields: Fields) -> None:
        """Take the index `name` of `server`; nothing is requested yet. SettingsError where `name` is none."""
        if name in (".", "..") or not re.fullmatch(r"[^\s\\/*?\"<>|,#:A-Z_+-][^\s\\/*?\"<>|,#:A-Z]{0,254}", name):
            raise SettingsError(f"engine.index: {name[:80]!r} is no name of one index (small letters, no wildcards)")
        self.server, self.name, self.fields = server, name, fields
        self._addresses: ServerCache[Mapping[str, str]] = ServerCache(ADDRESSES_CACHED)

    def __str__(self) -> str:
        return f"{self.name} on {self.server.host}"

    @cached_property
    def version(self) -> Version:
        """What the server is; BackendUnavailable for one that is neither, or of a version that is not known."""
        with understood(self.server):
            about = self.server.ask("GET", "/")["version"]
            version = Version(str(about.get("distribution", "elasticsearch")), str(about["number"]))
        oldest, newest = SPOKEN.get(version.name, ((), ()))
        if not (oldest and oldest <= version.numbers <= newest):
            known = "Elasticsearch 7.10 to 9 and OpenSearch 1 to 3"
            raise BackendUnavailable(
                f"{self.server.host} is {version.name[:40]} {version.number[:40]}, of which it is not known "
                f"whether its answers mean the same; {known} are spoken to"
            )
        return version

    def check_version(self) -> None:
        """Raise BackendUnavailable for a server that is not known; one that does not say to this account may be."""
        with suppress(Forbidden):
            _ = self.version

    @cached_property
    def mapping(self) -> Mapping[str, Mapping[str, Any]]:
        """Field -> what the index says of it (`type`, `similarity` ...), sub-fields as "a.b"."""
        fields: dict[str, Mapping[str, Any]] = {}
        for about in self._about("_mapping").values():
            with understood(self.server):
                fields.update(_flat(about["mappings"].get("properties", {})))
        return fields

    @cached_property
    def one(self) -> str:
        """The index itself, or the first of those that the name stands for."""
        return next(iter(self._about("_mapping")), self.name)

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the index, or of the first of several."""
        with understood(self.server):
            first, *_ = self._about("_settings").values()
            settings = dict(first["settings"]["index"])
        return settings

    @cached_property
    def window(self) -> int:
        """The most hits of one request; that of an index whose settings may not be read is 10,000."""
        try:
            with understood(self.server):
                return max(1, int(self.settings.get("max_result_window", WINDOW)))
        except Forbidden:
            return WINDOW

    @cached_property
    def documents(self) -> int:
        """The number of documents, counted once."""
        return self.count()

    def count(self, query: Mapping[str, Any] | None = None) -> int:
        """How many documents there are, or match."""
        try:
            answer = self.server.ask("POST", f"/{self.name}/_count", {"query": query} if query else None)
        except NotThere as error:
            raise self._absent(error) from None
        with understood(self.server):
            count = int(complete(self.server, answer)["count"])
            if not 0 <= count <= MOST_COUNTED:
                raise ValueError(f"{count} documents")
        return count

    def check_fields(self, names: Sequence[str]) -> None:
        """Raise DataError naming fields that the index does not have."""
        missing = [name for name in names if name and name != "_id" and name not in self.mapping]
        if missing:
            there = ", ".join(sorted(self.mapping)[:20]) or "none"
            raise DataError(
                f"index {self} has no field {', '.join(map(repr, missing))} (engine.fields, engine.groups); "
                f"it has: {there}"
            )

    def search(self, body: Mapping[str, Any], about: str = "", exact: Mapping[str, str] = EXACT) -> Mapping[str, Any]:
        """A complete answer; requests `about` the same words are answered by the same copies of the shards."""
        # Copies differ in what they have not yet forgotten of deleted documents, and so in their scores.
        copies = hashlib.sha256(about.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        try:
            answer = self.server.ask("POST", f"/{self.name}/_search", body, preference=copies, **exact)
        except NotThere as error:
            raise self._absent(error) from None
        return complete(self.server, answer)

    def hits(
        self, body: Mapping[str, Any], fields: Sequence[str] = (), about: str = "", exact: Mapping[str, str] = EXACT
    ) -> list[ServerHit]:
        """The hits of a search, each with these fields."""
        source: Any = self._sources(fields) or False
        if self.fields.vector in fields and self.version.hides_vectors:
            source = {"includes": source, "exclude_vectors": False}
        answer = self.search({"_source": source, "track_total_hits": False, **body}, about, exact)
        documents = hits(self.server, answer, self.source_of(self.fields.id))
        self._addresses.keep({one.id: one.address for one in documents})
        return documents

    def _sources(self, fields: Sequence[str]) -> list[str]:
        return [self.source_of(field) for field in (self.fields.id, *fields) if field not in ("", "_id")]

    def best_of_each(self, queries: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> list[list[ServerHit]]:
        """The best document for each of several queries ([] where there is none), with these fields, in one request."""
        if not queries:
            return []
        head = {"preference": "fairagent", "allow_partial_search_results": False}
        body = {"size": 1, "_source": self._sources(fields), "track_total_hits": False}
        lines = [line for query in queries for line in (head, {"query": query, **body})]
        answer = self.server.ask("POST", f"/{self.name}/_msearch", lines=lines)
        with understood(self.server):
            answers = list(answer["responses"])
        if len(answers) != len(queries):
            raise BackendUnavailable(f"{self.server.host} answered {len(answers)} of {len(queries)} searches")
        return [hits(self.server, complete(self.server, one), self.source_of(self.fields.id)) for one in answers]

    def source_of(self, field: str) -> str:
        """Where a document's own record has the value of a field: `a.keyword` is made from `a`."""
        about = self.mapping.get(field, {}) if "." in field else {}
        return str(about.get("of", field))

    def among(self, ids: Sequence[str]) -> dict[str, Any]:
        """The clause that lets these documents through and no other."""
        if self.fields.id == "_id":
            return {"ids": {"values": list(ids)}}
        return {"terms": {self.fields.id: list(ids)}}

    def fetch(
        self, ids: Sequence[str], fields: Sequence[str], about: str = "", **evidence: Any
    ) -> dict[str, ServerHit]:
        """Id -> the document, with these fields, and its score for the `evidence` (clauses of a bool query)."""
        wanted = list(dict.fromkeys(ids))
        documents: dict[str, ServerHit] = {}
        for start in range(0, len(wanted), self.window):
            some = wanted[start : start + self.window]
            query = {"bool": {"filter": self.among(some), "minimum_should_match": 0, **evidence}}
            exact = EXACT if evidence else WHOLE
            documents |= {one.id: one for one in self.hits({"query": query, "size": len(some)}, fields, about, exact)}
        if missing := [id for id in wanted if id not in documents]:
            raise DataError(f"{len(missing)} document id(s) are not in index {self}: {named(missing)}")
        return documents

    def addresses(self, ids: Sequence[str]) -> dict[str, Mapping[str, str]]:
        """Id -> how requests name where the server has the document; DataError naming ids that are not there."""
        return self._addresses.all(
            ids, lambda some: {id: one.address for id, one in self.fetch(some, ()).items()}, self.window
        )

    def absent(self, ids: Iterator[Sequence[str]]) -> tuple[int, list[str]]:
        """How many of these ids (in batches) are not in the index, and the first of them."""
        missing = 0
        first: list[str] = []
        for batch in ids:
            for start in range(0, len(batch), self.window):
                some = batch[start : start + self.window]
                lacking = len(some) - self.count(self.among(some))
                if lacking and len(first) < 5:
                    there = {one.id for one in self.hits({"query": self.among(some), "size": len(some)})}
                    first += [id for id in some if id not in there][: 5 - len(first)]
                missing += lacking
        return missing, first

    def _about(self, what: str) -> Mapping[str, Any]:
        try:
            about: Mapping[str, Any] = self.server.ask("GET", f"/{self.name}/{what}")
        except NotThere as error:
            raise self._absent(error) from None
        with understood(self.server):
            return dict(about.items())

    def _absent(self, error: NotThere) -> NotThere:
        return NotThere(
            f"there is no index {self.name!r} on {self.server.host}; check engine.index, or load the collection "
            f"into it with `fairagent index --engine opensearch` ({str(error)[:200]})"
        )


def named(ids: Sequence[str]) -> str:
    """The first of some ids, for a message."""
    return ", ".join(f"{id[:60]!r}" for id in ids[:5])


def _flat(properties: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, about in properties.items():
        path = f"{before}{name}"
        if "properties" in about:
            yield from _flat(about["properties"], f"{path}.")
        else:
            yield path, about
        for sub, of in about.get("fields", {}).items():
            yield f"{path}.{sub}", {**of, "of": path}
