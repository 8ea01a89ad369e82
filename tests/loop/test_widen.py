"""The loop that widens: when it searches again, what it accepts and asks a model, and that nothing it does can harm."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from loop_engine import FEW, LAWYERS, Dense, Scores, Texts, Words, agent, finding, step_of, verdicts
from numpy.typing import NDArray
from scripted import by_letter

from fairagent import Collection, FairAgent, build_index, open_agent
from fairagent.answer.filtering import FairFilter
from fairagent.collection import GroupTable
from fairagent.errors import BackendUnavailable, BudgetExceeded, FatalModelError, ReplyRefused, TransientModelError
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.measures.objective import objective
from fairagent.search.loop.base import Lack, lacking
from fairagent.search.loop.group_words import PASSAGE, GroupQueries, Says, Sources
from fairagent.search.loop.widen import (
    Action,
    ModelJudge,
    among_group,
    by_model,
    filtering,
    judging,
    near_in,
    of_documents,
    widening,
    words_in,
)
from fairagent.search.relevance import TypeSource, Weighing
from fairagent.search.rerank.base import Pool
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.search.rerank.relevance import ChainReranker
from fairagent.storage.threads import Memo
from fairagent.types import Document, Exposure, FloatArray, Group, Proposals, Query, Ranking, SearchResult
from fairagent.types.common import REMOVED, UNFINISHED

MEN = {"m1": -6.0, "m2": -7.0, "m3": -8.0, "m4": -9.0}
"""Of an engine of logarithms: relevances of 1, 2/3, 1/3 and 0."""


@pytest.mark.parametrize(("score", "accepted"), [(-9.0, True), (-9.7, False), (-5.0, True)])
def test_a_step_is_accepted_if_the_objective_rises_by_hand(score: float, accepted: bool) -> None:
    """Two men have R = 5/6 and G = .2158 (JS of 0, 1 and 1/2, 1/2), so J = .402: a woman's (1 + r) / 2 is to be more.

    At -9 her relevance is 0, at -9.7 -.23; better than the last that the engine lists is as good as that.
    """
    engine = Scores(MEN | {"f1": score}, q="m1 m2 m3 m4")
    result = agent(engine, finding("f1"), fairness=2, n=2).search("q")
    step = step_of(result, "group")
    assert (step.accepted, step.entered) == (accepted, 1)
    assert step.was == pytest.approx(0.2158, abs=1e-4)
    assert step.objectives[0] == pytest.approx(0.402, abs=1e-3)
    assert (step.objectives[1] == pytest.approx(0.5)) == accepted
    assert step.reason == ("" if accepted else "what would be served is no better")
    assert step.why == "female (gender) has 0% of the exposure, its share is 50%, and it lacks candidates"
    assert step.notes == ("female (gender): 1 of its documents come in",)
    assert set(result.ranking.ids) == ({"m1", "f1"} if accepted else {"m1", "m2"})
    assert result.trace.stopped


def test_where_no_group_lacks_candidates_nobody_is_asked_again() -> None:
    engine = Scores(MEN | {"f1": -8.5, "f2": -8.5}, q="m1 m2 m3 m4 f1 f2")
    result = agent(engine, finding("f3"), finding("f4", "documents")).search("q")
    assert (engine.asked, len(result.trace.steps)) == (["q"], 1)
    assert result.trace.stopped == "no group lacks candidates"
    assert agent(engine, finding("f1")).search("nothing").trace.stopped == "the query retrieves nothing"


def test_each_action_is_taken_once_in_its_order_until_nothing_is_lacking() -> None:
    engine = Scores(MEN | {"f1": -7.0, "f2": -7.0, "f3": -7.0}, q="m1 m2 m3 m4")
    actions = (finding("m2 nobody", "neighbors"), finding("f1"), finding("f2 f3", "documents"), finding("f3", "words"))
    engine.texts["nobody"] = 0.0
    result = agent(engine, *actions, groups=by_letter(MEN | {"f1": 0, "f2": 0, "f3": 0})).search("q")
    assert [step.source for step in result.trace.steps] == ["query", "neighbors", "group", "documents"]
    assert [step.reason for step in result.trace.steps[1:]] == ["no other document is found", "", ""]
    assert result.trace.stopped == "no group lacks candidates"


class Broken(Scores):
    """Fails at documents from elsewhere."""

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        if "f1" in ids and "f1" not in self.texts:
            raise BackendUnavailable("the server is gone")
        return super().score(query, ids)


@pytest.mark.parametrize(("scores", "said"), [({}, "the server is gone"), ({"f1": math.nan}, "'f1'")])
def test_an_engine_that_fails_at_the_second_search_leaves_the_first_list(scores: dict[str, float], said: str) -> None:
    engine = Broken(MEN | scores, q="m1 m2 m3 m4")
    result = agent(engine, finding("f1"), n=2, groups=by_letter(["f1", *MEN])).search("q")
    step = step_of(result, "group")
    assert step.reason.startswith("the engine failed, so its first list stays: ")
    assert said in step.reason
    assert result.ranking.ids == ("m1", "m2")


def test_what_a_filter_removed_never_comes_back() -> None:
    model = ScriptedModel(verdicts(lambda text: "ship" not in text))
    texts = {"m1": "law man ship", "m2": "law man", "m3": "law man", "f1": "law woman ship", "f2": "law woman"}
    action = filtering(FairFilter(model, Prompts(), utility=False))
    engine = Dense(texts, reachable=["m1", "m2", "m3", "f1"])
    run = agent(engine, action, finding("f1 m1 f2"), n=3).find("law", 3)
    assert run.loop.removed == {"m1", "f1"}
    assert run.loop.entered == {"f2"}
    assert set(run.loop.candidates.ids) == {"m2", "m3", "f2"} == set(run.pool.ids)


def test_who_lacks_most_comes_first_by_importance() -> None:
    gender = Exposure("gender", ("f", "m"), np.array([0.3, 0.7]), np.array([0.5, 0.5]), 0.0, 0.1)
    region = Exposure("region", ("a", "b"), np.array([0.1, 0.9]), np.array([0.5, 0.5]), 0.0, 0.1, importance=0.4)
    assert [(lack.group.label, lack.place) for lack in lacking([gender, region])] == [("f", 0), ("a", 2)]


# --- whatever the engine says ------------------------------------------------------------------------------------

IDS = [f"{letter}{number}" for letter in "fmu" for number in range(4)]
tables = st.fixed_dictionaries({id: st.integers(-40, 0).map(lambda score: score / 4) for id in IDS})
own = st.lists(st.sampled_from(IDS), min_size=1, max_size=9, unique=True).map(" ".join)
prices = st.sampled_from([0.0, 0.3, 1.0, 5.0, 40.0])


def widened(scores: Mapping[str, float], found: str, price: float, *actions: Action) -> SearchResult:
    return agent(Scores(scores, q=found), *actions, fairness=price, groups=by_letter(IDS)).search("q")


@settings(max_examples=80, deadline=None)
@given(tables, own, prices, st.permutations(IDS))
def test_what_is_served_is_never_worse_for_having_searched_again(
    scores: dict[str, float], found: str, price: float, more: list[str]
) -> None:
    actions = finding(" ".join(more[:6])), finding(" ".join(more[6:]), "documents")
    worths = []
    for some in ((), actions[:1], actions):
        made = agent(Scores(scores, q=found), *some, fairness=price, groups=by_letter(IDS))
        served = made.find("q", 4).loop.reranked
        assert served
        worths.append(float(objective(np.array(served.relevance), np.array(served.gap), price)))
    assert worths[0] <= worths[1] + 1e-9
    assert worths[1] <= worths[2] + 1e-9


@settings(max_examples=60, deadline=None)
@given(tables, own, prices, st.integers(-64, 64), st.sampled_from([1 / 8, 1, 16]))
@example(dict.fromkeys(IDS, -3.0), " ".join(IDS[4:]), 1.0, 7, 16)
def test_a_search_is_the_same_whatever_the_zero_and_the_unit_of_the_scores(
    scores: dict[str, float], found: str, price: float, shift: int, scale: float
) -> None:
    action = finding(" ".join(IDS))
    plain = widened(scores, found, price, action)
    moved = widened({id: (score + shift) * scale for id, score in scores.items()}, found, price, action)
    assert moved.ranking.ids == plain.ranking.ids
    assert moved.trace.gap == plain.trace.gap
    assert [(step.source, step.accepted) for step in moved.trace.steps] == [
        (step.source, step.accepted) for step in plain.trace.steps
    ]


class Counted(GroupTable):
    """Groups that count how often they are asked."""

    asked = 0

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        self.asked += 1
        return super().memberships(dimension, ids, topic)

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_]:
        return np.asarray(super().memberships(dimension, ids, topic)[:, 1:].any(axis=1))


class Shown(Dense):
    """An engine that shows many documents at once, and leaves the order of each pool as a re-ranker; it notes both."""

    def __init__(self) -> None:
        super().__init__(LAWYERS, FEW)
        self.calls, self.pools = list[int](), list[tuple[tuple[str, ...], bytes]]()

    def documents(self, ids: Sequence[str]) -> list[Document]:
        self.calls.append(len(ids))
        return [Document(id, self.texts[id]) for id in ids]

    def rerank(self, pool: Pool) -> Ranking:
        self.pools.append((pool.ranking.ids, np.asarray(pool.ranking.scores).tobytes()))
        return pool.ranking.top(pool.n)


def test_a_search_looks_up_the_groups_of_its_list_once_and_shows_all_hits_at_once() -> None:
    groups: Any = Counted.from_rows(
        [(id, {"gender": {"f": "female", "m": "male"}.get(id[0])}) for id in LAWYERS], ["gender"]
    )
    engine = Shown()
    made = agent(engine, finding("f2"), finding("f3", "documents"), groups=groups)
    types = TypeSource(made.collection, {"gender": 0.5}, frozenset({"gender"}))
    weighing = Weighing(None, types, made.settings.types)
    result = replace(made, weighing=weighing, reranker=ChainReranker((engine, ExposureReranker()))).search("law")
    assert len(result.trace.steps) > 1
    assert groups.asked == 4, "those of the served, for the meter, those of the list, and of what each action finds"
    assert engine.calls == [len(result.hits)]
    assert len(engine.pools) == len(set(engine.pools)) > 1


# --- group: the user's query among a group's own documents -------------------------------------------------------


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Collection, Path]:
    """Forty men, and three women whom "law" finds last; half of each letter's documents are of a park."""
    rows = [{"id": f"m{n}", "text": f"law law man number{n}", "gender": "male", "park": n % 2} for n in range(40)]
    text = "law woman court town street number"
    rows += [{"id": f"f{n}", "text": f"{text}{n}", "gender": "female", "park": n % 2} for n in range(3)]
    collection = Collection.from_records(rows, groups="gender", population={"gender": {"female": 0.5, "male": 0.5}})
    index = tmp_path_factory.mktemp("people") / "index"
    build_index(collection, index, engine="bm25")
    return collection, index


def test_a_group_is_searched_for_among_its_own_documents(people: tuple[Collection, Path]) -> None:
    chosen: dict[str, Any] = {"engine": "bm25", "depth": 20, "n": 10, "target": "population"}
    made = open_agent(*people, loop={"actions": "group"}, rerank={"kind": "exposure", "fairness": 16}, **chosen)
    assert made.live
    memo = made.live.now().memo
    before = len(memo.values())
    # What a `where` keeps the engine to is made for that search alone, and its documents alone come in.
    there = made.search("law", where={"park": "1"})
    assert [id for id in there.ranking.ids if id.startswith("f")] == ["f1"]
    assert len(memo.values()) == before
    for _ in range(2):
        result = made.search("law")
        step = step_of(result, "group")
        assert (step.accepted, step.entered) == (True, 3)
        assert step.notes == ("female (gender): 3 of its documents come in",)
        assert {"f0", "f1", "f2"} <= set(result.ranking.ids)
    assert len(memo.values()) == before + 1


# --- documents and neighbors: what is like a group's best --------------------------------------------------------

LISTED = LAWYERS | {f"s{number}": "ship sea" for number in range(40)}
WORDS = Words(LISTED)


class Near:
    """A corpus graph that was written down."""

    def __init__(self, **near: str) -> None:
        self.near = {id: tuple(ids.split()) for id, ids in near.items()}

    def neighbors(self, ids: Sequence[str]) -> list[tuple[str, ...]]:
        return [self.near.get(id, ()) for id in ids]


NEAR: Any = Near(f1="m1 f2", m1="f3")
"""Of a woman found, and of a man, who is only asked where no woman is."""
AROUND: Any = Near(m1="f1 m5", m4="f2")


@pytest.mark.parametrize(
    ("engine", "action", "come"),
    [
        pytest.param(Dense(LISTED, FEW), of_documents(None), "f2 f3 f4", id="vectors"),
        pytest.param(WORDS, of_documents(WORDS), "f2 f3 f4", id="words"),
        pytest.param(Texts(WORDS), of_documents(WORDS), "f2 f3 f4", id="a host's engine, beside an index of words"),
        pytest.param(Texts(WORDS), of_documents(None), "", id="a host's engine alone"),
        pytest.param(Dense(LISTED, FEW[:6]), of_documents(None), "", id="none of the group is found"),
        pytest.param(Dense(LISTED, FEW), near_in(NEAR), "f2", id="neighbors"),
        pytest.param(Dense(LISTED, FEW[:4]), near_in(AROUND), "f1 f2", id="near what is served"),
    ],
)
def test_documents_like_those_of_a_group_come_in(engine: Any, action: Action, come: str) -> None:
    run = agent(engine, action, depth=7).find("law", 4)
    step = run.loop.steps[-1]
    assert run.loop.entered == set(come.split())
    assert (step.source, step.accepted, step.entered) == (action.name, bool(come), len(come.split()))
    assert step.reason == ("" if come else "no other document is found")
    assert sum(id.startswith("f") for id in run.pool.ids) == (
        2 if come else len({"f1"} & set(run.loop.engine_list.ids))
    )  # type: ignore[union-attr]


def test_an_action_that_the_engine_cannot_do_is_not_offered() -> None:
    action = among_group(None, Memo())  # type: ignore[arg-type]
    assert agent(Texts(WORDS), action, depth=7).search("law").trace.stopped == "group: the engine cannot"


# --- judge -------------------------------------------------------------------------------------------------------

WOMEN = {"f1": "law woman sea", "f2": "law woman sea", "f3": "law woman", "f4": "law woman"}
MIXED = Dense({f"m{number}": "law law man" for number in range(1, 6)} | WOMEN)
"""Two women at sea, whom a judge does not find relevant, and two who are."""


def judge(model: ScriptedModel, on_error: Literal["fallback", "fail"] = "fallback") -> Action:
    return judging(ModelJudge(model, Prompts(), batch=2, on_error=on_error))


def failing(error: Exception, after: int = 0, passes: Callable[[str], bool] = lambda text: True) -> ScriptedModel:
    """Judges so many times, then raises."""
    calls, judged = count(), verdicts(passes)

    def answer(request: ModelRequest) -> str:
        if next(calls) >= after:
            raise error
        return judged(request)

    return ScriptedModel(answer)


def test_what_is_judged_irrelevant_loses_half_of_its_relevance() -> None:
    model = ScriptedModel(verdicts(lambda text: "sea" not in text))
    action = judge(model)
    # At a price of 0 no woman is served, so women lack exposure.
    run, alone = (agent(MIXED, *some, fairness=0).find("law", 4) for some in ((action,), ()))
    step = run.loop.steps[-1]
    assert (step.accepted, step.notes) == (True, ("female (gender): 2 of 4 documents judged are relevant",))
    assert step.usage.calls == len(model.requests) == 2
    now, before = run.loop.reranked, alone.loop.reranked
    assert now
    assert before
    lost = {id: before.estimates[id] - weight for id, weight in now.estimates.items()}
    assert lost == pytest.approx({id: 0.5 if "sea" in text else 0.0 for id, text in MIXED.texts.items()})


def test_a_judge_that_fails_judges_what_it_can() -> None:
    used_up = BudgetExceeded("1 call is used up")
    step = step_of(agent(MIXED, judge(failing(used_up, after=1)), fairness=0).search("law"), "judge")
    assert step.notes == (
        "female (gender): 2 of 2 documents judged are relevant",
        "2 of 4 documents were not judged: 1 call is used up",
    )
    overloaded = TransientModelError("overloaded")
    step = step_of(agent(MIXED, judge(failing(overloaded)), fairness=0).search("law"), "judge")
    assert (step.accepted, step.reason) == (False, "no document was judged")
    with pytest.raises(TransientModelError, match="overloaded"):
        agent(MIXED, judge(failing(overloaded), "fail"), fairness=0, on_error="fail").search("law")


# --- filter ------------------------------------------------------------------------------------------------------

COURT = Dense({"f1": "law woman", "f2": "law woman ship", "f3": "law woman sea", "m1": "law man", "m2": "law man"})


def fair(model: ScriptedModel, **options: Any) -> Action:
    return filtering(FairFilter(model, Prompts(), utility=False, workers=1, **options))


@pytest.mark.parametrize(
    ("passes", "removed", "calls"),
    [
        (lambda text: "ship" not in text, {"f2"}, 2),
        (lambda text: True, set(), 1),
        (lambda text: False, {"f1", "f2", "f3", "m1", "m2"}, 2),
    ],
)
def test_what_is_removed_is_refilled_and_what_takes_its_place_is_read(
    passes: Callable[[str], bool], removed: set[str], calls: int
) -> None:
    model = ScriptedModel(verdicts(passes))
    run = agent(COURT, fair(model)).find("law", 4)
    step = run.loop.steps[-1]
    assert (set(run.loop.removed), len(model.requests)) == (removed, calls)
    assert len(run.pool) == min(4, 5 - len(removed))
    assert removed.isdisjoint(run.pool.ids)
    assert sorted(step.notes) == [f"{id} is removed: so it is" for id in sorted(removed)]
    assert step.reason == ("" if removed else "none of 4 documents is removed")
    assert [one.what for one in step.alarms] == [REMOVED] * (len(removed) > 1)


@pytest.mark.parametrize("after", [0, 1])
def test_a_filter_that_is_not_finished_ends_the_search_or_is_an_alarm(after: int) -> None:
    """At once, or when what takes the place of removed documents is to be read."""
    stop, serve = (
        failing(BudgetExceeded("the calls are used up"), after, lambda text: "ship" not in text) for _ in range(2)
    )
    with pytest.raises(BudgetExceeded):
        agent(COURT, fair(stop)).search("law")
    result = agent(COURT, fair(serve, on_budget="serve"), n=4).search("law")
    assert len(result.ranking) == 4
    assert [one.what for one in result.trace.alarms] == [UNFINISHED]
    overloaded = failing(TransientModelError("overloaded"))
    with pytest.raises(TransientModelError):
        agent(COURT, fair(overloaded, on_error="fail")).search("law")
    assert [one.what for one in agent(COURT, fair(overloaded)).search("law").trace.alarms] == [UNFINISHED]


def test_what_a_filter_never_came_to_read_is_an_alarm() -> None:
    engine = Dense({f"m{n}": "law man" for n in range(8)})
    model = ScriptedModel(verdicts(lambda text: False))
    result = agent(engine, fair(model), groups=by_letter([f"m{n}" for n in range(8)]), n=2).search("law")
    assert (len(model.requests), len(result.ranking)) == (3, 2)
    left = [one.detail for one in result.trace.alarms if one.what == UNFINISHED]
    assert left == ["2 of 2 documents were not read in 3 rounds"]


def test_the_filter_is_applied_whatever_fails_before() -> None:
    def fails(*of_search: object) -> Sequence[str]:
        raise TransientModelError("overloaded")

    engine = Dense({"m1": "law man", "m2": "law man", "f1": "law woman"}, reachable=["m1", "m2"])
    model = ScriptedModel(verdicts(lambda text: True))
    actions = widening("keywords", fails), finding("f1"), fair(model)
    result = agent(engine, *actions, n=2).search("law")
    assert [step.source for step in result.trace.steps] == ["query", "keywords", "filter"]
    assert result.trace.stopped == "keywords: overloaded"
    assert len(model.requests) == 1


def test_what_comes_in_after_the_filter_is_read_as_well() -> None:
    model = ScriptedModel(verdicts(lambda text: "ship" not in text))
    texts = {"m1": "law man", "m2": "law man", "f1": "law woman ship", "f2": "law woman ship", "f3": "law woman"}
    engine = Dense(texts, reachable=["m1", "m2", "f1"])
    run = agent(engine, finding("f2"), fair(model), n=2).find("law", 2)
    # f1 is not lacking at first; without it f2 comes in, and goes.
    assert [step.source for step in run.loop.steps] == ["query", "filter", "group", "filter"]
    assert run.loop.removed == {"f1", "f2"}
    assert set(run.pool.ids) == {"m1", "m2"}


# --- what a model is asked about the groups ---------------------------------------------------------------------

FEMALE = Lack(Group("gender", "female"), 0, 0.1, 0.5, 0.4)
AFRICA = Lack(Group("region", "Africa"), 3, 0.0, 0.2, 0.2)


def keywords(**of_number: list[str]) -> str:
    return json.dumps({"groups": [{"number": int(n[1:]), "keywords": some} for n, some in of_number.items()]})


def passages(**of_number: str) -> str:
    return json.dumps({"passages": [{"number": int(n[1:]), "passage": text} for n, text in of_number.items()]})


def asked(says: Says, reply: str, engine: object = None) -> tuple[GroupQueries, ModelRequest]:
    model = ScriptedModel([reply])
    said = Sources(says, model, Prompts()).ask(Query("law", "t1"), [FEMALE, AFRICA], engine)
    (request,) = model.requests
    return said, request


def texts(said: GroupQueries) -> list[str | None]:
    return [query.text if query else None for query in said.queries]


def test_all_groups_that_lack_candidates_are_asked_about_in_one_call() -> None:
    said, request = asked("keywords", keywords(n2=["Nile", "see x.org"], n1=["she", "woman"]))
    assert texts(said) == ["law she woman", "law Nile"]
    assert {query.id for query in said.queries if query} == {"t1"}
    assert (said.words, said.notes) == ((("she", "woman"), ("Nile",)), ())
    assert (said.refused, said.proposals) == (("see x.org: an address",), Proposals(4, 3))
    assert '"number": 2, "dimension": "region", "group": "Africa"' in request.messages[-1][1]
    assert request.narrowed
    each = request.narrowed["groups"]["prefixItems"]
    assert [one["properties"]["number"] for one in each] == [{"type": "integer", "enum": [n]} for n in (1, 2)]


@pytest.mark.parametrize("says", ["keywords", "passages"])
def test_numbers_of_no_group_and_second_ones_are_ignored(says: Says) -> None:
    first, third = ("barrister", "Nobody")
    given = {"n1": first, "n0": third, "n9": third, "n01": third}
    reply = keywords(**{n: [word] for n, word in given.items()}) if says == "keywords" else passages(**given)
    said, _ = asked(says, reply)
    assert texts(said) == ["law barrister" if says == "keywords" else "barrister", None]
    assert said.proposals == Proposals(4, 1)


class Known:
    """An engine of whose documents the words are known."""

    def document_frequency(self, word: str) -> int:
        return int(word in ("barrister", "Nile"))


def test_words_of_the_prompts_keys_of_the_query_and_of_no_document_are_refused_or_dropped_and_counted() -> None:
    said, _ = asked("keywords", keywords(n1=["number", "Group", "gender", "Law", "barrister", "qwertz"]), Known())
    assert (texts(said), said.dropped, said.proposals) == (["law barrister", None], ("qwertz",), Proposals(6, 1))
    of_prompt = [f"{word}: a word of the prompt itself" for word in ("number", "Group", "gender")]
    assert said.refused == (*of_prompt, "Law: the query's own words")


@pytest.mark.parametrize(
    "words", [["female_group_name_1"], ["number", "group1"], ["law"], ["http://x.org", "keyword 2"]]
)
def test_a_reply_that_is_of_no_use_is_requested_once_more_without_the_examples(words: list[str]) -> None:
    model = ScriptedModel([keywords(n1=words), keywords(n1=["barrister"])])
    said = Sources("keywords", model, Prompts("few-shot")).ask(Query("law"), [FEMALE])
    assert texts(said) == ["law barrister"]
    assert (len(said.refused), said.proposals) == (len(words), Proposals(len(words) + 1, 1))
    first, second = ([role for role, _ in request.messages] for request in model.requests)
    assert (first[-3:], second) == (["user", "assistant", "user"], ["system", "user"])
    again = ScriptedModel([keywords(n1=words)] * 2)
    said = Sources("keywords", again, Prompts()).ask(Query("law"), [FEMALE])
    assert (texts(said), said.proposals) == ([None], Proposals(2 * len(words), 0))
    assert "nothing in it is of use" in said.notes[0]


def test_the_answer_of_an_example_is_refused_and_what_is_new_stays() -> None:
    model = ScriptedModel([keywords(n1=["Woman", "her", "she"], n2=["Nile"])])
    said = Sources("keywords", model, Prompts("few-shot")).ask(Query("law"), [FEMALE, AFRICA])
    assert (texts(said), said.refused) == ([None, "law Nile"], ("her, she, woman: the answer of an example",))


@pytest.mark.parametrize("echo", ["Law, law!", "Female (gender)", "..."])
def test_an_echo_of_the_prompt_is_no_passage(echo: str) -> None:
    said, _ = asked("passages", passages(n1=echo, n2="Courts  in\nLagos."))
    assert texts(said) == [None, "Courts in Lagos."]
    assert said.refused == (f"{echo}: an echo of the prompt",)
    assert said.proposals == Proposals(2, 1)


def searched(says: Says, model: ScriptedModel, on_error: Literal["fallback", "fail"] = "fallback") -> SearchResult:
    action = by_model(says, Sources(says, model, Prompts(), on_error=on_error))
    return agent(Dense(LAWYERS, FEW), action, on_error=on_error).search("law")


@pytest.mark.parametrize(("says", "reply"), [("keywords", keywords(n1=["woman"])), ("passages", passages(n1="woman"))])
def test_what_the_model_says_finds_documents_that_the_users_query_orders(
    says: Says, reply: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Dense(LAWYERS).search
    monkeypatch.setattr(Dense, "search", lambda self, query, n: found(query, 7 if query.text == "law" else n))
    result = searched(says, ScriptedModel([reply]))
    step = step_of(result, says)
    assert (step.accepted, step.entered, step.usage.calls) == (True, 3, 1)
    assert step.notes[-1] == "female (gender): 3 of its documents come in"
    # f3 and f4 say more of women, f1 and f2 answer the query best.
    assert {id for id in result.ranking.ids if id.startswith("f")} == {"f1", "f2"}


@pytest.mark.parametrize(("fairness", "calls"), [(0, 1), (16, 0)])
def test_a_model_is_asked_where_a_group_lacks_a_place_and_what_is_not_served_does_not_count(
    fairness: float, calls: int
) -> None:
    """Three of six places are due to women, who have three candidates; if fairness counts nothing they get none."""
    men, women = {f"m{n}": -6.0 - n / 10 for n in range(6)}, {f"f{n}": -6.6 for n in range(4)}
    engine = Scores(men | women, **{"q": "m0 m1 m2 m3 m4 m5 f0 f1 f2", "q she": "f3 f2"})
    model = ScriptedModel([keywords(n1=["she"])])
    action = by_model("keywords", Sources("keywords", model, Prompts()))
    result = agent(engine, action, fairness=fairness, n=6).search("q")
    assert len(model.requests) == calls
    if not calls:
        assert result.trace.stopped == "no group lacks a place"
        return
    step = step_of(result, "keywords")
    assert (step.accepted, step.reason, step.entered) == (False, "none of what comes in would be served", 1)
    assert step.notes == ("female (gender): she", "female (gender): 1 of its documents come in")
    assert result.ranking.ids == tuple(men)


def test_each_word_is_shown_with_the_number_of_documents_that_hold_it() -> None:
    texts = {"a": "judges in court", "b": "a judge", "c": "the sea"}
    records = [{"id": id, "text": text, "gender": "female"} for id, text in texts.items()]
    engine = FairAgent.from_records(records, groups="gender", engine="bm25").retriever
    assert words_in(["judge", "judges court", "sea"], ["a", "b"], engine) == (
        "judge (in 2), judges court (in 1), sea (in 0)"
    )
    assert words_in(["judge"], [], engine) == words_in(["judge"], ["a"], object()) == "judge"


@pytest.mark.parametrize("error", [TransientModelError("overloaded"), ReplyRefused("no"), BudgetExceeded("10 calls")])
def test_a_model_that_fails_leaves_the_list_or_ends_the_search(error: Exception) -> None:
    step = step_of(searched("passages", failing(error)), "passages")
    assert (step.accepted, step.reason) == (False, "the model says nothing usable")
    assert step.notes == (f"the model says nothing of the groups: {error}",)
    with pytest.raises(type(error)):
        searched("passages", failing(error), "fail")
    with pytest.raises(FatalModelError):
        searched("passages", failing(FatalModelError("no key")))


def test_a_passage_of_any_script_begins_with_a_letter() -> None:
    fit, others = ["A river of 1990, it says.", "नमस्ते", "x" * 300], ["1.1.1.1", 'a"b', "a\nb", "x" * 301]
    assert [text for text in fit + others if re.fullmatch(PASSAGE[1:-1], text)] == fit
