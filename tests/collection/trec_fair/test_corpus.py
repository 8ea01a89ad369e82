from __future__ import annotations

from pathlib import Path

import pytest
from track_files import ARTICLES, write_track

from fairagent.collection.trec_fair import Corpus, wikitext_to_text
from fairagent.errors import DataError
from fairagent.types import Document


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus("small", write_track(tmp_path) / "trec_corpus_20220301_plain.json.gz")


def of(folder: Path, *articles: object) -> Corpus:
    name = "trec_corpus_20220301_plain.json.gz"
    return Corpus("small", write_track(folder, {name: articles}) / name)


def test_articles_become_documents_and_the_first_of_an_id_counts(corpus: Corpus) -> None:
    assert corpus.notes == ()
    assert list(corpus) == [
        Document(str(page["id"]), page["plain"], page["title"], {"url": page["url"]})
        for page in (ARTICLES[0], ARTICLES[1], ARTICLES[3])
    ]
    name = corpus.paths[0].name
    assert corpus.notes == (f"articles of {name} that repeat an id, of which the first counts: 1 (12)",)
    list(corpus)
    assert len(corpus.notes) == 1
    assert corpus.count() == len(ARTICLES)


def test_wikitext_is_stripped(tmp_path: Path) -> None:
    assert [document.text for document in of(tmp_path, {"id": 1, "title": "A", "text": "[[code|wrote]]"})] == ["wrote"]


FAULTS = [
    ({"id": "12", "title": "A", "plain": "x"}, "field 'id' is '12', expected a whole number from 0"),
    ({"id": 3, "title": "A"}, "article 3: expected the article in one of the fields plain, text;"),
    ("{not json", "not JSON"),
]


@pytest.mark.parametrize(("article", "message"), FAULTS, ids=range(len(FAULTS)))
def test_every_fault_is_named_with_its_line(tmp_path: Path, article: object, message: str) -> None:
    corpus = of(tmp_path, ARTICLES[0], article, ARTICLES[1], "[]")
    read = []
    with pytest.raises(DataError, match=message) as error:
        read.extend(corpus)
    assert [fault.line for fault in error.value.faults] == [2, 4]
    assert all(fault.path == corpus.paths[0] for fault in error.value.faults)


WIKITEXT = [
    ("'''Bold''' and ''italic''", "Bold and italic"),
    ("== Life ==\nBorn.\n=== Work ===\n* one\n# two", "Life Born. Work one two"),
    ("[[London]], the [[London|city]]s, [[File:A.jpg|t|An [[isle]].]][[Category:Towns]]end", "London, the citys, end"),
    ("{{Infobox|a={{b|{{c}}}}}}Text{{citation needed}}.", "Text."),
    ('a<ref>one</ref> b<ref name="x" /> c<ref name="x">two</ref> d', "a b c d"),
    ("a<!-- hidden -->b <!-- never closed", "ab <!-- never closed"),
    ("see [https://example.org/x the page] or [//example.org]", "see the page or"),
    ('before {| class="x"\n|-\n| cell\n|} after', "before after"),
]


@pytest.mark.parametrize(("source", "text"), WIKITEXT)
def test_wikitext(source: str, text: str) -> None:
    assert wikitext_to_text(source) == text
