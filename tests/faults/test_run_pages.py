"""Cases 162 to 164: runs that the studio is asked for while they are damaged, changed, gone, hostile or huge."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, needs_chromium
from studio.asked_runs import make_runs
from studio_server import HOSTILE, TOKEN, Studio, desk_of, running, write_collection

from fairagent.evaluate.run import read_head, write_head
from fairagent.llm.exchange import Exchange, Transcript, read_transcript
from fairagent.studio import runs as run_pages

NAME = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_collection(tmp_path_factory.mktemp("studio"))


@pytest.fixture(scope="module")
def made(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run; not to be changed."""
    return make_runs(folder, tmp_path_factory.mktemp("asked"), one=0.1)


@pytest.fixture(scope="module")
def served(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Studio, Path]]:
    """A studio and its folder of runs."""
    root = tmp_path_factory.mktemp("served")
    with running(desk_of(folder, cache=""), runs=root) as studio:
        yield studio, root


@pytest.fixture
def place(made: Path, served: tuple[Studio, Path]) -> Path:
    """A run that may be changed, the only one that there is."""
    _, root = served
    for path in root.iterdir():
        path.unlink() if path.is_symlink() else shutil.rmtree(path)
    shutil.copytree(made / "one", root / "one")
    return root / "one"


def ask(served: tuple[Studio, Path], path: str, status: int = 200, **query: Any) -> Any:
    with served[0].client() as client:
        reply = client.get(path, params=query)
    assert reply.status_code == status, reply.text
    return reply.json()


def exchange(place: Path) -> Exchange:
    first = next(read_transcript(place / "transcript.jsonl"))
    assert first
    return first


# Case 162


def test_162_a_damaged_journal_is_said_and_the_server_goes_on(served: tuple[Studio, Path], place: Path) -> None:
    journal = place / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole.replace(b'"score":', b'"Score":', 1))
    assert "journal.jsonl:1" in ask(served, "/api/runs/one", 500)["error"]
    assert "journal.jsonl:1" in ask(served, "/api/compared", 500, left="one", right="one")["error"]
    journal.write_bytes(whole)
    assert ask(served, "/api/runs/one")["found"] == 3


def test_162_a_run_that_goes_on_is_read_as_far_as_it_has_come(served: tuple[Studio, Path], place: Path) -> None:
    """Lines are added between two looks, the last of them torn."""
    journal, transcript = place / "journal.jsonl", place / "transcript.jsonl"
    outcomes, asked = (path.read_bytes().splitlines(keepends=True) for path in (journal, transcript))
    journal.write_bytes(outcomes[0] + outcomes[1][:40])
    transcript.write_bytes(asked[0][:40])
    run = ask(served, "/api/runs/one")
    assert (run["outcomes"], run["planned"], run["exchanges"], run["damaged"]) == (1, 6, 0, 0)
    journal.write_bytes(b"".join(outcomes[:2]))
    transcript.write_bytes(asked[0])
    run = ask(served, "/api/runs/one")
    assert (run["outcomes"], run["exchanges"]) == (2, 1)
    assert len(ask(served, "/api/runs/one/topic", id="T1")["systems"][1]["exchanges"]) == 1


def test_162_what_is_gone_when_it_is_asked_for(
    served: tuple[Studio, Path], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = run_pages.open_run(place)
    (place / "transcript.jsonl").unlink()
    assert opened.topic("T1")["systems"][1]["exchanges"] == []
    assert ask(served, "/api/runs/one")["exchanges"] == 0
    assert "no exchange" in ask(served, "/api/runs/one/exchange", 400, number=1)["error"]
    shutil.rmtree(place)
    assert "no run 'one'" in ask(served, "/api/runs/one", 400)["error"]
    assert ask(served, "/api/runs")["runs"] == []


# Case 163


@pytest.mark.parametrize("name", ["%2e%2e", "..%2fone", "one%2f..%2f..", "%2fetc", "one%00", "link"])
def test_163_no_path_leads_out_of_the_folder(served: tuple[Studio, Path], place: Path, name: str) -> None:
    (place.parent / "link").symlink_to("/etc")
    with served[0].client() as client:
        for path in (f"/api/runs/{name}", f"/api/runs/{name}/topic?id=T1", f"/api/runs/{name}/page"):
            reply = client.get(path)
            assert reply.status_code in (400, 404), path
            assert "root:" not in reply.text


def test_163_a_transcript_that_is_another_file_tells_nothing_of_it(served: tuple[Studio, Path], place: Path) -> None:
    (place / "transcript.jsonl").unlink()
    (place / "transcript.jsonl").symlink_to("/etc/passwd")
    assert "leads out of" in ask(served, "/api/runs/one", 400, text="root")["error"]


@needs_chromium
@pytest.mark.slow
def test_163_hostile_names_of_runs_topics_and_templates_are_text(
    served: tuple[Studio, Path], place: Path, tmp_path: Path
) -> None:
    first = exchange(place)
    with Transcript(place / "transcript.jsonl") as kept:
        kept.add(replace(first, prompt=HOSTILE, model=HOSTILE, error=HOSTILE, finish=HOSTILE, notes=(HOSTILE,)))
    place.rename(place.with_name(NAME))
    head = read_head(place.with_name(NAME))
    # A name has at most 60 characters.
    head["plan"]["experiment"]["name"] = HOSTILE[:60]
    write_head(place.with_name(NAME), head)
    studio = served[0]
    with chromium(tmp_path / "profile") as page:
        page.open(f"{studio.url}/runs#token={TOKEN}")
        page.wait("document.querySelectorAll('#runs tbody tr').length === 1")
        assert page.text("#runs tbody th a") == NAME
        page.run("document.querySelector('#runs a').click()")
        page.wait("document.querySelectorAll('#topics tbody tr').length === 3")
        page.run("document.querySelector('#topics tbody a').click()")
        page.wait("document.querySelectorAll('.exchange').length === 2")
        page.run("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        assert "<img src=x onerror=" in page.text("#panels")
        assert page.run("document.querySelectorAll('main img, main script').length") == 0
        assert page.run("document.title").startswith("<img src=x")
        assert page.said == []


# Case 164


def test_164_what_is_huge_is_cut_where_it_is_said(served: tuple[Studio, Path], place: Path) -> None:
    first, long = exchange(place), "x" * 300_000
    with Transcript(place / "transcript.jsonl") as kept:
        kept.add(replace(first, messages=(("user", long),), text=long + "needle"))
        for _ in range(run_pages.EXCHANGES_SHOWN + 5):
            kept.add(first)
    asked = ask(served, "/api/runs/one/topic", id="T1")["systems"][1]
    assert len(asked["exchanges"]) == run_pages.EXCHANGES_SHOWN
    assert asked["hidden"] == 7
    cut = asked["exchanges"][1]
    assert (len(cut["answer"]["text"]), cut["answer"]["more"]) == (20_000, 280_006)
    assert (len(cut["messages"][0]["text"]), cut["messages"][0]["more"]) == (20_000, 280_000)
    whole = ask(served, "/api/runs/one/exchange", number=cut["number"])
    assert whole["answer"] == {"text": long + "needle", "more": 0}
    (found,) = ask(served, "/api/runs/one", text="needle")["topics"]
    assert found["matches"][0]["text"].endswith("xneedle")
    assert len(found["matches"][0]["text"]) <= 2 * run_pages.EXCERPT + 6
    many = ask(served, "/api/runs/one", text="lawyer")["topics"][0]
    assert len(many["matches"]) == run_pages.MATCHES_SHOWN
    assert many["found"] > run_pages.EXCHANGES_SHOWN


def test_164_of_many_topics_the_first_are_shown_and_the_others_are_found(
    served: tuple[Studio, Path], place: Path
) -> None:
    head = read_head(place)
    head["plan"]["topics"] = [*head["plan"]["topics"], *(f"X{n}" for n in range(2000))]
    write_head(place, head)
    run = ask(served, "/api/runs/one")
    assert (len(run["topics"]), run["found"]) == (run_pages.TOPICS_SHOWN, 2003)
    assert [one["id"] for one in ask(served, "/api/runs/one", text="x1999")["topics"]] == ["X1999"]
