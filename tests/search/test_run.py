"""What a search has found: served from any ranking of its candidates, with hits, exposures and clocks of its own."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scripted import Engine, Proposals, agent, ranking

from fairagent import FairAgent
from fairagent.collection.exposure import total_gap
from fairagent.search.hits import fair_rerank
from fairagent.search.run import hits_of
from fairagent.settings import lay, load_settings
from fairagent.types import Document, Draw, Query, Usage

SKEWED = {"q": "m1 m2 m3 f1 f2 u1", "q she": "f1 m1 f2 m2 u1"}


class Library(Engine):
    """An engine that keeps texts."""

    def document(self, id: str) -> Document:
        return Document(id, "text", f"Title of {id}")


def test_one_search_serves_any_of_its_candidates() -> None:
    engine = Library(SKEWED)
    made = agent(engine, Proposals("she"), n=2, profile="fair-qr", refine="llm", rerank="original")
    found = made.find("q", 4)
    searched = list(engine.searched)
    assert (found.query, found.pool.ids) == (Query("q"), ("m1", "m2", "f1", "f2"))
    one = found.result(found.pool)
    other = found.result(ranking(["f2", "u1", "m1"]), Draw(1.0, 4, 0, 7))
    assert engine.searched == searched
    assert (one.ranking.ids, one.trace.draw) == (("m1", "m2"), None)
    assert (other.ranking.ids, other.trace.draw) == (("f2", "u1"), Draw(1.0, 4, 0, 7))
    # The trace is about what is served; how it was found is the same.
    assert one.trace.exposures[0].shares.tolist() == [0.0, 1.0]
    assert other.trace.exposures[0].shares.tolist() == [1.0, 0.0]
    assert (one.trace.gap, other.trace.gap) == (pytest.approx(math.log(2), abs=1e-4),) * 2
    assert other.trace.exposures[0].unknown == 0.5
    assert one.trace.steps == other.trace.steps == found.loop.steps
    assert (one.trace.profile, one.trace.reranker, one.trace.candidates) == ("fair-qr", "original", "best")
    assert (one.trace.targets, one.trace.usage) == (("uniform",), Usage())


def test_hits_are_those_of_the_ranking_with_the_engines_own_scores() -> None:
    found = agent(Library(SKEWED), None).find("q", 6)
    hits = hits_of(ranking(["f1", "u1"], [0.5, 0.25]), found.meter, found.retriever)
    assert [(hit.rank, hit.id, hit.score, hit.title) for hit in hits] == [
        (1, "f1", 0.5, "Title of f1"),
        (2, "u1", 0.25, "Title of u1"),
    ]
    assert [hit.groups for hit in hits] == [{"gender": {"female": 1.0}}, {"gender": {}}]
    assert hits_of(ranking([]), found.meter, found.retriever) == ()
    result = found.result(ranking(["f1", "stranger", "m1"], [1.0, 0.5, 0.25]))
    own = dict(zip(found.engine_list.ids, found.engine_list.scores.tolist(), strict=True))
    assert [(hit.rank, hit.score) for hit in result.hits] == [(1, own["f1"]), (2, None), (3, own["m1"])]
    assert own["f1"] < own["m1"]
    assert [hit["score"] for hit in result.to_dict()["hits"]] == [own["f1"], None, own["m1"]]
    # The order of hits that were re-ranked stands, though their scores rise along it.
    again = fair_rerank([result.hits[0], result.hits[2]], {"g": {"f1": "f", "m1": "m"}}, "uniform", fairness=0)
    assert [hit.id for hit in again.hits] == ["f1", "m1"]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, ""),
        ({"loop": "fair-qr", "refine": "llm"}, ""),
        ({"loop": "none", "refine": "llm"}, ""),
        ({"refine": "llm"}, "refine: llm is not used, since no model is named; set model.name"),
        ({"refine": "llm", "model": {"name": "tiny"}}, "refine: llm asks with group_keywords, .*; with refine_query"),
        ({"loop": {"kind": "widen", "actions": ["filter"]}, "filter": "fair"}, ""),
        ({"filter": "fair"}, r"filter: fair is not used: a search writes no answer; set loop.actions=\[filter\]"),
        ({"refine": {"terms": 3}}, "refine: feedback is not used, since loop: widen uses none; set loop=fair-qr"),
    ],
)
def test_parts_that_nothing_uses_are_named_in_the_trace(told: dict[str, Any], said: str) -> None:
    settings = load_settings(overrides=lay({"n": 4}, told), environ={})
    found = replace(agent(Library(SKEWED), None).find("q", 6), settings=settings)
    for answers, expected in ((False, said), (True, "" if "filter" in told else said)):
        notes = found.result(found.pool, answers=answers).trace.notes
        assert len(notes) == bool(expected)
        assert re.match(expected, "".join(notes))


PEOPLE = [{"id": f"m{n}", "text": "lawyer " * 3 + "court " * n, "gender": "male"} for n in range(8)] + [
    {"id": f"f{n}", "text": "lawyer town " + "law " * n, "gender": "female"} for n in range(8)
]


@pytest.fixture(scope="module")
def fair() -> FairAgent:
    return FairAgent.from_records(PEOPLE, groups="gender", n=8, engine="bm25", target="uniform", loop="none")


@pytest.mark.parametrize("asked", [{}, {"fairness": 0.25}, {"keep": 0.99}, {"gap": 0.1}])
def test_what_another_price_reaches_is_what_it_serves(fair: FairAgent, asked: dict[str, float]) -> None:
    trace = fair.search("lawyer", **asked).trace  # type: ignore[arg-type]
    (note,) = [note for note in trace.notes if "reaches" in note]
    price = float(note.split("fairness ")[1].split()[0])
    fairer = fair.search("lawyer", fairness=price).trace
    has, reaches = trace.exposures[0].shares[0], fairer.exposures[0].shares[0]
    assert has + 0.01 <= reaches
    assert note == (
        f"female (gender) has {has:.0%} of the exposure, its share is 50%; fairness {price:g} reaches {reaches:.0%}, "
        f"keeping {fairer.relevance_kept:.0%} of the relevance"
    )


def test_nothing_is_said_where_the_target_is_reached_or_nothing_is_fairer(fair: FairAgent) -> None:
    run = fair.find("lawyer", 8)
    assert run.loop.reranked
    assert run.loop.reranked.frontier
    fairest = fair.search("lawyer", gap=float(run.loop.reranked.frontier.gap.min()))
    assert not [note for note in fairest.trace.notes if "reaches" in note]
    without = replace(fair, reranker=None)
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


def test_an_answer_knows_the_least_gap_of_so_many_candidates() -> None:
    genders = "mmmmmmffffnn"
    rows = [{"id": f"d{i:02}", "text": f"jazz {'jazz ' * (g == 'm')}{i}", "g": g} for i, g in enumerate(genders)]
    for k in (2, 3, 5, 8):
        target = {"g": {"f": 0.5, "m": 0.3, "n": 0.2}}
        made = FairAgent.from_records(rows, groups=["g"], target=target, context={"documents": k})
        answer, meter = made.answer("jazz"), made.find("jazz", 12).meter
        gaps = [total_gap(meter.weigh(ids, np.ones(k))) for ids in combinations(answer.search.retrieved, k)]
        assert answer.exposures.least_gap == pytest.approx(min(gaps))
