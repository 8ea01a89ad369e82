"""What holds of every loop, whatever the documents are."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_engine import Dense, agent, judging, verdicts
from scripted import by_letter

from fairagent.collection import GroupTable
from fairagent.collection.exposure import finite_gap, worse_dimensions
from fairagent.guests.testing import ScriptedModel
from fairagent.search.loop.actions import RefineAction
from fairagent.search.loop.controller import Controller
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.types import Query, SearchResult

WORDS = ["law", "woman", "man", "court", "ship"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
collections = st.fixed_dictionaries({f"{letter}{number}": texts for letter in "fmu" for number in range(4)})


def searched(documents: dict[str, str], drift: float, judged: bool) -> SearchResult:
    judge = judging(ScriptedModel(verdicts(lambda text: "ship" not in text)))
    actions = (judge, RefineAction(5, 0.7)) if judged else (RefineAction(5, 0.7),)
    loop = Controller(actions, drift=drift, prior=0.0, guard=None)
    return agent(Dense(documents), loop, by_letter([*documents, "f9", "m9"])).search("law")


@settings(max_examples=40, deadline=None)
@given(collections, st.floats(0, 0.9), st.booleans())
def test_what_is_served_is_the_last_list_accepted_and_the_gap_only_falls(
    documents: dict[str, str], drift: float, judged: bool
) -> None:
    result = searched(documents, drift, judged)
    tried = result.trace.steps[1:]
    accepted = [step for step in tried if step.accepted]
    if accepted:
        assert result.ranking.ids == accepted[-1].ranking.ids
    gaps = [finite_gap(step.exposures) for step in accepted]
    assert all(after < before for before, after in pairwise(gaps))
    assert result.trace.stopped


@settings(max_examples=30, deadline=None)
@given(collections, st.floats(0, 0.9))
def test_weights_are_a_distribution_over_groups_with_documents(documents: dict[str, str], drift: float) -> None:
    for step in searched(documents, drift, False).trace.steps[1:]:
        weights = [weight for _, weight in step.weights]
        assert min(weights) >= 0
        assert sum(weights) == pytest.approx(1)


@settings(max_examples=15, deadline=None)
@given(collections, st.booleans())
def test_the_same_input_gives_the_same_result(documents: dict[str, str], judged: bool) -> None:
    first, second = (searched(documents, 0.5, judged) for _ in range(2))
    assert first.ranking.ids == second.ranking.ids
    assert first.ranking.scores.tolist() == second.ranking.scores.tolist()
    assert first.trace.stopped == second.trace.stopped
    assert [step.weights for step in first.trace.steps] == [step.weights for step in second.trace.steps]


@settings(max_examples=25, deadline=None)
@given(collections)
def test_where_no_drift_is_allowed_nothing_less_relevant_is_served(documents: dict[str, str]) -> None:
    engine = Dense(documents)
    result = searched(documents, 0.0, False)
    query = Query("law")
    own = engine.search(query, 4)
    assert engine.score(query, result.ranking.ids).mean() >= own.scores.mean() - 1e-6


def two_dimensions(documents: dict[str, str]) -> GroupTable:
    rows = [(id, {"gender": {id[0]: 1.0}, "half": {"first" if id[1] in "01" else "last": 1.0}}) for id in documents]
    return GroupTable.from_rows([row for row in rows if row[0][0] != "u"], ["gender", "half"])


@settings(max_examples=30, deadline=None)
@given(collections, st.floats(0.1, 4))
def test_a_dimension_that_got_worse_did_so_beside_the_last_list_accepted(
    documents: dict[str, str], fairness: float
) -> None:
    loop = Controller((RefineAction(5, 0.7),), drift=0.9, prior=0.0, guard=None)
    made = replace(agent(Dense(documents), loop, two_dimensions(documents)), reranker=ExposureReranker(fairness))
    reached, *tried = made.search("law").trace.steps
    assert re.fullmatch(r"re-ranked, before any action: the gap is \d+\.\d{4}", *reached.notes)
    for step in tried:
        assert step.worse == (worse_dimensions(reached.exposures, step.exposures) if step.accepted else ())
        assert step.accepted or re.fullmatch(r"less relevant|the gap is not below \d+\.\d{4}", step.reason)
        reached = step if step.accepted else reached
