from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.answer.context import LONGEST_TITLE, affordable, arrange, fit
from fairagent.llm.request import estimate_tokens
from fairagent.types import Document


def documents(*texts: str) -> list[Document]:
    return [Document(f"d{number}", text, f"Title {number}") for number, text in enumerate(texts)]


def test_what_fits_stays_and_long_documents_share_what_short_ones_leave() -> None:
    context = documents("One.", "Two.")
    assert fit(context, 100) == (tuple(context), ())
    kept, notes = fit(documents("lawyer " * 1000, "judges " * 1000), 100)
    assert [one.text for one in kept] == [("lawyer " * 28).strip(), ("judges " * 28).strip()]
    assert notes == ("2 of 2 documents were cut to fit 100 tokens",)
    kept, notes = fit(documents("a" * 400, "b" * 40, "c" * 400), 150)
    assert [len(one.text) for one in kept] == [280, 40, 280]
    assert notes == ("2 of 3 documents were cut to fit 150 tokens",)
    (kept,), notes = fit([Document("d1", "A law\u200byer\u202e.", "T" * 1000)], 100)
    assert (kept.id, kept.text, len(kept.title), notes) == ("d1", "A lawyer.", LONGEST_TITLE, ())


@given(st.lists(st.text(alphabet="ab é\n弁", max_size=400), max_size=6), st.integers(0, 200))
def test_the_budget_is_kept_and_no_document_goes(texts: list[str], tokens: int) -> None:
    kept, notes = fit(documents(*texts), tokens)
    assert [one.id for one in kept] == [f"d{number}" for number in range(len(texts))]
    assert all(text.startswith(one.text) for text, one in zip(texts, kept, strict=True))
    assert sum(estimate_tokens(one.text) for one in kept) <= tokens
    assert bool(notes) == any(text != one.text for text, one in zip(texts, kept, strict=True))


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("balanced", (1, 2, 3, 4, 5)),
        ("rank", (1, 2, 3, 4, 5)),
        ("reversed", (5, 4, 3, 2, 1)),
        ("ends", (1, 3, 5, 4, 2)),
    ],
)
def test_orders(order: str, expected: tuple[int, ...]) -> None:
    assert arrange(5, order) == expected  # type: ignore[arg-type]
    assert arrange(0, order) == ()  # type: ignore[arg-type]


def test_a_balanced_context_reads_each_document_far_enough_or_not_at_all() -> None:
    long = documents("lawyer " * 1000, "judges " * 1000, "A court.")
    assert affordable(long, 3000) == 3
    assert affordable(long, 250) == 3  # 100, 100 and 2
    assert affordable(long, 201) == 2
    assert affordable(long, 50) == 1  # less than one document: the first, cut
    assert affordable([], 100) == 0
