"""Terms of documents, their frequencies in the whole index, and words for them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fairagent.guests.opensearch.index import Fields, ServerIndex
from fairagent.guests.opensearch.search import OpenSearchRetriever
from fairagent.guests.opensearch.server import Server
from fairagent.retrieve.base import ManyTexts, TextSource, Vocabulary, full_text
from fairagent.retrieve.relevance_model import TermSource

from .made import MADE


def test_it_tells_what_lucene_tells(engine: OpenSearchRetriever) -> None:
    for protocol in (TermSource, TextSource, Vocabulary, ManyTexts):
        assert isinstance(engine, protocol)


def test_terms_are_those_of_the_texts(engine: OpenSearchRetriever) -> None:
    ids = ["law2", "stop-words-only", "tie03", "law3"]
    texts = {one.id: full_text(one) for one in MADE.made}
    counts = [Counter(engine.analyze(texts[id])) for id in ids]
    postings = engine.postings(ids)
    words = [engine._terms[number] for number in postings.vocabulary.tolist()]
    told = [Counter[str]() for _ in ids]
    for row, term, count in zip(postings.row, postings.term, postings.count, strict=True):
        told[row][words[term]] += int(count)
    assert told == counts
    assert postings.length.tolist() == [count.total() for count in counts]
    assert words == sorted(words)


def test_document_frequencies_are_those_of_all_shards(engine: OpenSearchRetriever) -> None:
    analyzed = [set(engine.analyze(full_text(one))) for one in MADE.made]
    postings = engine.postings([one.id for one in MADE.made])
    terms = [engine._terms[number] for number in postings.vocabulary.tolist()]
    expected = [sum(term in of for of in analyzed) / len(analyzed) for term in terms]
    assert postings.document_share.tolist() == pytest.approx(expected)
    assert engine.document_frequency("lawyers") == sum("lawyer" in of for of in analyzed) > 1
    assert engine.document_frequency("lawyer Universities") == 1
    assert [engine.document_frequency(word) for word in ("the", "xyzzy", "")] == [0, 0, 0]


def test_words_are_readable_and_analyzed_to_their_term(engine: OpenSearchRetriever) -> None:
    postings = engine.postings(["law1", "law2", "日本-1"])
    words = dict(
        zip(
            (engine._terms[number] for number in postings.vocabulary.tolist()),
            engine.words(postings.vocabulary),
            strict=True,
        )
    )
    # Stems of which the stem is another are shown as the word of the document in which they count most.
    assert words["agre"] == "agreed"
    assert engine.analyze("agre") != ["agre"]
    assert (words["lawyer"], words["citi"]) == ("lawyer", "citi")
    assert all(words.values())
    assert all(engine.analyze(word) == [term] for term, word in words.items() if word)


def test_nothing_depends_on_what_was_asked_before(engine: OpenSearchRetriever) -> None:
    fresh = OpenSearchRetriever(engine.index)
    fresh.postings(["long", "law3"])
    before, after = OpenSearchRetriever(engine.index).postings(["law1", "law2"]), fresh.postings(["law1", "law2"])
    for name in ("row", "term", "count", "length", "document_share"):
        assert np.array_equal(getattr(before, name), getattr(after, name)), name


def test_what_was_told_is_not_asked_again(engine: OpenSearchRetriever, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = OpenSearchRetriever(engine.index)
    ids = [one.id for one in MADE.made]
    first = fresh.words(fresh.postings(ids).vocabulary)
    monkeypatch.setattr(Server, "ask", lambda *given, **more: pytest.fail(f"asked again: {given[2]}"))
    assert fresh.words(fresh.postings(ids).vocabulary) == first
    fresh.postings(ids[:3])


def test_a_field_within_a_field_is_analyzed_by_its_own_analyzer(server: Server, name: str) -> None:
    english = {"type": "text", "analyzer": "english"}
    plain = {"type": "text", "analyzer": "whitespace", "fields": {"stems": english}}
    server.ask("PUT", f"/{name}", {"mappings": {"properties": {"body": {"properties": {"plain": plain}}}}})
    for field, terms in {"body.plain": ["The", "Cities"], "body.plain.stems": ["citi"]}.items():
        fields = Fields(text="body.plain", search=(field,))
        assert OpenSearchRetriever(ServerIndex(server, name, fields)).analyze("The Cities") == terms
    mapping = server.ask("GET", f"/{name}/_mapping")[name]["mappings"]["properties"]
    assert list(mapping) == ["body"]
