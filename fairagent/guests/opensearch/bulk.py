"""Loading a collection into an index on a server: the only module here that writes.

The index says in its mapping (`_meta`) what it is made from and how far it has come, so that a load that was broken off
goes on, and an index of anything else is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from pydantic import Field

from fairagent.extend import (
    PROBE_TEXT,
    BackendUnavailable,
    DataError,
    Document,
    Encoder,
    Groups,
    Indexable,
    IndexMismatch,
    Section,
    encode_id,
    full_text,
)
from fairagent.guests.opensearch.index import LOADED, ServerIndex, understood
from fairagent.guests.opensearch.server import Forbidden, NotThere

FORMAT = 1
META = "fairagent"
COMMIT_EVERY = 50_000
"""Documents between two marks that a broken-off load can go on from."""
MOST_BYTES = 10 << 20
"""Of one request, as a server takes at least (http.max_content_length is 100 MB)."""
MOST_REFUSED = 5
"""Attempts of documents that a busy server turned away one by one."""
AGAIN = "load it again with `fairagent index --engine opensearch --force`"


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


class LoadSettings(Section):
    """The index that `fairagent index --engine opensearch` makes; one that is there already has its own."""

    analyzer: str = Field("english", min_length=1)
    """The server's analyzer of titles and texts."""
    k1: float = Field(0.9, ge=0)
    """BM25's k1: 0 counts each word once, with larger values repetitions count longer."""
    b: float = Field(0.4, ge=0, le=1)
    """BM25's b: how much long documents are held back."""
    shards: int = Field(1, ge=1)
    """Primary shards; 10 to 50 GB each. They cannot be changed later."""
    replicas: int = Field(1, ge=0)
    """Copies of each shard on other nodes."""
    documents: int = Field(500, ge=1, le=10_000)
    """Documents of one request."""


def dimensions_of_documents(groups: Groups | None) -> tuple[str, ...]:
    """The dimensions that are properties of documents: what depends on a topic is none."""
    return tuple(name for name in groups.dimensions if name not in groups.oracle) if groups else ()


def load(
    index: ServerIndex,
    collection: Indexable,
    settings: LoadSettings,
    encoder: Encoder | None = None,
    groups: Groups | None = None,
    progress: Callable[[int], None] = lambda done: None,
    force: bool = False,
    commit_every: int = COMMIT_EVERY,
) -> tuple[LoadRecord, bool]:
    """Load every document of `collection` into the index; the index's record, and whether anything was done.

    An index that holds the collection as it is now is left alone, a load that was broken off goes on. `force` replaces
    an index that fairagent has made, and no other: one of anything else raises IndexMismatch.
    """
    probe = tuple(round(float(one), 4) for one in encoder.documents([PROBE_TEXT])[0][:8]) if encoder else ()
    name = encoder.name if encoder else ""
    wanted = LoadRecord(collection.name, collection.fingerprint(), encoder=name, probe=probe)
    record = _present(index, wanted, force)
    if record and record.complete:
        _verify(index, record.done)
        return record, False
    if record is None:
        _create(index, settings, encoder, dimensions_of_documents(groups), wanted)
    mark = done = record.done if record else 0
    progress(done)
    documents = islice(collection.documents(), done, None)
    while batch := list(islice(documents, settings.documents)):
        _send(index, batch, encoder, groups)
        done += len(batch)
        progress(done)
        if done - mark >= commit_every:
            replace(wanted, done=done).write(index)
            mark = done
    index.server.ask("POST", f"/{index.name}/_refresh")
    _verify(index, done)
    complete = replace(wanted, done=done, complete=True)
    complete.write(index)
    return complete, True


def _present(index: ServerIndex, wanted: LoadRecord, force: bool) -> LoadRecord | None:
    """What there is of this load; None where the index is still to be made."""
    try:
        record = LoadRecord.read(index)
    except NotThere:
        return None
    if record is None:
        raise IndexMismatch(
            f"there is an index {index} that fairagent has not made; it is left alone, with or without --force. Name "
            "another (engine.index), or leave out `index` to search it as it is"
        )
    have, want = asdict(record), asdict(wanted)
    keys = ("collection", "fingerprint", "encoder", "probe", "format")
    differ = [f"{key}: index {have[key]}, now {want[key]}" for key in keys if have[key] != want[key]]
    if differ and not force:
        raise IndexMismatch(
            f"index {index} does not belong to collection {wanted.collection!r} as it is now ({'; '.join(differ)}); "
            f"{AGAIN}"
        )
    if force:
        index.server.ask("DELETE", f"/{index.name}")
        return None
    return record


def _create(
    index: ServerIndex,
    settings: LoadSettings,
    encoder: Encoder | None,
    dimensions: Sequence[str],
    record: LoadRecord,
) -> None:
    text = {"type": "text", "analyzer": settings.analyzer}
    properties: dict[str, Any] = {
        LOADED.id: {"type": "keyword"},
        LOADED.title: {**text, "index": False},
        LOADED.text: {**text, "index": False},
        "contents": {**text, "similarity": META, "term_vector": "yes"},
    }
    if clash := sorted({*properties, LOADED.vector} & set(dimensions)):
        raise DataError(f"a dimension called {clash[0]!r} has the name of another field of the index; rename it")
    properties |= {dimension: {"type": "keyword"} for dimension in dimensions}
    about: dict[str, Any] = {
        "number_of_shards": settings.shards,
        "number_of_replicas": settings.replicas,
        "similarity": {META: {"type": "BM25", "k1": settings.k1, "b": settings.b}},
    }
    if encoder:
        length = int(encoder.documents([PROBE_TEXT]).shape[1])
        if index.version.is_opensearch:
            method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
            properties[LOADED.vector] = {"type": "knn_vector", "dimension": length, "method": method}
            about["knn"] = True
        else:
            # A server's own default stores a byte a number, and scores by that.
            hnsw = {"dims": length, "index": True, "similarity": "cosine", "index_options": {"type": "hnsw"}}
            properties[LOADED.vector] = {"type": "dense_vector", **hnsw}
    # What is only there to be searched is not stored a second time.
    mappings = {
        "dynamic": False,
        "_meta": {META: asdict(record)},
        "_source": {"excludes": ["contents"]},
        "properties": properties,
    }
    index.server.ask("PUT", f"/{index.name}", {"settings": {"index": about}, "mappings": mappings})


def _send(index: ServerIndex, documents: Sequence[Document], encoder: Encoder | None, groups: Groups | None) -> None:
    records: list[dict[str, Any]] = [
        {LOADED.id: one.id, LOADED.title: one.title, LOADED.text: one.text, "contents": full_text(one)}
        for one in documents
    ]
    for one in documents:
        encode_id(one.id)
    for dimension in dimensions_of_documents(groups):
        assert groups is not None
        labels = groups.labels(dimension)
        shares = groups.memberships(dimension, [one.id for one in documents])[:, 1:]
        for record, row in zip(records, shares.tolist(), strict=True):
            if some := [label for label, share in zip(labels, row, strict=True) if share > 0]:
                record[dimension] = some
    if encoder:
        vectors = encoder.documents([record["contents"] for record in records])
        for record, vector in zip(records, vectors, strict=True):
            record[LOADED.vector] = [round(float(number), 7) for number in np.asarray(vector)]
    for some_records in _pieces(records):
        _bulk(index, some_records)


def _pieces(records: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    """The records in requests of some 10 MB."""
    start = size = 0
    for place, record in enumerate(records):
        own = 4 * len(record["contents"]) + 24 * len(record.get(LOADED.vector, ()))
        if size + own > MOST_BYTES and place > start:
            yield records[start:place]
            start, size = place, 0
        size += own
    yield records[start:]


def _bulk(index: ServerIndex, records: Sequence[Mapping[str, Any]]) -> None:
    """Write these, again where the server was too busy for some; it is done when every one is answered for."""
    left, refused = list(records), ""
    for _ in range(MOST_REFUSED):
        lines = (line for record in left for line in ({"index": {"_id": record[LOADED.id]}}, record))
        answer = index.server.ask("POST", f"/{index.name}/_bulk", lines=lines)
        again = []
        with understood(index.server):
            for record, item in zip(left, answer["items"], strict=True):
                status, error = int(item["index"]["status"]), item["index"].get("error") or {}
                if status in (200, 201) and not error:
                    continue
                reason = index.server.quoted(f"{error.get('type', '')}: {error.get('reason', '')}")
                refused = f"{status}{reason}"
                if status not in (429, 503):
                    raise _refusal(index, record[LOADED.id], status, refused)
                again.append(record)
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


def _verify(index: ServerIndex, documents: int) -> None:
    if (count := index.count()) != documents:
        raise DataError(f"index {index} holds {count:,} documents where {documents:,} were loaded; {AGAIN}")
