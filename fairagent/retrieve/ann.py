"""An approximate index of a collection's embeddings: which documents are near a vector, for a search to score.

Only which documents are looked at is approximate; their scores are those of exact search, from the stored embeddings.
How much is found was measured when the index was made, and is in its manifest. An add-on makes and searches it (entry
point group `fairagent.ann`; the shipped one is `fairagent.guests.dense.ann`, by faiss).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import IndexMismatch
from fairagent.retrieve.base import ignore
from fairagent.retrieve.encoded import VECTORS, DenseManifest
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.manifest import REMEDY, IndexManifest
from fairagent.settings.plugins import plugins
from fairagent.storage.digests import RECORD, recorded
from fairagent.storage.folders import workshop
from fairagent.storage.packages import is_installed
from fairagent.types import FloatArray

if TYPE_CHECKING:
    from fairagent.retrieve.dense import DenseRetriever

GROUP, NAME = "fairagent.ann", "faiss"
"""The entry point of the class that makes and opens indexes."""
When = Literal["auto", "always", "never"]
"""Whether an index is searched: auto does above `EXACT` documents."""
EXACT = 200_000
"""Documents up to which a search looks at every embedding."""
DEPTH = 500
"""The rank down to which recall is measured; a search for more documents has as many more cells looked at."""

Members = Callable[[NDArray[np.intp]], Mapping[str, FloatArray]]
"""Gives the memberships (n,) of these documents in each group, by its name."""


class AnnIndex(Protocol):
    """An open index. Threads may share it."""

    def candidates(self, vector: Embeddings, n: int) -> NDArray[np.intp]:
        """Numbers of documents, rising, that are likely to hold the `n` with the largest products.

        They may be fewer than `n`, and are none where `n` is a large part of all.
        """


@dataclass(frozen=True, slots=True)
class AnnManifest(IndexManifest):
    """What an index was made from, and what was measured of it.

    `vectors` is the SHA-256 of the embeddings' file. A search for up to `DEPTH` documents looks at `probes` of the
    `cells`. `recall` is the share of exact search's first `DEPTH` documents in its lists, for `queries` of the stored
    embeddings; `topics` the same for the collection's topics, if any; `groups` for the documents of each group
    ("dimension: label"). `milliseconds` is the median time of a search, `exact` that of exact search.
    """

    fingerprint: str
    model: str
    documents: int
    dimension: int
    vectors: str
    cells: int
    probes: int = 1
    queries: int = 0
    recall: float = 0.0
    topics: float | None = None
    groups: Mapping[str, float] = field(default_factory=dict)
    milliseconds: float = 0.0
    exact: float = 0.0
    format: int = 1

    FILE: ClassVar[str] = "fairagent-ann.json"
    WHAT: ClassVar[str] = "ANN index"
    FORMAT: ClassVar[int] = 1
    MAKE: ClassVar[str] = "make it with `fairagent index`, or set `ann: never` for exact search"

    def __str__(self) -> str:
        least = min(self.groups.items(), key=lambda item: item[1], default=None)
        parts = (
            f"recall@{DEPTH} {self.recall:.3f} of exact search ({self.queries} stored embeddings as queries)",
            f"topics {self.topics:.3f}" if self.topics is not None else "",
            f"of groups the least {least[0]} {least[1]:.3f}" if least else "",
            f"{self.probes:,} of {self.cells:,} cells",
            f"{self.milliseconds:.1f} ms a search, exact {self.exact:.1f} ms",
        )
        return "; ".join(filter(None, parts))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """As `IndexManifest.read`."""
        # super() does not know the class that `slots` makes.
        manifest = super(AnnManifest, cls).read(folder)
        with cls.reading(folder):
            # What is printed and searched with is what it should be.
            if not (str(manifest) and 1 <= manifest.probes <= manifest.cells):
                raise ValueError(f"{manifest.probes} of {manifest.cells} cells")
        return manifest

    @classmethod
    def read_for(cls, folder: Path, embeddings: Path) -> Self:
        """The manifest in `folder`; IndexMismatch where files are damaged, or not made from these `embeddings`."""
        manifest = cls.read(folder)
        made, have = cls.draft(embeddings, 1).values, manifest.values
        wanted = {key: made[key] for key in ("fingerprint", "model", "documents", "dimension", "vectors")}
        differ = [f"{key}: index {have[key]}, embeddings {now}" for key, now in wanted.items() if have[key] != now]
        if differ:
            raise IndexMismatch(
                f"the ANN index at {folder} was not made from the embeddings at {embeddings} ({'; '.join(differ)}); "
                + REMEDY
            )
        cls.expect_whole(folder)
        return manifest

    @classmethod
    def draft(cls, embeddings: Path, cells: int) -> Self:
        """That of an index of these embeddings with so many cells, before anything is measured."""
        of = DenseManifest.read(embeddings)
        return cls(of.fingerprint, of.model, of.documents, of.dimension, recorded(embeddings, VECTORS), cells)


def wanted(when: When, documents: int) -> bool:
    """Whether so many documents are searched through an index; `auto` does without one where faiss is not installed."""
    return when == "always" or (when == "auto" and documents > EXACT and is_installed("faiss-cpu"))


def open_ann(folder: Path, embeddings: Path) -> AnnIndex:
    """The index in `folder`, made from the embeddings in the other folder.

    Raises BackendUnavailable where there is none, or no faiss, IndexMismatch where it is damaged or of others.
    """
    index: AnnIndex = _addon()(folder, AnnManifest.read_for(folder, embeddings))
    return index


def build_ann(
    dense: DenseRetriever,
    folder: Path,
    groups: Members = lambda numbers: {},
    topics: Embeddings | None = None,
    progress: Callable[[int], None] = ignore,
) -> AnnManifest:
    """Build an index of all embeddings of `dense` into `folder`, which appears when it is built and measured.

    `groups` gives the groups of documents, `topics` (t, d) are vectors of the collection's queries. Broken off, it
    starts anew; the embeddings are as they were. Raises BackendUnavailable without faiss, or where the disk is full,
    UsageError where something else is at `folder`, DataError where too little is found of what exact search finds.
    """
    with workshop(folder, (AnnManifest.FILE, RECORD)) as shop:
        manifest: AnnManifest = _addon().build(dense, shop.new, groups, topics, progress)
        manifest.save(shop.new)
        shop.put()
    return manifest


def _addon() -> Any:
    (entry,) = plugins(GROUP)[NAME]
    return entry.load()
