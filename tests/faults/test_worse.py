"""Cases 78 to 81 of docs/reliability.md: results that do not serve the user, which must not go unnoticed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from evaluate.made_runs import outcome, run_of
from judges import judge, says

from fairagent.answer.answering import Answerer
from fairagent.answer.context import Contexts
from fairagent.answer.filtering import FairFilter
from fairagent.answer.generators import ExtractiveGenerator
from fairagent.evaluate.outcome import from_value, to_line
from fairagent.evaluate.results import alarms_of, results_text
from fairagent.guests.testing import ScriptedModel
from fairagent.llm.prompts import Prompts
from fairagent.report.page import write_page
from fairagent.search.pipeline import open_agent
from fairagent.types import AnswerResult, Group, Removal
from fairagent.types.common import GROUP_REMOVED, NO_REPLY, REMOVED, WORSE, Alarm

from .conftest import Search

PROMPTS = Prompts()
# Whatever is served shows men and women, and the target asks for men alone: the engine's list for "he" is on target.
UNFAIR = {"target": {"gender": {"male": 1.0, "female": 0.0, "nonbinary": 0.0}}, "n": 3, "engine": "bm25"}
# The shortest "law" first, and nothing that would find its way back.
WRONG_WAY = {"rerank": {"kind": "mmr", "relevance": 0.0}}


def answered(tiny: tuple[Path, Path], model: ScriptedModel, **filtering: object) -> AnswerResult:
    """An answer to "law" whose context is filtered by `model`."""
    made = open_agent(*tiny, n=5, loop="none", rerank="none")
    filter = FairFilter(model, PROMPTS, **filtering)  # type: ignore[arg-type]
    answerer = Answerer(ExtractiveGenerator(), Contexts(filter))
    return replace(made, answerer=lambda: answerer).answer("law")  # type: ignore[arg-type]


def whats(alarms: tuple[Alarm, ...]) -> list[str]:
    return [alarm.what for alarm in alarms]


# --- the engine's own list --------------------------------------------------------------------------------------------


def test_78_a_list_worse_than_the_engines_is_said_to_be(search: Search) -> None:
    """Only a re-ranker without a frontier can come to one: with one the engine's own list is among those it has."""
    engine = search("court he", **UNFAIR, loop="none", rerank="none")
    worse = search("court he", **UNFAIR, **WRONG_WAY)
    assert WORSE in whats(worse.trace.alarms)
    assert worse.ranking.ids != engine.ranking.ids
    assert WORSE not in whats(search("court he", **UNFAIR).trace.alarms)


# --- filters ----------------------------------------------------------------------------------------------------------


def test_79_a_filter_that_removes_most(tiny: tuple[Path, Path]) -> None:
    result = answered(tiny, judge(PROMPTS, says("nothing"), says("nothing")))
    assert result.filtered is not None
    seen = len(result.filtered.verdicts)
    assert Alarm(REMOVED, f"the filter removed {seen} of {seen}") in result.alarms
    half = answered(tiny, judge(PROMPTS, says("court", "bench", "river"), says("nothing")))
    assert REMOVED not in whats(half.alarms)


def test_80_a_group_removed_more_often_in_a_run(tiny: tuple[Path, Path]) -> None:
    """Of 3 women 2 and of 3 men none are removed on each of 10 topics: no single topic says anything, all do."""
    women, men = Group("gender", "female"), Group("gender", "male")
    lost = (Removal(women, 3.0, 2.0), Removal(men, 3.0, 0.0))
    values = {"": {"nDCG@20": 0.5}}
    outcomes = [replace(outcome(f"T{n}", "agent", values), removals=lost) for n in range(10)]
    [line] = alarms_of(run_of(outcomes))
    assert line.startswith("agent: the filter removed 67% of the documents of female (gender), 20 of 30")
    assert alarms_of(run_of(outcomes[:1])) == []
    # One answer alone says so where it is clear enough.
    both = replace(outcomes[0], alarms=(Alarm(GROUP_REMOVED, "said once"),))
    assert alarms_of(run_of([both])) == []


# --- models -----------------------------------------------------------------------------------------------------------


def test_81_a_model_that_is_of_no_use(tiny: tuple[Path, Path]) -> None:
    model = ScriptedModel(lambda request: "What a nice question!")
    result = answered(tiny, model)
    # A request and two corrections for each document.
    assert Alarm(NO_REPLY, f"the model was called {len(model.requests)} times, for nothing") in result.alarms
    assert len(model.requests) == 15
    assert (result.usage.calls, result.usage.unusable) == (15, 15)


def test_81_alarms_are_counted_in_tables_and_on_the_page(tmp_path: Path) -> None:
    values = {"": {"nDCG@20": 0.5}}
    worse, useless = Alarm(WORSE, "less fair"), Alarm(NO_REPLY, "36 calls")
    outcomes = [outcome(f"T{n}", "engine", values) for n in range(4)]
    outcomes += [
        replace(outcome(f"T{n}", "agent", values), alarms=alarms)
        for n, alarms in enumerate([(worse,), (worse, useless), (), (worse, worse)])
    ]
    # Through the journal and back.
    run = run_of([from_value(json.loads(to_line(one))) for one in outcomes])
    said = "agent: no usable reply on 1 of 4; worse than the engine on 3 of 4"
    assert alarms_of(run) == [said]
    assert f"\n! {said}\n" in results_text(run)
    write_page(run, tmp_path / "page.html")
    assert said in (tmp_path / "page.html").read_text(encoding="utf-8")
