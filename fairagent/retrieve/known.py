"""What the index tells of its collection: which documents there are, and whether they have changed since."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np

from fairagent.collection import Collection
from fairagent.collection.collection import states_of
from fairagent.collection.known import NAMED, KnownIds, known_documents
from fairagent.errors import FairAgentError, IndexMismatch
from fairagent.retrieve.catalog import IdTable
from fairagent.retrieve.manifest import MANIFEST, Manifest, chunks_of
from fairagent.types.clean import logger

TIME = "%Y-%m-%d %H:%M"

log = logger(__name__)


def indexed_documents(collection: Collection, index: Path) -> KnownIds | None:
    """The documents in the index, or else what the collection tells of them (`known_documents`).

    An index of passages is no help, since everything else is about documents.
    """
    if not collection.chunks and Manifest.exists(index):
        try:
            with Manifest.opening(index, collection):
                ids = IdTable.load(index)
            some = tuple(id.decode() for id in ids.names(np.arange(min(NAMED, len(ids)))).tolist())
            return KnownIds(f"the index at {index}", lambda wanted: (ids.numbers(wanted) >= 0).tolist(), some)
        except FairAgentError as error:
            log.debug("the index at %s does not tell the collection's documents (%s)", index, error)
    return known_documents(collection)


def as_indexed(collection: Collection, index: Path, analyzer: str) -> Collection:
    """The collection, for whoever searches its index: known by what that was made of, `behind` where that has changed.

    The groups are those of the files now. It is as it was where the index is none of this collection and analyzer.
    """
    # Whoever opens it says what is wrong with it.
    with suppress(IndexMismatch, OSError):
        if Manifest.exists(index):
            manifest = Manifest.read(index)
            current = replace(collection, indexed=collection.fingerprint())
            if manifest.outdated(current, analyzer=analyzer, chunks=chunks_of(collection)):
                return replace(collection, indexed=manifest.fingerprint, behind=behind(collection, index))
            return current
    return collection


def behind(collection: Collection, index: Path) -> str:
    """The note that an index is of documents that have changed since; raises OSError where it is gone."""
    made = datetime.fromtimestamp((index / MANIFEST).stat().st_mtime)
    states = states_of(collection.origin.documents) if collection.origin else {}
    times = [modified for _, modified, _ in states.values() if modified]
    when = f" ({datetime.fromtimestamp(max(times) / 1e9):{TIME}})" if times else ""
    return (
        f"the documents have changed{when} since they were indexed ({made:{TIME}}), and are served as they were then, "
        "also those that were removed, with the groups that the files have now: `fairagent index` brings the index up "
        "to date"
    )
