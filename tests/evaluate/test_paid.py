"""What a run's calls of language models took: in its outcomes, tables and run.json, and what it may take."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import life

from evaluate import words
from fairagent.errors import UsageError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.outcome import took
from fairagent.evaluate.run import Results
from fairagent.evaluate.workers import threads
from fairagent.guests.testing import LoopbackServer, ServerReply, error
from fairagent.settings import BudgetSettings, Price
from fairagent.types import Usage


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return life.write(tmp_path_factory.mktemp("paid"))


@pytest.fixture
def server(no_variables: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("FAIRAGENT_CACHE", str(tmp_path / "cache"))
    with LoopbackServer(life.Moody()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def run(file: Path, folder: Path, **environ: str) -> Results:
    checked = check_experiment(file, environ={**os.environ, **environ})
    with threads(2) as workers:
        return run_experiment(checked, folder, workers)


def test_tables_show_what_the_answers_took(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    done = run(file, tmp_path / "run")
    spent = done.costs
    assert (spent["plain"].calls, spent["plain"].cost) == (0, 0.0)
    for system in ("asked", "asked more", "asked warmly"):
        of_system = spent[system]
        assert of_system.calls > 10
        assert (of_system.input_tokens, of_system.output_tokens) == (400 * of_system.calls, 30 * of_system.calls)
        assert of_system.cost == pytest.approx(of_system.calls * (400 * 0.1 + 30 * 0.3) / 1e6)
    rows = {row["system"]: row for row in words.rows(tmp_path / "run" / "results.csv")}
    assert int(rows["asked"]["calls"]) == spent["asked"].calls
    # The first question is the same in two systems: it was paid for once, and costs both the same.
    assert len(server.requests) <= sum(cost.calls for cost in spent.values()) - 10


def test_a_failed_topic_says_what_it_took(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    moody = life.Moody()

    def fails_at_last(request: dict[str, Any]) -> ServerReply:
        # The second question of a topic names what the first one brought.
        first = '"tried_before_do_not_repeat": []' in request["messages"][-1]["content"]
        return moody(request) if first else error(400, "too long")

    server.script = fails_at_last
    # Without a policy that has something else take the model's place.
    strict = file.with_name("strict.yaml")
    text = file.read_text(encoding="utf-8").replace("refine: llm,", "refine: {kind: llm, on_error: fail},")
    strict.write_text(text.replace("{kind: llm, drift: 2}", "{kind: llm, drift: 2, on_error: fail}"), encoding="utf-8")
    failed = [outcome for outcome in run(strict, tmp_path / "run").outcomes if outcome.failed]
    # A first question that was answered, paid for or kept, and a second one that was not.
    assert {(outcome.calls, outcome.input_tokens) for outcome in failed} == {(2, 400)}
    assert all("too long" in str(outcome.failed) for outcome in failed)
    assert not [outcome for outcome in run(file, tmp_path / "kept").outcomes if outcome.failed]


def test_run_json_names_models_and_what_their_servers_lack(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    moody = life.Moody()

    def old(request: dict[str, object]) -> ServerReply:
        form = request.get("response_format")
        if isinstance(form, dict) and form["type"] == "json_schema":
            return error(400, "response_format json_schema is not supported")
        if "temperature" in request:
            return error(400, "Unsupported parameter: 'temperature'", param="temperature")
        return moody(request)

    server.script = old
    run(file, tmp_path / "run")
    provenance = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["provenance"]
    assert list(provenance["models"]) == ["asked", "asked more", "asked warmly"]
    asked = provenance["models"]["asked"]
    assert asked["name"] == "tiny"
    assert asked["server"] == server.url.removeprefix("http://").removesuffix("/v1")
    assert {"no response_format json_schema", "no temperature"} <= set(asked["notes"])


def test_patience_and_budgets_may_change_between_runs(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    run(file, tmp_path / "run")
    expected, asked = life.files(tmp_path / "run"), len(server.requests)
    changed = {"BUDGET": "{calls: 500}", "MODEL__TIMEOUT": "9", "MODEL__ATTEMPTS": "2", "CACHE": "''"}
    run(file, tmp_path / "run", **{f"FAIRAGENT_{name}": value for name, value in changed.items()})
    assert len(server.requests) == asked
    before, after = expected, life.files(tmp_path / "run")
    del before["run.json"], after["run.json"]
    assert after == before
    dear = file.with_name("dear.yaml")
    dear.write_text(file.read_text(encoding="utf-8").replace("input: 0.1", "input: 0.2"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"systems\.asked\.price\.input: was 0\.1, is 0\.2"):
        run(dear, tmp_path / "run")


def test_what_stands_at_the_top_holds_for_all(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    text = file.read_text(encoding="utf-8")
    top = file.with_name("top.yaml")
    top.write_text(f"{text}budget: {{calls: 3, seconds: 60}}\ncache: here\n", encoding="utf-8")
    environ = {**os.environ, "FAIRAGENT_BUDGET": "{tokens: 5}", "FAIRAGENT_PRICES": "{other: {input: 1, output: 1}}"}
    plan = check_experiment(top, environ=environ).plan
    assert plan.budget == BudgetSettings(calls=3, seconds=60)
    assert plan.cache == str(Path("here").absolute())
    assert plan.prices == {"tiny": Price(input=0.1, output=0.3), "other": Price(input=1, output=1)}
    top.write_text(f"{text}cache: ''\n", encoding="utf-8")
    assert check_experiment(top, environ=environ).plan.cache == ""
    plain = check_experiment(file, environ=environ).plan
    assert plain.budget == BudgetSettings(tokens=5)
    assert plain.cache == str(tmp_path / "cache")
    assert {(system.settings.cache, system.settings.budget) for system in plain.systems.values()} == {
        ("", BudgetSettings())
    }
    assert type(plan).model_validate_json(plan.model_dump_json()) == plan


def test_sums_of_dollars_do_not_depend_on_their_order() -> None:
    prices = [0.1 * n / 1e6 for n in (3, 7, 11, 13, 400, 401)]
    sums = set()
    for order in (prices, prices[::-1], prices[3:] + prices[:3]):
        usage = sum((Usage(1, cost=cost) for cost in order[:3]), Usage())
        saved = sum((Usage(1, cost=cost) for cost in order[3:]), Usage())
        sums.add(took(Usage(usage.calls, cost=usage.cost, saved=saved))["cost"])
    assert len(sums) == 1
