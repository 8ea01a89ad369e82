"""Cases 28 to 35 and 78 to 81: wrong settings, odd data, and results that do not serve the user, from end to end.

The tables of all variants are in tests/collection and tests/measures.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluate import words
from evaluate.made_runs import outcome, run_of
from judges import judge, says

from fairagent import (
    BackendUnavailable,
    DataError,
    FairAgent,
    Query,
    SettingsError,
    build_index,
    load_collection,
    open_agent,
)
from fairagent.answer.answering import Answerer, Contexts
from fairagent.answer.filtering import FairFilter
from fairagent.answer.generators import ExtractiveGenerator
from fairagent.errors import FairAgentError, IndexMismatch, UsageError
from fairagent.evaluate.outcome import from_value, to_line
from fairagent.evaluate.results import alarms_of, results_text
from fairagent.evaluate.run import Results
from fairagent.guests.testing import ScriptedModel
from fairagent.llm.prompts import Prompts
from fairagent.measures import awrf
from fairagent.report.page import write_page
from fairagent.types import AnswerResult, Group, Removal
from fairagent.types.common import NO_REPLY, REMOVED, WORSE, Alarm

from .conftest import Search
from .tiny import write

pytestmark = pytest.mark.usefixtures("no_variables")

WRONG: list[tuple[dict[str, Any], type[FairAgentError], str]] = [
    # dimensions and targets
    ({"dimensions": ["age"]}, UsageError, "no dimension 'age'; there are: gender"),
    ({"target": "populaton"}, SettingsError, "did you mean 'population'?"),
    ({"target": {"gender": "populaton"}}, SettingsError, "target.gender: no target of kind 'populaton'"),
    ({"target": {"gender": {"female": 0.5, "male": 0.4}}}, DataError, "the shares add up to 0.9, expected 1"),
    ({"target": {"gender": {"female": 0.5, "mail": 0.5}}}, DataError, "no group 'mail'"),
    ({"target": {"female": 0.5, "male": 0.5}}, SettingsError, "{gender: {female: 0.5, male: 0.5}}"),
    ({"target": "qrels"}, DataError, "no target 'qrels'"),
    # numbers, names, engines and models
    ({"n": -1, "iteration": 3, "expansion": {"weight": 1.5}, "refine": "lmm"}, SettingsError, "4 errors"),
    ({"discount": "log3"}, UsageError, "log2-max2"),
    ({"refine": {"term": 3}}, SettingsError, "refine.term: unknown key of refiner 'feedback'; did you mean 'terms'?"),
    ({"settings": "nowhere.yaml"}, SettingsError, "nowhere.yaml: no such file"),
    ({"analyzer": "german"}, IndexMismatch, "analyzer: index english, now german"),
    ({"loop": "fair-qr", "refine": "llm"}, BackendUnavailable, "set OPENAI_API_KEY"),
]


def test_28_wrong_settings(search: Search, tmp_path: Path) -> None:
    for settings, error, message in WRONG:
        with pytest.raises(error, match=re.escape(message)):
            search(**settings)
    for collection, error in (("", UsageError), ("nowhere.yaml", SettingsError), (".", SettingsError)):
        with pytest.raises(error):
            open_agent(collection)
    file = write(tmp_path / "files", "name: plain\ndocuments: {path: docs.jsonl}\n")
    with pytest.raises(SettingsError, match="nothing to be fair to"):
        open_agent(file)
    with pytest.raises(SettingsError, match=r"^rerank: fa-star-ir looks at groups"):
        open_agent(file, profile="engine", rerank="fa-star-ir")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    """The folder and the run of an experiment whose judgments name a topic that is not there."""
    folder = tmp_path_factory.mktemp("experiment")
    file = words.write(folder)
    with (folder / "qrels.tsv").open("a", encoding="utf-8") as qrels:
        qrels.write("T77 0 d00 1\n")
    return folder, words.run(file, folder / "run")


def test_29_topics_that_cannot_be_judged_are_named_and_left_out_for_all(experiment: tuple[Path, Results]) -> None:
    folder, run = experiment
    assert run.excluded == {"T19": "no relevant document"}
    assert {row.topics for row in run.comparisons if not row.dimension} == {19}
    assert all(math.isfinite(row.mean) for row in run.comparisons)
    text = results_text(run)
    assert "T19" in text
    assert "nan" not in text.lower()
    assert any("T77" in note for note in load_collection(folder / "collection.yaml").notes)


@pytest.mark.parametrize(
    "lines",
    [
        "m1\tmale\nf1\tfemale\n",  # a document without a line
        "m1\tmale\nm2\t\nm3\t\nf1\tfemale\nf2\t\nu1\t\n",
        "m1\tmale|female\nm2\tmale\nm3\tmale\nf1\tfemale\nf2\tfemale\n",
        "m1\tmale\nx9\tfemale\n",  # a document that is not there
    ],
)
def test_30_group_labels(tmp_path: Path, lines: str) -> None:
    file = write(tmp_path / "files")
    groups = tmp_path / "files" / "groups.tsv"
    groups.write_text(f"id\tgender\n{lines}", encoding="utf-8")
    collection = load_collection(file)
    rows = collection.groups.memberships("gender", ["m1", "u1"])
    assert rows.sum(axis=1) == pytest.approx([1, 1])
    assert rows[1, 0] == 1
    build_index(collection, tmp_path / "index", engine="bm25")
    trace = open_agent(collection, tmp_path / "index", engine="bm25", n=3, target="population").search("law").trace
    assert 0 <= trace.gap < math.inf
    assert trace.exposures[0].labels[-1] == "nonbinary"
    groups.write_text("id\tgender\nm1\tmale\nm1\tfemale\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"groups\.tsv:3: .*m1"):
        load_collection(file)


def test_30_and_32_groups_that_are_aimed_at_in_vain(search: Search) -> None:
    """Without documents, without a share, without labels, without judgments."""
    (exposure,) = search(target="population").trace.exposures
    assert exposure.labels == ("female", "male", "nonbinary")
    assert (exposure.shares[2], exposure.target[2]) == (0.0, 0.1)
    result = search(target={"gender": {"female": 0.1, "male": 0.1, "nonbinary": 0.8}}, loop="fair-qr")
    assert result.trace.steps[-1].aim == Group("gender", "nonbinary")
    assert re.fullmatch(r"no document of nonbinary \(gender\) among the \d retrieved", result.trace.stopped)
    assert len(result.ranking) == 3
    result = search(target={"gender": {"female": 1, "male": 0, "nonbinary": 0}})
    assert {step.aim for step in result.trace.steps} <= {None, Group("gender", "female")}
    result = search("river", loop="fair-qr", target="population")
    assert (result.ranking.ids, result.trace.gap) == (("u1",), pytest.approx(math.log(2)))
    assert result.trace.exposures[0].unknown == 1.0
    trace = search("river", expansion={"documents": 0}, target="estimated").trace
    assert trace.targets == ("estimated (nothing labeled was ranked: corpus)",)
    assert trace.exposures[0].target.tolist() == pytest.approx([0.4, 0.6, 0.0])
    for topic in ("T9", "T2"):  # unknown to the judgments; its only relevant document has no label
        with pytest.raises(DataError, match=f"topic '{topic}': no relevant document has a label"):
            search(Query("law", topic), target="qrels")


def test_31_and_32_odd_rankings_and_distributions(search: Search) -> None:
    for membership in (np.zeros((0, 3)), np.array([[0, np.nan, 1]]), np.array([[0, np.inf, 1]])):
        with pytest.raises(DataError):
            awrf(membership, np.array([0.0, 0.5, 0.5]), 20)
    assert search("zzzz").ranking.ids == ()
    everyone = [{"id": f"d{n}", "text": "law", "gender": "female"} for n in range(4)]
    trace = FairAgent.from_records(everyone, groups="gender", target="corpus", n=3).search("law").trace
    assert (trace.gap, trace.stopped, trace.usage.calls) == (0, "no group lacks candidates", 0)


def test_35_any_query_works_or_finds_nothing(search: Search) -> None:
    for query in ("", "   \n", "the of and", 'AND "( OR NOT ~* [a TO b]', "\u6cd5", "\U0001f600", "y" * 10_000):
        result = search(query)
        assert (result.ranking.ids, result.hits, result.trace.gap) == ((), (), pytest.approx(math.log(2))), query
        assert result.trace.stopped == "the query retrieves nothing"
    odd = (
        "law +court -judge",
        "(law OR court) AND NOT river~2",
        "law\x00court",
        "\u202elaw court",
        "LAW",
        "law " * 2500,
    )
    for query in odd:
        result = search(query)
        assert (len(result.ranking), result.query.text, math.isfinite(result.trace.gap)) == (3, query, True)
    with pytest.raises(DataError, match="half of a surrogate pair"):
        search("law \ud83d")


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


def test_78_a_list_worse_than_the_engines_is_said_to_be(search: Search) -> None:
    """Only a re-ranker without a frontier can come to one: with one the engine's own list is among those it has."""
    engine = search("court he", **UNFAIR, loop="none", rerank="none")
    worse = search("court he", **UNFAIR, **WRONG_WAY)
    assert WORSE in [alarm.what for alarm in worse.trace.alarms]
    assert worse.ranking.ids != engine.ranking.ids


def test_79_a_filter_that_removes_most(tiny: tuple[Path, Path]) -> None:
    result = answered(tiny, judge(PROMPTS, says("nothing"), says("nothing")))
    assert result.filtered is not None
    seen = len(result.filtered.verdicts)
    assert Alarm(REMOVED, f"the filter removed {seen} of {seen}") in result.alarms
    half = answered(tiny, judge(PROMPTS, says("court", "bench", "river"), says("nothing")))
    assert REMOVED not in [alarm.what for alarm in half.alarms]


def test_81_a_model_that_is_of_no_use(tiny: tuple[Path, Path]) -> None:
    model = ScriptedModel(lambda request: "What a nice question!")
    result = answered(tiny, model, batch=1)
    # A request for each document, and one correction in the whole search.
    assert Alarm(NO_REPLY, f"the model was called {len(model.requests)} times, for nothing") in result.alarms
    assert len(model.requests) == 6
    assert (result.usage.calls, result.usage.unusable) == (6, 6)


def test_80_and_81_alarms_are_counted_in_tables_and_on_the_page(tmp_path: Path) -> None:
    """Of 3 women 2 and of 3 men none are removed on each of 10 topics: no single topic says anything, all do."""
    lost = (Removal(Group("gender", "female"), 3.0, 2.0), Removal(Group("gender", "male"), 3.0, 0.0))
    values = {"": {"nDCG(discount=log2-max2)@20": 0.5}}
    outcomes = [replace(outcome(f"T{n}", "agent", values), removals=lost) for n in range(10)]
    [line] = alarms_of(run_of(outcomes))
    assert line.startswith("agent: the filter removed 67% of the documents of female (gender), 20 of 30")
    assert alarms_of(run_of(outcomes[:1])) == []
    worse, useless = Alarm(WORSE, "less fair"), Alarm(NO_REPLY, "36 calls")
    outcomes = [outcome(f"T{n}", "engine", values) for n in range(4)]
    outcomes += [
        replace(outcome(f"T{n}", "agent", values), alarms=alarms)
        for n, alarms in enumerate([(worse,), (worse, useless), (), (worse, worse)])
    ]
    # Through the journal and back.
    run = run_of([from_value(json.loads(to_line(one))) for one in outcomes])
    counted = "agent: no usable reply on 1 of 4; worse than the engine on 3 of 4"
    assert alarms_of(run) == [counted]
    assert f"\n! {counted}\n" in results_text(run)
    write_page(run, tmp_path / "page.html")
    assert counted in (tmp_path / "page.html").read_text(encoding="utf-8")
