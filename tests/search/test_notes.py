"""What the trace says of a price that does not reach the target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairagent import FairAgent

PEOPLE = [{"id": f"m{n}", "text": "lawyer " * 3 + "court " * n, "gender": "male"} for n in range(8)] + [
    {"id": f"f{n}", "text": "lawyer town " + "law " * n, "gender": "female"} for n in range(8)
]


@pytest.fixture(scope="module")
def agent() -> FairAgent:
    return FairAgent.from_records(PEOPLE, groups="gender", n=8, engine="bm25", target="uniform", loop="none")


@pytest.mark.parametrize("asked", [{}, {"fairness": 0.25}, {"keep": 0.99}, {"gap": 0.1}])
def test_what_another_price_reaches_is_what_it_serves(agent: FairAgent, asked: dict[str, float]) -> None:
    trace = agent.search("lawyer", **asked).trace  # type: ignore[arg-type]
    (note,) = [note for note in trace.notes if "reaches" in note]
    price = float(note.split("fairness ")[1].split()[0])
    fairer = agent.search("lawyer", fairness=price).trace
    has, reaches = trace.exposures[0].shares[0], fairer.exposures[0].shares[0]
    assert has + 0.01 <= reaches
    assert note == (
        f"female (gender) has {has:.0%} of the exposure, its share is 50%; fairness {price:g} reaches {reaches:.0%}, "
        f"keeping {fairer.relevance_kept:.0%} of the relevance"
    )


def test_nothing_is_said_where_the_target_is_reached_or_nothing_is_fairer(agent: FairAgent) -> None:
    run = agent.find("lawyer", 8)
    assert run.loop.reranked
    assert run.loop.reranked.frontier
    fairest = agent.search("lawyer", gap=float(run.loop.reranked.frontier.gap.min()))
    assert not [note for note in fairest.trace.notes if "reaches" in note]
    without = replace(agent, reranker=None)
    assert not [note for note in without.search("lawyer").trace.notes if "reaches" in note]
    assert np.isclose(fairest.trace.gap, run.loop.reranked.frontier.gap.min())


def test_too_few_candidates_are_counted_and_a_title_that_says_nothing_is_not_said() -> None:
    rows = [{**row, "title": "[title not known]"} for row in PEOPLE[:9]]
    few = FairAgent.from_records(rows, groups="gender", title="title", n=8, engine="bm25", target="uniform")
    found = few.answer("lawyer")
    fairest = few.search("lawyer", fairness=100)
    for trace in (found.search.trace, fairest.trace):
        (note,) = trace.notes
        assert note.endswith("; 1 of the 9 candidates is of this group, too few for its 4 of 8 places")
        assert ("reaches" in note) == (trace is not fairest.trace)
    assert all(hit.name.startswith("lawyer") and hit.title for hit in found.search.hits)
    assert "not known" not in found.answer.text
