"""The hits of other engines as ids, scores and fields, read by the names of what they hold; no engine is imported.

A hit is a mapping, an object with attributes (LlamaIndex, LangChain, Haystack, OpenAI, Qdrant), or a pair of a hit, or
its id, and a score. A whole answer of an engine is read as the list in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from numbers import Integral
from typing import Any

from fairagent.collection.records import listed, shown
from fairagent.collection.rows import Bounds, bounded, error_text, plain
from fairagent.errors import DataError, FairAgentError, UsageError

IDS = ("ref_doc_id", "id", "_id", "node_id", "docid", "doc_id", "docno", "file_id")
"""Where hits keep the id of their document; the first that is set counts."""
SCORES = ("score", "_score", "distance")
WITHIN = ("_source", "fields", "entity", "payload", "attributes", "meta", "metadata", "groups")
"""Where they keep further fields."""
LISTS = ("body", "hits", "points", "data", "results", "documents")
"""Where a whole answer keeps its hits: Elasticsearch, Qdrant, OpenAI (a search, a call of file_search), Haystack."""
COLUMNS = {"ids": "id", "distances": "distance", "metadatas": "metadata", "documents": "document", "uris": "uri"}
"""Chroma's answers are columns: the name of each, and what it is in a row."""


@dataclass(frozen=True, slots=True)
class HitShape:
    """What a hit says: the id of its document, and its fields; `of` stands before its number where it is named.

    The score is nan where its field is empty or no number, None where it has no such field; so is the id.
    """

    number: int
    id: str | None
    score: float | None
    fields: Mapping[str, Any]
    of: str = ""

    @property
    def names(self) -> list[str]:
        """The names of its fields; of a field that holds others, their paths."""
        names: list[str] = []
        for name, one in self.fields.items():
            inner = one if isinstance(one, Mapping) else {}
            names += [name] if inner is not one else [f"{name}.{key}" for key in inner if key not in self.fields]
        return names


def at_path(within: Any, path: str) -> Any:
    """The value of a field, None where there is none; "a.b" is also b of the a, and of each a of a list.

    >>> at_path({"a": {"b": 1}}, "a.b"), at_path({"a.b": 2}, "a.b"), at_path({"a": [{"b": 1}, {"b": 2}]}, "a.b")
    (1, 2, [1, 2])
    """
    if isinstance(within, list):
        return [one for one in (at_path(one, path) for one in within) if one is not None] or None
    own = within if isinstance(within, Mapping) else attributes(within)
    if path in own:
        return own[path]
    first, dot, rest = path.partition(".")
    return at_path(own[first], rest) if dot and first in own else None


def attributes(one: Any) -> dict[str, Any]:
    """What an object holds, by name; of its properties those that have one of the names above."""
    own = [field.name for field in fields(one)] if is_dataclass(one) else [*getattr(one, "__dict__", ()), *_slots(one)]
    names = dict.fromkeys([*IDS, *SCORES, *WITHIN, *(name for name in own if not name.startswith("_"))])
    return {name: getattr(one, name) for name in names if hasattr(one, name)}


def _slots(one: Any) -> list[str]:
    """The names in `__slots__` of the classes of an object, that of the first class first."""
    named = (vars(kind).get("__slots__", ()) for kind in type(one).__mro__[:-1])
    return [name for slots in named for name in ([slots] if isinstance(slots, str) else slots)]


def _fields(one: Any) -> Mapping[str, Any]:
    """What the metadata of a hit say: a mapping, or an object with attributes; of texts and lists nothing."""
    if isinstance(one, Mapping):
        return one
    own = getattr(one, "__dict__", None) or _slots(one)
    return attributes(one) if own and not isinstance(one, str | bytes | Integral | Sequence) else {}


def hits_in(answer: Any) -> list[Any]:
    """The hits of an engine's answer, or a list of them, as they are; columns (Chroma's) become a dict for each hit.

    Raises UsageError for what holds no hits, naming where they were looked for, and for answers to several queries.
    """
    if isinstance(answer, Mapping) and "ids" in answer and answer.keys() & {"metadatas", "distances", "documents"}:
        return _rows(answer)
    if isinstance(answer, Iterator):
        return [one for _, one in bounded(answer, "hit", Bounds())]
    if isinstance(answer, Sequence) and not isinstance(answer, str | bytes | memoryview):
        return _of_one_query([list(one) for one in answer]) if _nested(answer) else list(answer)
    own = answer if isinstance(answer, Mapping) else {name: getattr(answer, name, None) for name in LISTS}
    inner = next((own[name] for name in LISTS if isinstance(own.get(name), list | tuple | Mapping)), None)
    if inner is None:
        raise UsageError(
            f"{shown(answer)} ({type(answer).__name__}) is no list of hits, and holds none in {', '.join(LISTS)}; pass "
            "the list, the best hit first"
        )
    return hits_in(inner)


def _nested(answer: Sequence[Any]) -> bool:
    """Whether these are lists of hits, one for each query (Milvus); a list may also be a pair with a score."""
    return bool(answer) and all(
        isinstance(one, list) and all(isinstance(hit, Mapping) for hit in one) for one in answer
    )


def _rows(columns: Mapping[str, Any]) -> list[Any]:
    """The hits of an answer in columns, which is for one query, or the list of those for several."""
    given = {one: _column(columns[name]) for name, one in COLUMNS.items() if columns.get(name) is not None}
    if any(isinstance(id, list) for id in given["id"]):
        given = {name: _of_one_query(lists) for name, lists in given.items()}
    if len({len(column) for column in given.values()}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in given.items())
        raise UsageError(f"the columns of these hits differ in length ({lengths})")
    return [dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True)]


def _of_one_query(lists: list[Any]) -> list[Any]:
    if len(lists) != 1:
        raise UsageError(f"these are the hits of {len(lists)} queries; pass those of one at a time")
    return _column(lists[0])


def _column(values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise UsageError(f"a column of these hits is {shown(values)}, expected a list") from None


def read_hit(hit: Any, number: int, of: str = "") -> HitShape:
    """The hit with this number (`of`: what stands before it); UsageError for what is no hit, naming what is looked for.

    DataError for a hit that raises when it is looked at.
    """
    try:
        return replace(_read(hit, number), of=of)
    except FairAgentError:
        raise
    except Exception as error:
        raise DataError(f"hit {number} cannot be read: {error_text(error)}") from None


def _read(hit: Any, number: int) -> HitShape:
    if isinstance(hit, str | Integral):
        return HitShape(number, str(hit), None, {})
    if isinstance(hit, tuple | list) and not hasattr(hit, "_asdict"):
        if len(hit) != 2:
            raise UsageError(f"hit {number} is {shown(hit)}; expected a pair: a hit or its id, and a score")
        return replace(_read(hit[0], number), score=_number(hit[1], number))
    if isinstance(hit, Mapping):
        own: Mapping[str, Any] = hit
    elif hasattr(hit, "_asdict"):
        own = hit._asdict()
    else:
        # A node of LlamaIndex has a score around it.
        own = {**attributes(hit), **attributes(getattr(hit, "node", None))}
    if not own:
        raise UsageError(
            f"hit {number} is a {type(hit).__name__} ({shown(hit)}), which has no id, score or metadata; looked for "
            f"were {listed([*IDS, *SCORES, *WITHIN])}"
        )
    inner = (_fields(own[name]) for name in WITHIN if own.get(name) is not None)
    within = {key: value for fields in inner for key, value in fields.items()}
    ids = (id for name in IDS if (id := _id(own.get(name), name, number)))
    scores = (_number(own[name], number) for name in SCORES if own.get(name) is not None)
    none = math.nan if any(name in own for name in SCORES) else None
    return HitShape(number, next(ids, None), next(scores, none), {**within, **own})


def _id(value: Any, name: str, number: int) -> str:
    """The id in a field of a hit; "" where there is none."""
    try:
        return "" if value is None else str(plain(value))
    except Exception as error:
        raise DataError(f"hit {number}, field {name!r}: the id cannot be read: {error_text(error)}") from None


def _number(score: Any, number: int) -> float:
    try:
        return float(score)
    except Exception:
        raise UsageError(f"the score of hit {number} is {shown(score)}, expected a number") from None
