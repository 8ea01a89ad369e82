"""Search: scores as the formula gives them, ties, terms of documents, laws, threads, and whatever people type."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairagent.errors import DataError, UsageError
from fairagent.retrieve.bm25.analysis import open_analyzer, readable_words
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.types import Document, Query, Ranking, Term

from ..conftest import MADE, TIED, Made

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


@pytest.fixture(scope="module")
def fruit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fruit") / "index"
    build_index(FRUIT, folder)
    return BM25Retriever(folder)


def test_three_documents_by_hand(fruit):
    # "apple" is in 2 of 3 documents: idf = ln(1 + 1.5 / 2.5); the mean length is 4.
    idf = math.log(1.6)
    found = scores_of(fruit.search(Query("apple"), 3))
    assert found == pytest.approx({"d1": idf * 2 / (2 + 0.9), "d2": idf * 1 / (1 + 0.9 * (0.6 + 0.4 * 2 / 4))})
    assert found["d1"] == pytest.approx(0.324140, abs=1e-6)
    assert found["d2"] == pytest.approx(0.273258, abs=1e-6)
    # "fig" is in none: ln(1 + 3.5 / 0.5).
    assert fruit.bound(Query("apple", terms=(Term("fig", 0.5),))) == pytest.approx(idf + math.log(8) / 2)


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.2, 0.4), (0.9, 0.75), (0.0, 0.4)])
@pytest.mark.parametrize("text", ["lawyer court", "ocean lawyer woman", "odd адвокат"])
def test_scores_are_those_of_the_formula(index, retriever, text, k1, b):
    documents = [retriever.analyze(f"{document.title} {document.text}") for document in MADE.made]
    reference = bm25(Counter(retriever.analyze(text)), documents, k1, b)
    expected = {document.id: score for document, score in zip(MADE.made, reference, strict=True) if score > 0}
    found = BM25Retriever(index, k1=k1, b=b).search(Query(text), 100)
    assert scores_of(found) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("k1", "b"), [(-1, 0.4), (math.nan, 0.4), (0.9, 1.1)])
def test_k1_and_b_outside_their_range_are_refused(index, k1, b):
    with pytest.raises(UsageError, match="BM25 needs k1 >= 0 and b from 0 to 1"):
        BM25Retriever(index, k1=k1, b=b)


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


def test_a_query_has_many_terms_at_most(retriever):
    many = [f"w{number}" for number in range(66_000)]
    assert retriever.search(Query(" ".join([*many[:65_535], "court"])), 5).ids[0] == "law1"
    with pytest.raises(DataError, match=r"65,536 distinct terms; this one has 66,000"):
        retriever.search(Query(" ".join(many)), 5)


def test_document_frequencies(retriever):
    counts = {word: retriever.document_frequency(word) for word in ("harbor", "Harbors", "lawyer", "the", "qqqq", "")}
    assert counts == {"harbor": 42, "Harbors": 42, "lawyer": 12, "the": 0, "qqqq": 0, "": 0}
    assert retriever.document_frequency("harbor lawyer") == 12
    assert retriever.document_frequency("harbor qqqq") == 0


def test_ids_that_are_not_in_the_index_are_named(retriever):
    with pytest.raises(DataError, match=r"^2 document id\(s\) are not in the index: 'nobody', 'zz\\x00'$"):
        retriever.score(Query("lawyer"), ["law1", "nobody", "zz\0"])
    with pytest.raises(DataError, match=r"^9 document") as error:
        retriever.score(Query("lawyer"), [f"unknown{number}" + "x" * 500 for number in range(9)])
    assert "unknown4" in str(error.value)
    assert "unknown5" not in str(error.value)
    assert len(str(error.value)) < 500


def test_postings_are_the_counts_of_the_analyzed_terms(retriever):
    postings = retriever.postings(EVERY)
    words = retriever.words(postings.vocabulary)
    assert "" not in words
    terms = ["".join(retriever.analyze(word)) for word in words]
    for row, document in enumerate(retriever.documents(EVERY)):
        entries = np.flatnonzero(postings.row == row)
        found = {terms[postings.term[i]]: postings.count[i] for i in entries}
        expected = Counter(retriever.analyze(f"{document.title} {document.text}"))
        assert found == expected
        assert len(entries) == len(expected)
        assert postings.length[row] == expected.total()


def test_the_share_of_documents_that_hold_a_term(retriever):
    postings = retriever.postings(["law1", "tie00", "empty"])
    share = dict(zip(retriever.words(postings.vocabulary), postings.document_share, strict=True))
    for word in ("lawyer", "court", "harbor", "quiet"):
        assert share[word] == retriever.document_frequency(word) / len(MADE.made)
    assert share["harbor"] == 42 / len(MADE.made)


@pytest.mark.parametrize(
    ("texts", "terms", "words"),
    [
        # "she" is a word of the texts; "agre" is none, and is analyzed to "agr"; "harbor" to itself.
        (["Lawyers, she; of the court's courts"], "lawyer she agre harbor", ["lawyers", "she", "", "harbor"]),
        # "argued" is there twice; "judged" and "judges" once each: the shortest, then by the alphabet.
        (["Argues argued ARGUING", "argued, judges judged"], "argu judg", ["argued", "judged"]),
        (["woman's women's woman"], "woman women", ["woman", "women's"]),
    ],
)
def test_the_word_of_a_term(texts, terms, words):
    assert readable_words(texts, terms.split(), open_analyzer("english")) == words


def test_counts_and_positions_beyond_small_numbers(tmp_path):
    documents = (Document("d1", "tide " * 70_000), Document("d2", "tide wave"))
    build_index(Made(documents), tmp_path / "index", "english-nostem")
    retriever = BM25Retriever(tmp_path / "index")
    postings = retriever.postings(["d1", "d2"])
    # Counts are kept in 16 bits, lengths are not.
    assert postings.count.tolist() == [65_535, 1, 1]
    assert postings.length.tolist() == [70_000, 2]


WORDS = ["lawyer", "courts", "harbor", "town", "quiet", "odd", "ocean", "адвокат", "律師", "the", "qqqq", ", AND"]
WEIGHTS = st.floats(0.001, 100)
QUERIES = st.builds(
    Query,
    st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join),
    terms=st.lists(st.builds(Term, st.sampled_from(WORDS), WEIGHTS), max_size=4).map(tuple),
)
LENGTHS = st.integers(1, len(MADE.made) + 5)
few = settings(max_examples=40)


@given(query=QUERIES, n=LENGTHS)
@few
def test_a_ranking_is_a_ranking(retriever, query, n):
    ranking = retriever.search(query, n)
    assert len(ranking) == len(ranking.scores) <= n
    assert len(set(ranking.ids)) == len(ranking)
    assert set(ranking.ids) <= {document.id for document in MADE.made}
    assert np.isfinite(ranking.scores).all()
    assert (ranking.scores > 0).all()
    assert ranking.scores.max(initial=0) <= retriever.bound(query) * (1 + 1e-6)
    # Scores never increase, and ids never decrease within a tie.
    pairs = list(zip(-ranking.scores, ranking.ids, strict=True))
    assert pairs == sorted(pairs)


@given(query=QUERIES, n=LENGTHS, m=LENGTHS)
@few
def test_a_shorter_ranking_is_the_beginning_of_a_longer_one(retriever, query, n, m):
    shorter, longer = sorted((retriever.search(query, n), retriever.search(query, m)), key=len)
    assert longer.ids[: len(shorter)] == shorter.ids
    np.testing.assert_allclose(longer.scores[: len(shorter)], shorter.scores, rtol=1e-6)


@given(query=QUERIES, ids=st.lists(st.sampled_from([document.id for document in MADE.made]), max_size=30))
@few
def test_a_pool_is_scored_as_it_is_found(retriever, query, ids):
    found = retriever.search(query, len(MADE.made))
    scores = dict(zip(found.ids, found.scores.tolist(), strict=True))
    expected = np.array([scores.get(id, 0.0) for id in ids])
    np.testing.assert_allclose(retriever.score(query, ids), expected, rtol=1e-6, atol=1e-4)


MIXED = ["lawyer", "court", "harbor", "odd", "ocean", "woman", "адвокат", "律師", "qqqq", "town judge"]


def call(retriever: BM25Retriever, number: int) -> object:
    """The numbered call of a fixed mixture, as something that can be compared."""
    word = MIXED[number // 5 % len(MIXED)]
    # A word that no other call has: nothing comes from a cache.
    query = Query(f"{word} new{number}", terms=(Term(f"court {number}", 0.5),))
    kinds: list[Callable[[], object]] = [
        lambda: (ranking := retriever.search(query, 10)).ids + tuple(ranking.scores),
        lambda: tuple(retriever.score(query, EVERY[number % 7 :: 3])),
        lambda: retriever.document(EVERY[number % len(EVERY)]),
        lambda: retriever.document_frequency(word),
        lambda: tuple(retriever.postings(EVERY[: number % 20]).count),
    ]
    return kinds[number % len(kinds)]()


@pytest.mark.usefixtures("hurried_threads")
def test_threads_get_what_one_thread_gets(retriever):
    numbers = list(range(400))
    alone = [call(retriever, number) for number in numbers]
    with ThreadPoolExecutor(8) as threads:
        shares = [numbers[start::8] for start in range(8)]
        together = list(threads.map(lambda share: [call(retriever, number) for number in share], shares))
    assert [together[number % 8][number // 8] for number in numbers] == alone
    assert len(set(map(repr, alone))) > 100


def kept_length(length: int) -> int:
    """A document's length as Lucene keeps it in one byte: exact below 40, then cut to four significant bits."""
    over = length - 24
    if over < 16:
        return length
    shift = over.bit_length() - 4
    return 24 + (over >> shift << shift)


def bm25(
    query: Mapping[str, float], documents: Sequence[Sequence[str]], k1: float = 0.9, b: float = 0.4
) -> list[float]:
    """The score of each document (a sequence of terms) for the weighted terms of `query`."""
    holding = [terms for terms in documents if terms]
    mean = sum(len(terms) for terms in holding) / len(holding)
    scores = []
    for terms in documents:
        counts = Counter(terms)
        norm = k1 * (1 - b + b * kept_length(len(terms)) / mean)
        score = 0.0
        for term, weight in query.items():
            df = sum(term in other for other in map(set, holding))
            if counts[term]:
                idf = math.log(1 + (len(holding) - df + 0.5) / (df + 0.5))
                score += weight * idf * counts[term] / (counts[term] + norm)
        scores.append(score)
    return scores
