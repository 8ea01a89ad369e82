"""Attribution by citations, and what an answer says without them."""

from __future__ import annotations

import pytest

from fairagent.answer.attribution import CitationAttributor, statement
from fairagent.errors import UsageError
from fairagent.types import Answer, Document

CONTEXT = [Document("a", "A court."), Document("b", "A judge."), Document("c", "A law.")]


def test_cited_documents_weigh_1():
    found = CitationAttributor().attribute("law", Answer("Judges [3] and courts [1].", (3, 1)), CONTEXT)
    assert (found.kind, found.weights.tolist(), found.notes) == ("citations", [1.0, 0.0, 1.0], ())


def test_an_answer_without_citations_rests_on_nothing_and_says_so():
    found = CitationAttributor().attribute("law", Answer("Judges."), CONTEXT)
    assert (found.weights.tolist(), found.notes) == ([0.0, 0.0, 0.0], ("the answer cites nothing",))


@pytest.mark.parametrize("number", [0, 4, -1])
def test_a_number_of_no_document_is_refused(number: int):
    with pytest.raises(UsageError, match=f"cites document {number}, but its context has 3"):
        CitationAttributor().attribute("law", Answer("Judges.", (number,)), CONTEXT)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A judge [1].", "A judge."),
        ("A judge [1, 2][3]; a court [4\u20136].", "A judge; a court."),
        ("A judge [1], [2]; [3-5].", "A judge."),
        ("[1]", ""),
        ("In [brackets] of 1990 [x1]", "In [brackets] of 1990 [x1]"),
        ("A judge [ 2 , 3 ].", "A judge."),
        ("jud\u200bge", "judge"),
    ],
)
def test_what_the_answer_says_without_its_citations(text: str, said: str):
    assert statement(Answer(text)) == said
