"""What an index was built from: any difference makes it another index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from fairagent.errors import BackendUnavailable, IndexMismatch
from fairagent.storage.folders import is_there
from fairagent.storage.readers import file_text, parse_json
from fairagent.types import Document

LARGEST_MANIFEST = 1 << 24
"""Bytes."""
MANIFEST = "fairagent.json"
REMEDY = "build it again with `fairagent index --force`"
UPDATE = "`fairagent index` brings it up to date"
FORMAT = 4
"""Of the files of an index: one of another format has to be built anew."""


class Indexable(Protocol):
    """What can be indexed: a name, a stream of documents and a hash of where they come from."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def documents(self) -> Iterator[Document]:
        """Every document once, in a fixed order."""
        ...

    def fingerprint(self) -> str:
        """A hash that changes whenever the documents do."""
        ...


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index was built from, and in which format."""

    collection: str
    fingerprint: str
    documents: int
    analyzer: str
    format: int = FORMAT

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest in `folder`; raises BackendUnavailable where there is no (finished) index."""
        if not is_there(folder, MANIFEST):
            raise BackendUnavailable(f"no index at {folder}; build it with `fairagent index`")
        try:
            values = parse_json(file_text(folder / MANIFEST, LARGEST_MANIFEST))
            if isinstance(values, dict) and values.get("format") not in (None, FORMAT):
                raise IndexMismatch(
                    f"the index at {folder} is of another version of fairagent (format {values['format']}, now "
                    f"{FORMAT}); {REMEDY}"
                )
            return cls(**values)
        except (ValueError, TypeError):
            raise IndexMismatch(f"{folder / MANIFEST} cannot be read; build the index again") from None

    def check(self, collection: Indexable | None, analyzer: str, folder: Path) -> None:
        """Raise IndexMismatch, naming every difference, where the index was built from or by something else.

        Without a `collection` only what it was built by is compared.
        """
        differ = self._differing(collection, analyzer)
        if differ:
            name = self.collection if collection is None else collection.name
            listed = "; ".join(f"{key}: index {have}, now {now}" for key, (have, now) in differ.items())
            update = f"{UPDATE}, or " if collection is not None and self.outdated(collection, analyzer) else ""
            raise IndexMismatch(
                f"the index at {folder} does not belong to collection {name!r} as it is now ({listed}); "
                f"{update}{REMEDY}"
            )

    def outdated(self, collection: Indexable, analyzer: str) -> bool:
        """Whether all that has changed since the index was built of this collection is its documents."""
        return self.collection == collection.name and [*self._differing(collection, analyzer)] == ["fingerprint"]

    def _differing(self, collection: Indexable | None, analyzer: str) -> dict[str, tuple[object, object]]:
        """What the index has and what is wanted, where that is not the same."""
        if collection is None:
            return {}
        wanted = {"fingerprint": collection.fingerprint(), "analyzer": analyzer}
        have = asdict(self)
        return {key: (have[key], value) for key, value in wanted.items() if have[key] != value}
