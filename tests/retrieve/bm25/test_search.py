"""Search: scores as the formula gives them, ties, terms of documents, laws, threads, and whatever people type."""

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairagent.errors import DataError, UsageError
from fairagent.retrieve.bm25.analysis import open_analyzer, readable_words
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.types import Document, Query, Term

from ..conftest import MADE, Made

LAWYER = Query("lawyer court")
EVERY = [document.id for document in MADE.made]
FRUIT = Made(
    (
        Document("d1", "apple apple pear banana"),
        Document("d2", "apple kiwi"),
        Document("d3", "pear plum plum cherry mango grape"),
    )
)


@pytest.fixture(scope="module")
def fruit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fruit") / "index"
    build_index(FRUIT, folder)
    return folder


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.2, 0.4), (0.9, 0.75), (0.0, 0.4)])
def test_three_documents_by_hand(fruit, k1, b):
    # "apple" is in 2 of 3 documents: idf = ln(1 + 1.5 / 2.5); the mean length is 4.
    idf, retriever = math.log(1.6), BM25Retriever(fruit, k1=k1, b=b)
    found = retriever.search(Query("apple"), 3)
    expected = {"d1": idf * 2 / (2 + k1), "d2": idf * 1 / (1 + k1 * (1 - b + b * 2 / 4))}
    assert dict(zip(found.ids, found.scores.tolist(), strict=True)) == pytest.approx(expected)
    # "fig" is in none: ln(1 + 3.5 / 0.5).
    assert retriever.bound(Query("apple", terms=(Term("fig", 0.5),))) == pytest.approx(idf + math.log(8) / 2)


@pytest.mark.parametrize(("k1", "b", "n"), [(-1, 0.4, 5), (math.nan, 0.4, 5), (0.9, 1.1, 5), (0.9, 0.4, 0)])
def test_numbers_outside_their_range_are_refused(index, k1, b, n):
    with pytest.raises(UsageError, match=r"BM25 needs k1 >= 0 and b from 0 to 1|at least 1, not 0"):
        BM25Retriever(index, k1=k1, b=b).search(LAWYER, n)


@pytest.mark.parametrize("weight", [0.0, math.nan, 1e39])
def test_a_weight_that_is_no_usual_positive_number_is_refused(retriever, weight):
    query = Query("lawyer", terms=(Term("court", weight),))
    for ask in (lambda: retriever.search(query, 10), lambda: retriever.score(query, ["law1"])):
        with pytest.raises(UsageError, match=r"weight of a keyword .* 'court'"):
            ask()


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
    with pytest.raises(DataError, match=r"^7 document id\(s\) are not in the index: 'zz\\x00', 'unknown0x{52}', "):
        retriever.score(Query("lawyer"), ["law1", "zz\0", *(f"unknown{number}" + "x" * 500 for number in range(6))])


def test_postings_are_the_counts_of_the_analyzed_terms(retriever):
    postings = retriever.postings(EVERY)
    words = retriever.words(postings.vocabulary)
    assert "" not in words
    terms = ["".join(retriever.analyze(word)) for word in words]
    for row, document in enumerate(retriever.documents(EVERY)):
        entries = np.flatnonzero(postings.row == row)
        expected = Counter(retriever.analyze(f"{document.title} {document.text}"))
        assert {terms[postings.term[i]]: postings.count[i] for i in entries} == expected
        assert postings.length[row] == expected.total()
    for some in (postings, retriever.postings(["law1", "tie00", "empty"])):
        share = dict(zip(retriever.words(some.vocabulary), some.document_share, strict=True))
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


@pytest.mark.usefixtures("hurried_threads")
def test_threads_get_what_one_thread_gets(retriever):
    def call(number: int) -> tuple[object, ...]:
        # A word that no other call has: nothing comes from a cache.
        query = Query(f"{WORDS[number % 9]} new{number}", terms=(Term(f"court {number}", 0.5),))
        ranking, counts = retriever.search(query, 10), retriever.postings(EVERY[: number % 20]).count
        scores = retriever.score(query, EVERY[number % 7 :: 3])
        return ranking.ids, *ranking.scores, *scores, retriever.document(EVERY[number % len(EVERY)]), *counts

    alone = [call(number) for number in range(100)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(call, range(100))) == alone
