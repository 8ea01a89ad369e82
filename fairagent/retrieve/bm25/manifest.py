"""What an index was built from: any difference makes it another index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from fairagent.errors import BackendUnavailable, IndexMismatch
from fairagent.folders import is_there
from fairagent.intake.json_text import parse_json
from fairagent.intake.text import file_text
from fairagent.types import Document

LARGEST_MANIFEST = 1 << 24
"""Bytes."""
MANIFEST = "fairagent.json"
REMEDY = "build it again with `fairagent index --force`"
UPDATE = "`fairagent index` brings it up to date"
LUCENE_FORMAT, FORMAT = 2, 3
"""2: a Lucene index, as earlier versions built it. 3: a sparse matrix."""


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
    """What an index was built from, and in which format; `pyserini` is the version that built one of Lucene's."""

    collection: str
    fingerprint: str
    documents: int
    analyzer: str
    format: int = FORMAT
    pyserini: str = ""

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest in `folder`; raises BackendUnavailable where there is no (finished) index."""
        if not is_there(folder, MANIFEST):
            raise BackendUnavailable(f"no index at {folder}; build it with `fairagent index`")
        try:
            return cls(**parse_json(file_text(folder / MANIFEST, LARGEST_MANIFEST)))
        except (ValueError, TypeError):
            raise IndexMismatch(f"{folder / MANIFEST} cannot be read; build the index again") from None

    @property
    def by_lucene(self) -> bool:
        """Whether it is a Lucene index that an earlier version built, which the extra `lucene` still searches."""
        return self.format == LUCENE_FORMAT

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
        return (
            not self.by_lucene
            and self.collection == collection.name
            and [*self._differing(collection, analyzer)] == ["fingerprint"]
        )

    def _differing(self, collection: Indexable | None, analyzer: str) -> dict[str, tuple[object, object]]:
        """What the index has and what is wanted, where that is not the same."""
        wanted: dict[str, object] = {"format": LUCENE_FORMAT if self.by_lucene else FORMAT}
        if collection is not None:
            wanted = {"fingerprint": collection.fingerprint(), "analyzer": analyzer, **wanted}
        have = asdict(self)
        return {key: (have[key], value) for key, value in wanted.items() if have[key] != value}
