"""The corpus graph: near neighbors of every document by its embedding, made once and stored in the index's folder.

Exact up to `EXACT` documents. Above, documents are put into cells of about `CELL` by spherical k-means, and neighbors
are looked for in the `NEAR` cells that are nearest to a document's own, so that the work grows with the documents and
not with their square; .83 to .90 of the ten exact neighbors are there (benchmarks/graph.py).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import IndexMismatch
from fairagent.retrieve.base import ignore
from fairagent.retrieve.bm25.part import prepare_index
from fairagent.retrieve.catalog import IdTable, mapped
from fairagent.retrieve.dense import DenseRetriever
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.manifest import REMEDY, IndexManifest
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import dense_parts, encoder, folder, prepare_vectors
from fairagent.settings.parts import Progress
from fairagent.storage.arrays import write_array
from fairagent.storage.digests import RECORD
from fairagent.storage.folders import workshop
from fairagent.storage.threads import one_blas_thread

NEIGHBORS = 10
EXACT = 10_000
"""Documents up to which each is compared with all others."""
CELL, NEAR = 256, 16
LARGEST = 16 * CELL
"""Documents of a cell that are compared with each other; of many that are all alike, any are near."""
PRODUCTS = 1 << 22
"""Products that are in memory at once."""
TABLE = "neighbours.npy"


@dataclass(frozen=True, slots=True)
class GraphManifest(IndexManifest):
    """What a graph was made from: the embeddings' collection and model; `k` neighbors a document."""

    fingerprint: str
    model: str
    documents: int
    k: int
    format: int = 1

    FILE: ClassVar[str] = "fairagent-graph.json"
    WHAT: ClassVar[str] = "corpus graph"
    FORMAT: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Neighbors (n, k) of the documents of `ids`, the nearest first, by their numbers."""

    ids: IdTable
    numbers: NDArray[np.int32]

    def neighbors(self, ids: Sequence[str]) -> list[tuple[str, ...]]:
        """The ids of the nearest documents of each of these, the nearest first."""
        rows = self.numbers[self.ids.known(ids)]
        if rows.size and not 0 <= rows.min() <= rows.max() < len(self.ids):
            raise IndexMismatch(f"the corpus graph names documents that are not there; {REMEDY}")
        names, k = self.ids.texts(rows.ravel().astype(np.intp)), rows.shape[1]
        return [tuple(names[start : start + k]) for start in range(0, len(names), k)]


def build_graph(
    dense: DenseRetriever, folder: Path, k: int = NEIGHBORS, progress: Callable[[int], None] = ignore
) -> GraphManifest:
    """Find `k` near documents of each by inner product, into `folder`, which appears when all are done."""
    stored, k, done = dense.stored, min(k, len(dense) - 1), 0
    manifest = GraphManifest(dense.manifest.fingerprint, dense.manifest.model, len(dense), k)
    with workshop(folder, (manifest.FILE, RECORD)) as shop, one_blas_thread():
        table = np.zeros((len(stored), k), np.int32)
        for cell, candidates in _cells(stored):
            vectors = stored[candidates].astype(np.float32)
            # A small cell has too few neighbors: the last one fills the places that are left.
            most = min(k, len(candidates) - 1)
            step = max(1, PRODUCTS // len(candidates))
            for members in (cell[start : start + step] for start in range(0, len(cell), step)):
                rows = stored[members].astype(np.float32)
                products = rows @ vectors.T
                # The members are among the candidates, in their order: no document is its own neighbor.
                products[np.arange(len(members)), np.flatnonzero(np.isin(candidates, members))] = -np.inf
                nearest = np.argpartition(-products, most - 1, axis=1)[:, :most]
                order = np.argsort(-np.take_along_axis(products, nearest, axis=1), axis=1, kind="stable")
                numbers = candidates[np.take_along_axis(nearest, order, axis=1)]
                # A vector of zeros is near to nothing: such a document is its own only neighbor.
                numbers = np.where(rows.any(axis=1, keepdims=True), numbers, members[:, None])
                table[members] = np.pad(numbers, ((0, 0), (0, k - most)), mode="edge")
                done += len(members)
                progress(done)
        write_array(shop.new / TABLE, table)
        manifest.save(shop.new)
        shop.put()
    return manifest


def _cells(stored: NDArray[np.float16]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Documents by their numbers, rising, and those among which their neighbors are looked for, rising as well."""
    documents = len(stored)
    if documents <= EXACT:
        everything = np.arange(documents)
        yield from ((everything[start : start + CELL], everything) for start in range(0, documents, CELL))
        return
    rng = np.random.default_rng(0)
    sample = stored[np.sort(rng.choice(documents, min(documents, 1 << 15), replace=False))].astype(np.float32)
    centers = sample[np.sort(rng.choice(len(sample), documents // CELL, replace=False))]
    for _ in range(3):
        cell = _nearest(sample, centers, 1)[:, 0]
        sizes = np.bincount(cell, minlength=len(centers))
        filled, starts = sizes > 0, np.cumsum(sizes) - sizes
        centers[filled] = np.add.reduceat(sample[np.argsort(cell, kind="stable")], starts[filled], axis=0)
        centers /= np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1e-9)
    cell = _nearest(stored, centers, 1)[:, 0]
    members = np.split(np.argsort(cell, kind="stable"), np.cumsum(np.bincount(cell, minlength=len(centers)))[:-1])
    near = _nearest(centers, centers, NEAR)
    for place in np.flatnonzero([len(one) for one in members]).tolist():
        around = [members[other][:LARGEST] for other in near[place] if other != place]
        for start in range(0, len(members[place]), LARGEST):
            part = members[place][start : start + LARGEST]
            yield part, np.sort(np.concatenate([part, *around]))


def _nearest(vectors: NDArray[np.floating[Any]], centers: Embeddings, count: int) -> NDArray[np.intp]:
    """The `count` centers with the largest products with each of the vectors (n, d), the nearest first, (n, count)."""
    nearest, block = np.empty((len(vectors), min(count, len(centers))), np.intp), 1 << 12
    for start in range(0, len(vectors), block):
        products = vectors[start : start + block].astype(np.float32) @ centers.T
        best = products.argmax(axis=1)[:, None] if count == 1 else np.argsort(-products, axis=1, kind="stable")
        nearest[start : start + block] = best[:, :count]
    return nearest


def graph_folder(site: Site, model: str) -> Path:
    """Where the graph of `model`'s embeddings is."""
    return Path(f"{folder(site, model)}-graph")


def find_graph(site: Site, model: str) -> Graph | None:
    """The graph of the site's embeddings; None where none was made. IndexMismatch where it is of something else."""
    place = graph_folder(site, model)
    if not GraphManifest.exists(place) and not place.is_dir():
        return None

    def opened() -> Graph:
        with GraphManifest.opening(place) as manifest:
            graph = Graph(IdTable.load(folder(site, model)), mapped(place / TABLE))
        if manifest.fingerprint != site.collection.fingerprint():
            raise IndexMismatch(f"the corpus graph at {place} was made from something else; {REMEDY}")
        return graph

    graph: Graph = site.memo.get(("graph", place), opened)
    return graph


def graph_of(site: Site, encoder: str = "") -> Graph | None:
    """The corpus graph of `encoder`'s embeddings (empty: of those that the engine searches by), None without one."""
    graphs = (find_graph(site, name) for name in ((encoder,) if encoder else engine_encoders(site)))
    return None if site.collection.chunks else next(filter(None, graphs), None)


def engine_encoders(site: Site) -> tuple[str, ...]:
    """The encoders whose embeddings the site's engine searches by."""
    return tuple(one.named(site) for one in dense_parts(site.settings.engine))


def prepare_graphs(site: Site, progress: Progress, named: str = "") -> None:
    """Make the graphs of all embeddings that the site's engine searches by, or of the encoder that is `named`.

    They are made where there are none, and so are the embeddings of the latter; a collection in passages has none.
    """
    if named:
        prepare_index(site, progress)
        prepare_vectors(site, named, progress)
    for name in (named,) if named else engine_encoders(site):
        place = graph_folder(site, name)
        if not (site.collection.chunks or GraphManifest.exists(place)):
            dense = DenseRetriever(folder(site, name), encoder(site, name), site.collection)
            if len(dense) > 1:
                build_graph(dense, place, progress=partial(progress, f"neighbors in {site.collection.name}"))
