"""Bringing an index up to date: what was added, changed and removed is found by ids and digests, and only that is done.

What comes out finds, scores and tells the same as an index that is built anew from the documents as they are now.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairagent.digests import RECORD
from fairagent.errors import DataError, IndexMismatch
from fairagent.files import write_whole
from fairagent.folders import workshop
from fairagent.retrieve.lucene.analysis import Analyzer
from fairagent.retrieve.lucene.build import LUCENE, LuceneBuild, explained
from fairagent.retrieve.lucene.catalog import DIGESTS, KEYS, Catalog
from fairagent.retrieve.lucene.documents import digest, line_of
from fairagent.retrieve.lucene.forward import write_forward
from fairagent.retrieve.lucene.index import (
    COMMIT_EVERY,
    MANIFEST,
    REMEDY,
    Indexable,
    Manifest,
    has_terms,
    take_over,
    workers_here,
)
from fairagent.retrieve.lucene.strings import IdTable, mapped

BATCH = 1_000
"""Documents that are looked up at once."""


@dataclass(frozen=True, slots=True)
class Changes:
    """How many documents an update has added, changed, removed, and kept as they were."""

    added: int
    changed: int
    removed: int
    kept: int

    def __str__(self) -> str:
        things = "document" if self.added == 1 else "documents"
        return f"{self.added:,} {things} added, {self.changed:,} changed, {self.removed:,} removed; {self.kept:,} kept"


@dataclass(frozen=True, slots=True)
class _Earlier:
    """What the index in `folder` says of the documents that are in it, in their order; `keys` are Lucene's."""

    folder: Path
    ids: IdTable
    digests: NDArray[np.uint64]
    keys: NDArray[np.int32]

    @classmethod
    def of(cls, folder: Path) -> _Earlier:
        if not (folder / DIGESTS).is_file():
            raise IndexMismatch(
                f"the index at {folder} is from a version that kept no digests of documents, so that nobody can tell "
                f"which have changed; {REMEDY}"
            )
        try:
            ids, digests = IdTable.load(folder), mapped(folder / DIGESTS)
            there = (folder / KEYS).is_file()
            keys = mapped(folder / KEYS) if there else np.arange(len(ids), dtype=np.int32)
            if not len(ids) == len(digests) == len(keys):
                raise ValueError(f"{len(ids)} ids, {len(digests)} digests, {len(keys)} keys")
        except (OSError, ValueError) as error:
            raise IndexMismatch(f"the index at {folder} is damaged; {REMEDY} ({error})") from None
        return cls(folder, ids, digests, keys)


def update_index(
    collection: Indexable,
    folder: Path,
    analyzer: str = "english",
    progress: Callable[[int], None] = lambda done: None,
    workers: int = 0,
) -> Changes:
    """Bring the index in `folder` up to date with the documents of `collection`, and tell what has changed.

    Where it has changed the collection is read, and documents whose digests are not in the index are analyzed; those
    that are gone or were replaced are taken out of Lucene's statistics as well. `progress` is called with the number of
    documents read. The old index is whole, and searched, until the new one takes its place; an update that ends early,
    in whatever way, is begun anew by the next one.

    Raises IndexMismatch where the index is of another collection, analyzer or version, where it is damaged (every byte
    is compared), or where the collection has none of its documents; and what `build_index` raises.
    """
    folder = folder.absolute()
    # Before the documents are read: what changes in the meantime must not pass for what was indexed.
    fingerprint = collection.fingerprint()
    if _outdated(collection, folder, analyzer) is None:
        return Changes(0, 0, 0, Manifest.read(folder).documents)
    chosen = Analyzer(analyzer)
    with workshop(folder, (MANIFEST, RECORD)) as shop, explained(shop.path):
        try:
            # Again: another process may have replaced it until now.
            manifest = _outdated(collection, folder, analyzer)
            if manifest is None:
                shop.clear()
                return Changes(0, 0, 0, Manifest.read(folder).documents)
            earlier = _Earlier.of(folder)
            take_over(folder, shop, [LUCENE])
            origin = {"update": fingerprint}
            build = LuceneBuild(shop.new, chosen.java, origin, workers or workers_here(), COMMIT_EVERY)
            with _abandoned(build):
                changes = _changed(build, collection, earlier, progress)
                documents = changes.kept + changes.changed + changes.added
                if has_terms(folder):
                    write_forward(shop.new, documents, chosen)
                manifest = replace(manifest, fingerprint=fingerprint, documents=documents)
                write_whole(shop.new / MANIFEST, json.dumps(asdict(manifest), indent=2) + "\n")
                build.finish()
                shop.put()
        except BaseException:
            shop.clear()
            raise
    return changes


@contextmanager
def _abandoned(build: LuceneBuild) -> Iterator[None]:
    """End a build that does not come to its end, whatever the reason."""
    try:
        yield
    except BaseException:
        build.abandon()
        raise


def _outdated(collection: Indexable, folder: Path, analyzer: str) -> Manifest | None:
    """The manifest of an index of this collection as it was before, None where it is of the collection as it is.

    Raises IndexMismatch where it is of something else.
    """
    manifest = Manifest.read(folder)
    if manifest.outdated(collection, analyzer):
        return manifest
    manifest.check(collection, analyzer, folder)
    return None


def _changed(build: LuceneBuild, collection: Indexable, earlier: _Earlier, progress: Callable[[int], None]) -> Changes:
    """Add and remove what has changed, and write the new catalog and keys beside Lucene's index."""
    catalog, keys, added = Catalog(), [], 0
    kept = np.zeros(len(earlier.ids), dtype=np.bool_)
    key = int(earlier.keys.max()) + 1
    documents = collection.documents()
    while batch := list(islice(documents, BATCH)):
        first = len(catalog)
        for document in batch:
            catalog.add(document.id, digest(document))
        numbers = earlier.ids.numbers([document.id for document in batch])
        same = (numbers >= 0) & (earlier.digests[numbers] == catalog.digests(first)).all(axis=1)
        kept[numbers[same]] = True
        own = earlier.keys[numbers].astype(np.int32)
        for place in np.flatnonzero(~same).tolist():
            build.add(line_of(batch[place], key), first + place + 1)
            own[place], key = key, key + 1
        keys.append(own)
        added += int((numbers < 0).sum())
        progress(len(catalog))
    if not len(catalog):
        raise DataError(f"collection {collection.name!r} has no documents")
    if not kept.any():
        raise IndexMismatch(
            f"collection {collection.name!r} has none of the documents of the index at {earlier.folder} as they were; "
            f"{REMEDY}"
        )
    catalog.save(build.folder)
    np.save(build.folder / KEYS, np.concatenate(keys))
    build.settle(len(catalog))
    counted = build.remove(earlier.keys[~kept].tolist(), len(catalog))
    if counted != len(catalog):
        raise IndexMismatch(f"Lucene has {counted:,} documents and not {len(catalog):,}; {REMEDY}")
    new, left = len(catalog) - int(kept.sum()), int((~kept).sum())
    return Changes(added, new - added, left - (new - added), int(kept.sum()))
