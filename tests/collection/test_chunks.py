"""Cutting long documents: no word is lost, passages say whose they are, and faults are those of the documents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairagent.collection.config import START, Chunks, joined, passages
from fairagent.types import Document

LONG = " ".join(f"Sentence {n} is about lawyers, courts and case {n * 7}." for n in range(300))


def test_a_long_document_becomes_overlapping_passages() -> None:
    from llama_index.core.utils import get_tokenizer

    found = list(passages([Document("d", LONG, "Title", {"year": 1901})], Chunks()))
    assert [one.id for one in found] == [f"d#{n}" for n in range(1, len(found) + 1)]
    assert len(found) > 5
    tokens = [len(get_tokenizer()(one.text)) for one in found]
    assert max(tokens) <= 512
    assert min(tokens[:-1]) > 400
    starts = [one.extra[START] for one in found]
    for one, start, following in zip(found, starts, starts[1:], strict=False):
        shared = start + len(one.text) - following
        assert 0 < len(get_tokenizer()(LONG[following : following + shared])) <= 128
        assert one.text.startswith("Sentence ")
        assert one.text.endswith(".")
        assert LONG[start:].startswith(one.text)
    assert {(one.title, one.extra["year"]) for one in found} == {("Title", 1901)}
    assert joined(found) == LONG


@given(st.text(st.sampled_from("ab cé.,\n😀律"), max_size=400))
def test_nothing_but_white_space_is_lost(text: str) -> None:
    found = list(passages([Document("d", text)], Chunks(tokens=16, overlap=4)))
    whole = "".join(text.split())
    position = 0
    # Every passage is a piece of the text, and together they hold all of it.
    for one in found:
        assert one.text in text
        piece = "".join(one.text.split())
        at = whole.find(piece, max(0, position - len(piece)))
        assert 0 <= at <= position
        position = max(position, at + len(piece))
    assert position == len(whole)
