"""The loop on scripted lists: every way it can stop, what it tells the refiner, what it keeps and what it reports.

Lists are written as ids, best first; the first letter is the group (see scripted.py). Four ranks weigh the same, and
both groups should get half, unless a test says otherwise.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted import Clock, Engine, Proposals, agent, by_letter, ranking, refinement

from fairagent.collection import GroupTable, TopicGroups
from fairagent.collection.table import TableBuffer
from fairagent.errors import UsageError
from fairagent.retrieve import base as engine_clock
from fairagent.retrieve.base import engine_time
from fairagent.retrieve.relevance_model import Postings
from fairagent.search.loop.base import LoopResult, Search
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.types import FloatArray, Group, Query, Term, Topic, Usage
from fairagent.types.common import UNLABELED, WORSE


class Cut:
    """A re-ranker that leaves the order, and cuts the list; it keeps its pools."""

    def __init__(self) -> None:
        self.pools: list[Any] = []

    def rerank(self, pool: Any) -> Any:
        self.pools.append(pool)
        return pool.ranking.top(pool.n)


@pytest.mark.parametrize("odd", [5, None, b"q", ["q"], Query(5), Topic("T1", None, {})])  # type: ignore[arg-type]
def test_what_is_no_query_is_refused_at_every_door(odd: Any) -> None:
    made = agent(Engine(SKEWED), Proposals())
    doors = [made.search, made.answer, lambda query: made.sample(query, 2), lambda one: made.search_many([one])]
    for door in [*doors, *(lambda query, of=of: asyncio.run(of(query)) for of in (made.asearch, made.aanswer))]:
        with pytest.raises(UsageError, match="expected a query, a text, Query or Topic, and not "):
            door(odd)
    for many in (5, "text"):
        with pytest.raises(UsageError, match="search_many takes a list"):
            made.search_many(many)  # type: ignore[arg-type]


SKEWED = {"q": "m1 m2 m3 m4 f1 f2"}


def accepted(result: Any) -> list[bool]:
    return [step.accepted for step in result.trace.steps]


# --- why it stops -----------------------------------------------------------------------------------------------


NOBODY = refinement("", note="nobody knows")


@pytest.mark.parametrize(
    ("lists", "proposals", "settings", "stopped", "steps"),
    [
        (SKEWED | {"q she": "f1 m1 f2 m2"}, ["she"], {}, "the gap is not above 0", [True, True]),
        # JSD((1/4, 3/4), (1/2, 1/2)) is .0338, good enough without a refinement.
        ({"q": "m1 f1 m2 m3"}, [], {"threshold": 0.2}, "the gap is not above 0.2", [True]),
        ({"q": "m1 m2 m3 f1", "q she": "m4 m5 m6 m7"}, ["she"], {}, "the gap did not fall", [True, False]),
        ({"q": "m1 m2 m3 f1", "q she": "m4 m5 m6 f2"}, ["she"], {}, "the gap did not fall", [True, False]),
        ({"q": "u1 u2", "q she": "u1 u2"}, ["she"], {}, "the gap did not fall", [True, False]),
        (
            {"q": "m1 m2 m3 m4 m5 m6", "q a": "m1 m2 m3 m4 m5 f1", "q a b": "m1 m2 m3 m4 f1 f2"},
            *(["a", "b"], {"n": 6, "iterations": 2}, "the limit of 2 refinements is reached", [True, True, True]),
        ),
        (SKEWED, [NOBODY], {}, "nobody knows", [True, False]),
        (SKEWED, ["qwertz"], {}, "no new keyword occurs in the index", [True, False]),
    ],
)
def test_why_it_stops(lists: Any, proposals: list[Any], settings: Any, stopped: str, steps: list[bool]) -> None:
    engine = Engine(lists, absent={"qwertz"})
    result = agent(engine, Proposals(*proposals), **settings).search("q")
    assert (result.trace.stopped, accepted(result), engine.searched) == (stopped, steps, list(lists))
    assert [step.aim for step in result.trace.steps[1:]] == [Group("gender", "female")] * (len(steps) - 1)
    # What the trace says at its end is about the ranking that is returned, the last one accepted.
    last = [step for step in result.trace.steps if step.accepted][-1]
    assert (set(result.ranking.ids), result.trace.gap) == (set(last.ranking.ids[: len(result.ranking)]), last.gap)
    assert all(step.gap >= last.gap for step in result.trace.steps)


def test_words_that_do_not_occur_are_named_and_those_tried_before_are_not_searched() -> None:
    engine = Engine(SKEWED | {"q she": "f1 m1 f2 m2"}, absent={"qwertz", "asdf"})
    step = agent(engine, Proposals("qwertz she asdf")).search("q").trace.steps[1]
    assert step.added == (Term("she"),)
    assert step.dropped == ("qwertz", "asdf")
    engine = Engine({"q": "m1 m2 m3 m4", "q she": "m1 m2 m3 f1"}, absent={"qwertz"})
    result = agent(engine, Proposals("she qwertz", "qwertz she")).search("q")
    assert result.trace.stopped == "repeated: no keyword is new"
    assert (result.trace.steps[2].added, result.trace.steps[2].dropped) == ((), ())
    assert engine.searched == ["q", "q she"]
    assert result.ranking.ids == ("m1", "m2", "m3", "f1")


def test_rankings_without_a_reranker_and_of_any_depth() -> None:
    engine = Engine({"q": "m1 m2 m3 m4", "q she": "f1 m1 f2 m2 m3"})
    made = agent(engine, Proposals("she"), reranker=lambda engine: None, rerank="none")
    result = made.search("q")
    assert (result.ranking.ids, result.ranking.scores.tolist()) == (("f1", "m1", "f2", "m2"), [5.0, 4.0, 3.0, 2.0])
    assert result.trace.reranker == "none"
    for off in ({"iterations": 0}, {"refine": "none"}):
        result = agent(Engine(SKEWED), Proposals(), depth=3, n=2, **off).search("q")
        assert (result.trace.stopped, len(result.trace.steps)) == ("", 1)
        assert result.trace.steps[0].ranking.ids == ("m1", "m2", "m3")
    result = agent(Engine(SKEWED), Proposals(), depth=1, n=3, iterations=0).search("q")
    assert result.ranking.ids == ("m1", "m2", "m3")


def test_no_label_in_the_first_ranks_but_deeper() -> None:
    engine = Engine({"q": "u1 u2 u3 u4 f1 m1", "q she": "f1 u1 u2 m1"})
    refiner = Proposals("she")
    result = agent(engine, refiner).search("q")
    first = result.trace.steps[0]
    assert (first.exposures[0].unknown, first.exposures[0].shares.tolist()) == (1.0, [0.0, 0.0])
    assert first.gap == pytest.approx(math.log(2)), "the largest there is"
    assert refiner.states[0].memberships["gender"].tolist() == [[1, 0, 0]] * 4 + [[0, 1, 0], [0, 0, 1]]
    assert result.trace.steps[1].aim == Group("gender", "female")  # both lack .5; the first label is taken
    assert accepted(result) == [True, True]
    assert result.trace.exposures[0].unknown == 0.5
    assert result.trace.exposures[0].shares.tolist() == [0.5, 0.5]
    assert 0 < result.trace.gap < 0.3, "the engine's list gives all to those without a label"


def test_several_dimensions_share_one_gap_and_the_worst_pair_is_chosen() -> None:
    # Letter 0 is the gender, letter 1 the region: f 1/2, m 1/2; a 1/4, e 3/4. Uniform targets: a lacks most.
    lists = {"q": "fe1 me2 fe3 ma4", "q x": "fa1 ma2 fe3 me4"}
    groups = by_letter([id for found in lists.values() for id in found.split()], region="1")
    result = agent(Engine(lists), Proposals("x"), groups=groups).search("q")
    first, second = result.trace.steps
    assert [exposure.dimension for exposure in first.exposures] == ["gender", "region"]
    assert [exposure.divergence for exposure in first.exposures] == pytest.approx([0, 0.033822], abs=1e-5)
    assert first.gap == pytest.approx(0.033822, abs=1e-5)
    assert (second.aim, second.gap) == (Group("region", "a"), 0.0)


def test_the_state_that_a_refiner_gets() -> None:
    lists = {"q": "m1 m2 m3 m4 f1", "q a z": "f1 m1 m2 m3", "q a z b": "f1 f2 m1 m2"}
    refiner = Proposals("a z gone", "b")
    agent(Engine(lists, absent={"gone"}), refiner).search(Topic("T1", "q"))
    first, second = refiner.states
    assert first.query == first.current == second.query == Query("q", "T1")
    assert second.current == Query("q", "T1", (Term("a"), Term("z")))
    # The deep list is that of the user's words in both: it is where the feedback comes from.
    assert first.ranking.ids == second.ranking.ids == tuple(lists["q"].split())
    assert second.memberships["gender"].tolist() == [[0, 0, 1]] * 4 + [[0, 1, 0]]
    assert first.group == second.group == Group("gender", "female")
    assert (first.exposure.shares.tolist(), second.exposure.shares.tolist()) == ([0, 1], [0.25, 0.75])
    assert second.exposure.target.tolist() == [0.5, 0.5]
    assert (first.tried, second.tried) == (frozenset(), {"a", "z", "gone"})


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("best", {"f1", "m1", "m2", "m3"}), ("last", {"m5", "m6", "m7", "m8"}), ("union", {"f1", "m1", "m2", "m3", "m4"})],
)
def test_candidate_policies(policy: str, expected: set[str]) -> None:
    lists, cut = {"q": "m1 m2 m3 m4", "q a": "f1 m1 m2 m3", "q a b": "m5 m6 m7 m8"}, Cut()
    result = agent(Engine(lists), Proposals("a", "b"), candidates=policy, reranker=lambda engine: cut).search("q")
    (pool,) = cut.pools
    assert set(pool.ranking.ids) == expected
    assert (pool.query, pool.n, pool.targets[0].tolist()) == (Query("q"), 4, [0.5, 0.5])
    assert pool.memberships[0].shape == (len(expected), 3)
    assert result.ranking.ids == pool.ranking.ids[:4]
    assert result.trace.candidates == policy


def test_usage_is_summed_over_the_steps_even_the_fruitless_ones() -> None:
    lists = {"q": "m1 m2 m3 m4", "q a": "f1 m1 m2 m3"}
    script = [refinement("a", usage=Usage(1, 100, 10, 0.5, 2.0)), refinement("", usage=Usage(2, 50, 5, 0.25, 1.0))]
    trace = agent(Engine(lists), Proposals(*script)).search("q").trace
    assert trace.usage == Usage(3, 150, 15, 0.75, 3.0)
    assert [step.usage.calls for step in trace.steps] == [0, 1, 2]


def test_seconds_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("fairagent.search.agent.perf_counter", clock)
    monkeypatch.setattr("fairagent.search.run.perf_counter", clock)
    monkeypatch.setattr(engine_clock, "perf_counter", clock)

    class Slow(Engine):
        def search(self, query: Query, n: int) -> Any:
            with engine_time(), engine_time():  # nested: counted once
                clock.now += 2
            clock.now += 0.5  # the engine's Python side counts as the loop's
            return super().search(query, n)

        def score(self, query: Query, ids: Any) -> FloatArray:
            with engine_time():
                clock.now += 1
            return super().score(query, ids)

    class Thinking:
        def refine(self, state: Any) -> Any:
            clock.now += 10
            return refinement("she", usage=Usage(1, seconds=10.0))

    made = agent(Slow(SKEWED | {"q she": "f1 m1 f2 m2"}), Thinking())
    for _ in range(2):  # the clock runs on; a search counts its own time
        trace = made.search("q").trace
        assert (trace.engine_seconds, trace.usage.seconds, trace.seconds) == (5.0, 10.0, 16.0)


@pytest.mark.parametrize("target", ["uniform", "estimated", {"stance": {"pro": 0.5, "con": 0.5}}])
def test_groups_that_come_from_the_judgments_make_an_oracle_of_any_target(target: Any) -> None:
    judged = TableBuffer({"stance": None})
    for line, (id, stance) in enumerate([("d1", "pro"), ("d2", "con")], start=1):
        judged.add(TopicGroups.pair("T1", id), {"stance": stance}, line)
    groups = TopicGroups(*judged.finish())
    made = agent(Engine({"q": "d1 d2 d3"}), Proposals(), groups=groups, target=target, iterations=0)
    trace = made.search(Topic("T1", "q")).trace
    assert trace.oracle
    assert trace.exposures[0].shares.tolist() == [0.5, 0.5]
    assert made.search("q").trace.exposures[0].unknown == 1.0  # without a topic nothing is labeled


class Words(Engine):
    """Every document holds the word "law" once; `f` documents hold "she" as well."""

    def postings(self, ids: Any) -> Postings:
        entries = [(row, term) for row, id in enumerate(ids) for term in ([0, 1] if id[0] == "f" else [0])]
        row, term = np.array(entries).T
        length = np.bincount(row).astype(float)
        return Postings(row, term, np.ones(len(row)), length, np.array([7, 8]), np.array([0.1, 0.1]))

    def words(self, vocabulary: Any) -> list[str]:
        return [{7: "law", 8: "she"}[number] for number in vocabulary.tolist()]

    def analyze(self, text: str) -> list[str]:
        return text.split()


def test_the_loop_starts_from_the_topic_words_and_aims_with_the_users_list() -> None:
    engine = Words({"q": "m1 m2 f1 m3", "q law": "m5 m6 m7 m8", "q law he": "m1 f1 m2 f2"})
    refiner = Proposals("he")
    result = agent(engine, refiner, expansion={"documents": 2, "terms": 5, "weight": 0.5}).search("q")
    assert [step.source for step in result.trace.steps] == ["query", "topic words", "scripted"]
    # The first two documents hold "law" alone; half of the whole weight, with one word in the query, is 1.
    assert result.trace.steps[1].added == result.trace.steps[1].query.terms == (Term("law", 1.0),)
    assert refiner.states[0].ranking.ids == ("m1", "m2", "f1", "m3")
    assert refiner.states[0].exposure.shares.tolist() == [0.0, 1.0]
    assert result.trace.stopped == "the gap is not above 0"


def test_the_list_of_the_topic_words_stands_and_an_estimated_target_comes_from_it() -> None:
    engine = Words({"q": "m1 m2 f1 m3", "q law": "m5 m6 m7 m8"})
    result = agent(engine, Proposals(""), expansion={"documents": 2}).search("q")
    first, second, _ = result.trace.steps
    assert second.gap > first.gap
    assert (accepted(result), result.ranking.ids) == ([True, True, False], ("m5", "m6", "m7", "m8"))
    # The list of the user's own words is the one to compare with.
    [note] = [note for note in result.trace.notes if "less fair" in note]
    assert note.endswith(f"a gap of {result.trace.gap:.4f}, the engine's is {first.gap:.4f}")
    engine = Words({"q": "m1 m2 m3 m4", "q law": "f1 f2 m1"})  # weights 1, 2/3, 1/3
    result = agent(engine, Proposals(""), target="estimated", iterations=0, expansion={"documents": 50}).search("q")
    assert result.trace.exposures[0].target.tolist() == pytest.approx([5 / 6, 1 / 6])


# --- what is served is compared with the engine's own list ------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Candidates:
    """A loop that has these candidates, of whom some have entered, and has removed some documents."""

    ids: str
    removed: frozenset[str] = frozenset()
    entered: frozenset[str] = frozenset()

    def run(self, search: Search) -> LoopResult:
        found = ranking(self.ids.split())
        return LoopResult(found, search.steps, "done", removed=self.removed, entered=self.entered)


def looped(own: str, loop: Candidates, reranker: Any, **settings: Any) -> Any:
    groups = by_letter([f"{letter}{number}" for letter in "fmu" for number in range(1, 7)])
    made = agent(Engine({"q": own}), None, reranker=lambda engine: reranker, groups=groups, **settings)
    return dataclasses.replace(made, loop=loop).search("q")


@pytest.mark.parametrize(
    ("ids", "removed", "reranker", "worse"),
    [
        ("m1 m2 f1 m3", "", Cut(), "0.562"),
        ("m1 m2 m3 u1", "", Cut(), "0.375"),
        # Another order of the same, and another list where the engine's own is not to be had.
        ("f2 m2 f1 m1", "", Cut(), ""),
        ("m1 m2 m3", "f1 f2", Cut(), ""),
        # Who has a frontier chooses by the same measure, of the candidates that there are.
        ("m1 m2 m3 m4", "", ExposureReranker(), ""),
    ],
)
def test_a_list_with_less_relevance_less_the_price_of_its_gap_raises_an_alarm(
    ids: str, removed: str, reranker: Any, worse: str
) -> None:
    """The engine's own has relevances of 1, 3/4, 1/2 and 1/4, 5/8 in the mean, and no gap."""
    result = looped("m1 f1 m2 f2 m3", Candidates(ids, frozenset(removed.split())), reranker)
    said = f"a relevance of {worse} and a gap of {result.trace.gap:.3f}, its 0.625 and 0.000; it is served all the same"
    assert [one.detail for one in result.trace.alarms if one.what == WORSE] == ([said] if worse else [])
    assert set(result.ranking.ids) == set(ids.split())


@pytest.mark.parametrize("place", range(4))
def test_the_golden_cases_of_the_loop(golden: Path, place: int) -> None:
    """Each case scripts the divergences of successive lists; here lists are made whose divergences these are.

    With target (1, 0) and one rank, a document that is 1 - x of the first group has a total variation of x.
    """
    case = json.loads((golden / "seed_systems" / "fairqr_mmr_dlf.json").read_text(encoding="utf-8"))["loop"][place]
    script: list[float] = case["divergences"]
    rows = [(f"d{i}", {"gender": {"a": 1 - gap, "b": gap}}) for i, gap in enumerate(script)]
    groups = GroupTable.from_rows(rows, ["gender"])
    words = [f"w{i}" for i in range(1, len(script))]
    engine = Engine({" ".join(["q", *words[:i]]): f"d{i}" for i in range(len(script))})
    refiner = Proposals(*words)
    result = agent(
        engine,
        refiner,
        groups=groups,
        n=len(script),  # for the union; one document a list, so one rank
        target={"gender": {"a": 1.0, "b": 0.0}},
        divergence="tv",
        threshold=case["threshold"],
        iterations=case["max_iter"],
        candidates="union",
    ).search("q")
    after = case["stops_after_iteration"]
    assert [step.gap for step in result.trace.steps] == pytest.approx(script[: after + 1], rel=1e-5)
    assert len(refiner.states) == after
    assert sorted(result.ranking.ids) == [f"d{i}" for i in case["pool_from"]]
    reasons = {
        "divergence did not decrease": "the gap did not fall",
        "threshold": f"the gap is not above {case['threshold']:g}",
        "max_iter": f"the limit of {case['max_iter']} refinements is reached",
        "threshold on the first retrieval: no LLM call": f"the gap is not above {case['threshold']:g}",
    }
    assert result.trace.stopped == reasons[case["reason"]]


@pytest.mark.parametrize("steps", [1, 2])
def test_each_step_is_passed_on_when_it_has_been_made(steps: int) -> None:
    passed: list[Any] = []
    engine = Engine(SKEWED | {"q she": "f1 m1 f2 m2"})
    result = agent(engine, Proposals("she") if steps == 2 else None).search("q", passed.append)
    assert passed == list(result.trace.steps)
    assert len(passed) == steps


def test_what_the_trace_says_of_the_list_that_is_served() -> None:
    # Of the engine's m1 f1 the loop makes m1 m2.
    result = looped("m1 f1 m2 m3 f2 m4", Candidates("m1 m2 f1"), Cut(), n=2)
    assert result.ranking.ids == ("m1", "m2")
    [note] = result.trace.notes
    before, after = result.trace.steps[0].exposures[0].divergence, result.trace.exposures[0].divergence
    assert note.endswith(f"in gender: a gap of {after:.4f}, the engine's is {before:.4f}")
    result = looped("m1 f1 m2 u1", Candidates("m1 u1 f1", entered=frozenset({"f1", "f6"})), Cut(), n=3)
    [alarm] = [one for one in result.trace.alarms if one.what == UNLABELED]
    assert f"get {result.trace.exposures[0].unknown:.0%} of the exposure, their target is 0%" in alarm.detail
    assert result.trace.entered == 1
