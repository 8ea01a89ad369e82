"""An approximate index of embeddings: faiss's inverted file, of whose cells a search looks at a few.

How many cells a search looks at is not set but measured: the fewest with which at least `FLOOR` of the documents that
exact search ranks first are found, over all and of every group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.retrieve.ann import DEPTH, AnnManifest
from fairagent.retrieve.dense import DenseRetriever
from fairagent.retrieve.encoded import floats
from fairagent.retrieve.encoders import Embeddings
from fairagent.storage.packages import installed
from fairagent.storage.threads import one_blas_thread
from fairagent.types import FloatArray

INDEX = "cells.faiss"
SPARE = 1.5
"""So many times the documents wanted are scored again: faiss compares codes of 8 bits a number."""
SMALLEST_PART = 20
"""Where more than one of so many documents is wanted, exact search is as fast."""
FLOOR = 0.98
"""The least recall@500, over all sampled queries and of each group, that an index is searched with."""
QUERIES = 200
"""Stored embeddings that are drawn as queries."""
COUNTED = 100
"""A group is held to the floor where the lists of exact search have so many of its documents."""
SEED = 20220601
TRAINED = 64
"""Embeddings a cell that its center is learned from."""
ITERATIONS = 10
"""Of k-means."""
TIMED = 5
"""Exact searches whose time is taken."""
BLOCK = 1 << 13
"""Documents that are added, or compared with queries, at once."""


class FaissIndex:
    """The cells of an index, mapped: processes share them. Threads may share it."""

    def __init__(self, folder: Path, manifest: AnnManifest) -> None:
        """Open the index in `folder`; raises BackendUnavailable without faiss, IndexMismatch where it is damaged."""
        self.manifest = manifest
        self._folder = folder
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

    @classmethod
    def build(
        cls,
        dense: DenseRetriever,
        folder: Path,
        groups: Callable[[NDArray[np.intp]], Mapping[str, FloatArray]],
        topics: Embeddings | None,
        progress: Callable[[int], None],
    ) -> AnnManifest:
        """Write an index of all embeddings of `dense` into `folder`, and measure it; see `fairagent.retrieve.ann`."""
        faiss = installed("faiss-cpu", "an ANN index")
        rows = dense.stored
        cells = cells_for(len(rows))
        progress(0)
        index = _trained(faiss, rows, cells)
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            index.add(floats(block))
            progress(start + len(block))
        faiss.write_index(index, str(folder / INDEX))
        del index
        return _measured(dense, cls(folder, AnnManifest.draft(dense.folder, cells)), groups, topics)

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
        parameters = self._faiss.SearchParametersIVF(nprobe=probes)
        query = np.ascontiguousarray(vector[None], dtype=np.float32)
        numbers = self._cells.search(query, math.ceil(n * SPARE), params=parameters)[1][0]
        distinct = np.unique(numbers[numbers >= 0])
        if len(distinct) and distinct[-1] >= self.manifest.documents:
            raise self.manifest.damaged(self._folder, "it names documents that are not there")
        return distinct.astype(np.intp)


def cells_for(documents: int) -> int:
    """How many cells so many documents get: a power of 2, up to four times their root, with `TRAINED` of them each.

    >>> [cells_for(count) for count in (1, 5_000, 200_000, 1_000_000, 6_500_000)]
    [1, 64, 1024, 2048, 8192]
    """
    return 1 << int(np.log2(max(1.0, min(4 * documents**0.5, documents / TRAINED))))


def exact_lists(rows: NDArray[np.float16], queries: Embeddings, depth: int) -> list[NDArray[np.intp]]:
    """For each of the `queries` (q, d) the numbers of the documents that have to be among its first `depth`.

    Those that tie with the first one behind are left out, which may as well be any other of these.
    """
    query = np.arange(len(queries))[:, None]
    best = np.full((len(queries), depth + 1), -np.inf, dtype=np.float32)
    numbers = np.zeros((len(queries), depth + 1), dtype=np.intp)
    for start in range(0, len(rows), BLOCK):
        block = queries @ floats(rows[start : start + BLOCK]).T
        own = np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)
        every, which = np.hstack((best, block)), np.hstack((numbers, own))
        first = np.argpartition(-every, depth, axis=1)[:, : depth + 1]
        best, numbers = every[query, first], which[query, first]
    # Where there are no more than `depth` documents, nothing is behind.
    rounding = 1e-6 * np.abs(best, where=np.isfinite(best), out=np.zeros_like(best)).max(axis=1, keepdims=True)
    above = best > best.min(axis=1, keepdims=True) + rounding
    return [row[first] for row, first in zip(numbers, above, strict=True)]


def _drawn(rows: NDArray[np.float16], count: int) -> Embeddings:
    """So many of the rows, at random, in their order."""
    return floats(rows[np.sort(np.random.default_rng(SEED).choice(len(rows), count, replace=False))])


def _trained(faiss: Any, rows: NDArray[np.float16], cells: int) -> Any:
    """An empty index whose cells are learned from some of the rows."""
    size = rows.shape[1]
    codes, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexIVFScalarQuantizer(faiss.IndexFlatIP(size), size, cells, codes, metric)
    index.cp.seed, index.cp.niter, index.cp.spherical = SEED, ITERATIONS, True
    # Fewer make it print a warning.
    index.cp.min_points_per_centroid = 1
    index.train(_drawn(rows, min(len(rows), TRAINED * cells)))
    return index


def _measured(
    dense: DenseRetriever,
    index: FaissIndex,
    groups: Callable[[NDArray[np.intp]], Mapping[str, FloatArray]],
    topics: Embeddings | None,
) -> AnnManifest:
    """The index's manifest, with the fewest cells that reach the floor; DataError where all of them do not."""
    rows = dense.stored
    count = min(QUERIES, len(rows))
    drawn = _drawn(rows, count)
    queries = drawn if topics is None else np.vstack((drawn, topics))
    expected = exact_lists(rows, queries, DEPTH)
    members = groups(np.concatenate(expected))
    of_drawn = np.arange(sum(map(len, expected))) < sum(map(len, expected[:count]))
    for probes in _efforts(index.manifest.cells):
        lists, milliseconds = _timed(partial(index.looked_at, n=DEPTH, probes=probes), dense, queries)
        hits = np.concatenate([np.isin(first, got) for first, got in zip(expected, lists, strict=True)])
        recall = _share(hits, of_drawn)
        of_topics = None if of_drawn.all() else _share(hits, ~of_drawn)
        of_groups = {name: _share(hits, weights) for name, weights in members.items() if weights.sum() >= COUNTED}
        least = min(recall, *of_groups.values(), recall if of_topics is None else of_topics)
        if least >= FLOOR:
            break
    else:
        raise DataError(
            f"an ANN index of the embeddings at {dense.folder} that is looked at as a whole finds {least:.3f} of what "
            f"exact search finds, less than {FLOOR}; set `ann: never` for exact search"
        )
    _, exact = _timed(partial(dense.near, n=min(DEPTH, len(rows))), dense, queries[:TIMED])
    return replace(
        index.manifest,
        probes=probes,
        queries=count,
        recall=recall,
        topics=of_topics,
        groups=of_groups,
        milliseconds=milliseconds,
        exact=exact,
    )


def _timed(
    look: Callable[[Embeddings], NDArray[np.intp]], dense: DenseRetriever, queries: Embeddings
) -> tuple[list[NDArray[np.intp]], float]:
    """The first documents of each query among those that `look` names, and the median milliseconds that it took."""
    lists, seconds = [], []
    with one_blas_thread():
        for query in queries:
            started = perf_counter()
            lists.append(dense.best(query, look(query), DEPTH))
            seconds.append(perf_counter() - started)
    return lists, round(1e3 * float(np.median(seconds)), 3)


def _share(hits: NDArray[np.bool_], weights: NDArray[Any]) -> float:
    """The weighted share of the hits, 1 where there are no documents; rounded to 4 digits."""
    return round(float(np.average(hits, weights=weights)), 4) if weights.any() else 1.0


def _efforts(cells: int) -> Iterator[int]:
    """How many cells are tried, in rising order: each about a quarter more than the one before."""
    probes = 1
    while probes < cells:
        yield probes
        probes = max(probes + 1, probes * 5 // 4)
    yield cells
