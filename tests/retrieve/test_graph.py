"""The corpus graph: exact by brute force, of one collection alone, and by cells where that is large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scripted import by_letter, collection

from fairagent.collection import Collection
from fairagent.collection.config import Chunks
from fairagent.errors import DataError, IndexMismatch
from fairagent.retrieve import graph, vectors
from fairagent.retrieve.dense import DenseRetriever
from fairagent.retrieve.encoded import build_dense_index
from fairagent.retrieve.encoders import BUNDLED
from fairagent.retrieve.graph import (
    TABLE,
    Graph,
    GraphManifest,
    build_graph,
    find_graph,
    graph_folder,
    prepare_graph,
)
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


def products(dense: DenseRetriever) -> dict[str, dict[str, float]]:
    """Document -> each other one -> the inner product of their embeddings, in double precision."""
    ids = [document.id for document in DOCUMENTS]
    rows = dense.vectors(ids).astype(np.float64)
    table = rows @ rows.T
    return {one: {other: float(table[i, j]) for j, other in enumerate(ids) if i != j} for i, one in enumerate(ids)}


def check(dense: DenseRetriever, found: Graph, k: int) -> None:
    """Every document has its k nearest, the nearest first (of equal ones whichever)."""
    ids = [document.id for document in DOCUMENTS]
    near = dict(zip(ids, found.neighbors(ids), strict=True))
    for id, others in products(dense).items():
        assert len(set(near[id])) == len(near[id]) == k
        assert id not in near[id]
        assert [others[other] for other in near[id]] == pytest.approx(
            sorted(others.values(), reverse=True)[:k], abs=1e-6
        )


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("k", [1, 5, 10, COUNT - 1])
def test_neighbors_are_those_of_brute_force(dense: DenseRetriever, tmp_path: Path, k: int) -> None:
    done: list[int] = []
    manifest = build_graph(dense, tmp_path / "graph", k, done.append)
    assert manifest == GraphManifest("as made", "words", COUNT, k)
    assert done == [10, 20, 30, 40, 50, 60, 61]
    check(dense, opened(dense, tmp_path / "graph"), k)
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_a_block_of_all_gives_the_same(dense: DenseRetriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_graph(dense, tmp_path / "one", 7)
    monkeypatch.setattr(graph, "CELL", 7)
    build_graph(dense, tmp_path / "two", 7)
    check(dense, opened(dense, tmp_path / "one"), 7)
    check(dense, opened(dense, tmp_path / "two"), 7)


def test_fewer_documents_than_neighbors(tmp_path: Path) -> None:
    build_dense_index(Made(DOCUMENTS[:3]), tmp_path / "dense", Words())
    few = DenseRetriever(tmp_path / "dense", Words())
    assert build_graph(few, tmp_path / "graph").k == 2
    for id, near in zip("012", opened(few, tmp_path / "graph").neighbors([d.id for d in DOCUMENTS[:3]]), strict=True):
        assert set(near) == {document.id for document in DOCUMENTS[:3]} - {DOCUMENTS[int(id)].id}


def test_ids_that_are_not_there_and_none(dense: DenseRetriever, tmp_path: Path) -> None:
    build_graph(dense, tmp_path / "graph", 3)
    found = opened(dense, tmp_path / "graph")
    assert found.neighbors([]) == []
    with pytest.raises(DataError, match="nobody"):
        found.neighbors(["d001", "nobody"])


def test_an_interrupted_build_leaves_nothing(dense: DenseRetriever, tmp_path: Path) -> None:
    def interrupt(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_graph(dense, tmp_path / "graph", 5, interrupt)
    assert not list(tmp_path.iterdir())


# --- of a collection --------------------------------------------------------------------------------------------


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
    place = site(tmp_path)
    assert find_graph(place, BUNDLED) is None
    build_dense_index(place.collection, vectors.folder(place, BUNDLED), Words())
    told: list[tuple[str, int]] = []
    prepare_graph(place, BUNDLED, lambda what, done: told.append((what, done)))
    assert told == [("neighbors in made", COUNT)]
    assert (graph_folder(place, BUNDLED) / GraphManifest.FILE).is_file()
    prepare_graph(place, BUNDLED, lambda what, done: pytest.fail("it is there already"))
    found = find_graph(place, BUNDLED)
    assert found is not None
    assert found is find_graph(place, BUNDLED)
    assert len(found.neighbors(["d000"])[0]) == graph.NEIGHBORS
    check(DenseRetriever(vectors.folder(place, BUNDLED), Words()), found, graph.NEIGHBORS)


@pytest.mark.usefixtures("words")
def test_another_collections_graph_is_refused(tmp_path: Path) -> None:
    place = site(tmp_path)
    build_dense_index(place.collection, vectors.folder(place, BUNDLED), Words())
    prepare_graph(place, BUNDLED, lambda what, done: None)
    with pytest.raises(IndexMismatch, match=r"corpus graph at .* was made from something else"):
        find_graph(site(tmp_path, "changed"), BUNDLED)


@pytest.mark.usefixtures("words")
def test_a_collection_in_passages_has_none(tmp_path: Path) -> None:
    place = site(tmp_path, chunks=Chunks(tokens=32, overlap=8))
    build_dense_index(place.collection, vectors.folder(place, BUNDLED), Words())
    prepare_graph(place, BUNDLED, lambda what, done: pytest.fail("it has passages"))
    assert find_graph(place, BUNDLED) is None


@pytest.mark.usefixtures("words")
def test_one_document_has_no_neighbors(tmp_path: Path) -> None:
    place = site(tmp_path, made=DOCUMENTS[:1])
    build_dense_index(place.collection, vectors.folder(place, BUNDLED), Words())
    prepare_graph(place, BUNDLED, lambda what, done: pytest.fail("there is one document"))
    assert find_graph(place, BUNDLED) is None


# --- by cells ---------------------------------------------------------------------------------------------------


def near_by_cells(dense: DenseRetriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, near: int) -> float:
    """The share of the five exact neighbors that are found among the documents of so many cells."""
    build_graph(dense, tmp_path / "exact", 5)
    monkeypatch.setattr(graph, "EXACT", COUNT - 1)
    monkeypatch.setattr(graph, "CELL", 6)
    monkeypatch.setattr(graph, "NEAR", near)
    build_graph(dense, tmp_path / "cells", 5)
    ids = [document.id for document in DOCUMENTS]
    exact, cells = (opened(dense, tmp_path / name).neighbors(ids) for name in ("exact", "cells"))
    assert all(len(row) == 5 and id not in row for id, row in zip(ids, cells, strict=True))
    return float(np.mean([len(set(row) & set(best)) / 5 for row, best in zip(cells, exact, strict=True)]))


def test_all_cells_give_what_brute_force_gives(
    dense: DenseRetriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of neighbors that are equally near the one or the other may come first.
    assert near_by_cells(dense, tmp_path, monkeypatch, COUNT) > 0.98


def test_some_cells_give_most_of_it(dense: DenseRetriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.6 < near_by_cells(dense, tmp_path, monkeypatch, 4) < 0.98


def test_a_cell_alone_fills_up_with_its_last(
    dense: DenseRetriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "EXACT", COUNT - 1)
    monkeypatch.setattr(graph, "CELL", 20)
    monkeypatch.setattr(graph, "NEAR", 1)
    build_graph(dense, tmp_path / "graph", 30)
    table = np.load(tmp_path / "graph" / TABLE)
    assert table.shape == (COUNT, 30)
    assert all(number not in row for number, row in enumerate(table.tolist()))
    assert min(len(set(row)) for row in table.tolist()) < 30


def test_many_documents_that_are_all_alike(
    dense: DenseRetriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are one cell, which is compared in parts."""
    monkeypatch.setattr(graph, "EXACT", COUNT - 1)
    monkeypatch.setattr(graph, "CELL", 20)
    monkeypatch.setattr(graph, "LARGEST", 7)
    alike = np.ones((COUNT, 4), np.float16)
    parts = list(graph._cells(alike))
    assert sorted(number for members, _ in parts for number in members.tolist()) == list(range(COUNT))
    assert max(len(candidates) for _, candidates in parts) <= 7 * graph.NEAR
    table = graph._neighbors(alike, 5, lambda done: None)
    assert all(number not in row for number, row in enumerate(table.tolist()))
