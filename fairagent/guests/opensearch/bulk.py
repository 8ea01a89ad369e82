"""Loading a collection into an index on a server: the only thing here that writes.

The index says in its mapping (`_meta`) what it is made from and how far it has come, so that a load that was broken off
goes on, and an index of anything else is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from fairagent.extend import (
    PROBE_TEXT,
    BackendUnavailable,
    DataError,
    Document,
    Encoder,
    Indexable,
    IndexMismatch,
    encode_id,
    full_text,
)
from fairagent.guests.opensearch.answers import understood
from fairagent.guests.opensearch.index import LOADED, ServerIndex
from fairagent.guests.opensearch.server import Forbidden, NotThere

FORMAT = 1
META = "fairagent"
COMMIT_EVERY = 50_000
"""Documents between two marks that a broken-off load can go on from."""
MOST_BYTES = 10 << 20
"""Of one request, as a server takes at least (http.max_content_length is 100 MB)."""
MOST_REFUSED = 5
"""Attempts of documents that a busy server turned away one by one."""


@dataclass(frozen=True, slots=True)
class LoadRecord:
    """What an index on a server is made from, and how many documents are safely in it; `probe` begins a test vector."""

    collection: str
    fingerprint: str
    done: int = 0
    complete: bool = False
    encoder: str = ""
    probe: tuple[float, ...] = ()
    format: int = FORMAT

    @classmethod
    def read(cls, index: ServerIndex) -> LoadRecord | None:
        """What the index says of itself; None where fairagent has not made it. NotThere where there is none."""
        about = index.server.ask("GET", f"/{index.name}/_mapping")
        with understood(index.server):
            meta = [one["mappings"].get("_meta", {}).get(META) for one in about.values()]
            if len(meta) != 1 or meta[0] is None:
                return None
            return cls(**{**meta[0], "probe": tuple(meta[0].get("probe", ()))})

    def write(self, index: ServerIndex) -> None:
        """Say it in the index's mapping."""
        index.server.ask("PUT", f"/{index.name}/_mapping", {"_meta": {META: asdict(self)}})


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The index to make: its settings and mapping, the groups that go into it, and who makes embeddings."""

    analyzer: str = "english"
    k1: float = 0.9
    b: float = 0.4
    shards: int = 1
    replicas: int = 1
    batch: int = 500
    encoder: Encoder | None = None


def load(
    index: ServerIndex,
    collection: Indexable,
    plan: LoadPlan,
    groups: Callable[[Sequence[str]], Sequence[Mapping[str, Sequence[str]]]] | None = None,
    dimensions: Sequence[str] = (),
    progress: Callable[[int], None] = lambda done: None,
    force: bool = False,
    commit_every: int = COMMIT_EVERY,
) -> tuple[LoadRecord, bool]:
    """Load every document of `collection` into the index; what it then says of itself, and whether anything was done.

    `groups` tells the labels of documents in each of the `dimensions`, which become keyword fields. An index that holds
    the collection as it is now is left alone, a load that was broken off goes on. `force` replaces an index that
    fairagent has made, and no other. At the end the documents are counted.

    Raises IndexMismatch where the index is of something else, DataError for what the collection's files or the server
    find wrong with documents, BackendUnavailable where the server may not be written to, is full, or fails.
    """
    probe = tuple(round(float(one), 4) for one in plan.encoder.documents([PROBE_TEXT])[0][:8]) if plan.encoder else ()
    name = plan.encoder.name if plan.encoder else ""
    wanted = LoadRecord(collection.name, collection.fingerprint(), encoder=name, probe=probe)
    origin = _there(index, wanted, force)
    if origin and origin.complete:
        _verify(index, origin.done)
        return origin, False
    if origin is None:
        _create(index, plan, dimensions, wanted)
        origin = wanted
    done = origin.done
    documents = islice(collection.documents(), done, None)
    progress(done)
    mark = done
    while batch := list(islice(documents, plan.batch)):
        _send(index, batch, plan.encoder, groups)
        done += len(batch)
        progress(done)
        if done - mark >= commit_every:
            _progressed(wanted, done).write(index)
            mark = done
    index.server.ask("POST", f"/{index.name}/_refresh")
    _verify(index, done)
    complete = LoadRecord(**{**asdict(wanted), "probe": probe, "done": done, "complete": True})
    complete.write(index)
    return complete, True


def _there(index: ServerIndex, wanted: LoadRecord, force: bool) -> LoadRecord | None:
    """What there is of this load; None where the index is still to be made."""
    try:
        there = LoadRecord.read(index)
    except NotThere:
        return None
    if there is None:
        raise IndexMismatch(
            f"there is an index {index} that fairagent has not made; it is left alone, with or without --force. Name "
            "another (engine.index), or leave out `index` to search it as it is"
        )
    have, want = asdict(there), asdict(wanted)
    keys = ("collection", "fingerprint", "encoder", "probe", "format")
    differ = [f"{key}: index {have[key]}, now {want[key]}" for key in keys if have[key] != want[key]]
    if differ and not force:
        raise IndexMismatch(
            f"index {index} does not belong to collection {wanted.collection!r} as it is now ({'; '.join(differ)}); "
            "load it again with `fairagent index --engine opensearch --force`"
        )
    if force:
        index.server.ask("DELETE", f"/{index.name}")
        return None
    return there


def _create(index: ServerIndex, plan: LoadPlan, dimensions: Sequence[str], origin: LoadRecord) -> None:
    likeness = {"type": "BM25", "k1": plan.k1, "b": plan.b}
    text = {"type": "text", "analyzer": plan.analyzer}
    properties: dict[str, Any] = {
        LOADED.id: {"type": "keyword"},
        LOADED.title: {**text, "index": False},
        LOADED.text: {**text, "index": False},
        "contents": {**text, "similarity": META, "term_vector": "yes"},
        **{dimension: {"type": "keyword"} for dimension in dimensions},
    }
    if clash := sorted({LOADED.id, LOADED.title, LOADED.text, "contents", LOADED.vector} & set(dimensions)):
        raise DataError(f"a dimension called {clash[0]!r} has the name of another field of the index; rename it")
    settings: dict[str, Any] = {
        "number_of_shards": plan.shards,
        "number_of_replicas": plan.replicas,
        "similarity": {META: likeness},
    }
    if plan.encoder:
        length = int(plan.encoder.documents([PROBE_TEXT]).shape[1])
        if index.version.is_opensearch:
            method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
            properties[LOADED.vector] = {"type": "knn_vector", "dimension": length, "method": method}
            settings["knn"] = True
        else:
            # A server's own default keeps a byte a number, and scores by that.
            about = {"dims": length, "index": True, "similarity": "cosine", "index_options": {"type": "hnsw"}}
            properties[LOADED.vector] = {"type": "dense_vector", **about}
    # What is only there to be searched is not stored a second time.
    mappings = {
        "dynamic": False,
        "_meta": {META: asdict(origin)},
        "_source": {"excludes": ["contents"]},
        "properties": properties,
    }
    index.server.ask("PUT", f"/{index.name}", {"settings": {"index": settings}, "mappings": mappings})


def _send(
    index: ServerIndex,
    documents: Sequence[Document],
    encoder: Encoder | None,
    groups: Callable[[Sequence[str]], Sequence[Mapping[str, Sequence[str]]]] | None,
) -> None:
    labels: Sequence[Mapping[str, Sequence[str]]] = (
        groups([one.id for one in documents]) if groups else [{} for _ in documents]
    )
    vectors = encoder.documents([full_text(one) for one in documents]) if encoder else None
    records: list[tuple[str, dict[str, Any]]] = []
    for row, (one, of) in enumerate(zip(documents, labels, strict=True)):
        encode_id(one.id)
        record: dict[str, Any] = {
            LOADED.id: one.id,
            LOADED.title: one.title,
            LOADED.text: one.text,
            "contents": full_text(one),
            **{dimension: list(has) for dimension, has in of.items() if has},
        }
        if vectors is not None:
            record[LOADED.vector] = [round(float(number), 7) for number in np.asarray(vectors[row])]
        records.append((one.id, record))
    for some in _pieces(records):
        _bulk(index, some)


def _pieces(records: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[Sequence[tuple[str, dict[str, Any]]]]:
    """The records in requests of some 10 MB."""
    start = size = 0
    for place, (_, record) in enumerate(records):
        own = 4 * len(record["contents"]) + 24 * len(record.get(LOADED.vector, ()))
        if size + own > MOST_BYTES and place > start:
            yield records[start:place]
            start, size = place, 0
        size += own
    yield records[start:]


def _bulk(index: ServerIndex, records: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Write these, again where the server was too busy for some; it is done when every one is answered for."""
    left = list(records)
    refused = ""
    for _ in range(MOST_REFUSED):
        lines = (line for id, record in left for line in ({"index": {"_id": id}}, record))
        answer = index.server.ask("POST", f"/{index.name}/_bulk", lines=lines)
        again = []
        with understood(index.server):
            for (id, record), item in zip(left, answer["items"], strict=True):
                told = item["index"]
                status, error = int(told["status"]), told.get("error") or {}
                if status in (200, 201) and not error:
                    continue
                said = f"{error.get('type', '')}: {error.get('reason', '')}"
                refused = f"{status}{index.server.quoted(said)}"
                if status not in (429, 503):
                    raise _refusal(index, id, status, refused)
                again.append((id, record))
        if not again:
            return
        left = again
    raise BackendUnavailable(
        f"index {index} turned {len(left):,} documents away {MOST_REFUSED} times ({refused}); what is done stays, and "
        "the same command goes on when the server has room"
    )


def _refusal(index: ServerIndex, id: str, status: int, refused: str) -> Exception:
    if status == 403:
        return Forbidden(
            f"index {index} may not be written to ({refused}); where its disk was full, make room and set "
            "index.blocks.read_only_allow_delete to null"
        )
    if status == 409:
        return BackendUnavailable(
            f"somebody else writes document {id[:60]!r} into index {index} ({refused}); load it by one process "
            "at a time"
        )
    return DataError(f"document {id[:60]!r} is refused by index {index} ({refused})")


def _progressed(origin: LoadRecord, done: int) -> LoadRecord:
    return LoadRecord(**{**asdict(origin), "probe": origin.probe, "done": done})


def _verify(index: ServerIndex, documents: int) -> None:
    there = index.count()
    if there != documents:
        raise DataError(
            f"index {index} holds {there:,} documents where {documents:,} were loaded; load it again with `fairagent "
            "index --engine opensearch --force`"
        )
