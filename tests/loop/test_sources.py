"""What a model is asked about the groups, what becomes of its reply, and of the search by it."""

from __future__ import annotations

import json
import re
from typing import Literal

import pytest
from loop_engine import FEW, LAWYERS, Dense, agent, step_of

from fairagent.errors import BudgetExceeded, ReplyRefused, TransientModelError
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.search.loop.asking import PASSAGE, GroupQueries, Says, Sources
from fairagent.search.loop.base import Lack
from fairagent.search.loop.widen import by_model
from fairagent.types import Group, Proposals, Query, SearchResult

FEMALE = Lack(Group("gender", "female"), 0, 0.1, 0.5, 0.4)
AFRICA = Lack(Group("region", "Africa"), 3, 0.0, 0.2, 0.2)


def keywords(**of_number: list[str]) -> str:
    return json.dumps({"groups": [{"number": int(n[1:]), "keywords": some} for n, some in of_number.items()]})


def passages(**of_number: str) -> str:
    return json.dumps({"passages": [{"number": int(n[1:]), "passage": text} for n, text in of_number.items()]})


def asked(says: Says, reply: str) -> tuple[GroupQueries, ModelRequest]:
    model = ScriptedModel([reply])
    said = Sources(says, model, Prompts()).ask(Query("law", "t1"), [FEMALE, AFRICA])
    (request,) = model.requests
    return said, request


def texts(said: GroupQueries) -> list[str | None]:
    return [query.text if query else None for query in said.queries]


def test_all_groups_that_lack_candidates_are_asked_about_in_one_call() -> None:
    said, request = asked("keywords", keywords(n2=["Nile", "see x.org"], n1=["she", "woman"]))
    assert texts(said) == ["law she woman", "law Nile"]
    assert {query.id for query in said.queries if query} == {"t1"}
    assert said.notes == ("Africa (region): law Nile", "female (gender): law she woman")
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


def test_words_of_the_prompts_keys_and_of_the_query_are_refused_and_counted() -> None:
    said, _ = asked("keywords", keywords(n1=["number", "Group", "gender", "Law", "barrister"]))
    assert (texts(said), said.proposals) == (["law barrister", None], Proposals(5, 1))
    of_prompt = [f"{word}: a word of the prompt itself" for word in ("number", "Group", "gender")]
    assert said.refused == (*of_prompt, "Law: the query's own words")


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


@pytest.mark.parametrize("error", [TransientModelError("overloaded"), ReplyRefused("no"), BudgetExceeded("10 calls")])
def test_a_model_that_fails_leaves_the_list_or_ends_the_search(error: Exception) -> None:
    def fails(request: ModelRequest) -> str:
        raise error

    step = step_of(searched("passages", ScriptedModel(fails)), "passages")
    assert (step.accepted, step.reason) == (False, "the model says nothing usable")
    assert step.notes == (f"the model says nothing of the groups: {error}",)
    with pytest.raises(type(error)):
        searched("passages", ScriptedModel(fails), "fail")


@pytest.mark.parametrize(
    ("text", "fits"),
    [("A river of 1990, it says.", True), ("नमस्ते", True), ("x" * 300, True)]
    + [(text, False) for text in ("1.1.1.1", 'a"b', "a\nb", "x" * 301)],
)
def test_a_passage_of_any_script_begins_with_a_letter(text: str, fits: bool) -> None:
    assert bool(re.fullmatch(PASSAGE[1:-1], text)) == fits
