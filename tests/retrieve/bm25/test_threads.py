"""Threads share one retriever and get what one thread alone gets."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.types import Query, Term

from ..conftest import MADE

WORDS = ["lawyer", "court", "harbor", "odd", "ocean", "woman", "адвокат", "律師", "qqqq", "town judge"]
EVERY = [document.id for document in MADE.made]
pytestmark = pytest.mark.usefixtures("hurried_threads")


def call(retriever: BM25Retriever, number: int) -> object:
    """The numbered call of a fixed mixture, as something that can be compared."""
    word = WORDS[number // 5 % len(WORDS)]
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


def test_threads_get_what_one_thread_gets(retriever):
    numbers = list(range(400))
    alone = [call(retriever, number) for number in numbers]
    with ThreadPoolExecutor(8) as threads:
        shares = [numbers[start::8] for start in range(8)]
        together = list(threads.map(lambda share: [call(retriever, number) for number in share], shares))
    assert [together[number % 8][number // 8] for number in numbers] == alone
    assert len(set(map(repr, alone))) > 100
