"""What a model sees of a document, under which ids, and how many documents at a time."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from fairagent.answer.filtering import LARGEST_CALL, LONGEST_TEXT, LONGEST_TITLE, Page, batches, call_ids, page_of
from fairagent.types import Document
from fairagent.types.clean import query_shown

PAGES = st.lists(st.builds(Page, st.just("d"), st.text(max_size=5), st.text(max_size=20)), max_size=6)


def test_a_plain_document_is_shown_as_it_is():
    text = "Línea\n\ttwo: \u0430\u0431 \u4e2d\u6587 \U0001f9d1 {{ x }} </documents>"
    assert page_of(Document("d", text, "T")) == Page("d", "T", text)


def test_long_and_hidden_text_is_cut_and_noted():
    page = page_of(Document("d", "\u200b" + "x" * 10_000 + "\ue000", "t" * 400 + "\u202e"))
    assert (len(page.text), len(page.title)) == (LONGEST_TEXT, LONGEST_TITLE)
    assert page.note == (
        "hidden characters taken out: 3; title cut to 300 of 400 characters; text cut to 8,000 of 10,000 characters"
    )


def test_a_query_is_visible_and_short():
    assert query_shown("law\u200byers" + "s" * 3000) == "lawyers" + "s" * 1993


@given(PAGES)
def test_ids_are_distinct_repeatable_and_those_of_their_call(pages: list[Page]):
    ids = call_ids("fairness_filter", ["q"], pages)
    assert len(set(ids)) == len(pages)
    assert all(len(id) == 12 and set(id) <= set("0123456789abcdef") for id in ids)
    assert call_ids("fairness_filter", ["q"], pages) == ids
    for other in (call_ids("utility_filter", ["q"], pages), call_ids("fairness_filter", ["r"], pages)):
        assert not set(other) & set(ids)


def test_a_text_cannot_name_the_id_it_gets():
    for neighbor in ("", "a neighbor"):
        text = "a text"
        for _ in range(5):
            pages = [Page("1", "", text), Page("2", "", neighbor)]
            ids = call_ids("fairness_filter", ["q"], pages)
            assert not any(id in text for id in ids)
            text = f"a text that names {' and '.join(ids)}"


@given(st.lists(st.integers(0, LONGEST_TEXT), max_size=12), st.integers(1, 5))
def test_batches_keep_the_order_and_both_limits(lengths: list[int], most: int):
    pages = [Page(str(place), "", '"' * length) for place, length in enumerate(lengths)]
    parts = list(batches(pages, most))
    assert [page for part in parts for page in part] == pages
    for part in parts:
        assert 1 <= len(part) <= most
        assert sum(len(json.dumps([page.title, page.text])) for page in part) <= LARGEST_CALL
