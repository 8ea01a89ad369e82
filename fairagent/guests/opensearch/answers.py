"""What a server's answers hold; one that is not complete, or not of the form, is an error and never a shorter list.

Values that a server told, kept until others need the room. Threads may share them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from fairagent.extend import BackendUnavailable
from fairagent.guests.opensearch.server import Server


@dataclass(frozen=True, slots=True)
class DocumentAddress:
    """Where the server keeps a document: a name may stand for several indexes, and documents may be routed."""

    index: str
    id: str
    routing: str = ""

    @property
    def named(self) -> dict[str, str]:
        """As requests name it."""
        return {"_index": self.index, "_id": self.id, **({"routing": self.routing} if self.routing else {})}


@dataclass(frozen=True, slots=True)
class ServerHit:
    """A document of an answer: its id, where it is kept, its score, and what was asked for of it."""

    id: str
    place: DocumentAddress
    score: float
    source: Mapping[str, Any]

    def scored(self, score: float) -> ServerHit:
        """The same document with another score."""
        return replace(self, score=score)


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
            error = answer["error"]
            said = error if isinstance(error, str) else f"{error.get('type', '')}: {error.get('reason', '')}"
            raise BackendUnavailable(f"a search on {server.host} failed{server.quoted(said)}")
        shards = answer.get("_shards", {})
        total, failed = int(shards.get("total", 0)), int(shards.get("failed", 0))
        lacking = max(failed, total - int(shards.get("successful", total)))
        if lacking:
            reasons = [failure["reason"] for failure in shards.get("failures") or ()]
            said = f"{reasons[0].get('type', '')}: {reasons[0].get('reason', '')}" if reasons else ""
            raise BackendUnavailable(
                f"{lacking} of {total} shards on {server.host} did not answer, so the list would be incomplete"
                f"{server.quoted(said)}"
            )
        if answer.get("timed_out") or answer.get("terminated_early"):
            raise BackendUnavailable(f"{server.host} broke a search off, so the list would be incomplete; ask again")
        found: Mapping[str, Any] = answer
    return found


def hits(server: Server, answer: Mapping[str, Any], id_field: str) -> list[ServerHit]:
    """The documents of a complete answer, in its order; BackendUnavailable where one has no id or no score."""
    with understood(server):
        return [
            ServerHit(
                hit["_id"] if id_field == "_id" else _id(value(hit["_source"], id_field)),
                DocumentAddress(hit["_index"], hit["_id"], hit.get("_routing", "")),
                float(hit["_score"] if hit.get("_score") is not None else 0.0),
                hit.get("_source") or {},
            )
            for hit in answer["hits"]["hits"]
        ]


def value(source: Mapping[str, Any], field: str) -> Any:
    """The value of a field of a document, None where it has none; "a.b" is also b of the object a.

    >>> value({"a": {"b": 1}}, "a.b"), value({"a.b": 2}, "a.b"), value({"a": [{"b": 1}, {"b": 2}]}, "a.b")
    (1, 2, [1, 2])
    """
    if field in source:
        return source[field]
    first, dot, rest = field.partition(".")
    inner = source.get(first) if dot else None
    if isinstance(inner, Mapping):
        return value(inner, rest)
    if isinstance(inner, list):
        return [value(one, rest) for one in inner if isinstance(one, Mapping)]
    return None


def text_of(found: Any) -> str:
    """A field's value as text: several values are joined by a space.

    >>> text_of(["a", "b"]), text_of(None), text_of(1901)
    ('a b', '', '1901')
    """
    if isinstance(found, Sequence) and not isinstance(found, str):
        return " ".join(filter(None, map(text_of, found)))
    return "" if found is None else str(found)


def _id(found: Any) -> str:
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise ValueError("a document without an id")
    return str(found)


T = TypeVar("T")


class ServerCache(Generic[T]):
    """The values of the keys used last, at most `most` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, values: Mapping[str, T]) -> None:
        """Remember these, and forget the oldest beyond `most`."""
        with self._lock:
            self._kept.update(values)
            for key in values:
                self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def known(self, keys: Iterable[str]) -> dict[str, T]:
        """Those of the keys that are remembered, with their values."""
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
            for key in found:
                self._kept.move_to_end(key)
        return found

    def all(self, keys: Sequence[str], ask: Callable[[list[str]], Mapping[str, T]], batch: int) -> dict[str, T]:
        """The values of all keys; those that are not remembered are asked for, `batch` at a time."""
        found = self.known(keys)
        unknown = [key for key in dict.fromkeys(keys) if key not in found]
        for start in range(0, len(unknown), batch):
            told = ask(unknown[start : start + batch])
            self.keep(told)
            found.update(told)
        return found
