"""Rows of the matrix: every document's terms and counts, and a word for each term."""

from __future__ import annotations

from collections import Counter

import numpy as np

from fairagent.retrieve.bm25.analysis import open_analyzer, readable_words
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.types import Document

from ..conftest import MADE, Made

EVERY = [document.id for document in MADE.made]


def analyzed(retriever, id):
    document = retriever.document(id)
    return retriever.analyze(f"{document.title} {document.text}")


def test_postings_are_the_counts_of_the_analyzed_terms(retriever):
    postings = retriever.postings(EVERY)
    words = retriever.words(postings.vocabulary)
    assert "" not in words
    terms = ["".join(retriever.analyze(word)) for word in words]
    for row, id in enumerate(EVERY):
        entries = np.flatnonzero(postings.row == row)
        found = {terms[postings.term[i]]: postings.count[i] for i in entries}
        expected = Counter(analyzed(retriever, id))
        assert found == expected
        assert len(entries) == len(expected)
        assert postings.length[row] == expected.total()


def test_the_share_of_documents_that_hold_a_term(retriever):
    postings = retriever.postings(["law1", "tie00", "empty"])
    share = dict(zip(retriever.words(postings.vocabulary), postings.document_share, strict=True))
    for word in ("lawyer", "court", "harbor", "quiet"):
        assert share[word] == retriever.document_frequency(word) / len(MADE.made)
    assert share["harbor"] == 42 / len(MADE.made)


def test_rows_are_in_the_order_asked_for(retriever):
    one, other = retriever.postings(["law1", "law2"]), retriever.postings(["law2", "law1", "law2"])
    assert other.length.tolist() == [one.length[1], one.length[0], one.length[1]]
    assert np.array_equal(one.vocabulary, other.vocabulary)
    for row in (0, 2):
        assert np.array_equal(other.term[other.row == row], one.term[one.row == 1])


def test_words_are_words_of_the_texts_where_there_are_any(retriever):
    postings = retriever.postings(["law1", "russian", "quotes", "chinese"])
    words = set(retriever.words(postings.vocabulary))
    assert {"lawyer", "argued", "case", "court", "agreed", "адвокат", "naïve", "façade", "律"} <= words
    # A word is shown, not the stem.
    assert "agre" not in words


def test_a_term_that_no_word_is_analyzed_to_has_no_word(retriever):
    texts = ["Lawyers, she; of the court's courts"]
    # "she" is a word of the texts; "agre" is none, and is analyzed to "agr"; "harbor" to itself.
    words = readable_words(texts, ["lawyer", "she", "agre", "harbor"], open_analyzer("english"))
    assert words == ["lawyers", "she", "", "harbor"]


def test_of_the_words_of_a_term_the_commonest_is_chosen_then_the_shortest_then_the_first():
    texts = ("Argues argued ARGUING", "argued, judges judged", "woman's women's woman")
    chosen = readable_words(texts, ["argu", "judg", "woman", "women"], open_analyzer("english"))
    # "argued" twice; "judged" and "judges" once each; "women's" is the only word of "women".
    assert chosen == ["argued", "judged", "woman", "women's"]


def test_counts_and_positions_beyond_small_numbers(tmp_path):
    documents = (Document("d1", "tide " * 70_000), Document("d2", "tide wave"))
    build_index(Made(documents), tmp_path / "index", "english-nostem")
    retriever = BM25Retriever(tmp_path / "index")
    postings = retriever.postings(["d1", "d2"])
    # Counts are kept in 16 bits, lengths are not.
    assert postings.count.tolist() == [65_535, 1, 1]
    assert postings.length.tolist() == [70_000, 2]
