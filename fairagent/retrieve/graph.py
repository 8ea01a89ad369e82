"""The corpus graph: the nearest neighbors of every document by its embedding, made once and kept beside the index.

Exact up to `EXACT` documents (blocks of inner products), above that by faiss's HNSW. A build that is broken off goes on
with the block where it stopped.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairagent.digests import RECORD, expect_whole
from fairagent.errors import IndexMismatch
from fairagent.files import write_whole
from fairagent.folders import is_there, workshop
from fairagent.intake.json_text import parse_json
from fairagent.intake.text import file_text
from fairagent.loading import installed
from fairagent.retrieve.ann import EXACT
from fairagent.retrieve.dense import DenseRetriever
from fairagent.retrieve.encoded import mark_done, read_done, remedy
from fairagent.retrieve.halves import floats
from fairagent.retrieve.lucene.index import LARGEST_MANIFEST
from fairagent.retrieve.lucene.strings import IdTable, mapped
from fairagent.retrieve.rows import create_rows, write_rows
from fairagent.retrieve.vectors import dense_parts, encoder, folder
from fairagent.settings.parts import Part, Progress
from fairagent.site import Site

NEIGHBORS = 10
BLOCK = 512
"""Documents whose neighbors are found at once, and lost at most where a build is broken off."""
ADDED = 1 << 15
"""Documents that are added to faiss's index at once."""
MANIFEST = "fairagent-graph.json"
TABLE = "neighbours.npy"


@dataclass(frozen=True, slots=True)
class GraphManifest:
    """What a graph was made from: the embeddings' collection and model; `k` neighbors a document."""

    fingerprint: str
    model: str
    documents: int
    k: int
    format: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Neighbors (n, k) of the documents of `ids`, the nearest first, by their numbers."""

    ids: IdTable
    numbers: NDArray[np.int32]

    def neighbors(self, ids: Sequence[str]) -> list[tuple[str, ...]]:
        """The ids of the nearest documents of each of these, the nearest first."""
        rows = self.numbers[self.ids.known(ids)]
        if rows.size and not 0 <= rows.min() <= rows.max() < len(self.ids):
            raise IndexMismatch(
                "the corpus graph names documents that are not there; remove its folder, and index again"
            )
        names = [name.decode() for name in self.ids.names(rows.ravel().astype(np.intp)).tolist()]
        k = rows.shape[1]
        return [tuple(names[start : start + k]) for start in range(0, len(names), k)]


def build_graph(
    dense: DenseRetriever, folder: Path, k: int = NEIGHBORS, progress: Callable[[int], None] = lambda done: None
) -> GraphManifest:
    """Find the `k` nearest other documents of each by inner product, into `folder`, which appears when all are done."""
    documents = len(dense)
    k = min(k, documents - 1)
    manifest = GraphManifest(dense.manifest.fingerprint, dense.manifest.model, documents, k)
    with workshop(folder, (MANIFEST, RECORD)) as shop:
        if _read(shop.new) != manifest:
            shop.begin()
            create_rows(shop.new / TABLE, np.int32, (documents, k))
            mark_done(shop.new, 0)
            shop.force()
            write_whole(shop.new / MANIFEST, json.dumps(asdict(manifest), indent=2) + "\n")
        nearest = _exact(dense.matrix, k) if documents <= EXACT else _approximate(dense.stored, k)
        for start in range(read_done(shop.new), documents, BLOCK):
            stop = min(start + BLOCK, documents)
            write_rows(shop.new / TABLE, np.arange(start, stop), nearest(start, stop))
            mark_done(shop.new, stop)
            progress(stop)
        shop.put()
    return manifest


def _exact(vectors: NDArray[np.float32], k: int) -> Callable[[int, int], NDArray[np.intp]]:
    def nearest(start: int, stop: int) -> NDArray[np.intp]:
        products = vectors[start:stop] @ vectors.T
        products[np.arange(stop - start), np.arange(start, stop)] = -np.inf
        found = np.argpartition(-products, k - 1, axis=1)[:, :k] if k < products.shape[1] else np.argsort(-products)
        order = np.argsort(-np.take_along_axis(products, found, axis=1), axis=1, kind="stable")
        return np.take_along_axis(found, order, axis=1)

    return nearest


def _approximate(stored: NDArray[np.float16], k: int) -> Callable[[int, int], NDArray[np.intp]]:
    faiss = installed("faiss-cpu", f"a graph of more than {EXACT:,} documents")
    index = faiss.IndexHNSWFlat(stored.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    # It holds all of them as 32-bit floats; a second time they need not be there.
    for first in range(0, len(stored), ADDED):
        index.add(floats(stored[first : first + ADDED]))

    def nearest(start: int, stop: int) -> NDArray[np.intp]:
        _, found = index.search(floats(stored[start:stop]), k + 1)
        rows: list[list[int]] = []
        for number, row in enumerate(found.tolist(), start):
            others = [other for other in row if other not in (number, -1)] or [number]
            # Where fewer are found, the last one stands for the rest.
            rows.append((others + others[-1:] * k)[:k])
        return np.array(rows, dtype=np.intp)

    return nearest


def _read(folder: Path) -> GraphManifest | None:
    try:
        return GraphManifest(**parse_json(file_text(folder / MANIFEST, LARGEST_MANIFEST)))
    except (OSError, ValueError, TypeError):
        return None


def graph_folder(site: Site, model: str) -> Path:
    """Where the graph of `model`'s embeddings is."""
    return Path(f"{folder(site, model)}-graph")


def prepare_graph(site: Site, model: str, progress: Progress) -> None:
    """Make the graph where there is none, or make it anew of new embeddings; a collection in passages has none."""
    place = graph_folder(site, model)
    if site.collection.chunks or (is_there(place, MANIFEST) and not _outdated(site, place)):
        return
    dense = DenseRetriever(folder(site, model), encoder(site, model), site.collection)
    if len(dense) > 1:
        build_graph(dense, place, progress=lambda done: progress(f"neighbors in {site.collection.name}", done))


def _outdated(site: Site, place: Path) -> bool:
    """Whether the graph is of the documents as they were before, and to be brought up to date."""
    manifest = _read(place) if site.renew else None
    return manifest is not None and manifest.fingerprint != site.collection.fingerprint()


def find_graph(site: Site, model: str) -> Graph | None:
    """The graph of the site's embeddings; None where none was made. IndexMismatch where it is of something else."""
    place = graph_folder(site, model)
    if not is_there(place, MANIFEST) and not place.is_dir():
        return None
    manifest = _read(place)
    if manifest is None or manifest.fingerprint != site.collection.fingerprint():
        raise IndexMismatch(f"the corpus graph at {place} was made from something else; remove it, and index again")

    def opened() -> Graph:
        expect_whole(place, "the corpus graph", remedy(place))
        try:
            return Graph(IdTable.load(folder(site, model)), mapped(place / TABLE))
        except (OSError, ValueError) as error:
            raise IndexMismatch(f"the corpus graph at {place} is damaged ({error}); {remedy(place)}") from None

    graph: Graph = site.memo.get(("graph", place), opened)
    return graph


def graph_of(site: Site) -> Graph | None:
    """The corpus graph of the site's engine, if it has embeddings and a graph of them."""
    found = (find_graph(site, encoder) for encoder in encoders(site.settings.engine))
    return None if site.collection.chunks else next(filter(None, found), None)


def encoders(part: Part) -> tuple[str, ...]:
    """The encoders whose embeddings an engine searches by."""
    return tuple(one.encoder for one in dense_parts(part))


def prepare_graphs(site: Site, progress: Progress) -> None:
    """Make the graphs of all embeddings that the site's engine searches by, where there are none."""
    for name in encoders(site.settings.engine):
        prepare_graph(site, name, progress)
