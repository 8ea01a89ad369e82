"""The ANN index: scores of exact search, recall as measured, the same for every group, and never fewer documents."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fairagent.retrieve import ann
from fairagent.retrieve.ann import AnnIndex, AnnManifest, build_ann, exact_lists, open_ann
from fairagent.retrieve.dense import DenseRetriever, build_dense_index
from fairagent.retrieve.encoders import Embeddings
from fairagent.types import Document, FloatArray, Query

from .conftest import Made

pytest.importorskip("faiss")

SIZE, COUNT, TOPICS = 32, 20_000, 60


def clustered(count: int, seed: int) -> Embeddings:
    """Vectors of length 1 about some topics, of which the first are common."""
    chance = np.random.default_rng(seed)
    centers = np.random.default_rng(7).standard_normal((TOPICS, SIZE))
    weights = 1 / np.arange(1, TOPICS + 1)
    vectors = centers[chance.choice(TOPICS, count, p=weights / weights.sum())]
    vectors = vectors + 0.5 * chance.standard_normal((count, SIZE))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@dataclass
class Numbered:
    """An encoder whose vectors are made beforehand: a text is the number of one; queries are drawn otherwise."""

    made: Embeddings
    name: str = "numbered"

    def documents(self, texts: list[str]) -> Embeddings:
        return self.made[[int(text) if text.strip().isdigit() else 0 for text in texts]]

    def queries(self, texts: list[str]) -> Embeddings:
        return np.vstack([clustered(1, 1000 + int(text)) for text in texts])


ENCODER = Numbered(clustered(COUNT, 3))
DOCUMENTS = Made([Document(f"d{n * 37 % COUNT:05}", str(n)) for n in range(COUNT)])
QUERIES = [Query(str(n)) for n in range(20)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Embeddings, and an ANN index of them."""
    folder = tmp_path_factory.mktemp("ann")
    build_dense_index(DOCUMENTS, folder / "dense", ENCODER)
    build_ann(DenseRetriever(folder / "dense", ENCODER), folder / "ann", of_groups, ENCODER.queries(list("123")))
    return folder


@pytest.fixture(scope="module")
def exact(folder: Path) -> DenseRetriever:
    return DenseRetriever(folder / "dense", ENCODER, DOCUMENTS)


@pytest.fixture(scope="module")
def approximate(folder: Path) -> DenseRetriever:
    return DenseRetriever(folder / "dense", ENCODER, DOCUMENTS, open_ann(folder / "ann", folder / "dense"))


def of_groups(numbers: NDArray[np.intp]) -> Mapping[str, FloatArray]:
    """Every tenth document is of a minority."""
    rare = (numbers % 10 == 0).astype(np.float64)
    return {"side: many": 1 - rare, "side: few": rare}


@pytest.mark.parametrize("n", [1, 100, 500])
def test_scores_and_order_are_those_of_exact_search(exact: DenseRetriever, approximate: DenseRetriever, n: int) -> None:
    for query in QUERIES:
        found, first = approximate.search(query, n), exact.search(query, n)
        assert len(found) == n
        assert approximate.score(query, found.ids).tolist() == found.scores.tolist()
        both = dict(zip(first.ids, first.scores.tolist(), strict=True))
        shared = [(id, score) for id, score in zip(found.ids, found.scores.tolist(), strict=True) if id in both]
        assert shared == [(id, both[id]) for id in first.ids if id in dict(shared)]


def test_no_group_is_found_less(exact: DenseRetriever, approximate: DenseRetriever) -> None:
    for n in (100, 500):
        pairs = [(set(exact.search(query, n).ids), set(approximate.search(query, n).ids)) for query in QUERIES]
        few = {id for a, _ in pairs for id in a if of_groups(exact.ids.known([id]))["side: few"][0]}
        found = [[len(a & b & few), len(a & few), len(a & b - few), len(a - few)] for a, b in pairs]
        rare, of_rare, other, of_other = np.sum(found, axis=0)
        overall = (rare + other) / (of_rare + of_other)
        assert min(rare / of_rare, other / of_other) >= overall - 0.02


@pytest.mark.parametrize("n", [50, 9000, 10 * COUNT])
def test_of_most_of_the_collection_and_where_cells_hold_too_few_the_list_is_exact(
    exact: DenseRetriever, approximate: DenseRetriever, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if n == 50:
        monkeypatch.setattr(AnnIndex, "candidates", lambda self, vector, n: np.arange(n - 1))
    for query in QUERIES[:3]:
        found, first = approximate.search(query, n), exact.search(query, n)
        assert (found.ids, found.scores.tolist()) == (first.ids, first.scores.tolist())
        assert len(found) == min(n, COUNT)


def test_the_report_is_what_was_measured(folder: Path, exact: DenseRetriever) -> None:
    """Recall by hand, and an index that is looked at in part: otherwise tests compare exact search with itself."""
    found, index = AnnManifest.read(folder / "ann"), open_ann(folder / "ann", folder / "dense")
    assert (found.queries, found.documents, found.dimension) == (203, COUNT, SIZE)
    assert found.probes < found.cells / 2
    assert all(10 <= len(index.candidates(vector, 10)) < COUNT / 10 for vector in clustered(5, 9))
    hits: list[bool] = []
    rows = np.sort(np.random.default_rng(ann.SEED).choice(COUNT, 200, replace=False))
    drawn = exact.stored[rows].astype(np.float32)
    for vector in (*drawn, *ENCODER.queries(list("123"))):
        first = exact.best(vector, np.arange(COUNT), 500)
        hits += np.isin(first, exact.best(vector, index.candidates(vector, 500), 500)).tolist()
    assert found.recall == pytest.approx(np.mean(hits), abs=2e-4)
    assert set(found.groups) == {"side: many", "side: few"}
    assert min(found.recall, *found.groups.values()) >= ann.FLOOR
    assert asdict(found).keys() == json.loads((folder / "ann" / AnnManifest.FILE).read_text()).keys()


def test_exact_lists_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ann, "BLOCK", 2)
    rows = np.array([[3, 0], [1, 0], [2, 0], [2, 0], [0, 9]], dtype=np.float16)
    first, second = exact_lists(rows, np.array([[1, 0], [0, 1]], dtype=np.float32), 2)
    # 2 and 3 tie for the second place: which of them is found makes no difference.
    assert first.tolist() == [0]
    assert second.tolist() == [4]
    for depth, expected in ((3, [0, 2, 3]), (5, [0, 1, 2, 3, 4]), (500, [0, 1, 2, 3, 4])):
        assert sorted(exact_lists(rows, np.array([[1, 0]], dtype=np.float32), depth)[0].tolist()) == expected


@pytest.mark.slow
def test_a_group_that_stands_far_from_the_queries_cells_raises_the_effort(
    exact: DenseRetriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else would look there: it is made of what was missed."""
    monkeypatch.setattr(ann, "FLOOR", 0.9)
    made = build_ann(exact, tmp_path / "ann")
    index, missed = open_ann(tmp_path / "ann", exact.folder), np.zeros(COUNT)
    rows = np.sort(np.random.default_rng(ann.SEED).choice(COUNT, 200, replace=False))
    queries = exact.stored[rows].astype(np.float32)
    for vector, first in zip(queries, exact_lists(exact.stored, queries, 500), strict=True):
        missed[np.setdiff1d(first, exact.best(vector, index.in_cells(vector, 500, made.probes), 500))] += 1
    monkeypatch.setattr(ann, "COUNTED", 10)
    held = build_ann(exact, tmp_path / "held", lambda numbers: {"missed": (missed[numbers] > 0).astype(np.float64)})
    assert held.probes > made.probes
    assert held.groups["missed"] >= 0.9


@pytest.mark.parametrize("count", [1, 2, 40])
def test_few_documents(tmp_path: Path, count: int) -> None:
    build_dense_index(Made(DOCUMENTS.made[:count]), tmp_path / "dense", ENCODER)
    plain = DenseRetriever(tmp_path / "dense", ENCODER)
    assert build_ann(plain, tmp_path / "ann").recall == 1
    small = DenseRetriever(tmp_path / "dense", ENCODER, ann=open_ann(tmp_path / "ann", tmp_path / "dense"))
    for n in (1, count, 500):
        assert small.search(QUERIES[0], n).ids == plain.search(QUERIES[0], n).ids
