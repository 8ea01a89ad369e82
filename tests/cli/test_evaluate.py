"""`fairagent evaluate`, `estimate` and `report`, as a user calls them."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from .conftest import Call, Small, start

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
RESULTS = ("results.csv", "results.txt", "results.tex", "topics.csv", "runs/agent.txt")


def write(small: Small, more: str = "", name: str = "try.yaml") -> str:
    """An experiment on the small collection, in the current folder."""
    Path(name).write_text(EXPERIMENT.format(collection=small.file, index=small.index) + more, encoding="utf-8")
    return name


def test_evaluate(call: Call, small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = call("evaluate", write(small))
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    folder = Path("runs/small_try")
    for name in (*RESULTS, "run.json", "journal.jsonl", "timings.csv", "report.html"):
        assert (folder / name).stat().st_size > 0
    text = (folder / "results.txt").read_text(encoding="utf-8")
    assert " ".join(text.split()) not in " ".join(result.stdout.split())
    assert "intervals, tests and more tables: --details" in result.stdout
    full = call("evaluate", "try.yaml", "--details")
    assert " ".join(text.split()) in " ".join(full.stdout.split())
    assert max(map(len, full.stdout.splitlines())) <= 80
    assert f"page: {folder / 'report.html'}" in result.stdout
    assert "BM25" in result.stdout
    assert "not judged for gender, 1 topic: T2" in result.stdout
    assert "http" not in (folder / "results.txt").read_text(encoding="utf-8")
    assert "one process did it all" in call("evaluate", "try.yaml", "--new", "--workers", "2").stderr


def test_runs_become_one_table(call: Call, small: Small) -> None:
    assert call("evaluate", write(small), "--run", "one").exit_code == 0
    file = Path(write(small, name="other.yaml"))
    text = file.read_text(encoding="utf-8").replace("small try", "other").replace("nDCG@10, ", "nDCG@5, ")
    file.write_text(text, encoding="utf-8")
    assert call("evaluate", str(file), "--run", "two").exit_code == 0
    joined = call("report", "--join", "one", "two", "--to", "tables")
    assert joined.exit_code == 0, joined.stderr
    assert joined.stdout.splitlines()[1].split()[:2] == ["system", "nDCG@10"]
    assert {path.name for path in Path("tables").iterdir()} == {
        f"joined.{form}" for form in ("txt", "md", "tex", "csv")
    }
    record = json.loads(call("report", "--join", "one", "two", "--json").stdout)
    assert [run["name"] for run in record["runs"]] == ["small try", "other"]
    for arguments, said in (
        (("one", "two"), "are for --join"),
        (("one", "--to", "tables"), "are for --join"),
        (("--join", "one"), "two or more runs"),
        (("--join", "one", "two", "--baseline", "agent"), "--baseline is of one run"),
    ):
        refused = call("report", *arguments)
        assert refused.exit_code == 2
        assert said in refused.stderr


ENDING = """
import os, signal
from fairagent.search.agent import FairAgent
search, left = FairAgent.search, [int(os.environ["AFTER"])]
def ending(self, *given, **options):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.Signals[os.environ["BY"]])
    return search(self, *given, **options)
FairAgent.search = ending
from fairagent.cli import main
main()
"""
"""The program, which a signal reaches in one of its searches."""


@pytest.mark.slow
def test_killed_and_repeated(call: Call, small: Small, tmp_path: Path) -> None:
    """The program itself, with its index and a real kill."""
    file = write(small)
    assert call("evaluate", file, "--run", "whole").exit_code == 0
    arguments = ("evaluate", file, "--run", "killed")
    for after in ("2", "4"):
        process = start(*arguments, "--workers", "1", folder=tmp_path, program=ENDING, AFTER=after, BY="SIGKILL")
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    result = call(*arguments, "--workers", "3")
    assert result.exit_code == 0, result.stderr
    for name in RESULTS:
        assert Path("killed", name).read_bytes() == Path("whole", name).read_bytes()


def test_ctrl_c(call: Call, small: Small, tmp_path: Path) -> None:
    file = write(small, "".join(f"  agent {n}: {{}}\n" for n in range(20)))
    process = start("evaluate", file, "--run", "stopped", folder=tmp_path, program=ENDING, AFTER="4", BY="SIGINT")
    _, said = process.communicate(timeout=250)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "fairagent: interrupted; what is done stays; to go on, repeat the command"
    assert "PARTIAL" in Path("stopped/results.txt").read_text(encoding="utf-8")
    assert call("report", "stopped").exit_code == 0


def test_everything_wrong_is_said_at_once(call: Call, small: Small) -> None:
    result = call("evaluate", write(small, "  odd: {engine: bm26}\nbaseline: none\nmeasure: []\n"))
    assert result.exit_code == 2
    for fault in (
        "engine: no engine of kind 'bm26'; did you mean 'bm25'?",
        "no system 'none'",
        "did you mean 'measures'?",
    ):
        assert fault in result.stderr
    assert not Path("runs").exists()


def test_estimate(call: Call, small: Small) -> None:
    file = write(small, MODEL)
    result = call("estimate", file)
    assert result.exit_code == 0, result.stderr
    rows = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    assert rows["BM25"].split()[-5:] == ["2", "0", "0", "0", "$0.0000"]
    assert " 6 " in rows["agent, llm"]
    assert rows["agent, free"].endswith("price unknown")
    assert "At most 8 calls, price unknown" in result.stdout

    record = json.loads(call("estimate", file, "--json", "--limit-topics", "1").stdout)
    priced = next(row for row in record["systems"] if row["system"] == "agent, llm")
    assert (priced["topics"], priced["calls"], priced["output_tokens"]) == (1, 3, 300)
    assert 3 * 300 < priced["input_tokens"] < 3 * 1500
    assert priced["dollars"] == pytest.approx((priced["input_tokens"] * 1.5 + 300 * 10) / 1e6)
    assert record["dollars"] is None
    assert not Path("runs").exists()


def test_without_a_key_nothing_begins(call: Call, small: Small) -> None:
    result = call("evaluate", write(small, MODEL))
    assert result.exit_code == 3
    assert "set OPENAI_API_KEY" in result.stderr
    assert not Path("runs").exists()


def test_report_writes_what_evaluate_wrote(call: Call, small: Small) -> None:
    assert call("evaluate", write(small)).exit_code == 0
    folder = Path("runs/small_try")
    names = [*RESULTS, "report.html", "timings.csv"]
    before = {name: (folder / name).read_bytes() for name in names}
    for name in names:
        (folder / name).unlink()
    result = call("report", str(folder))
    assert result.exit_code == 0, result.stderr
    assert {name: (folder / name).read_bytes() for name in names} == before

    assert "baseline: agent" in call("report", str(folder), "--baseline", "agent").stdout
    wrong = call("report", str(folder), "--baseline", "agnet")
    assert wrong.exit_code == 2
    assert "no system 'agnet'" in wrong.stderr


def test_a_run_with_a_failed_topic_ends_with_7(call: Call, small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairagent.errors import DataError
    from fairagent.retrieve.base import as_query
    from fairagent.search.agent import FairAgent

    search = FairAgent.search

    def failing(self, query):
        if as_query(query).id == "T2":
            raise DataError("a stored text is damaged")
        return search(self, query)

    monkeypatch.setattr(FairAgent, "search", failing)
    result = call("evaluate", write(small))
    assert result.exit_code == 7
    assert "BM25 failed: a stored text is damaged: 1 topic (T2)" in " ".join(result.stdout.split())
