"""Manifests: what a folder of an index was made from; any difference makes it another index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from glob import escape
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from fairagent.errors import BackendUnavailable, IndexMismatch
from fairagent.storage.digests import RECORD, expect_whole
from fairagent.storage.files import remove_folder, write_whole
from fairagent.storage.folders import MARKER, is_there
from fairagent.storage.readers import file_text, parse_json
from fairagent.types import Document

LARGEST_MANIFEST = 1 << 24
"""Bytes."""
MANIFEST = "fairagent.json"
REMEDY = "build it again with `fairagent index --force`"
UPDATE = "`fairagent index` brings it up to date"


def state_of(path: Path) -> tuple[int, int]:
    """What shows in a moment that a file was replaced: inode, and time of the last change (ns); zeros for none."""
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
    """The base of manifests, which are frozen dataclasses with a `format` and a `fingerprint`; one JSON file each."""

    __slots__ = ()

    FILE: ClassVar[str]
    """The manifest's file."""
    WHAT: ClassVar[str]
    """What messages call the index."""
    FORMAT: ClassVar[int]
    """Of the files of the index: one of another format has to be made anew."""
    MAKE: ClassVar[str]
    """What to do where there is none."""

    @classmethod
    def exists(cls, folder: Path) -> bool:
        """Whether a finished index is in `folder`."""
        return is_there(folder, cls.FILE)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The manifest in `folder`.

        Raises BackendUnavailable where there is no (finished) index, IndexMismatch for a damaged one, or of another
        format.
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
        """The manifest in `folder`; raises what `read`, `check` and `expect_whole` do."""
        manifest = cls.read(folder)
        manifest.check(collection, folder, **made_by)
        cls.expect_whole(folder)
        return manifest

    @classmethod
    def expect_whole(cls, folder: Path) -> None:
        """Raise IndexMismatch where a moment's look at the files shows damage."""
        expect_whole(folder, f"the {cls.WHAT}", REMEDY)

    @classmethod
    def damaged(cls, folder: Path, reason: object) -> IndexMismatch:
        """The error for files that hold what cannot be."""
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
        # First: what a killed process was about to put there is put there by this.
        cls.exists(folder)
        before = state_of(folder / cls.FILE)
        manifest = cls.read_checked(folder, collection, **made_by)
        with cls.reading(folder):
            yield manifest
        if state_of(folder / cls.FILE) != before:
            raise IndexMismatch(f"the {cls.WHAT} at {folder}: replaced while it was opened; repeat the command")

    def save(self, folder: Path) -> None:
        """Write the manifest into `folder`."""
        write_whole(folder / self.FILE, json.dumps(self.values, indent=2) + "\n")

    @property
    def values(self) -> dict[str, Any]:
        """Field -> value."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    def check(self, collection: Indexable | None, folder: Path, **made_by: object) -> None:
        """Raise IndexMismatch, naming every difference, where the index was made from or by something else.

        Without a `collection` nothing is compared.
        """
        if collection is not None and (differ := self._differing(collection, made_by)):
            differences = "; ".join(f"{key}: {self.WHAT} {have}, now {now}" for key, (have, now) in differ.items())
            do = "do" if self.WHAT.endswith("s") else "does"
            update = f"{UPDATE}, or " if self.outdated(collection, **made_by) else ""
            raise IndexMismatch(
                f"the {self.WHAT} at {folder} {do} not belong to collection {collection.name!r} as it is now "
                f"({differences}); {update}{REMEDY}"
            )

    def outdated(self, collection: Indexable, **made_by: object) -> bool:
        """Whether all that has changed since the index was made of this collection is its documents."""
        same = self.values["collection"] == collection.name
        return same and [*self._differing(collection, made_by)] == ["fingerprint"]

    def _differing(self, collection: Indexable, made_by: dict[str, object]) -> dict[str, tuple[object, object]]:
        """What the index has and what is wanted, where that is not the same."""
        wanted, have = {"fingerprint": collection.fingerprint(), **made_by}, self.values
        return {key: (have[key], value) for key, value in wanted.items() if have[key] != value}


OLDER = tuple(f"fairagent-{what}.json" for what in ("collection", "dense", "graph", "ann", "splade"))
"""The manifests of what versions before format 5 had beside an index NAME, at NAME-..."""


def remove_older(index: Path) -> None:
    """Remove what versions before format 5 had beside the index in this folder, but for what is beside another one."""
    beside = [path for path in index.parent.glob(f"{escape(index.name)}-*") if (path / RECORD).is_file()]
    others = tuple(f"{path.name}-" for path in beside if (path / MANIFEST).is_file())
    for path in beside:
        if not path.name.startswith(others) and any((path / name).is_file() for name in OLDER):
            remove_folder(path)
    for path in index.parent.glob(f"{escape(index.name)}.earlier*"):
        if (path / RECORD).is_file() or (path / MARKER).is_file():
            remove_folder(path)


@dataclass(frozen=True, slots=True)
class Manifest(IndexManifest):
    """What a BM25 index was built from, and in which format."""

    collection: str
    fingerprint: str
    documents: int
    analyzer: str
    chunks: str = ""
    """How documents were cut into passages."""
    format: int = 5
    """5: what is made of the same documents besides (vectors, graphs) is in folders in that of the index."""

    FILE: ClassVar[str] = MANIFEST
    WHAT: ClassVar[str] = "index"
    FORMAT: ClassVar[int] = 5
    MAKE: ClassVar[str] = "build it with `fairagent index`"
