"""The whole stage on an encoder that counts words: what is chosen, and what is said about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairagent.errors import ReplyRefused, UsageError
from fairagent.guests.testing import ScriptedModel
from fairagent.llm.prompts import Prompts
from fairagent.papers.debias_rag.avoid import AvoidPassage
from fairagent.papers.debias_rag.stage import (
    MOST_HALVINGS,
    Rewriter,
    Theta,
    features,
    gradient,
    loss,
    step,
    synthesize,
)
from fairagent.types import Document, FloatArray

from .parts import LIBRARY, lexicon, stage

RAIN, BIASED, JUDGE = (
    Document("d1", "rain rain judge", "late"),
    Document("d2", "She is a nurse."),
    Document("d3", "judge nurse"),
)


def test_documents_and_counterfactuals_are_ranked_together(tmp_path: Path) -> None:
    found = stage(tmp_path).apply("Is the nurse he or she?", [RAIN, BIASED, JUDGE])
    assert (found.bias_class, found.avoided, found.made) == ("gender", ("a1", "a2"), ("fair:a1", "fair:a2"))
    assert found.dropped == ("d2",)
    assert found.survived == found.made
    # The one is the nearest to the query, the other the farthest from what is avoided; the rest are tied after them.
    ids = [one.id for one in found.documents]
    assert (set(ids[:2]), ids[2:]) == ({"fair:a1", "d1"}, ["d3"])
    assert list(found.scores) == sorted(found.scores, reverse=True)
    assert found.placed == tuple(one.id for one in found.documents if one.id.startswith("fair:"))
    assert sum(found.theta_after) == pytest.approx(1)
    assert found.theta_before == (0.5, 0.5)


def test_the_class_of_the_query_narrows_what_is_avoided(tmp_path: Path) -> None:
    assert stage(tmp_path).apply("the mosque, late", [RAIN]).avoided == ("a3",)
    assert set(stage(tmp_path).apply("late", [RAIN]).avoided) == {"a1", "a2", "a3"}
    assert len(stage(tmp_path, k=1).apply("late", [RAIN]).avoided) == 1


def test_a_class_without_passages_is_told_and_only_relevance_counts(tmp_path: Path) -> None:
    found = stage(tmp_path, [AvoidPassage("a", "she late")]).apply("mosque judge", [RAIN, BIASED, JUDGE])
    assert (found.avoided, found.made, found.dropped) == ((), (), ())
    assert found.notes == (
        "the avoid library has no passage of the query's class 'religion': nothing is avoided",
        "distance from what is avoided is the same for all candidates and counts for nothing",
    )
    assert [one.id for one in found.documents] == ["d3", "d1", "d2"]


def test_synthesized_contexts_may_all_be_dropped_or_be_exempt(tmp_path: Path) -> None:
    passages = [AvoidPassage("a", "she nurse late judge rain")]
    dropped = stage(tmp_path, passages, tau=0.78).apply("she nurse", [RAIN])
    assert (dropped.dropped, dropped.survived, dropped.placed) == (("fair:a",), (), ())
    exempt = stage(tmp_path, passages, tau=0.78, exempt_synthesized=True).apply("she nurse", [RAIN])
    assert (exempt.dropped, exempt.survived, exempt.placed) == ((), ("fair:a",), ("fair:a",))


def test_an_emptied_pool_keeps_the_least_bad_and_says_so(tmp_path: Path) -> None:
    found = stage(tmp_path, tau=-1, k=2).apply("she nurse", [BIASED, JUDGE, RAIN])
    assert len(found.documents) == 2
    assert "d2" not in [one.id for one in found.documents]
    assert set(found.dropped) == {"d1", "d2", "d3", "fair:a1", "fair:a2"}
    assert found.survived == ()
    assert "all 5 candidates are nearer than -1 to what is to be avoided; the 2 least near remain" in found.notes


def test_the_weights_stream_from_query_to_query(tmp_path: Path) -> None:
    made = stage(tmp_path, theta=Theta((1.0, 0.0)))
    first = made.apply("she nurse", [RAIN, JUDGE])
    assert first.theta_before == (1.0, 0.0)
    assert first.theta_after != first.theta_before
    assert made.apply("she late", [RAIN, JUDGE]).theta_before == first.theta_after


def test_an_id_that_is_taken_is_not_taken_twice(tmp_path: Path) -> None:
    taken = Document("fair:a1", "judge")
    found = stage(tmp_path, k=9).apply("she nurse", [taken])
    assert "fair:fair:a1" in found.made
    assert [one.text for one in found.documents if one.id == "fair:a1"] == ["judge"]


@pytest.mark.parametrize("wrong", [{"k": 0}, {"tau": 1.1}, {"tau": float("nan")}])
def test_values_that_make_no_sense(tmp_path: Path, wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="DebiasRAG"):
        stage(tmp_path, **wrong)


UNIT = st.floats(0, 1, width=32)
PHI = arrays(np.float64, st.tuples(st.integers(1, 12), st.just(2)), elements=UNIT)


@given(PHI, st.floats(0.1, 0.9))
def test_the_gradient_is_that_of_the_loss(phi, first):
    theta, small = np.array([first, 1 - first]), 1e-6
    for place, slope in enumerate(gradient(phi, theta)):
        along = np.eye(2)[place] * small
        assert (loss(phi, theta + along) - loss(phi, theta - along)) / (2 * small) == pytest.approx(slope, abs=1e-6)


@given(PHI, UNIT, st.floats(0, 1000))
def test_a_step_never_makes_the_loss_larger(phi, first, rate):
    taken = step(phi, np.array([first, 1 - first]), rate)
    assert taken.loss_after <= taken.loss_before
    assert taken.halvings <= MOST_HALVINGS
    assert taken.theta.sum() == pytest.approx(1)


def test_constant_signals_count_for_nothing_and_move_nothing() -> None:
    phi = features(np.full(4, 0.3), np.full(4, 0.7))
    assert not phi.any()
    taken = Theta((0.2, 0.8)).move(phi)[1]
    assert taken.theta.tolist() == pytest.approx([0.2, 0.8])
    assert taken.loss_after == pytest.approx(np.log(4))


def test_threads_lose_no_step() -> None:
    rng = np.random.default_rng(3)
    phis = list(rng.random((200, 8, 2)))
    theta = Theta((1.0, 0.0))
    with ThreadPoolExecutor(8) as pool:
        steps = list(pool.map(theta.move, phis))
    # Every query found what some other one left, each but the last one once.
    left = sorted(taken.theta[0] for _, taken in steps)
    found = sorted(before[0] for before, _ in steps)
    assert sorted([*found, theta.now[0]]) == sorted([1.0, *left])


@pytest.mark.parametrize("start", [(0.5, 0.6), (-0.5, 1.5), (float("nan"), 0.5)])
def test_weights_off_the_simplex(start: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="add up to 1"):
        Theta(start)


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
