"""The corpus graph: exact by brute force, of one collection alone, and by cells where that is large."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted import by_letter, collection

from fairagent.collection import Collection
from fairagent.collection.config import Chunks
from fairagent.errors import DataError, IndexMismatch
from fairagent.retrieve import graph, vectors
from fairagent.retrieve.dense import DenseRetriever, build_dense_index
from fairagent.retrieve.encoders import BUNDLED
from fairagent.retrieve.graph import TABLE, Graph, GraphManifest, build_graph, find_graph, prepare_graphs
from fairagent.retrieve.site import Site
from fairagent.settings import Settings
from fairagent.types import Document

from .test_dense import Made, Words


def _documents(count: int) -> list[Document]:
    """Texts of some of 12 words, no two alike, with ids in an order that is not that of the documents."""
    chance = np.random.default_rng(3)
    words = np.array([f"word{n}" for n in range(12)])
    return [Document(f"d{n * 37 % count:03}", " ".join(chance.choice(words, 9)) + f" only{n}") for n in range(count)]


COUNT = 61
DOCUMENTS = _documents(COUNT)


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> DenseRetriever:
    folder = tmp_path_factory.mktemp("graph") / "dense"
    build_dense_index(Made(DOCUMENTS), folder, Words())
    return DenseRetriever(folder, Words())


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "CELL", 10)


def opened(dense: DenseRetriever, folder: Path) -> Graph:
    return Graph(dense.ids, np.load(folder / TABLE))


def check(dense: DenseRetriever, found: Graph, k: int) -> None:
    """Every document has its k nearest by their products in double precision, the nearest first (of equal ones any)."""
    ids = [document.id for document in DOCUMENTS]
    rows = dense.vectors(ids).astype(np.float64)
    for id, products, near in zip(ids, rows @ rows.T, found.neighbors(ids), strict=True):
        others = {other: float(one) for other, one in zip(ids, products, strict=True) if other != id}
        assert len(set(near)) == len(near) == k
        best = sorted(others.values(), reverse=True)[:k]
        assert [others[other] for other in near] == pytest.approx(best, abs=1e-6)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("k", [1, 10, COUNT - 1])
def test_neighbors_are_those_of_brute_force(dense: DenseRetriever, tmp_path: Path, k: int) -> None:
    done: list[int] = []
    manifest = build_graph(dense, tmp_path / "graph", k, done.append)
    assert manifest == GraphManifest("as made", "words", COUNT, k)
    assert done == [10, 20, 30, 40, 50, 60, 61]
    graph_of_all = opened(dense, tmp_path / "graph")
    check(dense, graph_of_all, k)
    assert graph_of_all.neighbors([]) == []
    with pytest.raises(DataError, match="nobody"):
        graph_of_all.neighbors(["d001", "nobody"])


def test_zeros_are_near_to_nothing(tmp_path: Path) -> None:
    texts = ["word1 word2", "word1 word2 word3", "word1", ""]
    documents = [Document(f"d{n}", text) for n, text in enumerate(texts)]
    build_dense_index(Made(documents), tmp_path / "dense", Words())
    vectors = DenseRetriever(tmp_path / "dense", Words())
    build_graph(vectors, tmp_path / "graph", 2)
    assert opened(vectors, tmp_path / "graph").neighbors(["d3"]) == [("d3", "d3")]


@dataclass(frozen=True)
class Told(Collection):
    """A collection in memory; another `state` stands for other files."""

    state: str = "as made"
    made: Sequence[Document] = ()

    def documents(self) -> Iterator[Document]:
        return iter(self.made)

    def fingerprint(self) -> str:
        return self.state


def site(
    folder: Path, state: str = "as made", chunks: Chunks | None = None, made: Sequence[Document] = DOCUMENTS
) -> Site:
    plain = collection(by_letter(["f0"]))
    told = Told("made", {}, {}, plain.groups, {}, (), plain.source, chunks, state=state, made=made)
    return Site(told, Settings(engine="dense", encoder=BUNDLED), folder / "index", None)  # type: ignore[arg-type]


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "open_encoder", lambda model, device, served: Words())


@pytest.mark.usefixtures("words")
def test_it_is_made_once_and_found(tmp_path: Path) -> None:
    place, told = site(tmp_path), list[tuple[str, int]]()
    assert find_graph(place, BUNDLED) is None
    build_dense_index(place.collection, vectors.folder(place, BUNDLED), Words())
    prepare_graphs(place, lambda what, done: told.append((what, done)))
    prepare_graphs(place, lambda what, done: pytest.fail("it is there already"))
    assert told == [("neighbors in made", COUNT)]
    found = find_graph(place, BUNDLED)
    assert found is not None
    assert found is find_graph(place, BUNDLED)
    check(DenseRetriever(vectors.folder(place, BUNDLED), Words()), found, graph.NEIGHBORS)
    with pytest.raises(IndexMismatch, match=r"corpus graph at .* was made from something else"):
        find_graph(site(tmp_path, "changed"), BUNDLED)


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("how", [{"chunks": Chunks(tokens=32, overlap=8)}, {"made": DOCUMENTS[:1]}])
def test_passages_and_one_document_have_no_neighbors(tmp_path: Path, how: dict[str, Any]) -> None:
    place = site(tmp_path, **how)
    build_dense_index(place.collection, vectors.folder(place, BUNDLED), Words())
    prepare_graphs(place, lambda what, done: pytest.fail("there is none to make"))
    assert find_graph(place, BUNDLED) is None


@pytest.fixture
def by_cells(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set how large cells are, and how many are looked at, where they are looked at."""
    return lambda **sizes: [monkeypatch.setattr(graph, *one) for one in {"EXACT": COUNT - 1, **sizes}.items()]


# Of neighbors that are equally near the one or the other may come first.
@pytest.mark.parametrize(("near", "least", "most"), [(COUNT, 0.98, 1.0), (4, 0.6, 0.98)])
def test_cells_give_most_of_what_brute_force_gives(
    dense: DenseRetriever, tmp_path: Path, by_cells: Callable[..., None], near: int, least: float, most: float
) -> None:
    build_graph(dense, tmp_path / "exact", 5)
    by_cells(CELL=6, NEAR=near)
    build_graph(dense, tmp_path / "cells", 5)
    ids = [document.id for document in DOCUMENTS]
    exact, cells = (opened(dense, tmp_path / name).neighbors(ids) for name in ("exact", "cells"))
    assert all(len(row) == 5 and id not in row for id, row in zip(ids, cells, strict=True))
    share = float(np.mean([len(set(row) & set(best)) / 5 for row, best in zip(cells, exact, strict=True)]))
    assert least < share <= most


def test_many_documents_that_are_all_alike_are_compared_in_parts(by_cells: Callable[..., None]) -> None:
    by_cells(CELL=20, LARGEST=7)
    alike = np.ones((COUNT, 4), np.float16)
    parts = list(graph._cells(alike))
    assert sorted(number for members, _ in parts for number in members.tolist()) == list(range(COUNT))
    assert max(len(candidates) for _, candidates in parts) <= 7 * graph.NEAR
