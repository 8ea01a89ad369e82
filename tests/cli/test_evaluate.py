"""`fairagent evaluate` with `--check-only` and `assert:`, `estimate` and `report`, as a user calls them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from running import start

from fairagent.errors import DataError
from fairagent.retrieve.base import as_query
from fairagent.search.agent import FairAgent

from .conftest import Call, Small

EXPERIMENT = """\
name: small try
collection: {collection}
measures: [nDCG@10, 'nDCG@10*AWRF(unknown=ignore)@10']
settings: {{index: '{index}', engine: bm25, depth: 30, target: estimated, expansion: {{documents: 5, terms: 5}}}}
systems:
  BM25: {{profile: engine}}
  FA*IR: {{profile: engine, rerank: fa-star-ir}}
  agent: {{}}
"""
MODEL = """\
  agent, llm: {loop: fair-qr, refine: llm, iterations: 3, model: {name: gpt-x, max_tokens: 100}}
  agent, free: {loop: fair-qr, refine: llm, iterations: 1, model: {name: gpt-y}}
prices: {gpt-x: {input: 1.5, output: 10}}
"""
MET = "assert: {nDCG@10: '>= 0', FA*IR: {nDCG@10: '>= baseline - 1', gender: {male: '> .1'}}}\n"
MISSED = "assert: {FA*IR: {nDCG@10: '>= 0'}, agent: {nDCG@10: '> 1', gender: {female: '> baseline + 1'}}}\n"
AWAY = Path("runs/small_try")
RESULTS = ("results.csv", "results.txt", "results.tex", "topics.csv", "runs/agent.txt")


def write(small: Small, more: str = "", name: str = "try.yaml") -> str:
    """An experiment on the small collection, in the current folder."""
    Path(name).write_text(EXPERIMENT.format(collection=small.file, index=small.index) + more, encoding="utf-8")
    return name


def test_evaluate(call: Call, small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = call.well("evaluate", write(small, MET))
    assert result.stderr == ""
    assert result.stdout.endswith("4 of 4 thresholds are met\n")
    written = {name: (AWAY / name).read_bytes() for name in (*RESULTS, "timings.csv", "report.html")}
    assert all(written.values())
    text = written["results.txt"].decode()
    assert " ".join(text.split()) not in " ".join(result.stdout.split())
    assert "intervals, tests and more tables: --details" in result.stdout
    full = call("evaluate", "try.yaml", "--details")
    assert " ".join(text.split()) in " ".join(full.stdout.split())
    assert max(map(len, full.stdout.splitlines())) <= 80
    assert f"page: {AWAY / 'report.html'}" in result.stdout
    assert "not judged for gender, 1 topic: T2" in result.stdout
    assert "http" not in text
    # A report writes what was written.
    for name in written:
        (AWAY / name).unlink()
    call.well("report", str(AWAY))
    assert {name: (AWAY / name).read_bytes() for name in written} == written
    assert "baseline: agent" in call("report", str(AWAY), "--baseline", "agent").stdout
    assert "no system 'agnet'" in call.refused(2, "report", str(AWAY), "--baseline", "agnet")
    assert "one process did it all" in call("evaluate", "try.yaml", "--new", "--workers", "2").stderr


def test_runs_become_one_table(call: Call, small: Small) -> None:
    call.well("evaluate", write(small), "--run", "one")
    file = Path(write(small, name="other.yaml"))
    text = file.read_text(encoding="utf-8").replace("small try", "other").replace("nDCG@10, ", "nDCG@5, ")
    file.write_text(text, encoding="utf-8")
    call.well("evaluate", str(file), "--run", "two")
    joined = call.well("report", "--join", "one", "two", "--to", "tables")
    assert joined.stdout.splitlines()[1].split()[:2] == ["system", "nDCG@10"]
    forms = ("csv", "md", "tex", "txt")
    assert sorted(path.name for path in Path("tables").iterdir()) == [f"joined.{form}" for form in forms]
    record = call.record("report", "--join", "one", "two")
    assert [run["name"] for run in record["runs"]] == ["small try", "other"]
    for arguments, said in (
        ("one two", "are for --join"),
        ("one --to tables", "are for --join"),
        ("--join one", "two or more runs"),
        ("--join one two --baseline agent", "--baseline is of one run"),
    ):
        assert said in call.refused(2, "report", *arguments.split())


ENDING = """
import os, signal
from fairagent.search.agent import FairAgent
search, left = FairAgent.search, [4]
def ending(self, *given, **options):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGINT)
    return search(self, *given, **options)
FairAgent.search = ending
from fairagent.cli import main
main()
"""
"""The program, which Ctrl-C reaches in its fourth search."""


def test_ctrl_c(call: Call, small: Small, tmp_path: Path) -> None:
    file = write(small, "".join(f"  agent {n}: {{}}\n" for n in range(20)))
    process = start("evaluate", file, "--run", "stopped", folder=tmp_path, program=ENDING)
    _, said = process.communicate(timeout=250)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "fairagent: interrupted; what is done stays; to go on, repeat the command"
    assert "PARTIAL" in Path("stopped/results.txt").read_text(encoding="utf-8")
    call.well("report", "stopped")


def test_what_is_wrong_is_said_at_once_and_nothing_begins(call: Call, small: Small) -> None:
    wrong = call.refused(2, "evaluate", write(small, "  odd: {engine: bm26}\nbaseline: none\nmeasure: []\n"))
    for fault in ("no engine of kind 'bm26'; did you mean 'bm25'?", "no system 'none'", "did you mean 'measures'?"):
        assert fault in wrong
    keyless = call("evaluate", write(small, MODEL))
    assert (keyless.exit_code, "set OPENAI_API_KEY" in keyless.stderr) == (3, True)
    assert not Path("runs").exists()


def test_estimate(call: Call, small: Small) -> None:
    file = write(small, MODEL)
    result = call.well("estimate", file)
    rows = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    assert rows["BM25"].split()[-5:] == ["2", "0", "0", "0", "$0.0000"]
    assert " 6 " in rows["agent, llm"]
    assert rows["agent, free"].endswith("price unknown")
    assert "At most 8 calls, price unknown" in result.stdout

    record = call.record("estimate", file, "--limit-topics", "1")
    priced = next(row for row in record["systems"] if row["system"] == "agent, llm")
    assert (priced["topics"], priced["calls"], priced["output_tokens"]) == (1, 3, 300)
    assert 3 * 300 < priced["input_tokens"] < 3 * 1500
    assert priced["dollars"] == pytest.approx((priced["input_tokens"] * 1.5 + 300 * 10) / 1e6)
    assert record["dollars"] is None
    assert not Path("runs").exists()


def test_an_experiment_says_before_what_it_may_ask(call: Call, small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its results are JSON: that stands alone on standard output."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    more = "  asking: {loop: fair-qr, refine: llm, iterations: 2, model: {name: gpt-x, attempts: 1}}\n"
    result = call("evaluate", write(small, more + "prices: {gpt-x: {input: 1.5, output: 10}}\n"), "--json")
    assert re.match(r"may ask gpt-x 4 times \([\d,]+ tokens and \$0\.\d+ at most\)\n", result.stderr)
    quiet = call("evaluate", write(small, name="quiet.yaml"), "--run", "quiet", "--json")
    assert quiet.stderr == ""
    json.loads(quiet.stdout)


def test_missed(call: Call, small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    result = call("evaluate", write(small, MISSED), "--details")
    assert result.exit_code == 8
    text = (AWAY / "results.txt").read_text(encoding="utf-8")
    assert "MISSED" in result.stdout
    head, columns, *missed = result.stderr.splitlines()
    assert head == "1 of 3 thresholds are met"
    assert columns.split() == ["system", "dimension", "measure", "or", "group", "value", "bound", "limit", "result"]
    assert [line.split()[:3] for line in missed] == [["agent", "relevance", "nDCG@10"], ["agent", "gender", "female"]]
    assert missed[0].split()[4:] == [">", "1", "1.000000", "MISSED"]
    # In the files the one that is met stands too.
    table = text.partition(head)[2].partition("\n\nnDCG")[0]
    assert re.findall("(?m) (met|MISSED)$", table) == ["met", "MISSED", "MISSED"]
    # Again, with nothing left to run: the same.
    assert call("evaluate", "try.yaml").exit_code == 8
    # A report shows what was missed, and fails nothing.
    shown = call("report", str(AWAY))
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert head in shown.stdout


def test_a_miss_counts_more_than_a_failed_topic(call: Call, small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    search = FairAgent.search

    def failing(self: FairAgent, query: Any) -> Any:
        if as_query(query).id == "T2":
            raise DataError("a stored text is damaged")
        return search(self, query)

    monkeypatch.setattr(FairAgent, "search", failing)
    assert call("evaluate", write(small, MISSED), "--run", "missed").exit_code == 8
    result = call("evaluate", write(small, MET), "--run", "met")
    assert result.exit_code == 7
    assert "4 of 4 thresholds are met" in result.stdout
    assert "BM25 failed: a stored text is damaged: 1 topic (T2)" in " ".join(result.stdout.split())


LACKING = """\
name: some lack
about: A try.
collection: {collection}
measures: [nDCG@10]
settings: {{index: '{index}', target: estimated}}
systems:
  BM25: {{profile: engine}}
  asks: {{profile: fair-qr, model: {{name: gpt-x}}}}
  asks too: {{profile: fair-qr, model: {{name: gpt-x}}, iterations: 2}}
  sees: {{profile: engine, engine: {{kind: dense, encoder: nowhere/no-such-model}}}}
prices: {{gpt-x: {{input: 1.5, output: 10}}}}
"""
KEY = "no key for the language model at api.openai.com: set OPENAI_API_KEY"
WEIGHTS = "no embedding model 'nowhere/no-such-model' on this machine"


@pytest.fixture
def lacking(small: Small, no_variables: None) -> Path:
    path = Path("try.yaml")
    path.write_text(LACKING.format(collection=small.file, index=small.index), encoding="utf-8")
    return path


def lacks_of(text: str) -> dict[str, str]:
    """System -> what the table says of it."""
    table = text.partition("lacks\n")[2].partition("\n\n")[0]
    return {line[:8].strip(): line[8:].strip() for line in table.splitlines()}


def test_what_each_system_lacks(call: Call, lacking: Path) -> None:
    pytest.importorskip("sentence_transformers")
    before = sorted(Path().rglob("*"))
    result = call("evaluate", str(lacking), "--check-only")
    assert result.exit_code == 3
    assert result.stderr == ""
    assert "some lack\nA try.\n" in result.stdout
    assert "1 of 4 systems can run here; nothing was run" in result.stdout
    found = lacks_of(result.stdout)
    assert found["BM25"] == "nothing"
    assert found["asks"] == found["asks too"] != found["sees"]
    for system, said in (("asks", KEY), ("sees", WEIGHTS)):
        assert f"\n{found[system]} {said}" in result.stdout
    # Said once, whoever lacks it.
    assert result.stdout.count(KEY) == result.stdout.count(WEIGHTS) == 1
    assert "what language models would be called:" in result.stdout
    assert "Corrections of invalid replies" in result.stdout
    assert sorted(Path().rglob("*")) == before
    result = call("evaluate", str(lacking), "--check-only", "--json")
    record = json.loads(result.stdout)
    assert result.exit_code == 3
    assert [one["ready"] for one in record["systems"]] == [True, False, False, False]
    assert record["systems"][1]["lacks"] == record["systems"][2]["lacks"]
    assert [record["lacks"][number - 1][: len(WEIGHTS)] for number in record["systems"][3]["lacks"]] == [WEIGHTS]
    # Two topics, five iterations and two.
    assert [row["calls"] for row in record["costs"]] == [0, 10, 4, 0]
    lacking.write_text(re.sub("  sees: .*\n", "", lacking.read_text(encoding="utf-8")), encoding="utf-8")
    estimated = call.record("estimate", str(lacking))
    assert record["dollars"] == pytest.approx(estimated["dollars"])
    assert record["dollars"] > 0


def test_a_wrong_setting_is_its_systems_own(call: Call, lacking: Path) -> None:
    lacking.write_text(lacking.read_text(encoding="utf-8").replace("iterations: 2", "iteration: 2"), encoding="utf-8")
    result = call("evaluate", str(lacking), "--check-only")
    assert result.exit_code == 2
    found = lacks_of(result.stdout)
    assert found["BM25"] == "nothing"
    assert "iteration: unknown key" in result.stdout
    assert found["asks too"] not in ("nothing", found["asks"])


def test_shared_settings_that_a_profile_overrides_are_shown(call: Call, lacking: Path) -> None:
    text = lacking.read_text(encoding="utf-8").partition("  asks:")[0]
    shared = "target: estimated, iterations: 2, filter: none, context: {documents: 9, tokens: 900}"
    text = text.replace("target: estimated", shared) + "  filtered: {profile: fair-filter, target: estimated}\n"
    text += "  own: {profile: fair-filter, filter: none, context: {documents: 7}}\n"
    lacking.write_text(text, encoding="utf-8")
    result = call("evaluate", str(lacking), "--check-only")
    said = result.stdout.partition("shared settings that a system's profile overrides:\n\n")[2].splitlines()
    # `own` says both itself, and BM25's profile sets what the shared settings say.
    assert said[:2] == ["filtered: filter: fair, not none; context.documents: 3, not 9", ""]
    record = call.record("evaluate", str(lacking), "--check-only")
    assert record["overridden"] == {"filtered": ["filter: fair, not none", "context.documents: 3, not 9"]}
    # A system that names another kind has none of the keys that are shared.
    text = text.replace(shared, "target: estimated, rerank: {fairness: 2}") + "  z: {rerank: fused}\n"
    lacking.write_text(text, encoding="utf-8")
    overridden = call.record("evaluate", str(lacking), "--check-only")["overridden"]
    assert ("BM25" in overridden, "z" in overridden) == (True, False)
