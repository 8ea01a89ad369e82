"""The ANN index: scores of exact search, recall as measured, the same for every group, and never fewer documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from retrieve.test_dense import Made

from fairagent.guests.dense import ann as ann_build
from fairagent.guests.dense.ann import FaissIndex, exact_lists
from fairagent.retrieve import ann
from fairagent.retrieve.ann import AnnManifest, build_ann, open_ann
from fairagent.retrieve.dense import DenseRetriever
from fairagent.retrieve.encoded import build_dense_index
from fairagent.retrieve.encoders import Embeddings
from fairagent.types import Document, FloatArray, Query

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
    pytest.importorskip("faiss")
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


def recall(exact: DenseRetriever, approximate: DenseRetriever, n: int, group: str = "") -> float:
    """The share of exact search's first `n` documents, or of those of a group, that are found, over all queries."""
    found, wanted = 0, 0
    for query in QUERIES:
        first = set(exact.search(query, n).ids)
        if group:
            first = {id for id in first if of_groups(exact.ids.known([id]))[group][0]}
        found += len(first & set(approximate.search(query, n).ids))
        wanted += len(first)
    return found / wanted


@pytest.mark.parametrize("n", [1, 100, 500])
def test_scores_are_those_of_exact_search(exact: DenseRetriever, approximate: DenseRetriever, n: int) -> None:
    for query in QUERIES:
        found, first = approximate.search(query, n), exact.search(query, n)
        assert len(found) == n
        assert approximate.score(query, found.ids).tolist() == found.scores.tolist()
        both = dict(zip(first.ids, first.scores.tolist(), strict=True))
        shared = [(id, score) for id, score in zip(found.ids, found.scores.tolist(), strict=True) if id in both]
        assert [both[id] for id, _ in shared] == [score for _, score in shared]
        # In the same order: the list is that of exact search without what was not found.
        assert [id for id, _ in shared] == [id for id in first.ids if id in dict(shared)]


def test_an_index_is_looked_at_in_part(approximate: DenseRetriever, folder: Path) -> None:
    manifest = AnnManifest.read(folder / "ann")
    assert manifest.probes < manifest.cells / 2
    # Otherwise the other tests would compare exact search with itself.
    looked = [len(open_ann(folder / "ann", folder / "dense").candidates(v, 10)) for v in clustered(5, 9)]
    assert all(10 <= count < COUNT / 10 for count in looked)


@pytest.mark.parametrize("group", ["side: many", "side: few"])
def test_no_group_is_found_less(exact: DenseRetriever, approximate: DenseRetriever, group: str) -> None:
    """What is restricted to a group afterwards, or asks deeper for its sake, gets its share."""
    for n in (100, 500):
        assert recall(exact, approximate, n, group) >= recall(exact, approximate, n) - 0.02


@pytest.mark.parametrize("n", [9000, COUNT, 10 * COUNT])
def test_of_most_of_the_collection_the_list_is_exact(
    exact: DenseRetriever, approximate: DenseRetriever, n: int
) -> None:
    for query in QUERIES[:3]:
        found, first = approximate.search(query, n), exact.search(query, n)
        assert (found.ids, found.scores.tolist()) == (first.ids, first.scores.tolist())
        assert len(found) == min(n, COUNT)


def test_where_the_cells_hold_too_few_the_list_is_exact(
    exact: DenseRetriever, approximate: DenseRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FaissIndex, "candidates", lambda self, vector, n: np.arange(n - 1))
    for query in QUERIES[:3]:
        assert approximate.search(query, 50).ids == exact.search(query, 50).ids


# --- the report ---------------------------------------------------------------------------------------------------


def test_the_report_is_what_was_measured(folder: Path, exact: DenseRetriever, approximate: DenseRetriever) -> None:
    """Recall by hand, for the stored embeddings that were drawn as queries."""
    found = AnnManifest.read(folder / "ann")
    assert (found.queries, found.documents, found.dimension) == (200, COUNT, SIZE)
    rows = np.sort(np.random.default_rng(ann_build.SEED).choice(COUNT, 200, replace=False))
    index = open_ann(folder / "ann", folder / "dense")
    hits: list[bool] = []
    for vector in ENCODER.made.astype(np.float16).astype(np.float32)[rows]:
        first = exact.best(vector, exact.near(vector, 500), 500)
        hits += np.isin(first, exact.best(vector, index.candidates(vector, 500), 500)).tolist()
    assert found.recall == pytest.approx(np.mean(hits), abs=2e-4)
    assert found.recall >= ann_build.FLOOR
    assert found.topics is not None
    assert found.topics >= ann_build.FLOOR
    assert set(found.groups) == {"side: many", "side: few"}
    assert min(found.groups.values()) >= ann_build.FLOOR
    assert found.milliseconds > 0 < found.exact


def test_exact_lists_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ann_build, "BLOCK", 2)
    rows = np.array([[3, 0], [1, 0], [2, 0], [2, 0], [0, 9]], dtype=np.float16)
    first, second = exact_lists(rows, np.array([[1, 0], [0, 1]], dtype=np.float32), 2)
    # 2 and 3 tie for the second place: which of them is found makes no difference.
    assert first.tolist() == [0]
    assert second.tolist() == [4]
    for depth, expected in ((3, [0, 2, 3]), (5, [0, 1, 2, 3, 4]), (500, [0, 1, 2, 3, 4])):
        assert sorted(exact_lists(rows, np.array([[1, 0]], dtype=np.float32), depth)[0].tolist()) == expected


@pytest.mark.slow
@pytest.mark.parametrize("floor", [0.9])
def test_the_fewest_cells_that_reach_the_floor(
    folder: Path, exact: DenseRetriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, floor: float
) -> None:
    monkeypatch.setattr(ann_build, "FLOOR", floor)
    made = build_ann(exact, tmp_path / "ann", of_groups)
    assert min(made.recall, *made.groups.values()) >= floor
    index, rows = open_ann(tmp_path / "ann", folder / "dense"), exact.stored.astype(np.float32)
    drawn = rows[np.sort(np.random.default_rng(ann_build.SEED).choice(COUNT, 200, replace=False))]
    expected = exact_lists(exact.stored, drawn, 500)
    fewer = made.probes - max(1, made.probes // 5)
    hits = [
        np.isin(first, exact.best(vector, index.looked_at(vector, 500, max(1, fewer)), 500))
        for first, vector in zip(expected, drawn, strict=True)
    ]
    assert made.probes == 1 or np.concatenate(hits).mean() < floor + 0.01


@pytest.mark.slow
def test_a_group_that_is_found_less_raises_the_effort(
    exact: DenseRetriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group whose documents stand far from the queries' cells: nothing else would look there."""
    plain = build_ann(exact, tmp_path / "plain")
    index = open_ann(tmp_path / "plain", exact.folder)
    rows = exact.stored.astype(np.float32)
    drawn = rows[np.sort(np.random.default_rng(ann_build.SEED).choice(COUNT, 200, replace=False))]
    missed = np.zeros(COUNT)
    for vector, first in zip(drawn, exact_lists(exact.stored, drawn, 500), strict=True):
        missed[np.setdiff1d(first, exact.best(vector, index.looked_at(vector, 500, plain.probes), 500))] += 1
    monkeypatch.setattr(ann_build, "COUNTED", 10)
    held = build_ann(exact, tmp_path / "held", lambda numbers: {"missed": (missed[numbers] > 0).astype(np.float64)})
    assert held.probes > plain.probes
    assert held.groups["missed"] >= ann_build.FLOOR


@pytest.mark.slow
def test_it_comes_out_the_same_again(folder: Path, exact: DenseRetriever, tmp_path: Path) -> None:
    again = build_ann(exact, tmp_path / "ann", of_groups, ENCODER.queries(list("123")))
    assert (tmp_path / "ann" / ann_build.INDEX).read_bytes() == (folder / "ann" / ann_build.INDEX).read_bytes()
    once = AnnManifest.read(folder / "ann")
    assert replace(again, milliseconds=0, exact=0) == replace(once, milliseconds=0, exact=0)
    assert asdict(again).keys() == json.loads((tmp_path / "ann" / AnnManifest.FILE).read_text()).keys()


@pytest.mark.parametrize("count", [1, 2, 40])
def test_few_documents(tmp_path: Path, count: int) -> None:
    pytest.importorskip("faiss")
    build_dense_index(Made(DOCUMENTS.made[:count]), tmp_path / "dense", ENCODER)
    plain = DenseRetriever(tmp_path / "dense", ENCODER)
    assert build_ann(plain, tmp_path / "ann").recall == 1
    small = DenseRetriever(tmp_path / "dense", ENCODER, ann=open_ann(tmp_path / "ann", tmp_path / "dense"))
    for n in (1, count, 500):
        assert small.search(QUERIES[0], n).ids == plain.search(QUERIES[0], n).ids


@pytest.mark.parametrize(
    ("when", "documents", "expected"),
    [("auto", 200_000, False), ("auto", 200_001, True), ("never", 10**7, False), ("always", 5, True)],
)
def test_when_it_is_searched(when: ann.When, documents: int, expected: bool) -> None:
    pytest.importorskip("faiss")
    assert ann.wanted(when, documents) is expected
