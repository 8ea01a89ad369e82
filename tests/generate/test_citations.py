from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.answer.generators import CitationReader, without_citations


def read(text: str, documents: int = 3, size: int = 0) -> CitationReader:
    """The text, read in pieces of `size` characters, or as a whole."""
    reader = CitationReader(documents)
    for start in range(0, len(text), size or len(text) or 1):
        reader.read(text[start : start + (size or len(text))])
    reader.close()
    return reader


@pytest.mark.parametrize(
    ("text", "kept", "cited", "invented"),
    [
        ("A judge [2].", "A judge [2].", [2], []),
        ("A [3][1], B [1].", "A [3][1], B [1].", [3, 1], []),
        ("A [1, 3] and B [ 2 ; 3 ].", "A [1, 3] and B [ 2 ; 3 ].", [1, 3, 2], []),
        ("A [1-3].", "A [1-3].", [1, 2, 3], []),
        ("A [2\u20133].", "A [2\u20133].", [2, 3], []),
        ("A [4].", "A.", [], ["4"]),
        ("A [0], B [1].", "A, B [1].", [1], ["0"]),
        ("A [1, 7, 2].", "A [1, 2].", [1, 2], ["7"]),
        ("A [2-9].", "A.", [], ["2-9"]),
        ("A [1-999999999].", "A.", [], ["1-999999999"]),
        ("In brackets [sic], (1) and [a1].", "In brackets [sic], (1) and [a1].", [], []),
        ("[1]", "[1]", [1], []),
        ("[9]", "", [], ["9"]),
        ("  A.\n", "A.", [], []),
        ("", "", [], []),
        ("An open end [1", "An open end [1", [], []),
        (f"[{'9' * 5000}]", f"[{'9' * 5000}]", [], []),
        ("<think>Is it [1]? [9]</think>\nYes [2].", "Yes [2].", [2], []),
        ("<think>It never ends [1]", "", [], []),
        ("<thin air> [1]", "<thin air> [1]", [1], []),
    ],
)
@pytest.mark.parametrize("size", [0, 1, 3])
def test_citations_are_read_and_invented_ones_taken_out(
    text: str, kept: str, cited: list[int], invented: list[str], size: int
) -> None:
    reader = read(text, 3, size)
    assert (reader.text, reader.cited, reader.invented) == (kept, cited, invented)


def test_without_documents_every_citation_is_invented() -> None:
    assert read("A [1].", 0).invented == ["1"]


@given(st.text(alphabet="A [],-129.\n<>", max_size=60), st.lists(st.integers(1, 5), min_size=60, max_size=60))
def test_what_is_told_in_pieces_is_the_text_that_is_read_at_once(text: str, sizes: list[int]) -> None:
    pieces: list[str] = []
    reader = CitationReader(3, pieces.append)
    rest = text
    for size in sizes:
        reader.read(rest[:size])
        rest = rest[size:]
    reader.close()
    at_once = read(text)
    assert "".join(pieces) == reader.text == at_once.text
    assert (reader.cited, reader.invented) == (at_once.cited, at_once.invented)
    assert all(1 <= number <= 3 for number in reader.cited)


def test_text_that_is_sure_is_told_at_once() -> None:
    pieces: list[str] = []
    reader = CitationReader(3, pieces.append)
    for piece in ("She was ", "a judge", " [", "1", "]."):
        reader.read(piece)
    assert pieces == ["She was", " a judge", " [1]."]


def test_footnotes_of_a_source_are_no_citations() -> None:
    assert without_citations("He won [12] twice [3, 4].") == "He won twice."
