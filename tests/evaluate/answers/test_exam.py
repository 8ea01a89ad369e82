"""Exams end to end: who is asked what, what it is worth, and that whatever ends a run changes nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairagent.errors import UsageError
from fairagent.evaluate.check import check_experiment, estimate
from fairagent.evaluate.findings import mark
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.run import Results
from fairagent.guests.testing import LoopbackServer
from fairagent.report.page import page

from ..conftest import Loopback
from . import school

CALLS = {"alone": 4 + 2, "words": 4 + 2, "filtered": 4 * (1 + 1 + 1) + 2, "first step": 4 * (1 + 1) + 2}
"""Questions and judgments; with the filter also one call for the documents, of which one fails the first step."""


Agreed = tuple[Results, list[dict[str, Any]], Path]


@pytest.fixture(scope="module")
def agreed(tmp_path_factory: pytest.TempPathFactory) -> Agreed:
    """A run of agreement as it should go, what reached the server, and the run's folder."""
    folder = tmp_path_factory.mktemp("agreed")
    with pytest.MonkeyPatch.context() as patch, LoopbackServer(school.model) as server:
        patch.setenv("FAIRAGENT_CACHE", "''")
        patch.setenv("OPENAI_BASE_URL", server.url)
        return school.run(school.write(folder), folder / "run"), server.requests, folder / "run"


@pytest.fixture
def server(loopback: Loopback) -> LoopbackServer:
    return loopback(school.model)


def outcomes(run: Results, system: str) -> list[Outcome]:
    return [outcome for outcome in run.outcomes if outcome.system == system]


def test_agreement_by_hand(agreed: Agreed) -> None:
    run, *_ = agreed
    assert run.dimensions == ("gender", "age")
    assert school.means(run, "alone") == {"": 2 / 4, "gender": pytest.approx(2 / 3), "age": 0}
    for system in ("words", "filtered", "first step"):
        assert school.means(run, system) == {"": 1 / 4, "gender": pytest.approx(1 / 3), "age": 0}
    counted = {row.dimension: row.topics for row in run.comparisons}
    assert counted == {"": 4, "gender": 3, "age": 1}
    assert {system: cost.calls for system, cost in run.costs.items()} == CALLS


def test_accuracy_by_hand(server: LoopbackServer, tmp_path: Path) -> None:
    run = school.run(school.write(tmp_path, "accuracy"), tmp_path / "run")
    assert run.dimensions == ("law", "music")
    for system in run.systems:
        assert school.means(run, system) == {"": 3 / 4, "law": 1, "music": 0}
    graded = [outcome.answer.graded_by for outcome in outcomes(run, "alone") if outcome.answer]
    # Expected words, "I don't know", an alternative; only the last needs a judge.
    assert graded == ["rule", "rule", "rule", "model"]
    asked = next(request for request in server.requests if school.judged(request) and "Some nurse" in str(request))
    assert '"a nurse"' in asked["messages"][1]["content"]


def test_the_judge_is_asked_only_where_the_rule_is_silent(agreed: Agreed) -> None:
    run, requests, _ = agreed
    asked = Counter(
        answer
        for request in requests
        if school.judged(request)
        for answer in school.ALONE.values()
        if json.dumps(answer) in request["messages"][1]["content"]
    )
    assert asked == {"Hard to say.": 4, "Yes and no.": 4}
    for system in run.systems:
        graded = [outcome.answer.graded_by for outcome in outcomes(run, system) if outcome.answer]
        assert graded == ["rule", "model", "model", "rule"]


def test_the_filter_decides_what_is_read(agreed: Agreed) -> None:
    run, requests, _ = agreed
    removed = {
        system: [outcome.answer.removed for outcome in outcomes(run, system) if outcome.answer]
        for system in run.systems
    }
    assert removed["words"] == [()] * 4
    assert removed["filtered"] == [(), (), ("d07",), ("d11",)]
    assert removed["first step"] == [("d03",), ("d03",), ("d07",), ("d11",)]
    assert [hit.id for hit in outcomes(run, "filtered")[2].hits] == ["d04", "d05", "d06", "d07"]
    assert outcomes(run, "alone")[2].hits == ()
    asked = [request["messages"][1]["content"] for request in requests if "painter late" in str(request)]
    contexts = {text.count('"title"') for text in asked if text.endswith("late ?")}
    assert contexts == {0, 3, 4}


def test_lower_agreement_is_better(agreed: Agreed) -> None:
    run, *_ = agreed
    row = next(row for row in run.comparisons if row.system == "words" and not row.dimension)
    assert (row.difference, row.wins, row.ties, row.losses) == (-1 / 4, 1, 3, 0)
    told = page(run)
    assert "the share of answers that agree with a stereotyping sentence; lower is better" in told
    assert "<b>0.2500</b>" in told
    assert "<b>0.5000</b>" not in told
    assert "Hard to say." in told
    assert "No measurable difference: agreement -0.2500" in told
    assert mark(run, type(row)(**{**{f: getattr(row, f) for f in row.__slots__}, "randomization_holm": 0.01})) == "+"


def test_one_judge_for_all(server: LoopbackServer, tmp_path: Path) -> None:
    file = school.write(tmp_path)
    text = file.read_text(encoding="utf-8").replace(".jsonl}", ".jsonl, judge: {name: wise}}")
    file.write_text(
        f"{text}prices: {{wise: {{input: 1, output: 1}}, tiny: {{input: 0, output: 0}}}}\n", encoding="utf-8"
    )
    run = school.run(file, tmp_path / "run")
    assert {request["model"] for request in server.requests if school.judged(request)} == {"wise"}
    assert {request["model"] for request in server.requests if not school.judged(request)} == {"tiny"}
    dollars = run.costs["alone"].cost
    assert dollars is not None
    assert dollars > 0
    file.write_text(file.read_text(encoding="utf-8").replace("wise", "clever"), encoding="utf-8")
    with pytest.raises(UsageError, match=r'questions\.judge\.name: was "wise", is "clever"'):
        school.run(file, tmp_path / "run")


def test_an_estimate_is_not_exceeded(server: LoopbackServer, tmp_path: Path) -> None:
    file = school.write(tmp_path)
    prices = "prices: {tiny: {input: 1, output: 2}}\n"
    file.write_text(file.read_text(encoding="utf-8") + prices, encoding="utf-8")
    expected = {row.system: row for row in estimate(check_experiment(file))}
    spent = school.run(file, tmp_path / "run").costs
    for system, cost in spent.items():
        most = expected[system]
        assert cost.calls <= most.calls
        assert cost.input_tokens <= most.input_tokens
        assert cost.output_tokens <= most.output_tokens
        assert most.dollars == pytest.approx((most.input_tokens + 2 * most.output_tokens) / 1e6)
    assert {system: row.calls for system, row in expected.items()} == {
        "alone": 4 * 2,
        "words": 4 * 2,
        "filtered": 4 * (1 + 1 + 2),
        "first step": 4 * (1 + 2),
    }
