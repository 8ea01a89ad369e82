"""What a server's answers hold; one that is not complete, or not of the form, is an error and never a shorter list."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fairagent.extend import BackendUnavailable
from fairagent.guests.opensearch.server import Server

T = TypeVar("T")


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
            id = hit["_id"] if id_field == "_id" else _id(value(hit["_source"], id_field))
            score = hit.get("_score")
            rows.append(ServerHit(id, address, 0.0 if score is None else float(score), hit.get("_source") or {}))
    return rows


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
    return [value(one, rest) for one in inner if isinstance(one, Mapping)] if isinstance(inner, list) else None


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


class ServerCache(Generic[T]):
    """The values of the keys used last, at most `most` of them. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, values: Mapping[str, T]) -> None:
        """Add these, and drop the oldest beyond `most`."""
        with self._lock:
            for key, one in values.items():
                self._values[key] = one
                self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)

    def all(self, keys: Sequence[str], fetch: Callable[[list[str]], Mapping[str, T]], batch: int) -> dict[str, T]:
        """The values of all keys; unknown ones are fetched, `batch` at a time."""
        with self._lock:
            values = {key: self._values[key] for key in keys if key in self._values}
        unknown = [key for key in dict.fromkeys(keys) if key not in values]
        for start in range(0, len(unknown), batch):
            values.update(fetch(unknown[start : start + batch]))
        self.keep(values)
        return values
