"""BM25 over Anserini's indexes: by hand, weighted, pools, terms from what is stored, texts of several forms."""

import math
from collections import Counter

import pytest
from anserini_indexes import texts, written

from fairagent.errors import BackendUnavailable, DataError, IndexMismatch, SettingsError
from fairagent.guests.lucene.bm25 import AnseriniRetriever, LuceneAnalyzer, parsed
from fairagent.guests.lucene.java import start_java
from fairagent.retrieve.base import TextSource
from fairagent.retrieve.bm25.analysis import open_analyzer
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.relevance_model import TermSource
from fairagent.types import Document, Query, Term

from ..conftest import Made
from .conftest import IDS, ROWS

FRUIT = (
    {"id": "d1", "contents": "apple apple pear"},
    {"id": "d2", "contents": "apple kiwi"},
    {"id": "d3", "contents": "pear plum plum cherry"},
)


def counted(text: str) -> Counter[str]:
    return Counter(LuceneAnalyzer("english").terms(text))


@pytest.fixture
def fruit(tmp_path):
    return AnseriniRetriever(texts(tmp_path / "fruit", FRUIT, "-storeRaw"))


def test_three_documents_by_hand(fruit):
    # "apple" is in 2 of 3 documents: idf = ln(1 + 1.5 / 2.5); the mean length is 3, k1 = .9, b = .4.
    idf = math.log(1.6)
    expected = {"d1": idf * 2 / (2 + 0.9), "d2": idf * 1 / (1 + 0.9 * (0.6 + 0.4 * 2 / 3))}
    found = fruit.search(Query("apple"), 3)
    assert dict(zip(found.ids, found.scores.tolist(), strict=True)) == pytest.approx(expected, rel=1e-6)


def test_keywords_weigh_what_they_weigh(fruit):
    plum, apple = fruit.score(Query("plum"), ["d3"])[0], fruit.score(Query("apple"), ["d1"])[0]
    query = Query("apple", terms=(Term("plums", 0.25), Term("apples", 2.0)))
    assert fruit.score(query, ["d3", "d1", "d2", "d1"])[[0, 1, 3]] == pytest.approx([0.25 * plum, 3 * apple, 3 * apple])


def test_a_pool_has_the_scores_of_the_search_and_zeros(built):
    engine = AnseriniRetriever(built / "full")
    query = Query("lawyers and judges of Bonn", terms=(Term("river", 0.5),))
    found = engine.search(query, 12)
    assert 5 < len(found) < 12
    scores = dict(zip(found.ids, found.scores.tolist(), strict=True))
    asked = [*reversed(IDS), IDS[4]]
    assert engine.score(query, asked).tolist() == [scores.get(id, 0.0) for id in asked]
    with pytest.raises(DataError, match=r"1 document id.* 'nobody'"):
        engine.score(query, ["d00", "nobody"])


@pytest.mark.parametrize("name", ["vectors", "raw"])
def test_terms_of_documents_by_hand(built, name):
    engine = AnseriniRetriever(built / name)
    asked = [IDS[9], IDS[0], IDS[4]]
    postings, texts = engine.postings(asked), dict(zip(IDS, (row["contents"] for row in ROWS), strict=True))
    terms = [engine.analyze(word)[0] if word else "" for word in engine.words(postings.vocabulary)]
    found = [Counter[str]() for _ in asked]
    for row, term, count in zip(postings.row, postings.term, postings.count, strict=True):
        found[row][terms[term]] += int(count)
    assert found == [counted(texts[id]) for id in asked]
    assert postings.length.tolist() == [count.total() for count in found]
    everywhere = list(map(counted, texts.values()))
    shares = [sum(term in one for one in everywhere) / len(ROWS) for term in terms]
    assert postings.document_share.tolist() == pytest.approx(shares)


@pytest.mark.parametrize(
    ("name", "texts", "terms", "holds"),
    [
        ("full", True, True, "texts, terms from document vectors"),
        ("contents", True, True, "texts, terms from the texts"),
        ("vectors", False, True, "no texts, terms from document vectors"),
        ("bare", False, False, "no texts, terms from nowhere"),
    ],
)
def test_what_an_index_does_not_store_the_engine_does_not_tell(built, name, texts, terms, holds):
    engine = AnseriniRetriever(built / name)
    assert (isinstance(engine, TextSource), isinstance(engine, TermSource), engine.holds) == (texts, terms, holds)


def test_the_lists_are_those_of_our_own_index_of_the_same_documents(built, tmp_path):
    made = Made([Document(row["id"], row["contents"]) for row in ROWS])
    build_index(made, tmp_path / "own")
    own, theirs = BM25Retriever(tmp_path / "own"), AnseriniRetriever(built / "full")
    asked = [Query("judges of Berlin"), Query("history", terms=(Term("painted rivers", 0.3),)), Query("quiet harbor")]
    for query, n in ((query, n) for query in asked for n in (1, 12)):
        expected, found = own.search(query, n), theirs.search(query, n)
        assert (found.ids, found.scores.tolist()) == (expected.ids, expected.scores.tolist())


@pytest.mark.parametrize(
    ("name", "text", "terms"),
    [
        ("english", "The lawyers' fees, lawyers", ["lawyer", "fee", "lawyer"]),
        ("english-krovetz", "lawyers and the cities", ["lawyer", "city"]),
        ("english-nostem", "The Lawyers", ["lawyers"]),
        ("whitespace", "The Lawyers,", ["The", "Lawyers,"]),
        ("de", "Die Häuser der Stadt", ["haus", "stadt"]),
        ("zh", "我爱北京", ["我爱", "爱北", "北京"]),
        ("fr", "les avocats", ["avocat"]),
        ("english", "the of", []),
        ("english", "words " * 20, ["word"] * 20),
    ],
)
def test_terms(name, text, terms):
    assert LuceneAnalyzer(name).terms(text) == terms
    assert open_analyzer(name).terms(text) == terms


def test_what_is_no_text_and_names_that_are_none():
    with pytest.raises(DataError, match="half of a surrogate pair"):
        LuceneAnalyzer("english").terms("a \ud800 b")
    with pytest.raises(SettingsError, match=r"no analyzer 'klingon'; known: english, .* codes ar, bn"):
        LuceneAnalyzer("klingon")
    with pytest.raises(BackendUnavailable, match="'th' does not work with this Java"):
        LuceneAnalyzer("th")


@pytest.mark.parametrize(
    ("stored", "title", "text", "extra"),
    [
        ('{"id": "1", "contents": "A city.", "vector": {"city": 3}, "url": "x"}', "", "A city.", {"url": "x"}),
        ('{"_id": "1", "title": "Bonn", "text": "A city."}', "Bonn", "A city.", {}),
        ("A city.", "", "A city.", {}),
        ("<DOC><DOCNO> 1 </DOCNO><TEXT>A <b>city</b>.</TEXT></DOC>", "", "1 A city.", {}),
    ],
)
def test_title_text_and_other_fields(stored, title, text, extra):
    start_java()
    assert parsed("1", stored) == Document("1", text, title, extra)


def test_ids_of_any_length_and_script(tmp_path):
    names = ["a", "ключ", "b" * 255, "id with blanks", 'a "quoted" one']
    folder = texts(tmp_path / "index", [{"id": name, "contents": "word"} for name in names])
    engine = AnseriniRetriever(folder)
    assert engine.search(Query("word"), 9).ids == tuple(sorted(names, key=str.encode))
    assert (engine.score(Query("word"), names) > 0).all()


def test_nothing_is_written_into_the_index(built):
    def contents() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (built / "full").iterdir()}

    before, engine = contents(), AnseriniRetriever(built / "full")
    engine.postings(engine.search(Query("judge"), 3).ids)
    engine.close()
    assert contents() == before


def test_documents_without_ids_in_docvalues_are_refused(tmp_path):
    rows = [{"id": "b", "contents": "a judge"}, {"contents": "another judge"}]
    with pytest.raises(IndexMismatch, match="has no ids of its documents"):
        AnseriniRetriever(written(tmp_path / "old", rows, by_column=False))
    engine = AnseriniRetriever(written(tmp_path / "mixed", rows))
    with pytest.raises(IndexMismatch, match="have no id"):
        engine.search(Query("judge"), 3)
