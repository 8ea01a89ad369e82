"""Counterfactual contexts: swapped, rewritten by a model, the most fluent taken; and what happens where it fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fairagent.errors import ReplyRefused
from fairagent.guests.testing import ScriptedModel
from fairagent.llm.prompts import Prompts
from fairagent.papers.debias_rag.avoid import AvoidPassage
from fairagent.papers.debias_rag.stage import Rewriter, synthesize
from fairagent.types import FloatArray

from .parts import LIBRARY, lexicon

PASSAGES = (*LIBRARY[:2], AvoidPassage("a9", "Nobody was late."))


class Fluent:
    """Finds a text the likelier the shorter its words are."""

    name = "fluent"

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[FloatArray]:
        return [np.array([-float(len(word)) for word in text.split()]) for _, text in pairs]


def rewrites(*texts: str) -> str:
    return json.dumps({"rewrites": texts})


def test_without_a_model_words_are_swapped_and_nothing_is_made_of_a_passage_without_them(tmp_path: Path) -> None:
    made, notes, usage = synthesize("q", PASSAGES, lexicon(tmp_path))
    assert [(one.id, one.text) for one in made] == [("fair:a1", "He is a nurse."), ("fair:a2", "He is late.")]
    assert all("not from the collection" in one.title for one in made)
    assert (notes, usage.calls) == ([], 0)


def test_the_most_fluent_rewrite_is_taken(tmp_path: Path) -> None:
    model = ScriptedModel([rewrites("Considerably longer words", "It is so"), rewrites("Same", "Same")])
    rewriter = Rewriter(model, Prompts(), 2, Fluent())
    made, _, usage = synthesize("who is late?", PASSAGES, lexicon(tmp_path), rewriter)
    assert [one.text for one in made] == ["It is so", "Same"]
    assert usage.calls == 2
    asked = model.requests[0].messages[1][1]
    assert '"He is a nurse."' in asked
    assert '"who is late?"' in asked
    assert "Write 2 different" in asked


@pytest.mark.parametrize("reply", [rewrites("one"), rewrites("one", " "), "no JSON"])
def test_what_is_no_set_of_rewrites_is_asked_for_again_and_then_done_without(tmp_path: Path, reply: str) -> None:
    model = ScriptedModel([reply, reply, reply, ReplyRefused("no such texts")])
    made, notes, usage = synthesize("q", PASSAGES, lexicon(tmp_path), Rewriter(model, Prompts(), 2))
    assert [one.text for one in made] == ["He is a nurse.", "He is late."]
    assert len(notes) == 2
    assert "no such texts" in notes[1]
    assert usage.calls == 3


def test_a_counterfactual_without_a_rewrite_is_left_out_or_an_error_if_on_error_says_so(tmp_path: Path) -> None:
    def rewriter(on_error: str) -> Rewriter:
        model = ScriptedModel([ReplyRefused("no such texts"), rewrites("He arrives late.")])
        return Rewriter(model, Prompts(), 1, on_error=on_error)  # type: ignore[arg-type]

    made, notes, _ = synthesize("q", PASSAGES, lexicon(tmp_path), rewriter("drop"))
    assert [one.text for one in made] == ["He arrives late."]
    assert notes[0].endswith("was not rewritten (no such texts), and is left out")
    with pytest.raises(ReplyRefused):
        synthesize("q", PASSAGES, lexicon(tmp_path), rewriter("fail"))
