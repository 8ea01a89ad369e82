"""FAIR-QR's depth: how much of the refined list the original query re-ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evaluate import words
from hypothesis import given
from hypothesis import strategies as st
from scripted import Engine, Proposals, agent, ranking

from fairagent.errors import SettingsError
from fairagent.evaluate.check import check_experiment
from fairagent.search.loop.fair_qr import FairQR, union
from fairagent.types import Ranking

LISTS = {"q": "m1 m2 m3 f1 f2 f3", "q she": "f1 m1 f2 m2 f3 m3"}


# Of 4 that are shown: the first four of the refined list, and none of the engine's own.
@pytest.mark.parametrize(
    ("n", "depth", "ids"), [(2, 0, "m1 m2"), (2, 2, "m1 f1"), (2, 3, "m1 f1"), (4, 2, "m1 m2 f1 f2")]
)
def test_the_refined_list_is_cut_before_it_is_reranked(n: int, depth: int, ids: str) -> None:
    made = agent(Engine(LISTS), Proposals("she"), n=n, expansion={"documents": 0})
    found = replace(made, loop=FairQR(Proposals("she"), iterations=1, depth=depth)).search("q")
    assert found.ranking.ids == tuple(ids.split())
    assert [step.accepted for step in found.trace.steps] == [True, True]
    note = f"{n} documents are re-ranked, as many as are shown: rerank_depth is {depth}"
    assert found.trace.steps[-1].notes == ((note,) if 0 < depth < n else ())


def test_an_experiment_that_judges_more_than_are_reranked_is_refused(tmp_path: Path) -> None:
    text = words.EXPERIMENT + (
        "  deep: {profile: fair-qr, engine: words, refine: feedback, loop: {rerank_depth: 20}}\n"
        "  flat: {profile: fair-qr, engine: words, refine: feedback, loop: {rerank_depth: 19}}\n"
    )
    with pytest.raises(SettingsError) as error:
        check_experiment(words.write(tmp_path, text), environ={})
    assert "systems.flat.loop: rerank_depth is 19, and 20 documents are shown: re-rank 20 or more" in str(error.value)
    assert "systems.deep" not in str(error.value)


def test_union_by_hand() -> None:
    # min-max: a 1, b 1/2, c 0 and c 1, d 0; over two lists a 1/2, c 1/2, b 1/4, d 0; a tie goes by id.
    found = union([ranking(["a", "b", "c"], [9, 7, 5]), ranking(["c", "d"], [2, 1])])
    assert found.ids == ("a", "c", "b", "d")
    assert found.scores.tolist() == [0.5, 0.5, 0.25, 0.0]
    assert union([ranking(["b", "a"], [3, 3])]).scores.tolist() == [1.0, 1.0]
    assert union([ranking(["a"], [3]), Ranking((), np.zeros(0))]).scores.tolist() == [0.5]
    assert union([Ranking((), np.zeros(0))]).ids == ()


@given(st.lists(st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=8), min_size=1, max_size=4))
def test_a_union_holds_every_document_once_in_order(lists: list[list[str]]) -> None:
    found = union([ranking(of_one) for of_one in lists])
    assert sorted(found.ids) == sorted({id for of_one in lists for id in of_one})
    assert all(0 <= score <= 1 + 1e-12 for score in found.scores.tolist())
    assert (np.diff(found.scores) <= 0).all()
    assert union([ranking(lists[0])]).ids == tuple(lists[0])
