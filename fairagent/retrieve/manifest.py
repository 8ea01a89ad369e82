"""Manifests: what a folder of an index was made from, and whether the collection has changed since."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from fairagent.collection import Collection
from fairagent.collection.collection import states_of
from fairagent.collection.known import NAMED, KnownIds, known_documents
from fairagent.errors import BackendUnavailable, FairAgentError, IndexMismatch
from fairagent.retrieve.catalog import IdTable
from fairagent.storage.digests import expect_whole
from fairagent.storage.files import write_whole
from fairagent.storage.folders import is_there
from fairagent.storage.readers import file_text, parse_json
from fairagent.types import Document
from fairagent.types.clean import logger

LARGEST_MANIFEST = 1 << 24
"""Bytes."""
MANIFEST = "fairagent.json"
REMEDY = "build it again with `fairagent index --force`"

log = logger(__name__)


def state_of(path: Path) -> tuple[int, int]:
    """A file's inode and the time of its last change (ns), which tell that it was replaced; zeros for no file."""
    try:
        stat = path.stat()
    except OSError:
        return 0, 0
    return stat.st_ino, stat.st_mtime_ns


def chunks_of(collection: object) -> str:
    """How a collection cuts its documents into passages (JSON); "" where it does not."""
    chunks = getattr(collection, "chunks", None)
    return chunks.model_dump_json() if chunks else ""


class Indexable(Protocol):
    """What can be indexed: a name, a stream of documents and a hash of where they come from."""

    @property
    def name(self) -> str:
        """What messages call it."""

    def documents(self) -> Iterator[Document]:
        """Every document once, in a fixed order."""

    def fingerprint(self) -> str:
        """A hash that changes whenever the documents do."""


class IndexManifest:
    """The base of manifests: frozen dataclasses with a `format` and a `fingerprint`, in one JSON file each."""

    __slots__ = ()

    FILE: ClassVar[str]
    WHAT: ClassVar[str]
    """What messages call the index."""
    FORMAT: ClassVar[int]
    """An index of another format has to be made anew."""
    MAKE: ClassVar[str] = "make it with `fairagent index`"
    """What to do where there is none."""

    @classmethod
    def exists(cls, folder: Path) -> bool:
        """Whether a finished index is in `folder`."""
        return is_there(folder, cls.FILE)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The manifest in `folder`.

        Raises BackendUnavailable where there is no (finished) index, IndexMismatch for one that is damaged, or of
        another format.
        """
        if not cls.exists(folder):
            raise BackendUnavailable(f"no {cls.WHAT} at {folder}; {cls.MAKE}")
        try:
            values = parse_json(file_text(folder / cls.FILE, LARGEST_MANIFEST))
            if values.get("format") not in (None, cls.FORMAT):
                raise IndexMismatch(
                    f"the {cls.WHAT} at {folder}: of another version of fairagent (format {values['format']}, now "
                    f"{cls.FORMAT}); run `fairagent index`"
                )
            return cls(**values)
        except (ValueError, TypeError, AttributeError):
            raise IndexMismatch(f"{folder / cls.FILE} cannot be read; {REMEDY}") from None

    @classmethod
    def named(cls, folder: Path) -> tuple[object, object]:
        """The collection and the analyzer that the manifest in `folder` names, of whatever version; None for none."""
        try:
            values = parse_json(file_text(folder / cls.FILE, LARGEST_MANIFEST))
            return values.get("collection"), values.get("analyzer")
        except (OSError, ValueError, AttributeError):
            return None, None

    @classmethod
    def read_checked(cls, folder: Path, collection: Indexable | None, **made_by: object) -> Self:
        """The manifest in `folder`, and a quick look at the files beside it.

        Raises what `read` does, and IndexMismatch for damaged files, and, with a `collection`, where the index was made
        from another one or by something else than `made_by`, with every difference.
        """
        manifest = cls.read(folder)
        if collection is not None and (differing := manifest._differing(collection, made_by)):
            differences = "; ".join(f"{key}: {cls.WHAT} {have}, now {now}" for key, (have, now) in differing.items())
            update = "run `fairagent index`, or " if manifest.outdated(collection, **made_by) else ""
            do = "do" if cls.WHAT.endswith("s") else "does"
            raise IndexMismatch(
                f"the {cls.WHAT} at {folder} {do} not belong to collection {collection.name!r} as it is now "
                f"({differences}); {update}{REMEDY}"
            )
        expect_whole(folder, f"the {cls.WHAT}", REMEDY)
        return manifest

    @classmethod
    def damaged(cls, folder: Path, reason: object) -> IndexMismatch:
        be = "are" if cls.WHAT.endswith("s") else "is"
        return IndexMismatch(f"the {cls.WHAT} at {folder} {be} damaged ({reason}); {REMEDY}")

    @classmethod
    @contextmanager
    def reading(cls, folder: Path) -> Iterator[None]:
        """Turn what reading damaged files inside the block raises into IndexMismatch."""
        try:
            yield
        except (OSError, ValueError, EOFError, LookupError, TypeError) as error:
            raise cls.damaged(folder, error) from None

    @classmethod
    @contextmanager
    def opening(cls, folder: Path, collection: Indexable | None = None, **made_by: object) -> Iterator[Self]:
        """The manifest in `folder`, for a block that maps the files beside it.

        Raises what `read_checked` does, and IndexMismatch for what is damaged, or was replaced meanwhile.
        """
        # Looked for first, since that completes the move which a killed process had begun.
        cls.exists(folder)
        before = state_of(folder / cls.FILE)
        manifest = cls.read_checked(folder, collection, **made_by)
        with cls.reading(folder):
            yield manifest
        if state_of(folder / cls.FILE) != before:
            raise IndexMismatch(f"the {cls.WHAT} at {folder}: replaced while it was opened; repeat the command")

    def save(self, folder: Path) -> None:
        write_whole(folder / self.FILE, json.dumps(self.values, indent=2) + "\n")

    @property
    def values(self) -> dict[str, Any]:
        """Field -> value."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    def outdated(self, collection: Indexable, **made_by: object) -> bool:
        """Whether all that has changed since the index was made of this collection is its documents."""
        same = self.values["collection"] == collection.name
        return same and [*self._differing(collection, made_by)] == ["fingerprint"]

    def _differing(self, collection: Indexable, made_by: dict[str, object]) -> dict[str, tuple[object, object]]:
        """What the index has and what is wanted, where that is not the same."""
        wanted, have = {"fingerprint": collection.fingerprint(), **made_by}, self.values
        return {key: (have[key], value) for key, value in wanted.items() if have[key] != value}


@dataclass(frozen=True, slots=True)
class Manifest(IndexManifest):
    """What a BM25 index was built from; vectors and graphs of the same documents are in folders within its folder.

    `chunks` says how documents were cut into passages.
    """

    collection: str
    fingerprint: str
    documents: int
    analyzer: str
    chunks: str = ""
    format: int = 5

    FILE: ClassVar[str] = MANIFEST
    WHAT: ClassVar[str] = "index"
    FORMAT: ClassVar[int] = 5
    MAKE: ClassVar[str] = "build it with `fairagent index`"


def indexed_documents(collection: Collection, index: Path) -> KnownIds | None:
    """The documents in the index, or else those that the collection knows (`known_documents`).

    An index of passages does not say which documents there are.
    """
    if not collection.chunks and Manifest.exists(index):
        try:
            with Manifest.opening(index, collection):
                ids = IdTable.load(index)
            some = tuple(id.decode() for id in ids.names(np.arange(min(NAMED, len(ids)))).tolist())
            return KnownIds(f"the index at {index}", lambda wanted: (ids.numbers(wanted) >= 0).tolist(), some)
        except FairAgentError as error:
            log.debug("the ids of the index at %s cannot be read (%s)", index, error)
    return known_documents(collection)


def as_indexed(collection: Collection, index: Path, analyzer: str) -> Collection:
    """The collection as its index was made of it, `behind` where the documents have changed since.

    The groups are those of the files now. It is returned as it is where the index is of another collection or analyzer.
    """
    # Opening it reports what is wrong with it.
    with suppress(IndexMismatch, OSError):
        if Manifest.exists(index):
            manifest = Manifest.read(index)
            current = replace(collection, indexed=collection.fingerprint())
            if manifest.outdated(current, analyzer=analyzer, chunks=chunks_of(collection)):
                return replace(collection, indexed=manifest.fingerprint, behind=behind(collection, index))
            return current
    return collection


def behind(collection: Collection, index: Path) -> str:
    """The note that the documents of an index have changed since it was made; OSError where the index is gone."""
    made = datetime.fromtimestamp((index / MANIFEST).stat().st_mtime)
    states = states_of(collection.origin.documents) if collection.origin else {}
    times = [modified for _, modified, _ in states.values() if modified]
    when = f" ({datetime.fromtimestamp(max(times) / 1e9):%Y-%m-%d %H:%M})" if times else ""
    return (
        f"the documents have changed{when} since they were indexed ({made:%Y-%m-%d %H:%M}), and are served as they "
        "were then, also those that were removed, with the groups that the files have now: `fairagent index` brings "
        "the index up to date"
    )
