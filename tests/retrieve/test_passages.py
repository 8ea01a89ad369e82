"""Documents by their best passage, over real engines, against doing it by hand."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fairagent.collection.config import Chunks, passage_document, passages
from fairagent.errors import DataError, IndexMismatch
from fairagent.retrieve.base import PassageSource, TextSource, Vocabulary, texts_for
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.dense import DenseRetriever, EmbeddingSource, build_dense_index
from fairagent.retrieve.passages import BM25Passages, DensePassages
from fairagent.retrieve.relevance_model import TermSource
from fairagent.types import Document, Query, Term

from .test_dense import Words

CHUNKS = Chunks(tokens=32, overlap=8)
SUBJECTS = ["lawyer court", "judge law", "river boat", "garden rose", "painter color", "harbor ship"]


def _documents() -> list[Document]:
    """60 documents of up to 40 sentences, some of them equal, some empty; ids that sort in odd ways."""
    chance = random.Random(7)
    made = []
    for n in range(60):
        subjects = chance.sample(SUBJECTS, 3)
        lines = [
            f"The {chance.choice(subjects)} of place {chance.randrange(9)}."
            for _ in range(chance.choice([0, 1, 5, 40]))
        ]
        made.append(Document(f"d{n % 7}{'#!'[n % 2]}{n}", " ".join(lines), f"Page {n}", {"number": n}))
    made += [Document(f"tie{n:02}", "A quiet harbor. " * 30, "", {}) for n in range(12)]
    return made


DOCUMENTS = _documents()


@dataclass(frozen=True)
class Cut:
    """A collection of passages in memory."""

    made: Sequence[Document]
    name: str = "cut"

    def documents(self) -> Iterator[Document]:
        return passages(self.made, CHUNKS)

    def fingerprint(self) -> str:
        return "as made"


@pytest.fixture(scope="module")
def lucene(tmp_path_factory: pytest.TempPathFactory) -> BM25Retriever:
    folder = tmp_path_factory.mktemp("passages") / "index"
    build_index(Cut(DOCUMENTS), folder)
    return BM25Retriever(folder)


@pytest.fixture(scope="module")
def retriever(lucene: BM25Retriever) -> BM25Passages:
    return BM25Passages(lucene)


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> DenseRetriever:
    folder = tmp_path_factory.mktemp("passages") / "dense"
    build_dense_index(Cut(DOCUMENTS), folder, Words())
    return DenseRetriever(folder, Words())


def by_hand(engine: BM25Retriever | DenseRetriever, query: Query) -> list[tuple[str, float]]:
    """Every document that a passage was found of, with its best passage's score."""
    found = engine.search(query, 100_000)
    best: dict[str, float] = {}
    for id, score in zip(found.ids, found.scores.tolist(), strict=True):
        best[passage_document(id)] = max(score, best.get(passage_document(id), -np.inf))
    return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))


@pytest.mark.parametrize("words", ["court judge river", "quiet harbor", "nothing"])
def test_the_list_is_that_of_the_best_passages(lucene: BM25Retriever, dense: DenseRetriever, words: str) -> None:
    query = Query(words, terms=(Term("boat", 0.5),) if words != "nothing" else ())
    for engine, wrapped in ((lucene, BM25Passages(lucene)), (dense, DensePassages(dense))):
        expected = by_hand(engine, query)
        assert len(expected) > 12 or words == "nothing"
        for n in (1, 13, 1000):
            found = wrapped.search(query, n)
            assert list(zip(found.ids, found.scores.tolist(), strict=True)) == expected[:n]


def test_a_tie_of_documents_is_looked_through_to_its_end(tmp_path: Path) -> None:
    # Of the passages `a!#1` comes before `a#1`, of the documents `a` first.
    build_index(Cut([Document(id, "A quiet harbor. " * 40) for id in ("a", "a!")]), tmp_path / "index")
    assert BM25Passages(BM25Retriever(tmp_path / "index")).search(Query("quiet harbor"), 1).ids == ("a",)


def test_a_pool_gets_the_scores_of_the_list(retriever: BM25Passages) -> None:
    query = Query("court judge river")
    found = retriever.search(query, 1000)
    others = [document.id for document in DOCUMENTS if document.id not in found.ids]
    assert others
    asked = [*found.ids, *others, found.ids[1]]
    expected = [*found.scores.tolist(), *[0.0] * len(others), found.scores[1]]
    assert retriever.score(query, asked).tolist() == expected
    assert retriever.score(query, []).shape == (0,)


def test_whole_documents_come_back_and_the_best_passages_for_a_context(retriever: BM25Passages) -> None:
    assert len(retriever) == len(DOCUMENTS)
    for document in DOCUMENTS[:60]:
        assert retriever.document(document.id) == document
    repetitive = retriever.document("tie00")
    assert DOCUMENTS[60].text.startswith(repetitive.text)
    query = Query("garden rose")
    ids = retriever.search(query, 10).ids
    best = texts_for(query, ids, retriever)
    assert [one.id for one in best] == list(ids)
    whole = {document.id: document for document in DOCUMENTS}
    for one in best:
        assert one.text in whole[one.id].text
        assert "garden rose" in one.text
        assert (one.title, one.extra) == (whole[one.id].title, whole[one.id].extra)
    assert max(len(whole[one.id].text) / len(one.text) for one in best) > 5
    assert retriever.passages(query, []) == []


def test_the_terms_of_a_document_are_those_of_all_its_passages(retriever: BM25Passages, lucene: BM25Retriever) -> None:
    ids = [DOCUMENTS[n].id for n in (3, 0, 40, 65, 3)]
    found = retriever.postings(ids)
    words = retriever.words(found.vocabulary)
    for row, id in enumerate(ids):
        of_row = found.row == row
        counts = dict(zip([words[term] for term in found.term[of_row]], found.count[of_row], strict=True))
        parts = [one for one in passages(DOCUMENTS, CHUNKS) if passage_document(one.id) == id]
        terms = Counter(term for one in parts for term in lucene.analyze(f"{one.title} {one.text}"))
        stems = Counter({stem: count for word, count in counts.items() for stem in retriever.analyze(word)})
        assert stems == terms
        assert found.length[row] == terms.total()
    # Feedback counts documents by entries: a term is there once a document.
    pairs = list(zip(found.row.tolist(), found.term.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert retriever.postings([]).row.shape == (0,)


def test_what_the_agent_asks_of_an_engine(retriever: BM25Passages, dense: DenseRetriever) -> None:
    for protocol in (TextSource, PassageSource, TermSource, Vocabulary):
        assert isinstance(retriever, protocol)
    assert isinstance(DensePassages(dense), EmbeddingSource)
    assert not isinstance(DensePassages(dense), TextSource)
    for id in ("zz", "", "d0#0#1", "tie00#1"):
        with pytest.raises(DataError, match="not in the index"):
            retriever.score(Query("law"), [id])


def test_the_embedding_of_a_document_is_the_mean_of_its_passages(dense: DenseRetriever) -> None:
    ids = [DOCUMENTS[n].id for n in (40, 3)]
    found = DensePassages(dense).vectors(ids)
    for row, id in zip(found, ids, strict=True):
        parts = [one.id for one in passages(DOCUMENTS, CHUNKS) if passage_document(one.id) == id]
        np.testing.assert_allclose(row, dense.vectors(parts).mean(axis=0), atol=1e-6)


def test_an_index_of_whole_documents_is_refused(retriever: BM25Passages, tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Whole(Cut):
        def documents(self) -> Iterator[Document]:
            return iter(self.made)

    build_index(Whole(DOCUMENTS), tmp_path / "index")
    with pytest.raises(IndexMismatch, match="holds documents, not their passages"):
        BM25Passages(BM25Retriever(tmp_path / "index"))
