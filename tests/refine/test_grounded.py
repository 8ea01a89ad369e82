"""The refiner `grounded`: what it shows a scripted model of the group's documents, and what becomes of the reply."""

from __future__ import annotations

import json

from test_feedback import MALE, TEXTS, Library, state

from fairagent.guests.testing import ScriptedModel
from fairagent.llm.prompts import Prompts
from fairagent.search.refine.asking import GroundedRefiner, Keywords
from fairagent.search.refine.feedback import FeedbackRefiner
from fairagent.types import Document, Term


class RetrieverWithTexts(Library):
    """The library with a title for each text, as an engine that keeps them has."""

    def document(self, id: str) -> Document:
        return Document(id, TEXTS[id], f"Page\n {id}\u200b")


def refiner(*script: object, source: Library | None = None, drift: float = 100.0) -> GroundedRefiner:
    feedback = FeedbackRefiner(source or RetrieverWithTexts(), support=1)
    return GroundedRefiner(ScriptedModel(script), Prompts(), drift=drift, feedback=feedback)


def reply(*keywords: str) -> str:
    return json.dumps({"keywords": keywords})


def asked(refining: GroundedRefiner) -> dict[str, object]:
    user = refining.model.requests[-1].messages[-1][1]
    return json.loads(user[user.index("{") : user.rindex("}\n\nGive") + 1])


def test_the_model_sees_words_with_counts_and_titles():
    refining = refiner(reply("she", "Barrister"))
    refinement = refining.refine(state(tried=frozenset({"women"})))
    assert refinement.terms == (Term("she"), Term("Barrister"))
    assert (refinement.source, refinement.note, refinement.usage.calls) == ("grounded", "", 1)
    (request,) = refining.model.requests
    assert request.reply is Keywords
    # d2 and d3 of 4 are the group's; see the counts by hand in test_feedback.py.
    assert asked(refining) == {
        "query": "the law courts",
        "dimension": "gender",
        "group_shown_too_little": "female",
        "share_of_the_group_now": "0.0%",
        "share_it_should_have": "50.0%",
        "documents_of_the_group_read": 2,
        "documents_found_in_all": 4,
        "words_with_how_many_documents_contain_them": [
            {"word": "she", "of_group": 2, "of_all": 2},
            {"word": "judge", "of_group": 1, "of_all": 1},
        ],
        "titles_of_documents_of_the_group": ["Page d2", "Page d3"],
        "words_added_for_the_topic": [],
        "tried_before_do_not_repeat": ["women"],
    }


def test_without_a_document_of_the_group_and_with_what_was_tried():
    refining = refiner(reply("she"))
    assert refining.refine(state([MALE] * 4)).terms == (Term("she"),)
    shown = asked(refining)
    assert shown["words_with_how_many_documents_contain_them"] == []
    assert shown["documents_of_the_group_read"] == 0
    refining = refiner(reply("She", "judge"))
    refinement = refining.refine(state(tried=frozenset({"she"})))
    assert refinement.terms == (Term("judge"),)
    assert refinement.refused == ("She: nothing new",)
    assert [word["word"] for word in asked(refining)["words_with_how_many_documents_contain_them"]] == ["judge"]
