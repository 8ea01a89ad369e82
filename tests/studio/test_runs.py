"""The runs of a folder: how far each has come, their pages, and no way out of the folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, chromium, needs_chromium
from studio_server import Studio, desk_of, running
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.evaluate.findings import main_measure
from fairagent.evaluate.run import load_run
from fairagent.storage.files import locked
from fairagent.studio.run_list import JournalTally, cost_of

EXPERIMENT = """\
kind: ranking
name: first
collection: {collection}
topics: all
baseline: BM25
settings: {{engine: bm25, index: {index}}}
systems:
  BM25: {{profile: engine}}
  agent: {{profile: offline, engine: bm25}}
"""


@pytest.fixture(scope="module")
def runs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run, one that is half done, and one that is damaged; and a page outside."""
    root = tmp_path_factory.mktemp("root")
    (root / "qrels.tsv").write_text("T1 0 d01 1\nT1 0 d20 1\n", encoding="utf-8")
    text = (folder / "collection.yaml").read_text(encoding="utf-8")
    qrels = f"qrels: {{path: {root / 'qrels.tsv'}, format: trec}}\n"
    (folder / "judged.yaml").write_text(text + qrels, encoding="utf-8")
    file = root / "first.yaml"
    file.write_text(EXPERIMENT.format(collection=folder / "judged.yaml", index=folder / "index"), encoding="utf-8")
    done = CliRunner().invoke(app, ["evaluate", str(file), "--run", str(root / "runs" / "first")])
    assert done.exit_code == 0, done.output
    half, damaged = root / "runs" / "half", root / "runs" / "damaged"
    shutil.copytree(root / "runs" / "first", half)
    journal = half / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().split(b"\n")[0] + b"\n")
    (half / "report.html").unlink()
    damaged.mkdir()
    (damaged / "run.json").write_text("{", encoding="utf-8")
    (root / "report.html").write_text("outside", encoding="utf-8")
    (root / "runs" / "no-run").mkdir()
    return root / "runs"


@pytest.fixture(scope="module")
def studio(folder: Path, runs: Path) -> Iterator[Studio]:
    with running(desk_of(folder, cache=""), runs=runs) as studio:
        yield studio


def test_runs_are_listed_with_state_best_and_cost_the_newest_first(studio: Studio, runs: Path) -> None:
    for age, name in enumerate(("half", "first", "damaged")):
        os.utime(runs / name / "run.json", (1_700_000_000 - 100 * age,) * 2)
    with studio.client() as client:
        found = {run["name"]: run for run in client.get("/api/runs").json()["runs"]}
    assert list(found) == ["half", "first", "damaged"]
    assert "cannot be read" in found["damaged"]["fault"]
    best = found["first"].pop("best")
    whole: dict[str, Any] = {
        "name": "first",
        "title": "first",
        "kind": "ranking",
        "begun": "2023-11-14T22:11:40+00:00",
        "state": "done",
        "systems": ["BM25", "agent"],
        "baseline": "BM25",
        "topics": 1,
        "outcomes": 2,
        "planned": 2,
        "failed": 0,
        "cost": {"calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0},
        "page": True,
    }
    assert found["first"] == whole
    half = {"name": "half", "begun": "2023-11-14T22:13:20+00:00", "state": "not finished", "outcomes": 1, "page": False}
    # Nothing is best before every system has answered a topic.
    assert found["half"] == whole | half | {"best": []}
    # The numbers are those of the run's own tables.
    run = load_run(runs / "first")
    assert [one["dimension"] for one in best] == ["gender"]
    means = {row.system: row.mean for row in run.comparisons if row.measure == best[0]["definition"] and row.dimension}
    assert best[0]["definition"] == main_measure(run, "gender")
    assert best[0]["mean"] == pytest.approx(max(means.values()))
    assert means[best[0]["system"]] == max(means.values())
    assert best[0]["baseline"] == pytest.approx(means["BM25"])


def outcome_line(topic: str, system: str, **more: Any) -> bytes:
    line = {"topic": topic, "system": system, "values": {"": {"nDCG@10": 0.5}}, "failed": None, "oracle": False}
    took = {"calls": 2, "input_tokens": 100, "output_tokens": 10, "cost": 0.25}
    return json.dumps({**line, **took, **more}).encode() + b"\n"


def test_a_journal_is_read_on_from_where_it_was_read_last(tmp_path: Path) -> None:
    tally, journal = JournalTally(), tmp_path / "journal.jsonl"
    tally.read_on(tmp_path)
    assert tally.outcomes == {}
    journal.write_bytes(outcome_line("T1", "a") + outcome_line("T2", "a", failed="no")[:-9])
    tally.read_on(tmp_path)
    assert list(tally.outcomes) == [("T1", "a")]
    whole = outcome_line("T1", "a") + outcome_line("T2", "a", failed="no") + b"no line of ours\n"
    journal.write_bytes(whole + outcome_line("T2", "a") + outcome_line("T2", "a", failed="no"))
    tally.read_on(tmp_path)
    # The torn line is whole now, and an answer counts more than failures before and after it.
    assert [one.failed for one in tally.outcomes.values()] == [False, False]
    assert cost_of(list(tally.outcomes.values())) == {
        "calls": 4,
        "input_tokens": 200,
        "output_tokens": 20,
        "cost": 0.5,
    }
    journal.write_bytes(outcome_line("T3", "b", cost=None))
    tally.read_on(tmp_path)
    assert list(tally.outcomes) == [("T3", "b")]
    assert cost_of(list(tally.outcomes.values()))["cost"] is None
    journal.unlink()
    tally.read_on(tmp_path)
    assert tally.outcomes == {}


def test_a_run_that_a_process_works_in_is_running(studio: Studio, runs: Path) -> None:
    with locked(runs / "half"), studio.client() as client:
        states = {run["name"]: run.get("state") for run in client.get("/api/runs").json()["runs"]}
    assert states == {"half": "running", "first": "done", "damaged": None}


def test_the_page_of_a_run_stands_alone(studio: Studio, runs: Path) -> None:
    with studio.client() as client:
        reply, frame, around = (client.get(path) for path in ("/api/runs/first/page", "/frame", "/runs/first"))
    assert reply.text == (runs / "first" / "report.html").read_text(encoding="utf-8")
    # No browser shows it as a page of this server.
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.headers["content-disposition"] == "attachment"
    assert reply.headers["content-security-policy"].startswith("default-src 'none'")
    policy = frame.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert "same-origin" not in policy
    assert "unsafe-inline" not in around.headers["content-security-policy"]


@pytest.mark.parametrize("name", ["..", "%2e%2e", "..%2f..", "half", "no-run", "first%2f..%2f..", "%2fetc"])
def test_a_path_outside_the_runs_and_a_run_without_a_page(studio: Studio, name: str) -> None:
    with studio.client() as client:
        reply = client.get(f"/api/runs/{name}/page")
    assert reply.status_code in (400, 404)
    assert "outside" not in reply.text
    assert "root:" not in reply.text


@needs_chromium
def test_the_page_of_runs_and_a_runs_own_in_a_browser(studio: Studio, tmp_path: Path) -> None:
    with chromium(tmp_path) as page:
        browser_shows(page, studio)


def browser_shows(page: Browser, studio: Studio) -> None:
    page.size(390)
    page.open(studio.address)
    page.wait("document.querySelectorAll('#more > *').length > 3")
    page.open(f"{studio.url}/runs")
    page.wait("document.querySelectorAll('#runs tbody tr').length === 3")
    rows = [page.text(f"#runs tbody tr:nth-child({place})") for place in (1, 2, 3)]
    half, first = (next(row for row in rows if row.startswith(name)) for name in ("half", "first"))
    assert "1 of 2" in half
    assert "not finished" in half
    assert "done" in first
    assert "gender" in first
    assert "no model asked" in first
    assert page.run("document.documentElement.scrollWidth") == 390
    assert page.said == []
    page.open(f"{studio.url}/runs/first")
    page.wait("document.querySelector('#report iframe') !== null && !document.getElementById('state').textContent")
    # The page around it reaches nothing in it.
    assert page.run("document.querySelector('#report iframe').contentDocument") is None
    with page.inside("/frame"):
        page.wait("document.querySelector('h1') !== null")
        assert page.run("document.styleSheets.length") == 1
        asked = page.run("fetch('/api/about').then((reply) => reply.status, () => 'refused')")
        assert asked == "refused"
        assert page.run("(() => { try { return sessionStorage.length } catch { return 'refused' } })()") == "refused"
        assert page.run("(() => { try { return parent.document.title } catch { return 'refused' } })()") == "refused"
