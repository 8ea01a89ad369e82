"""The last whole index, which goes on serving while the next one is made; and what its collection was then.

An index at `NAME` has others beside it, `NAME-...`: vectors, a graph, and in `NAME-collection` the groups of its
documents. An update replaces one after another. So that all that is searched is of one state, whoever begins one first
puts `NAME.earlier` and `NAME.earlier-...` beside them, links to the same files; `NAME.earlier` comes last, and while it
is there, it is what serves. When all are new it goes first, at once. An update that is broken off leaves it, and the
same command goes on.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from fairagent.collection import Collection
from fairagent.collection.collection import Source, indexed_fingerprint
from fairagent.collection.config import Chunks
from fairagent.collection.groups import tables_of
from fairagent.collection.origin import IndexedSource, IndexedState, State
from fairagent.collection.table import GroupTable
from fairagent.errors import BackendUnavailable, DataError, IndexMismatch
from fairagent.retrieve.manifest import MANIFEST, IndexManifest, Manifest
from fairagent.storage.digests import RECORD
from fairagent.storage.files import remove_folder, write_whole
from fairagent.storage.folders import Workshop, is_there, workshop

EARLIER, COLLECTION, BUSY = ".earlier", "-collection", "serving"
TIME = "%Y-%m-%d %H:%M"

IndexStamp = tuple[tuple[int, int], ...]
"""Of the records of the folders that serve: what an index that was replaced differs in."""


@dataclass(frozen=True, slots=True)
class CollectionManifest(IndexManifest):
    """What a collection was when it was indexed: `tables` of groups, of which `digest` is a hash.

    `documents` is the fingerprint of the documents, `fingerprint` that of what is indexed of them.
    """

    collection: str
    fingerprint: str
    documents: str
    chunks: dict[str, Any] | None
    tables: int
    digest: str
    format: int = 1

    FILE: ClassVar[str] = "fairagent-collection.json"
    WHAT: ClassVar[str] = "groups of the index"
    FORMAT: ClassVar[int] = 1
    MAKE: ClassVar[str] = "`fairagent index` keeps them"


def keep_groups(collection: Collection, folder: Path, documents: str) -> None:
    """Keep beside the index in `folder` what its collection is now; `documents` is the fingerprint that it has.

    Those of a collection in memory are not kept. Raises IndexMismatch where the index is of other documents.
    """
    manifest, place = Manifest.read(folder), _kept(folder)
    if not collection.origin:
        return
    fingerprint = indexed_fingerprint(documents, collection.chunks)
    if fingerprint != manifest.fingerprint:
        raise changed_meanwhile(collection)
    tables = tables_of(collection.groups)
    digest = sha256("".join(table.digest() for table in tables).encode()).hexdigest()
    chunks = _plain(collection.chunks)
    made = CollectionManifest(collection.name, fingerprint, documents, chunks, len(tables), digest)
    with suppress(IndexMismatch):
        if CollectionManifest.exists(place) and CollectionManifest.read(place) == made:
            return
    with workshop(place, (CollectionManifest.FILE, RECORD)) as shop:
        shop.begin()
        for number, table in enumerate(tables):
            table.save(shop.new / str(number))
        made.save(shop.new)
        shop.put()


def changed_meanwhile(collection: Collection) -> IndexMismatch:
    """The error where what is indexed is not of one state."""
    return IndexMismatch(
        f"the files of collection {collection.name!r} have changed while they were indexed; repeat the command "
        "(until then the earlier index serves, where there is one)"
    )


def serving(folder: Path, collection: str, analyzer: str) -> Path:
    """The folder of what serves in the place of the index at `folder`: the earlier one, while there is one.

    That is only where it is of this collection and analyzer.
    """
    earlier = _earlier(folder)
    with suppress(IndexMismatch, BackendUnavailable):
        if is_there(earlier, MANIFEST):
            of = Manifest.read(earlier)
            if (of.collection, of.analyzer) == (collection, analyzer):
                return earlier
    return folder


def stamp_of(folder: Path, collection: str, analyzer: str) -> IndexStamp:
    """What shows in a moment that another index serves at `folder`, or other groups."""
    place = serving(folder, collection, analyzer)
    return tuple(_state(path / RECORD) for path in (place, _kept(place)))


def as_indexed(
    place: Path, name: str, analyzer: str, source: Source, chunks: Chunks | None, states: Mapping[Path, State]
) -> IndexedState | None:
    """The collection as it was when the index in the folder `place` was made; its documents are now those of `source`.

    None where that is no index of this collection and analyzer, or where it has changed and nothing was kept of it.
    """
    try:
        manifest = Manifest.read(place) if Manifest.exists(place) else None
        if manifest is None or (manifest.collection, manifest.analyzer) != (name, analyzer):
            return None
        documents = source.fingerprint()
        if indexed_fingerprint(documents, chunks) == manifest.fingerprint:
            return IndexedState(IndexedSource(source, documents, current=True))
        manifest_there = CollectionManifest.read_checked(_kept(place), None)
        # Passages of another length are no change of the documents.
        if (manifest_there.collection, manifest_there.fingerprint, manifest_there.chunks) != (
            name,
            manifest.fingerprint,
            _plain(chunks),
        ):
            return None
        tables = tuple(GroupTable.load(_kept(place) / str(number)) for number in range(manifest_there.tables))
    except (BackendUnavailable, IndexMismatch, DataError):
        # Whoever opens it says what is wrong with it.
        return None
    return IndexedState(
        IndexedSource(source, manifest_there.documents, current=False),
        tables,
        behind(place, states),
    )


def behind(place: Path, states: Mapping[Path, State]) -> str:
    """The note that the index in a folder is of documents that have changed since, whose files are in these states.

    Raises OSError where the index is gone.
    """
    made = datetime.fromtimestamp((place / MANIFEST).stat().st_mtime)
    times = [modified for _, modified, _ in states.values() if modified]
    when = f" ({datetime.fromtimestamp(max(times) / 1e9):{TIME}})" if times else ""
    return (
        f"the documents have changed{when} since they were indexed ({made:{TIME}}), and are served as they were then, "
        "also those that were removed: `fairagent index` brings the index up to date"
    )


def is_replaced(collection: Collection, folder: Path, analyzer: str, force: bool) -> bool:
    """Whether the index in `folder` could serve while it is replaced, as it is by `force` or of changed documents."""
    try:
        if not Manifest.exists(folder):
            return False
        manifest = Manifest.read(folder)
    except IndexMismatch:
        return False
    same = (manifest.collection, manifest.analyzer) == (collection.name, analyzer)
    return same and (force or manifest.outdated(collection, analyzer=analyzer))


@contextmanager
def renewing(folder: Path, replacing: bool) -> Iterator[None]:
    """Make what is at `folder` and beside it anew; what is there serves until all is done.

    Nothing is done where it is not `replacing` anything, and no earlier work is to be finished. Raises
    BackendUnavailable where another process is at it.
    """
    earlier = _earlier(folder)
    if not replacing and not any(folder.parent.glob(f"{escape(earlier.name)}*")):
        yield
        return
    with workshop(earlier, (MANIFEST, RECORD)) as shop:
        if not (earlier / MANIFEST).is_file():
            _remove_beside(earlier)
            if replacing and (folder / MANIFEST).is_file():
                _link_all(folder, earlier, shop)
        # Something to go on from: without, whoever reads would take the workshop for a left-over, and clear it.
        shop.new.mkdir(exist_ok=True)
        write_whole(shop.new / BUSY, "")
        try:
            yield
        except BaseException:
            # What has not been replaced serves itself.
            if all(_same(path, folder, earlier) for path in (earlier, *_beside(earlier))):
                _remove(earlier, shop)
            raise
        _remove(earlier, shop)


def _link_all(folder: Path, earlier: Path, shop: Workshop) -> None:
    """Put links to the index in `folder`, and to all beside it, at `earlier`, the index last."""
    for path in _beside(folder):
        # An index beside it is of another collection whose name begins alike.
        if (path / RECORD).is_file() and not (path / MANIFEST).is_file():
            shop.begin()
            _link(path, shop.new)
            shop.force()
            shop.new.rename(_twin(path, folder, earlier))
    shop.begin()
    _link(folder, shop.new)
    shop.put(recorded=True)


def _link(folder: Path, to: Path) -> None:
    def linked(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)

    # A link that a stranger put there stays one, which whoever opens the index refuses or finds to be damage.
    shutil.copytree(folder, to, symlinks=True, copy_function=linked, dirs_exist_ok=True)


def _remove(earlier: Path, shop: Workshop) -> None:
    """Remove what served: the index first and at once."""
    if earlier.exists():
        shop.remove()
    _remove_beside(earlier)
    shop.begin()


def _remove_beside(earlier: Path) -> None:
    for path in _beside(earlier):
        remove_folder(path)


def _beside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.parent.glob(f"{escape(folder.name)}-*") if path.is_dir())


def _same(path: Path, folder: Path, earlier: Path) -> bool:
    """Whether what is at a place beside `earlier` is still at that beside `folder`."""
    try:
        return (path / RECORD).read_bytes() == (_twin(path, earlier, folder) / RECORD).read_bytes()
    except OSError:
        return False


def _twin(path: Path, of: Path, to: Path) -> Path:
    return path.with_name(to.name + path.name.removeprefix(of.name))


def _earlier(folder: Path) -> Path:
    return _sibling(folder, EARLIER)


def _kept(folder: Path) -> Path:
    return _sibling(folder, COLLECTION)


def _sibling(folder: Path, ending: str) -> Path:
    """The folder beside another with this ending; the current one has its name only in full, and the root has none."""
    folder = folder if folder.name else folder.absolute()
    return folder.parent / f"{folder.name}{ending}"


def _plain(chunks: Chunks | None) -> dict[str, Any] | None:
    return chunks.model_dump(mode="json") if chunks else None


def _state(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError:
        return 0, 0
    return stat.st_ino, stat.st_mtime_ns
