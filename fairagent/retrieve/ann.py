"""An approximate index of a collection's embeddings: faiss's inverted file, of whose cells a search looks at a few.

Only which documents are looked at is approximate; their scores are those of exact search, from the stored embeddings.
How much is found was measured when the index was built (`fairagent.retrieve.ann_build`), and is kept with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import BackendUnavailable, IndexMismatch
from fairagent.retrieve.bm25.manifest import LARGEST_MANIFEST
from fairagent.retrieve.dense_index import VECTORS, DenseManifest
from fairagent.retrieve.encoded import remedy
from fairagent.retrieve.encoders import Embeddings
from fairagent.storage.digests import expect_whole, recorded
from fairagent.storage.folders import is_there
from fairagent.storage.packages import installed, is_installed
from fairagent.storage.readers import file_text, parse_json

When = Literal["auto", "always", "never"]
"""Whether an index is searched: auto does above `EXACT` documents."""

EXACT = 200_000
"""Documents up to which a search looks at every embedding."""
MANIFEST = "fairagent-ann.json"
INDEX = "cells.faiss"
DEPTH = 500
"""The rank down to which recall is measured; who asks for more documents has as many more cells looked at."""
SPARE = 1.5
"""So many times the documents asked for are scored again: faiss compares codes of 8 bits a number."""
SMALLEST_PART = 20
"""Where more than one of so many documents is asked for, exact search finds them as fast."""


@dataclass(frozen=True, slots=True)
class AnnManifest:
    """What an index was made from, and what was measured of it.

    `vectors` is the SHA-256 of the embeddings' file. A search for up to `DEPTH` documents looks at `probes` of the
    `cells`. `recall` is the share of exact search's first `DEPTH` documents that are found, for `queries` of the stored
    embeddings; `topics` the same for the collection's topics, where it has any; `groups` for the documents of each
    group ("dimension: label") of these lists. `milliseconds` is the median time of a search, `exact` that of exact
    search.
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
    def read(cls, folder: Path) -> AnnManifest:
        """The manifest in `folder`; BackendUnavailable where there is none, IndexMismatch where it is damaged."""
        if not is_there(folder, MANIFEST):
            raise BackendUnavailable(
                f"no ANN index at {folder}; make it with `fairagent index`, or set `ann: never` for exact search"
            )
        try:
            found = cls(**parse_json(file_text(folder / MANIFEST, LARGEST_MANIFEST)))
            # What is printed and searched with is what it should be.
            if not (str(found) and 1 <= found.probes <= found.cells):
                raise ValueError(f"{found.probes} of {found.cells} cells")
        except (ValueError, TypeError, AttributeError):
            raise IndexMismatch(f"{folder / MANIFEST} cannot be read; {remedy(folder)}") from None
        return found

    def check(self, folder: Path, embeddings: Path) -> None:
        """Raise IndexMismatch, naming every difference, unless it was made from the embeddings in that folder."""
        wanted = identity(embeddings)
        have = asdict(self)
        differ = [f"{key}: index {have[key]}, embeddings {now}" for key, now in wanted.items() if have[key] != now]
        if differ:
            raise IndexMismatch(
                f"the ANN index at {folder} was not made from the embeddings at {embeddings} ({'; '.join(differ)}); "
                + remedy(folder)
            )


def checked(folder: Path, embeddings: Path) -> AnnManifest:
    """The manifest of the index in `folder`; raises IndexMismatch where it is damaged or of other embeddings."""
    manifest = AnnManifest.read(folder)
    manifest.check(folder, embeddings)
    expect_whole(folder, "the ANN index", remedy(folder))
    return manifest


def identity(embeddings: Path) -> dict[str, Any]:
    """What an index of these embeddings has in its manifest to know them by."""
    of = DenseManifest.read(embeddings)
    made = {"fingerprint": of.fingerprint, "model": of.model, "documents": of.documents, "dimension": of.dimension}
    return {"format": 1, **made, "vectors": recorded(embeddings, VECTORS)}


class AnnIndex:
    """The cells of an index, mapped: processes share them. Threads may share it."""

    def __init__(self, folder: Path, manifest: AnnManifest) -> None:
        """Open the index in `folder`; raises BackendUnavailable without faiss, IndexMismatch where it is damaged."""
        self.manifest = manifest
        self._folder = folder
        self._faiss = faiss_for("an ANN index")
        self._cells = self._opened()

    @classmethod
    def open(cls, folder: Path, embeddings: Path) -> AnnIndex:
        """The index in `folder`, made from the embeddings in the other folder.

        Raises BackendUnavailable where there is none, or no faiss, IndexMismatch where it is damaged or of others.
        """
        return cls(folder, checked(folder, embeddings))

    def candidates(self, vector: Embeddings, n: int) -> NDArray[np.intp]:
        """Numbers of documents, rising, that are likely to hold the `n` with the largest products.

        They may be fewer than `n`, where few cells hold so many, and are none where `n` is a large part of all.
        """
        of = self.manifest
        if n > of.documents / SMALLEST_PART:
            return np.zeros(0, np.intp)
        # To compare the codes of all cells takes a quarter of the time that all embeddings take.
        return self.looked_at(vector, n, min(of.cells, math.ceil(of.probes * max(1, n / DEPTH))))

    def looked_at(self, vector: Embeddings, n: int, probes: int) -> NDArray[np.intp]:
        """As `candidates`, looking at so many cells."""
        wanted = self._faiss.SearchParametersIVF(nprobe=probes)
        query = np.ascontiguousarray(vector[None], dtype=np.float32)
        numbers = self._cells.search(query, math.ceil(n * SPARE), params=wanted)[1][0]
        found = np.unique(numbers[numbers >= 0])
        if len(found) and found[-1] >= self.manifest.documents:
            raise IndexMismatch(
                f"the ANN index at {self._folder} names documents that are not there; " + remedy(self._folder)
            )
        return found.astype(np.intp)

    def _opened(self) -> Any:
        faiss, of = self._faiss, self.manifest
        try:
            index = faiss.read_index(str(self._folder / INDEX), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
            lists = faiss.downcast_InvertedLists(index.invlists)
            sizes = sum(lists.list_size(cell) for cell in range(index.nlist))
            if (index.d, index.nlist, index.ntotal, sizes) != (of.dimension, of.cells, of.documents, of.documents):
                raise RuntimeError("its cells do not hold what its manifest says")
            # By default every search starts 32 threads that read ahead, which takes longer than the search.
            lists.prefetch_nthread = 0
        except (RuntimeError, AttributeError) as error:
            said = str(error).splitlines()[0]
            raise IndexMismatch(
                f"the ANN index at {self._folder} is damaged ({said}); {remedy(self._folder)}"
            ) from None
        return index


def wanted(when: When, documents: int) -> bool:
    """Whether so many documents are searched through an index; `auto` does without one where faiss is not installed."""
    return when == "always" or (when == "auto" and documents > EXACT and is_installed("faiss-cpu"))


def faiss_for(what: str) -> Any:
    """The package faiss; BackendUnavailable, saying that `what` needs it, where it is not installed."""
    return installed("faiss-cpu", what)
