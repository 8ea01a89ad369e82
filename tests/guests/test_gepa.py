"""Wordings by GEPA: a better one is found where there is one, none is invented, and nothing is paid for twice."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trades import GOOD, SETTINGS, improved, is_reflection, keywords, shown_template, write_trades

from fairagent.errors import (
    BudgetExceeded,
    DataError,
    FatalModelError,
    SettingsError,
    UsageError,
)
from fairagent.guests.testing import LoopbackServer
from fairagent.guests.testing.server import ServerReply, error
from fairagent.llm.prompts import Prompts
from fairagent.search.pipeline import build_index, resolve

pytest.importorskip("gepa")

from fairagent.guests.gepa import OptimizePlan, optimize, plan_optimization
from fairagent.guests.gepa.optimizer import HEAD
from fairagent.guests.gepa.texts import sections_of
from fairagent.guests.gepa.trials import JOURNAL

Script = Callable[[dict[str, Any]], ServerReply | str]


@pytest.fixture(scope="module")
def trades(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collection's settings file, with an index beside it."""
    file = write_trades(tmp_path_factory.mktemp("trades"))
    build_index(file, settings=resolve(None, SETTINGS))
    return file


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address at which no server is."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")


@pytest.fixture
def asked(nobody: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Script], LoopbackServer]]:
    """Starts the server that the models of a test ask."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    servers: list[LoopbackServer] = []

    def start(script: Script) -> LoopbackServer:
        servers.append(LoopbackServer(script).__enter__())
        monkeypatch.setenv("OPENAI_BASE_URL", servers[-1].url)
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()


def planned(file: Path, id: str = "refine_query", candidates: int = 2, **overrides: Any) -> OptimizePlan:
    more = {name: overrides.pop(name) for name in ("limit", "seed", "batch", "proposer") if name in overrides}
    settings = resolve(None, {**SETTINGS, "collection": str(file), **overrides})
    return plan_optimization(id, settings, candidates, **more)


def helpful(request: dict[str, Any]) -> str:
    return improved(request) if is_reflection(request) else keywords(request)


def useless(request: dict[str, Any]) -> str:
    if is_reflection(request):
        return f"```\n{shown_template(request).replace('[user]', 'Be kind.' + chr(10) + '[user]', 1)}\n```"
    return keywords(request)


def test_a_better_wording_is_found_and_tested_on_topics_that_it_was_not_chosen_by(trades, tmp_path, asked):
    server = asked(helpful)
    plan = planned(trades)
    assert len(plan.tune) == len(plan.test) == 4
    assert not set(plan.tune) & set(plan.test)
    told: list[tuple[str, int]] = []
    found = optimize(plan, tmp_path / "run", on_candidate=lambda what, number, score: told.append((what, number)))
    assert told[:2] == [("start", 0), ("scored", 1)]
    assert found.start == Prompts()["refine_query"].path.read_text(encoding="utf-8")
    assert [line for line in found.diff("refine_query") if line[:1] in "+-" and line[:3] not in ("+++", "---")] == [
        "-version: 4",
        "+version: 5",
        f"+{GOOD}",
    ]
    start, winner = found.scores
    # Six men of 0 and 1 against 3/13 and 10/13 (half judged, half the population), and three of each.
    assert start == pytest.approx(0.8528, abs=1e-4)
    assert winner == pytest.approx(0.9994, abs=1e-4)
    test = found.test
    assert test is not None
    assert (test.topics, test.wins, test.ties, test.losses) == (4, 4, 0, 0)
    assert test.difference == pytest.approx(winner - start)
    assert test.low <= test.difference <= test.high
    # All 16 tosses of four equal differences: 2 are as extreme.
    assert test.p == pytest.approx(2 / 16)
    assert found.better
    queries = {plan.checked.subject.topics[topic].query for topic in plan.test}
    last = [request for request in server.requests if is_reflection(request)][-1]
    shown = last["messages"][-1]["content"]
    assert not any(f'"query": "{query}"' in shown for query in queries)


def test_what_the_model_is_told_is_the_exposure_of_each_topic_in_words(trades, tmp_path, asked):
    server = asked(helpful)
    optimize(planned(trades, candidates=1), tmp_path / "run")
    (request,) = [one for one in server.requests if is_reflection(one)]
    text = request["messages"][-1]["content"]
    values = json.loads(text[(at := text.index("JSON array:\n") + 12) : text.index("\n", at)])
    assert {key: values[2][key] for key in ("name", "required")} == {"name": "group", "required": True}
    topics = json.loads(text[(at := text.rindex("JSON array:\n") + 12) : text.index("\n", at)])
    assert len(topics) == 3
    for topic in topics:
        for words in (
            '"gender": "female" gets 0% of the attention (0% without the loop), should have 37%',
            "Asked for female (gender): used guild; 1 of 1 proposals usable; gap 0.693 before, 0.693 after: discarded",
            "nDCG@6: 1.000 (1.000 without the loop)",
            "for gender: 0.853 (0.853 without the loop), which is the score",
        ):
            assert words in topic["happened"]


def test_none_is_found_where_none_is_better(trades, tmp_path, asked):
    server = asked(useless)
    found = optimize(planned(trades), tmp_path / "run")
    assert (found.winner, found.test, found.better, found.diff("refine_query")[:0]) == ("", None, False, [])
    assert found.scores[0] == found.scores[1]
    # Nothing was asked about the other half.
    queries = {planned(trades).checked.subject.topics[topic].query for topic in planned(trades).test}
    sent = json.dumps(server.requests)
    assert not any(f'\\\\"query\\\\": \\\\"{query}' in sent for query in queries)


def test_a_wording_with_faults_is_told_so_and_never_used(trades, tmp_path, asked):
    bad = "```\n[system]\nWords, {{ nobody }}.\n[user]\n{{ query|shout }}\n```"
    replies = iter([bad, bad])

    def script(request: dict[str, Any]) -> str:
        return next(replies, improved(request)) if is_reflection(request) else keywords(request)

    server = asked(script)
    found = optimize(planned(trades, candidates=1), tmp_path / "run")
    assert (found.candidates, found.refused, found.better) == (1, 0, True)
    first, second, third = (one["messages"][-1]["content"] for one in server.requests if is_reflection(one))
    assert "cannot be used" not in first
    for note in (second, third):
        assert "line 2, 'Words, {{ nobody }}.': unknown variable 'nobody'" in note
        assert "line 4, '{{ query|shout }}': no filter 'shout'" in note
        assert "required variable 'group' is never used" in note
    # To the end: refused, and no search was made with it.
    server = asked(lambda request: bad if is_reflection(request) else keywords(request))
    found = optimize(planned(trades, candidates=1), tmp_path / "other")
    assert (found.refused, found.winner) == (1, "")
    assert not any("Words, " in one["messages"][0]["content"] for one in server.requests if not is_reflection(one))
    assert sorted(path.name for path in (tmp_path / "other" / "candidates").iterdir()) == [
        path.name for path in (tmp_path / "other" / "candidates").iterdir()
    ]
    assert len(list((tmp_path / "other" / "candidates").iterdir())) == 1


def test_what_ends_it_costs_nothing_twice_and_the_end_is_the_same(trades, tmp_path, asked):
    server = asked(helpful)
    whole = optimize(planned(trades), tmp_path / "whole")
    calls = len(server.requests)

    class Stop(KeyboardInterrupt):
        pass

    def interrupted(what: str, number: int, score: float) -> None:
        if what == "scored":
            raise Stop

    server = asked(helpful)
    with pytest.raises(Stop):
        optimize(planned(trades), tmp_path / "run", on_candidate=interrupted)
    before = len(server.requests)
    assert 0 < before < calls
    again = optimize(planned(trades), tmp_path / "run")
    assert len(server.requests) == calls
    assert (again.winner, again.scores, again.test) == (whole.winner, whole.scores, whole.test)
    # Once more asks nothing.
    assert optimize(planned(trades), tmp_path / "run").test == whole.test
    assert len(server.requests) == calls


def test_a_folder_of_something_else_is_not_gone_on_with(trades, tmp_path, asked):
    asked(useless)
    optimize(planned(trades, candidates=1), tmp_path / "run")
    with pytest.raises(UsageError, match=r"seed: was 0, is 1"):
        optimize(planned(trades, candidates=1, seed=1), tmp_path / "run")
    journal = tmp_path / "run" / JOURNAL
    journal.write_text(journal.read_text().replace("guild", "guile", 1))
    with pytest.raises(DataError, match="journal of the optimization is damaged"):
        optimize(planned(trades, candidates=1), tmp_path / "run")
    (tmp_path / "run" / HEAD).write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        optimize(planned(trades, candidates=1), tmp_path / "run")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds no optimization"):
        optimize(planned(trades), tmp_path / "full")
    assert (tmp_path / "full" / "thesis.txt").read_text() == "mine"


def test_a_budget_ends_it_and_leaves_room_for_the_test(trades, tmp_path, asked):
    numbers = itertools.count()

    def script(request: dict[str, Any]) -> str:
        if not is_reflection(request) or not (number := next(numbers)):
            return helpful(request)
        return shown_template(request).replace("[user]", f"Try number {number}.\n[user]", 1)

    server = asked(script)
    # A search may ask five times: so often for 4 topics of the start, and 8 of the test.
    plan = planned(trades, candidates=40, budget={"calls": 70})
    found = optimize(plan, tmp_path / "run")
    assert "the budget is used up" in found.ended
    assert found.test is not None
    assert len(server.requests) <= 70
    with pytest.raises(UsageError, match=r"budget.calls is 12: .* may take 61 calls"):
        planned(trades, budget={"calls": 12})
    with pytest.raises(UsageError, match=r"budget.calls is 0"):
        planned(trades, budget={"calls": 0})
    with pytest.raises(UsageError, match=r"budget.tokens is 0"):
        planned(trades, budget={"tokens": 0})
    assert planned(trades, budget={"seconds": 10}).budget_of_testing(found.usage, 5.0).seconds == pytest.approx(5)
    with pytest.raises(BudgetExceeded):
        optimize(planned(trades, budget={"tokens": 40}), tmp_path / "tokens")


@pytest.mark.parametrize(
    ("status", "kind"), [(401, FatalModelError), (400, Exception)], ids=["a wrong key", "a refused request"]
)
def test_a_server_that_fails_is_no_bad_score(trades, tmp_path, asked, status, kind):
    asked(lambda request: error(status))
    with pytest.raises(kind):
        optimize(planned(trades), tmp_path / "run")


def test_without_judgments_the_score_is_exposure_alone(tmp_path, asked):
    file = write_trades(tmp_path / "unjudged", judged=False)
    build_index(file, settings=resolve(None, SETTINGS))
    asked(helpful)
    plan = planned(file, candidates=1)
    assert plan.measure.startswith("AWRF")
    found = optimize(plan, tmp_path / "run")
    assert found.better
    assert not any(name.startswith("nDCG") for name in found.test.means)


def test_a_template_of_ones_own_folder_is_what_is_improved_and_its_neighbors_are_used(trades, tmp_path, asked):
    mine = tmp_path / "mine"
    mine.mkdir()
    for id in ("refine_query", "answer"):
        text = Prompts()[id].path.read_text(encoding="utf-8")
        (mine / f"{id}.j2").write_text(text.replace("- is short: one word", "- is brief: one word"), encoding="utf-8")
    asked(helpful)
    found = optimize(planned(trades, candidates=1, prompts=str(mine)), tmp_path / "run")
    assert "- is brief: one word" in found.start
    assert found.better
    for folder in (tmp_path / "run" / "candidates").iterdir():
        assert sorted(path.name for path in folder.iterdir()) == ["answer.j2", "refine_query.j2"]
        Prompts(folder)


def test_what_cannot_be_optimized(trades, tmp_path):
    with pytest.raises(UsageError, match="asks a language model: name one"):
        planned(trades, model={"name": ""})
    with pytest.raises(UsageError, match="no part of a search asks with attribute under these settings"):
        planned(trades, "attribute")
    with pytest.raises(UsageError, match="these ask with refine_query"):
        planned(trades, "choose_action")
    with pytest.raises(UsageError, match="name its settings file"):
        plan_optimization("refine_query", resolve(None, {**SETTINGS, "collection": ""}))
    three = write_trades(tmp_path / "three", topics=3)
    build_index(three, settings=resolve(None, SETTINGS))
    with pytest.raises(UsageError, match="3 topics of the collection count, and 4 are needed"):
        planned(three)
    none = write_trades(tmp_path / "none", topics=0)
    with pytest.raises((DataError, UsageError, SettingsError)):
        planned(none)
    with pytest.raises(UsageError, match="and 4 are needed"):
        planned(trades, limit=2)


def test_a_refining_template_that_the_settings_do_not_use_is_tried_with_its_part(trades):
    plan = planned(trades, "refine_query_grounded", loop="none", refine="feedback")
    assert plan.settings.loop.kind == "fair-qr"
    assert plan.settings.refine.kind == "grounded"
    assert plan.settings.refine.on_error == "fail"


def test_the_estimate_holds(trades, tmp_path, asked):
    server = asked(helpful)
    plan = planned(trades, candidates=3)
    most = sum(one.calls for one in (*plan.of_tuning(), *plan.of_testing()))
    optimize(plan, tmp_path / "run")
    assert len(server.requests) <= most


def test_sections_are_what_stands_between_fences():
    assert sections_of("```jinja\n[user]\nWords.\n```") == "[user]\nWords."
    assert sections_of("```\n[user]\nWords.") == "[user]\nWords."
    assert sections_of("---\nid: x\n---\n[user]\nWords.  \n") == "[user]\nWords."
    assert sections_of("") == ""
