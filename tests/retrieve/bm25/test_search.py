"""Search: scores as the formula and the engine give them, the order of ties, and whatever people type."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from fairagent.errors import DataError, UsageError
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.types import Document, Query, Ranking, Term

from ..conftest import MADE, TIED, Made
from .formula import bm25, kept_length

LAWYER = Query("lawyer court")
EVERY = [document.id for document in MADE.made]
FRUIT = Made(
    (
        Document("d1", "apple apple pear banana"),
        Document("d2", "apple kiwi"),
        Document("d3", "pear plum plum cherry mango grape"),
    )
)


def scores_of(ranking: Ranking) -> dict[str, float]:
    return dict(zip(ranking.ids, ranking.scores.tolist(), strict=True))


def as_documents(retriever: BM25Retriever) -> list[list[str]]:
    return [retriever.analyze(f"{document.title} {document.text}") for document in MADE.made]


@pytest.fixture(scope="module")
def fruit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fruit") / "index"
    build_index(FRUIT, folder)
    return BM25Retriever(folder)


# --- the scores


def test_three_documents_by_hand(fruit):
    # "apple" is in 2 of 3 documents: idf = ln(1 + 1.5 / 2.5); the mean length is 4.
    idf = math.log(1.6)
    found = scores_of(fruit.search(Query("apple"), 3))
    assert found == pytest.approx({"d1": idf * 2 / (2 + 0.9), "d2": idf * 1 / (1 + 0.9 * (0.6 + 0.4 * 2 / 4))})
    assert found["d1"] == pytest.approx(0.324140, abs=1e-6)
    assert found["d2"] == pytest.approx(0.273258, abs=1e-6)
    # "fig" is in none: ln(1 + 3.5 / 0.5).
    assert fruit.bound(Query("apple", terms=(Term("fig", 0.5),))) == pytest.approx(idf + math.log(8) / 2)


def test_a_long_document_counts_with_the_length_that_fits_in_a_byte(tmp_path):
    # 100 terms are kept as 24 + 72 = 96; the mean is exact: 108 / 3 = 36. So apple's tf part is 1 / (1 + 1.5).
    documents = (
        Document("d1", "apple " + "plum " * 99),
        Document("d2", "apple kiwi"),
        Document("d3", "pear grape mango cherry fig lime"),
    )
    build_index(Made(documents), tmp_path / "index")
    found = scores_of(BM25Retriever(tmp_path / "index").search(Query("apple"), 3))
    assert kept_length(100) == 96
    assert found["d1"] == pytest.approx(math.log(1.6) * 0.4, rel=1e-6)


@pytest.mark.parametrize("text", ["lawyer court woman", "ocean lawyer", "odd адвокат"])
def test_scores_are_those_of_the_formula(retriever, text):
    reference = bm25(Counter(retriever.analyze(text)), as_documents(retriever))
    expected = {document.id: score for document, score in zip(MADE.made, reference, strict=True) if score > 0}
    assert scores_of(retriever.search(Query(text), 100)) == pytest.approx(expected, rel=1e-5)


def test_scores_are_32_bit_floats(retriever):
    for number in range(9):
        terms = Term("court town", 0.1 + number / 7), Term("odd", 10.0 ** (number - 4))
        scores = retriever.search(Query("lawyer harbor", terms=terms), 100).scores
        assert (scores.astype(np.float32) == scores).all()


def test_k1_and_b_are_settings_of_the_search(index, retriever):
    settings = [(0.9, 0.4), (1.2, 0.4), (0.9, 0.75), (0.0, 0.4)]
    found = [scores_of(BM25Retriever(index, k1=k1, b=b).search(LAWYER, 100)) for k1, b in settings]
    for (k1, b), scores in zip(settings, found, strict=True):
        reference = bm25(Counter(retriever.analyze(LAWYER.text)), as_documents(retriever), k1, b)
        expected = {document.id: score for document, score in zip(MADE.made, reference, strict=True) if score > 0}
        assert scores == pytest.approx(expected, rel=1e-5)
    assert len({tuple(scores.values()) for scores in found}) == len(settings)


@pytest.mark.parametrize(("k1", "b"), [(-1, 0.4), (math.nan, 0.4), (0.9, 1.1)])
def test_k1_and_b_outside_their_range_are_refused(index, k1, b):
    with pytest.raises(UsageError, match="BM25 needs k1 >= 0 and b from 0 to 1"):
        BM25Retriever(index, k1=k1, b=b)


# --- weights


def test_a_weight_of_2_is_the_word_twice(retriever):
    once_more = retriever.search(Query("lawyer court court"), 100)
    weighted = retriever.search(Query("lawyer", terms=(Term("court", 2.0),)), 100)
    added = retriever.search(Query("lawyer court", terms=(Term("courts", 1.0),)), 100)
    assert scores_of(weighted) == scores_of(once_more) == scores_of(added)
    assert scores_of(weighted) != scores_of(retriever.search(LAWYER, 100))


@pytest.mark.parametrize("weight", [0.0, math.nan, 1e39])
def test_a_weight_that_is_no_usual_positive_number_is_refused(retriever, weight):
    query = Query("lawyer", terms=(Term("court", weight),))
    for ask in (lambda: retriever.search(query, 10), lambda: retriever.score(query, ["law1"])):
        with pytest.raises(UsageError, match=r"weight of a keyword .* 'court'"):
            ask()


# --- ties and n


def test_ties_are_in_the_order_of_ids_at_the_cut_as_well(retriever):
    ids = sorted(document.id for document in TIED)
    for n in (1, 10, 39, 40):
        ranking = retriever.search(Query("quiet"), n)
        assert list(ranking.ids) == ids[:n]
        assert len(set(ranking.scores)) == 1
    # Two ties: one whole, one that the cut goes through.
    assert retriever.search(Query("town court"), 14).ids == ("law1", "law3", "law2", "operators", *ids[:10])


@pytest.mark.parametrize("n", [0, -1])
def test_n_below_1_is_refused(retriever, n):
    with pytest.raises(UsageError, match=f"at least 1, not {n}"):
        retriever.search(LAWYER, n)


# --- what people type

FINDS = [
    ("Lawyers", "law3"),
    ("адвокат", "russian"),
    ("律師", "chinese"),
    ("😀", "emoji"),
    ("1,000,000", "numbers"),
    ('court AND ("lawyer OR', "law1"),
    ("lawyer^9 +court -woman ~9 *:* [A TO the] {The} /the/ \\ && || !", "law2"),
    ("", None),
    ('"(*:^~', None),
    ("q" * 10_000, None),
    ("\0", None),
    ("lawyer " * 1_429, "law3"),
]


@pytest.mark.parametrize(("text", "best"), FINDS, ids=[repr(text[:12]) for text, _ in FINDS])
def test_any_text_is_a_query(retriever, text, best):
    ranking = retriever.search(Query(text), 5)
    assert (ranking.ids[0] if len(ranking) else None) == best
    # A pool can be scored all the same.
    score = retriever.score(Query(text), ["empty", best or "law1"])
    assert score[0] == 0
    assert (score[1] > 0) == (best is not None)


def test_a_query_may_have_more_terms_than_lucene_allows_by_default(retriever):
    many = " ".join(f"word{number}" for number in range(3_000))
    assert retriever.search(Query(f"{many} court"), 5).ids == retriever.search(Query("court"), 5).ids
    assert retriever.score(Query(f"{many} court"), ["law1"]) == retriever.score(Query("court"), ["law1"])


def test_a_query_of_too_many_terms_is_refused(retriever):
    many = " ".join(f"w{number}" for number in range(66_000))
    with pytest.raises(DataError, match=r"65,536 distinct terms; this one has 66,000"):
        retriever.search(Query(many), 5)


# --- the rest of the retriever


def test_document_frequencies(retriever):
    counts = {word: retriever.document_frequency(word) for word in ("harbor", "Harbors", "lawyer", "the", "qqqq", "")}
    assert counts == {"harbor": 42, "Harbors": 42, "lawyer": 12, "the": 0, "qqqq": 0, "": 0}
    assert retriever.document_frequency("harbor lawyer") == 12
    assert retriever.document_frequency("harbor qqqq") == 0


# --- scores of a given pool


def test_documents_without_a_query_term_score_0(retriever):
    ids = ["empty", "law1", "stop-words-only", "tie00", "title-only"]
    scores = retriever.score(Query("lawyer"), ids)
    assert (scores > 0).tolist() == [False, True, False, False, True]
    assert retriever.score(Query("qqqq"), EVERY).tolist() == [0.0] * len(EVERY)


def test_ids_that_are_not_in_the_index_are_named(retriever):
    with pytest.raises(DataError, match=r"^2 document id\(s\) are not in the index: 'nobody', 'zz\\x00'$"):
        retriever.score(Query("lawyer"), ["law1", "nobody", "zz\0"])
    with pytest.raises(DataError, match=r"^9 document") as error:
        retriever.score(Query("lawyer"), [f"unknown{number}" + "x" * 500 for number in range(9)])
    assert "unknown4" in str(error.value)
    assert len(str(error.value)) < 500
