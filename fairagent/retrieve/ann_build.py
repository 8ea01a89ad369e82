"""Building an ANN index of embeddings, and measuring what it finds of what exact search finds.

How many cells a search looks at is not set but measured: the fewest with which at least `FLOOR` of the documents that
exact search ranks first are found, over all and of every group.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.retrieve.ann import DEPTH, INDEX, MANIFEST, AnnIndex, AnnManifest, faiss_for, identity
from fairagent.retrieve.dense import DenseRetriever
from fairagent.retrieve.dense_index import floats
from fairagent.retrieve.encoders import Embeddings
from fairagent.storage.digests import RECORD
from fairagent.storage.files import write_whole
from fairagent.storage.folders import workshop
from fairagent.storage.threads import one_blas_thread
from fairagent.types import FloatArray

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

Groups = Callable[[NDArray[np.intp]], Mapping[str, FloatArray]]
"""What tells the memberships (n,) of these documents in each group, by its name."""


def build_ann(
    dense: DenseRetriever,
    folder: Path,
    groups: Groups = lambda numbers: {},
    topics: Embeddings | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> AnnManifest:
    """Build an index of all embeddings of `dense` into `folder`, which appears when it is built and measured.

    `groups` tells the groups of documents, `topics` (t, d) are vectors of the collection's queries. Broken off, it
    starts anew; the embeddings are as they were. Raises BackendUnavailable without faiss, or where the disk is full,
    UsageError where something else is at `folder`.
    """
    faiss = faiss_for("an ANN index")
    rows = dense.stored
    cells = cells_for(len(rows))
    with workshop(folder, (MANIFEST, RECORD)) as shop:
        shop.begin()
        progress(0)
        index = _trained(faiss, rows, cells)
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            index.add(floats(block))
            progress(start + len(block))
        faiss.write_index(index, str(shop.new / INDEX))
        del index
        draft = AnnManifest(**identity(dense.folder), cells=cells)
        manifest = _measured(dense, AnnIndex(shop.new, draft), groups, topics)
        write_whole(shop.new / MANIFEST, json.dumps(asdict(manifest), indent=2) + "\n")
        shop.put()
    return manifest


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
    asked = np.arange(len(queries))[:, None]
    best = np.full((len(queries), depth + 1), -np.inf, dtype=np.float32)
    numbers = np.zeros((len(queries), depth + 1), dtype=np.intp)
    for start in range(0, len(rows), BLOCK):
        block = queries @ floats(rows[start : start + BLOCK]).T
        own = np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)
        every, which = np.hstack((best, block)), np.hstack((numbers, own))
        kept = np.argpartition(-every, depth, axis=1)[:, : depth + 1]
        best, numbers = every[asked, kept], which[asked, kept]
    # Where there are no more than `depth` documents, nothing is behind.
    rounding = 1e-6 * np.abs(best, where=np.isfinite(best), out=np.zeros_like(best)).max(axis=1, keepdims=True)
    above = best > best.min(axis=1, keepdims=True) + rounding
    return [row[kept] for row, kept in zip(numbers, above, strict=True)]


def _trained(faiss: Any, rows: NDArray[np.float16], cells: int) -> Any:
    """An empty index whose cells are learned from some of the rows."""
    size = rows.shape[1]
    codes, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexIVFScalarQuantizer(faiss.IndexFlatIP(size), size, cells, codes, metric)
    index.cp.seed, index.cp.niter, index.cp.spherical = SEED, ITERATIONS, True
    # Fewer make it print a warning.
    index.cp.min_points_per_centroid = 1
    count = min(len(rows), TRAINED * cells)
    index.train(floats(rows[np.sort(np.random.default_rng(SEED).choice(len(rows), count, replace=False))]))
    return index


def _measured(dense: DenseRetriever, index: AnnIndex, groups: Groups, topics: Embeddings | None) -> AnnManifest:
    """The index's manifest, with the fewest cells that reach the floor; DataError where all of them do not."""
    rows, of = dense.stored, index.manifest
    count = min(QUERIES, len(rows))
    drawn = floats(rows[np.sort(np.random.default_rng(SEED).choice(len(rows), count, replace=False))])
    asked = drawn if topics is None else np.vstack((drawn, topics))
    expected = exact_lists(rows, asked, DEPTH)
    members = groups(np.concatenate(expected))
    of_drawn = np.arange(sum(map(len, expected))) < sum(map(len, expected[:count]))
    for probes in _efforts(of.cells):
        found, milliseconds = _timed(partial(index.looked_at, n=DEPTH, probes=probes), dense, asked)
        hits = np.concatenate([np.isin(wanted, got) for wanted, got in zip(expected, found, strict=True)])
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
    _, exact = _timed(partial(dense.close, n=min(DEPTH, len(rows))), dense, asked[:TIMED])
    return replace(
        of,
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
    found, seconds = [], []
    with one_blas_thread():
        for query in queries:
            started = perf_counter()
            found.append(dense.best(query, look(query), DEPTH))
            seconds.append(perf_counter() - started)
    return found, round(1e3 * float(np.median(seconds)), 3)


def _share(hits: NDArray[np.bool_], weights: NDArray[Any]) -> float:
    """The weighted share of the documents that were found, 1 where there are none; rounded to 4 digits."""
    return round(float(np.average(hits, weights=weights)), 4) if weights.any() else 1.0


def _efforts(cells: int) -> Iterator[int]:
    """How many cells are tried, in rising order: each about a quarter more than the one before."""
    probes = 1
    while probes < cells:
        yield probes
        probes = max(probes + 1, probes * 5 // 4)
    yield cells
