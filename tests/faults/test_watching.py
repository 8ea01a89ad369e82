"""Cases 237 and 238 of docs/reliability.md: a studio that is watched while its index is replaced; surplus arguments."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from browser import waited
from studio_server import Studio, desk_of, running, write_collection
from typer.testing import CliRunner

from fairagent.cli import app


def number(studio: Studio, name: str) -> float:
    with studio.client() as client:
        lines = client.get("/metrics").text.splitlines()
    return float(next(line.split()[-1] for line in lines if line.split()[0] == name))


def test_237_a_scrape_while_an_index_is_made_and_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_collection(tmp_path / "own")
    with running(desk_of(folder, cache="")) as studio, studio.client() as client:
        assert number(studio, "fairagent_collection_documents") == 24
        live = studio.desk.live
        opening, opened, really = threading.Event(), threading.Event(), live._open

        def slow(*given: object) -> object:
            opening.set()
            opened.wait(30)
            return really(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(live, "_open", slow)
        with (folder / "docs.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"id": "d99", "title": "New", "text": "A lawyer who is new."}\n')
        given = ["--collection", str(folder / "collection.yaml"), "--index", str(folder / "index")]
        made = CliRunner().invoke(app, ["index", *given, "--set", "engine=bm25"])
        assert made.exit_code == 0, made.stderr
        waited(lambda: studio.desk.live._moved())
        asked = threading.Thread(target=lambda: client.post("/api/search", json={"query": "lawyer"}))
        waited(lambda: live._clock() - live._looked >= 0.5)
        asked.start()
        assert opening.wait(30)
        # Whoever searches waits for the new index; whoever watches does not.
        assert number(studio, "fairagent_collection_documents") == 24
        assert number(studio, "fairagent_index_reopened_total") == 0
        assert number(studio, 'fairagent_lane_running{lane="search"}') == 1
        opened.set()
        asked.join(30)
        assert number(studio, "fairagent_collection_documents") == 25
        assert number(studio, "fairagent_index_reopened_total") == 1


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/api/document?id=d01&lenght=5", "lenght"),
        ("GET", "/api/document?id=d01&id=d02", "id"),
        ("POST", "/api/search?fairness=1", "fairness"),
    ],
)
def test_238_an_argument_that_is_not_there(tmp_path: Path, method: str, path: str, name: str) -> None:
    with running(desk_of(write_collection(tmp_path / "own"), cache="")) as studio, studio.client() as client:
        reply = client.request(method, path, **({"json": {"query": "lawyer"}} if method == "POST" else {}))
    assert reply.status_code == 400
    assert name in reply.json()["error"]
