"""SPLADE: weights as the paper's equation says, exact search with ties by id, an index that goes on after a break."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from retrieve.test_dense import MADE, Made
from retrieve.test_dense import Words as DenseWords
from scipy.sparse import csr_array
from tiny_models import save_masked

from fairagent.errors import DataError, UsageError
from fairagent.guests.dense.splade import SpladeEncoder, SpladeRetriever, build_splade_index
from fairagent.retrieve.encoders import Embeddings
from fairagent.types import Document, Query, Term


@dataclass
class Words:
    """An encoder without a model: a weight for each of the words that a text has, of which queries know more."""

    name: str = "words"
    fail_after: int = sys.maxsize
    encoded: list[str] = field(default_factory=list)

    def documents(self, texts: Sequence[str]) -> csr_array:
        if len(self.encoded) + len(texts) > self.fail_after:
            raise KeyboardInterrupt
        self.encoded += texts
        return csr_array(DenseWords().documents(texts) * np.float32(0.7))

    def queries(self, texts: Sequence[str]) -> csr_array:
        return csr_array(DenseWords(salt="").queries(texts) * np.float32(1.3))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("splade") / "index"
    build_splade_index(MADE, folder, Words())
    return folder


def expected(query: str) -> list[tuple[str, float]]:
    """Every product above 0 in double precision, best first, ties by id."""
    texts = [f"{document.title} {document.text}" for document in MADE.made]
    weights, wanted = Words().documents(texts).toarray(), Words().queries([query]).toarray()[0]
    scores = [0.0] * len(texts)
    for entry in np.flatnonzero(wanted).tolist():
        for number in range(len(texts)):
            scores[number] += float(wanted[entry]) * float(weights[number, entry])
    found = [(document.id, score) for document, score in zip(MADE.made, scores, strict=True) if score > 0]
    return sorted(found, key=lambda x: (-x[1], x[0]))


@pytest.mark.parametrize("n", [1, 7, 33, 99, 100, 1000])
def test_search_is_exact_with_ties_by_id(folder: Path, n: int) -> None:
    retriever = SpladeRetriever(folder, Words(), MADE)
    every = expected("judge river law")
    assert 50 < len(every) < 100
    found = retriever.search(Query("judge river law"), n)
    assert list(zip(found.ids, found.scores.tolist(), strict=True)) == every[:n]
    assert len(retriever) == 100


def test_scores_are_those_of_the_search_and_0_where_nothing_is_shared(folder: Path) -> None:
    retriever, query = SpladeRetriever(folder, Words()), Query("judge river law")
    found = retriever.search(query, 100)
    assert retriever.score(query, found.ids[::-1]).tolist() == found.scores[::-1].tolist()
    others = sorted({document.id for document in MADE.made} - set(found.ids))
    assert retriever.score(query, others).tolist() == [0.0] * len(others)
    assert retriever.score(query, ()).tolist() == []
    assert retriever.score(query, [found.ids[0]] * 2).tolist() == [found.scores[0]] * 2


def test_queries(folder: Path) -> None:
    retriever = SpladeRetriever(folder, Words())
    found = retriever.search(Query("judge", terms=(Term("river", 0.5), Term("law"))), 20)
    assert found.ids == retriever.search(Query("judge river law"), 20).ids
    for text in ("", " \n"):
        assert retriever.search(Query(text), 5).ids == ()
        assert retriever.score(Query(text), ["d01"]).tolist() == [0.0]
    assert retriever.search(Query("nothing-like-it-here"), 5).ids == ()
    with pytest.raises(DataError, match="'nobody'"):
        retriever.score(Query("law"), ["d01", "nobody"])
    with pytest.raises(UsageError, match="at least 1"):
        retriever.search(Query("law"), 0)


TEXTS = ["the judge wrote a good book", "nurse", "she is a doctor . he was a judge in the city , he wrote"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers")
    return save_masked(tmp_path_factory.mktemp("models") / "masked")


def by_hand(folder: Path, text: str) -> Embeddings:
    """SPLADE v2, equation 6: the maximum over the tokens of log(1 + relu(logit))."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.inference_mode():
        logits = AutoModelForMaskedLM.from_pretrained(folder)(**tokens).logits[0]
    return np.asarray(torch.log(1 + torch.relu(logits)).max(dim=0).values, dtype=np.float32)


def test_the_weights_of_a_plain_masked_language_model(model: Path) -> None:
    encoder = SpladeEncoder(str(model))
    for found in (encoder.documents(TEXTS), encoder.queries(TEXTS)):
        assert found.shape == (3, len(by_hand(model, "nurse")))
        for row, text in zip(found.toarray(), TEXTS, strict=True):
            assert row == pytest.approx(by_hand(model, text), abs=1e-5)
            assert 0 < np.count_nonzero(row) < len(row)


def test_a_model_searches(model: Path, tmp_path: Path) -> None:
    encoder = SpladeEncoder(str(model))
    build_splade_index(Made([Document(text, text) for text in TEXTS]), tmp_path / "index", encoder)
    found = SpladeRetriever(tmp_path / "index", encoder).search(Query("judge"), 3)
    products = {text: float(by_hand(model, text) @ by_hand(model, "judge")) for text in TEXTS}
    assert dict(zip(found.ids, found.scores.tolist(), strict=True)) == pytest.approx(products, rel=1e-4)
    assert found.ids == tuple(sorted(products, key=lambda id: -products[id]))
