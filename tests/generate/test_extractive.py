from __future__ import annotations

from fairagent.answer.generators import ExtractiveGenerator
from fairagent.types import Answer, Document, Query, Term


def documents(*texts: str) -> list[Document]:
    return [Document(f"d{number}", text) for number, text in enumerate(texts, start=1)]


def answer(query: str | Query, *texts: str, most: int = 10) -> Answer:
    return ExtractiveGenerator(most).answer(query, documents(*texts))


def test_the_best_sentence_of_each_document_in_rank_order() -> None:
    found = answer("roses", "Gardens are many. He grew roses.", "Red roses! She sold them.")
    assert found.text == "He grew roses [1]. Red roses [2]!"
    assert (found.cited, found.source, found.notes, found.usage.calls) == ((1, 2), "extractive", (), 0)


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    found = answer("roses thorns", "He grew roses. Some had thorns. More roses here. All roses there.")
    assert found.text == "Some had thorns [1]."


def test_a_short_sentence_counts_more_than_a_long_one() -> None:
    found = answer("roses", "He grew very many and very old roses in a garden by the sea. He sold roses.")
    assert found.text == "He sold roses [1]."


def test_the_words_of_the_topic_count_by_their_weight() -> None:
    text = "He grew roses. He grew hedges. He grew thorns."
    assert answer(Query("", terms=(Term("thorns", 0.2), Term("hedges", 0.1))), text).text == "He grew thorns [1]."


def test_sentences_that_repeat_one_another_are_taken_once() -> None:
    found = answer("roses", "He grew roses in Ghent.", "He grew roses in Ghent, too.", "Roses have thorns.")
    assert found.cited == (1, 3)


def test_no_more_sentences_than_asked_for() -> None:
    found = answer("roses", "A few roses were sold.", "Roses.", "We like those red roses best.", most=1)
    assert found.text == "Roses [2]."


def test_the_title_tells_whom_a_sentence_is_about() -> None:
    context = [
        Document("d1", "She grew roses.", "Ada Roe"),
        Document("d2", "Eve Low sold roses at a market.", "Eve Low"),
    ]
    text = ExtractiveGenerator().answer("roses", context).text
    assert text == "Ada Roe: She grew roses [1]. Eve Low sold roses at a market [2]."


def test_what_looks_like_a_citation_in_a_document_is_none() -> None:
    found = answer("roses", "He grew roses [2] [7].", "A hedge.")
    assert (found.text, found.cited) == ("He grew roses [1].", (1,))


def test_a_sentence_without_a_mark_gets_one() -> None:
    assert answer("roses", "Roses in Ghent").text == "Roses in Ghent [1]."


def test_no_sentence_holds_a_word_of_the_query() -> None:
    found = answer("tulips", "He grew roses.")
    assert (found.text, found.cited) == ("", ())
    assert found.notes == ("no sentence of the context holds a word of the query",)


def test_no_documents_and_empty_ones() -> None:
    assert answer("roses") == Answer("", source="extractive")
    assert answer("roses", "", " ").text == ""
    assert answer("", "He grew roses.").text == ""


def test_terms_are_those_of_the_engine() -> None:
    generator = ExtractiveGenerator(analyze=lambda text: [word.rstrip("s.").lower() for word in text.split()])
    assert generator.answer("rose", documents("He grew Roses.")).cited == (1,)


def test_it_is_told_once() -> None:
    told: list[str] = []
    found = ExtractiveGenerator().answer("roses", documents("Roses."), told.append)
    assert told == [found.text]
    ExtractiveGenerator().answer("tulips", documents("Roses."), told.append)
    assert len(told) == 1
