"""The runs of a folder: how far each has come, their pages, and no way out of the folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, needs_chromium
from studio_server import HOSTILE, Studio, desk_of, running
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.evaluate.run import read_head, write_head
from fairagent.storage.files import locked

from .conftest import suits

NAME = "<img src=x onerror=alert(1)>"
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
    half, damaged, hostile = (root / "runs" / name for name in ("half", "damaged", NAME))
    for copy in (half, hostile):
        shutil.copytree(root / "runs" / "first", copy)
    journal = half / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().split(b"\n")[0] + b"\n")
    (half / "report.html").unlink()
    damaged.mkdir()
    (damaged / "run.json").write_text("{", encoding="utf-8")
    (root / "report.html").write_text("outside", encoding="utf-8")
    (root / "runs" / "no-run").mkdir()
    (root / "runs" / "link").symlink_to(root)
    (damaged / "report.html").symlink_to("/etc/passwd")
    head = read_head(hostile)
    head["plan"]["experiment"]["name"] = HOSTILE[:60]
    write_head(hostile, head)
    return root / "runs"


@pytest.fixture(scope="module")
def studio(folder: Path, runs: Path) -> Iterator[Studio]:
    with running(desk_of(folder, cache=""), runs=runs) as studio:
        yield studio


def test_runs_are_listed_the_newest_first(studio: Studio, runs: Path) -> None:
    for age, name in enumerate(("half", "first", "damaged", NAME)):
        os.utime(runs / name / "run.json", (1_700_000_000 - 100 * age,) * 2)
    found = {run["name"]: run for run in studio.get("/api/runs")["runs"]}
    assert list(found) == ["half", "first", "damaged", NAME]
    assert "cannot be read" in found["damaged"]["fault"]
    told = {"title": "first", "kind": "ranking", "running": False, "systems": ["BM25", "agent"], "topics": 1}
    assert found["first"] == told | {"name": "first", "begun": "2023-11-14T22:11:40+00:00", "page": True}
    assert found["half"] == told | {"name": "half", "begun": "2023-11-14T22:13:20+00:00", "page": False}
    with locked(runs / "half"):
        states = {run["name"]: run.get("running") for run in studio.get("/api/runs")["runs"]}
    assert states == {"half": True, "first": False, "damaged": None, NAME: False}


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


@pytest.mark.parametrize(
    "name", ["..", "%2e%2e", "..%2f..", "link", "one%00", "half", "no-run", "damaged", "first%2f..%2f..", "%2fetc"]
)
def test_a_path_outside_the_runs_and_a_run_without_a_page(studio: Studio, name: str) -> None:
    with studio.client() as client:
        reply = client.get(f"/api/runs/{name}/page")
    assert reply.status_code in (400, 404)
    assert "outside" not in reply.text
    assert "root:" not in reply.text


@needs_chromium
def test_the_page_of_runs_and_a_runs_own_in_a_browser(studio: Studio, browser: Browser) -> None:
    page = browser
    page.begin(studio.address)
    page.wait("document.querySelectorAll('#more > *').length > 3")
    with page.quiet(studio.url):
        page.open(f"{studio.url}/runs")
        page.wait("document.querySelectorAll('#runs tbody tr').length === 4")
        rows = [page.text(f"#runs tbody tr:nth-child({place})") for place in (1, 2, 3, 4)]
        half, first, _ = (next(row for row in rows if row.startswith(name)) for name in ("half", "first", NAME))
        assert ("no page yet" in half, "has its page" in first) == (True, True)
        assert page.run("document.querySelectorAll('main img, main script').length") == 0
        suits(page)
    page.open(f"{studio.url}/runs/first")
    page.wait("document.querySelector('#report iframe') !== null && !document.getElementById('state').textContent")
    suits(page)
    # The page around it reaches nothing in it, and it nothing else.
    assert page.run("document.querySelector('#report iframe').contentDocument") is None
    with page.inside("/frame"):
        page.wait("document.querySelector('h1') !== null")
        assert page.run("document.styleSheets.length") == 1
        assert page.run("fetch('/api/about').then((reply) => reply.status, () => 'refused')") == "refused"
        for reached in ("sessionStorage.length", "parent.document.title"):
            assert page.run(f"(() => {{ try {{ return {reached} }} catch {{ return 'refused' }} }})()") == "refused"
