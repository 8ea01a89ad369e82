"""The whole stage on an encoder that counts words: what is chosen, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairagent.errors import UsageError
from fairagent.papers.debias_rag.avoid import AvoidPassage
from fairagent.papers.debias_rag.stage import Theta
from fairagent.types import Document

from .parts import stage

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
