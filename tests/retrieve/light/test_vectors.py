"""Light vectors: what they are made of, that they are the same each time, and what damage is noticed."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.dense import DenseRetriever
from fairagent.retrieve.light import LSA, LightEncoder, build_light, right_singular_vectors, word_table
from fairagent.types import Document, Query

from ..conftest import Made

TOPICS = {
    "law": "lawyer court judge trial verdict attorney",
    "sea": "ocean wave tide harbor sailor ship",
    "food": "apple pear plum cherry grape fig",
}


def made(count: int = 90) -> Made:
    """Documents of three topics, each with half of its topic's words."""
    rng, documents = np.random.default_rng(7), list[Document]()
    for number in range(count):
        topic = sorted(TOPICS)[number % 3]
        words = rng.choice(TOPICS[topic].split(), 3, replace=False)
        documents.append(Document(f"{topic}{number:02d}", " ".join([*words, "common"])))
    return Made(tuple(documents))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> BM25Retriever:
    place = tmp_path_factory.mktemp("light") / "index"
    build_index(made(), place)
    build_light(BM25Retriever(place), place / "light")
    return BM25Retriever(place)


@pytest.fixture(scope="module")
def dense(engine: BM25Retriever) -> DenseRetriever:
    place = engine.folder / "light"
    return DenseRetriever(place, LightEncoder.open(engine, place), made())


def test_documents_of_a_topic_are_found_by_words_that_they_lack(dense: DenseRetriever, engine: BM25Retriever) -> None:
    query = Query("verdict")
    by_words = set(engine.search(query, 90).ids)
    found = dense.search(query, 30).ids
    assert all(id.startswith("law") for id in found)
    assert set(found) - by_words
    assert all(id.startswith("law") for id in by_words)


def test_both_halves_have_the_same_length(dense: DenseRetriever) -> None:
    first = dense.stored.shape[1] - 64
    assert 0 < first <= LSA
    rows = dense.stored.astype(np.float64)
    for half in (rows[:, :first], rows[:, first:]):
        np.testing.assert_allclose(np.linalg.norm(half, axis=1), 0.5**0.5, atol=1e-3)


def test_words_that_the_index_lacks_have_no_part(dense: DenseRetriever) -> None:
    vector = dense.query_vector(Query("verdict"))
    np.testing.assert_allclose(dense.query_vector(Query("verdict zyzzyva 😀")), vector)
    assert not dense.query_vector(Query("zyzzyva 😀 ทนายความ")).any()
    assert not len(dense.search(Query("ทนายความ"), 5))


def test_the_same_documents_give_the_same_files(engine: BM25Retriever, tmp_path: Path) -> None:
    done: list[int] = []
    build_light(engine, tmp_path / "again", done.append)
    assert done == [90]
    files = {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (engine.folder / "light").iterdir()}
    assert [path.name for path in tmp_path.iterdir()] == ["again"]


def test_singular_vectors_are_those_of_the_exact_decomposition() -> None:
    rng = np.random.default_rng(3)
    matrix = rng.standard_normal((60, 5)) @ np.diag([9, 7, 5, 3, 2]) @ rng.standard_normal((5, 40))
    found = right_singular_vectors(csr_array(matrix), 5)
    exact = np.linalg.svd(matrix)[2][:5].T
    # Up to the sign of each.
    np.testing.assert_allclose(np.abs(np.sum(found * exact, axis=0)), 1, atol=1e-6)
    # Of a smaller rank there are fewer.
    assert right_singular_vectors(csr_array(np.outer(np.arange(1, 9), np.ones(12))), 4).shape == (12, 1)


@pytest.mark.parametrize("text", ["", "word"])
def test_collections_of_next_to_nothing(tmp_path: Path, text: str) -> None:
    collection = Made((Document("d1", text), Document("d2", "")))
    build_index(collection, tmp_path / "index")
    engine = BM25Retriever(tmp_path / "index")
    build_light(engine, tmp_path / "light")
    dense = DenseRetriever(tmp_path / "light", LightEncoder.open(engine, tmp_path / "light"), collection)
    assert set(dense.search(Query("word"), 5).ids) == ({"d1", "d2"} if text else set())


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("Lawyer", "lawyer"),
        ("embeddings", "em ##bed ##ding ##s"),
        ("Éclair", "ec ##lai ##r"),
        ("адвокат", "а ##д ##в ##о ##ка ##т"),
        ("😀", ""),
    ],
)
def test_words_are_cut_as_bert_cuts_them_and_their_mean_is_taken(word: str, pieces: str) -> None:
    table = word_table()
    rows = [table.places[piece] for piece in pieces.split()]
    assert table._pieces(word) == rows
    (found,) = table.vectors([word])
    np.testing.assert_allclose(found, table._vectors[rows].mean(axis=0) if rows else 0 * found)
