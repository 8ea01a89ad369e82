"""An approximate index of a collection's embeddings (faiss): which documents are near a vector, for a search to score.

Only which documents are looked at is approximate; their scores are those of exact search, from the stored embeddings.
It is an inverted file, of whose cells a search looks at a few. How many is not set but measured when the index is made:
the fewest with which at least `FLOOR` of the documents that exact search ranks first are in the lists, over all and of
every group.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, IndexMismatch
from fairagent.retrieve.base import ignore
from fairagent.retrieve.dense import VECTORS, DenseManifest, DenseRetriever
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.manifest import REMEDY, IndexManifest
from fairagent.storage.digests import RECORD, recorded
from fairagent.storage.folders import workshop
from fairagent.storage.packages import installed, is_installed
from fairagent.types import FloatArray

When = Literal["auto", "always", "never"]
"""Whether an index is searched: auto does above `EXACT` documents."""
EXACT = 200_000
"""Documents up to which a search looks at every embedding."""
DEPTH = 500
"""The rank down to which recall is measured; a search for more documents has as many more cells looked at."""
INDEX = "cells.faiss"
FLOOR = 0.98
"""The least recall@500, over all sampled queries and of each group, that an index is searched with."""
QUERIES = 200
"""Stored embeddings that are drawn as queries."""
COUNTED = 100
"""A group is held to the floor where the lists of exact search have so many of its documents."""
SEED = 20220601
TRAINED = 64
"""Embeddings a cell that its center is learned from."""
BLOCK = 1 << 13
"""Documents that are added, or compared with queries, at once."""

Members = Callable[[NDArray[np.intp]], Mapping[str, FloatArray]]
"""Gives the memberships (n,) of these documents in each group, by its name."""


@dataclass(frozen=True, slots=True)
class AnnManifest(IndexManifest):
    """What an index was made from, and what was measured of it.

    `vectors` is the SHA-256 of the embeddings' file. A search for up to `DEPTH` documents looks at `probes` of the
    `cells`. `recall` is the share of exact search's first `DEPTH` documents in its lists, for `queries` of the stored
    embeddings and the collection's topics; `groups` the same for the documents of each group ("dimension: label").
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
    groups: Mapping[str, float] = field(default_factory=dict)
    format: int = 2

    FILE: ClassVar[str] = "fairagent-ann.json"
    WHAT: ClassVar[str] = "ANN index"
    FORMAT: ClassVar[int] = 2
    MAKE: ClassVar[str] = "make it with `fairagent index`, or set `ann: never` for exact search"

    def __str__(self) -> str:
        least = min(self.groups.items(), key=lambda item: item[1], default=None)
        of_groups = f"of groups the least {least[0]} {least[1]:.3f}; " if least else ""
        recall = f"recall@{DEPTH} {self.recall:.3f} of exact search ({self.queries} queries)"
        return f"{recall}; {of_groups}{self.probes:,} of {self.cells:,} cells"

    @classmethod
    def draft(cls, embeddings: Path, cells: int = 1) -> Self:
        """That of an index of these embeddings with so many cells, before anything is measured."""
        of = DenseManifest.read(embeddings)
        return cls(of.fingerprint, of.model, of.documents, of.dimension, recorded(embeddings, VECTORS), cells)

    @classmethod
    def read_for(cls, folder: Path, embeddings: Path) -> Self:
        """The manifest in `folder`; IndexMismatch where files are damaged, or not made from these `embeddings`."""
        manifest = cls.read(folder)
        with cls.reading(folder):
            # The number that is printed is the one that searches use.
            if not (str(manifest) and 1 <= manifest.probes <= manifest.cells):
                raise ValueError(f"{manifest.probes} of {manifest.cells} cells")
        made, have = cls.draft(embeddings).values, manifest.values
        if differ := [
            key for key in ("fingerprint", "model", "documents", "dimension", "vectors") if have[key] != made[key]
        ]:
            raise IndexMismatch(
                f"the ANN index at {folder} was not made from the embeddings at {embeddings} (other "
                f"{', '.join(differ)}); {REMEDY}"
            )
        return cls.read_checked(folder, None)


def is_wanted(when: When, documents: int) -> bool:
    """Whether so many documents are searched through an index; `auto` does without one where faiss is not installed."""
    return when == "always" or (when == "auto" and documents > EXACT and is_installed("faiss-cpu"))


class AnnIndex:
    """The cells of an index, mapped: processes share them. Threads may share it."""

    def __init__(self, folder: Path, manifest: AnnManifest) -> None:
        """Open the index in `folder`; BackendUnavailable without faiss, IndexMismatch for a damaged one."""
        self.manifest, self._folder = manifest, folder
        self._faiss = faiss = installed("faiss-cpu", "an ANN index")
        try:
            index = faiss.read_index(str(folder / INDEX), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
            lists = faiss.downcast_InvertedLists(index.invlists)
            sizes = sum(lists.list_size(cell) for cell in range(index.nlist))
            expected = (manifest.dimension, manifest.cells, manifest.documents, manifest.documents)
            if (index.d, index.nlist, index.ntotal, sizes) != expected:
                raise RuntimeError("its cells do not hold what its manifest says")
            # By default every search starts 32 threads that read ahead, which takes longer than the search.
            lists.prefetch_nthread = 0
        except (RuntimeError, AttributeError) as error:
            raise manifest.damaged(folder, str(error).splitlines()[0]) from None
        self._cells = index

    def candidates(self, vector: Embeddings, n: int) -> NDArray[np.intp]:
        """Numbers of documents, rising, that likely hold the `n` with the largest products; maybe fewer, or none."""
        of = self.manifest
        # Where more than one of twenty documents is wanted, exact search is as fast.
        if n > of.documents / 20:
            return np.zeros(0, np.intp)
        return self.in_cells(vector, n, min(of.cells, math.ceil(of.probes * max(1, n / DEPTH))))

    def in_cells(self, vector: Embeddings, n: int, probes: int) -> NDArray[np.intp]:
        """As `candidates`, from this many cells."""
        query = np.ascontiguousarray(vector[None], dtype=np.float32)
        parameters = self._faiss.SearchParametersIVF(nprobe=probes)
        # More than are wanted, to be scored again: faiss compares codes of 8 bits a number.
        numbers = self._cells.search(query, math.ceil(n * 1.5), params=parameters)[1][0]
        distinct = np.unique(numbers[numbers >= 0])
        if len(distinct) and distinct[-1] >= self.manifest.documents:
            raise self.manifest.damaged(self._folder, "it names documents that are not there")
        return distinct.astype(np.intp)


def open_ann(folder: Path, embeddings: Path) -> AnnIndex:
    """The index in `folder` of `embeddings`; BackendUnavailable for none, or no faiss, IndexMismatch for another."""
    return AnnIndex(folder, AnnManifest.read_for(folder, embeddings))


def build_ann(
    dense: DenseRetriever,
    folder: Path,
    groups: Members = lambda numbers: {},
    topics: Embeddings | None = None,
    progress: Callable[[int], None] = ignore,
) -> AnnManifest:
    """Build an index of all embeddings of `dense` into `folder`, which appears when it is built and measured.

    `groups` gives the groups of documents, `topics` (t, d) are vectors of the collection's queries. Raises
    BackendUnavailable without faiss, DataError where too little comes of what exact search gives.
    """
    faiss, rows = installed("faiss-cpu", "an ANN index"), dense.stored
    count, size = rows.shape
    cells = cells_for(count)
    progress(0)
    with workshop(folder, (AnnManifest.FILE, RECORD)) as shop:
        codes, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexIVFScalarQuantizer(faiss.IndexFlatIP(size), size, cells, codes, metric)
        index.cp.seed, index.cp.niter, index.cp.spherical = SEED, 10, True
        # Fewer make it print a warning.
        index.cp.min_points_per_centroid = 1
        index.train(_drawn(rows, min(count, TRAINED * cells)))
        for start in range(0, count, BLOCK):
            index.add(rows[start : start + BLOCK].astype(np.float32))
            progress(min(start + BLOCK, count))
        faiss.write_index(index, str(shop.new / INDEX))
        del index
        drawn = _drawn(rows, min(QUERIES, count))
        queries = drawn if topics is None else np.vstack((drawn, topics))
        opened = AnnIndex(shop.new, AnnManifest.draft(dense.folder, cells))
        expected, probes = exact_lists(rows, queries, DEPTH), 1
        members = groups(np.concatenate(expected))
        # The fewest cells that reach the floor.
        while True:
            lists = [dense.best(query, opened.in_cells(query, DEPTH, probes), DEPTH) for query in queries]
            hits = np.concatenate([np.isin(first, got) for first, got in zip(expected, lists, strict=True)])
            held = {name: weights for name, weights in members.items() if weights.sum() >= COUNTED}
            of_groups = {name: round(float(np.average(hits, weights=one)), 4) for name, one in held.items()}
            recall = round(float(hits.mean()), 4) if len(hits) else 1.0
            least = min(recall, *of_groups.values(), 1.0)
            if least >= FLOOR:
                break
            if probes == cells:
                raise DataError(
                    f"an ANN index of the embeddings at {dense.folder} finds {least:.3f} of what exact search finds "
                    f"with all its cells, less than {FLOOR}; set `ann: never` for exact search"
                )
            probes = min(cells, max(probes + 1, probes * 5 // 4))
        manifest = replace(opened.manifest, probes=probes, queries=len(queries), recall=recall, groups=of_groups)
        manifest.save(shop.new)
        shop.put()
    return manifest


def cells_for(documents: int) -> int:
    """How many cells so many documents get: a power of 2, up to four times their root, with `TRAINED` of them each.

    >>> [cells_for(count) for count in (1, 5_000, 200_000, 1_000_000, 6_500_000)]
    [1, 64, 1024, 2048, 8192]
    """
    return 1 << int(np.log2(max(1.0, min(4 * documents**0.5, documents / TRAINED))))


def _drawn(rows: NDArray[np.float16], count: int) -> Embeddings:
    """This many of the rows, drawn at random, in their order."""
    return rows[np.sort(np.random.default_rng(SEED).choice(len(rows), count, replace=False))].astype(np.float32)


def exact_lists(rows: NDArray[np.float16], queries: Embeddings, depth: int) -> list[NDArray[np.intp]]:
    """For each of the `queries` (q, d) the numbers of the documents that have to be among its first `depth`.

    Documents that tie with the first one beyond are left out, since any of them could stand there.
    """
    faiss = installed("faiss-cpu", "an ANN index")
    heap = faiss.ResultHeap(len(queries), depth + 1, keep_max=True)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK].astype(np.float32)
        products, numbers = faiss.knn(queries, block, min(depth + 1, len(block)), metric=faiss.METRIC_INNER_PRODUCT)
        heap.add_result(products, numbers + start)
    heap.finalize()
    # With `depth` documents or fewer there is no rest.
    rounding = 1e-6 * np.abs(heap.D, where=heap.I >= 0, out=np.zeros_like(heap.D)).max(axis=1, keepdims=True)
    above = (heap.D[:, -1:] + rounding < heap.D) & (heap.I >= 0)
    return [row[first] for row, first in zip(heap.I, above, strict=True)]
