"""Cases 165 to 174 of docs/reliability.md: the Prompts page, its templates, its folder and the model that is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from studio_server import Studio, desk_of, running, write_collection

from fairagent.guests.testing import LoopbackServer
from fairagent.guests.testing.server import Request, ServerReply, completion
from fairagent.llm.prompts import shipped_folder

ID = "refine_query"
SHIPPED = (shipped_folder() / f"{ID}.j2").read_text(encoding="utf-8")
EDITED = SHIPPED.replace("[user]\n", "[user]\nNAME WOMEN.\n", 1)
KEYWORDS = '{"keywords": ["judges"]}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of three topics."""
    folder = write_collection(tmp_path_factory.mktemp("studio"))
    topics = [{"id": f"T{n}", "title": title} for n, title in enumerate(("lawyer", "lawyer court", "lawyer case"), 1)]
    (folder / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics), encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, no_variables: None) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "mine"


@pytest.fixture
def studio(folder: Path, own: Path) -> Iterator[Studio]:
    """A studio without a model."""
    with running(desk_of(folder, cache=""), prompts=own) as studio:
        yield studio


def trying(folder: Path, model: LoopbackServer, **more: Any) -> AbstractContextManager[Studio]:
    """A studio whose model that is."""
    named = {"name": "tiny", "base_url": model.url, "attempts": 1, "deadline": 20}
    return running(desk_of(folder, cache="", model=named, profile="offline", **more))


def post(studio: Studio, path: str, status: int = 200, **body: Any) -> Any:
    with studio.client() as client:
        reply = client.post(f"/api/prompts/{path}", json={"id": ID, "template": EDITED, **body})
    assert reply.status_code == status, reply.text
    return reply.json()


def goes_on(studio: Studio) -> bool:
    """Whether a search is answered."""
    with studio.client() as client:
        return client.post("/api/search", json={"query": "lawyer"}).status_code == 200


FAULTY = [
    ("[user]\n", "[user]\n{{ nobody }}\n", "unknown variable 'nobody'", 1),
    ("[user]\n", "[user]\n{% if query %}\n", "Unexpected end of template", None),
    ("version: 4\n", "version: [3\n", "the head is", None),
    ("[user]\n", "[nobody]\n", "no section 'nobody'", 0),
]


@pytest.mark.parametrize(("old", "new", "words", "after"), FAULTY, ids=range(len(FAULTY)))
def test_165_faults_have_their_lines_and_the_draft_is_neither_saved_nor_tried(
    folder: Path, own: Path, old: str, new: str, words: str, after: int | None
) -> None:
    text = SHIPPED.replace(old, new, 1)
    with LoopbackServer([KEYWORDS]) as model, trying(folder, model) as studio:
        found = post(studio, "check", template=text, query="lawyer")
        said = [fault for fault in found["faults"] if words in fault["message"]]
        assert said, found["faults"]
        assert said[0]["line"]
        if after is not None:
            assert said[0]["line"] == SHIPPED.split("\n").index("[user]") + 1 + after
        assert found["messages"] == []
        for path in ("save", "try"):
            error = post(studio, path, 400, template=text, **({"query": "lawyer"} if path == "try" else {}))["error"]
            assert error.startswith("the template has ")
            assert words in error
        assert model.requests == []
        assert goes_on(studio)
    assert not own.exists()


ENDLESS = [
    "{% for i in range(1000000000) %}x{% endfor %}",
    "{% for a in query %}{% for b in query %}{% for c in query %}{% for d in query %}{{ query }}" + "{% endfor %}" * 4,
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    ("{% for a in query %}{% for b in query %}x{% endfor %}{% endfor %}\n[assistant]\nx\n[user]\n") * 300 + "x",
]


@pytest.mark.parametrize("text", ENDLESS, ids=range(len(ENDLESS)))
def test_166_a_template_without_end_is_refused_and_searches_go_on_meanwhile(studio: Studio, text: str) -> None:
    with studio.client() as client:
        client.post("/api/search", json={"query": "lawyer"})
        searched = 0
        waiting = [
            threading.Thread(target=post, args=(studio, "check"), kwargs={"template": f"{SHIPPED}\n{text}\n"})
            for _ in range(3)
        ]
        for one in waiting:
            one.start()
        while any(one.is_alive() for one in waiting):
            assert client.post("/api/search", json={"query": "lawyer"}).status_code == 200
            searched += 1
    assert searched
    found = post(studio, "check", template=f"{SHIPPED}\n{text}\n", query="lawyer " * 280)
    assert found["faults"]
    assert found["messages"] == []


ELSEWHERE = ["../refine_query", "/etc/passwd", "variants/few-shot/refine_query", "", "x" * 101]


@pytest.mark.parametrize("id", ELSEWHERE)
def test_167_an_id_that_leads_elsewhere_is_none(studio: Studio, own: Path, id: str) -> None:
    for path in ("check", "save"):
        said = post(studio, path, 400, id=id)["error"]
        assert "no prompt template" in said or "at most 100" in said
    with studio.client() as client:
        quoted = id.replace("/", "%2f") or "%20"
        reply = client.get(f"/api/prompts/{quoted}")
        # A client makes /api of /api/prompts/.. by itself.
        assert reply.status_code in (400, 404) or reply.url.path == "/docs"
        assert "root:" not in reply.text
    assert not own.exists()
    assert goes_on(studio)


@pytest.mark.parametrize("place", [shipped_folder(), shipped_folder() / "variants" / "few-shot"])
def test_167_a_shipped_template_is_never_written(folder: Path, tmp_path: Path, place: Path) -> None:
    before = (place / f"{ID}.j2").read_bytes()
    (tmp_path / "link").symlink_to(place)
    for named in (place, tmp_path / "link"):
        with running(desk_of(folder, cache=""), prompts=named) as studio, studio.client() as client:
            was = client.get(f"/api/prompts/{ID}").json()["own"]["sha256"]
            assert "shipped templates" in post(studio, "save", 400, was=was)["error"]
    assert (place / f"{ID}.j2").read_bytes() == before


def test_167_a_link_out_of_the_folder_is_not_followed(studio: Studio, own: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.j2"
    other.write_text(SHIPPED, encoding="utf-8")
    own.mkdir()
    (own / f"{ID}.j2").symlink_to(other)
    with studio.client() as client:
        was = client.get(f"/api/prompts/{ID}").json()["own"]["sha256"]
    assert "is a link to another file" in post(studio, "save", 400, was=was)["error"]
    assert other.read_text(encoding="utf-8") == SHIPPED
    assert (own / f"{ID}.j2").is_symlink()


MEANWHILE: dict[str, Callable[[Path], object]] = {
    "changed": lambda path: path.write_text("theirs", encoding="utf-8"),
    "removed": lambda path: path.unlink(),
}


@pytest.mark.parametrize("what", MEANWHILE)
def test_168_a_file_that_changed_meanwhile_stays_as_it_is(studio: Studio, own: Path, what: str) -> None:
    was = post(studio, "save", was="")["own"]["sha256"]
    path = own / f"{ID}.j2"
    MEANWHILE[what](path)
    assert "was changed meanwhile" in post(studio, "save", 409, template=SHIPPED, was=was)["error"]
    assert not path.exists() if what == "removed" else path.read_text(encoding="utf-8") == "theirs"
    with studio.client() as client:
        now = client.get(f"/api/prompts/{ID}").json()["own"]
    assert now["template"] == (None if what == "removed" else "theirs")
    assert post(studio, "save", was=now["sha256"])["own"]["template"] == EDITED
    assert path.read_text(encoding="utf-8") == EDITED


def test_168_of_two_who_save_at_once_one_is_told(studio: Studio, own: Path) -> None:
    was = post(studio, "save", was="")["own"]["sha256"]
    found: list[int] = []

    def save(number: int) -> None:
        with studio.client() as client:
            body = {"id": ID, "template": EDITED.replace("NAME WOMEN.", f"NAME {number}."), "was": was}
            found.append(client.post("/api/prompts/save", json=body).status_code)

    saving = [threading.Thread(target=save, args=(number,)) for number in range(4)]
    for one in saving:
        one.start()
    for one in saving:
        one.join()
    assert sorted(found) == [200, 409, 409, 409]


UNREADABLE: dict[str, Callable[[Path], object]] = {
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "too large": lambda path: path.write_bytes(b"x" * 40_000),
    "a folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_169_a_file_that_is_no_template_is_said_and_never_overwritten(studio: Studio, own: Path, what: str) -> None:
    own.mkdir()
    path = own / f"{ID}.j2"
    UNREADABLE[what](path)
    with studio.client() as client:
        found = client.get(f"/api/prompts/{ID}").json()
        assert client.get("/api/prompts").status_code == 200
    assert "cannot be read as a template" in found["own"]["fault"]
    assert found["versions"][0]["template"] == SHIPPED
    for was in ("", found["own"]["sha256"]):
        assert "cannot be read as a template" in post(studio, "save", 400, was=was)["error"]
    assert path.is_dir() or path.stat().st_size in (3, 40_000)
    assert goes_on(studio)


def test_170_a_disk_that_is_full_leaves_the_old_file(
    studio: Studio, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    was = post(studio, "save", was="")["own"]["sha256"]

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("fairagent.storage.files.os.fsync", full)
        said = post(studio, "save", 503, template=SHIPPED, was=was)["error"]
    assert "cannot be written (No space left on device)" in said
    assert [path.name for path in own.iterdir()] == [f"{ID}.j2"]
    assert (own / f"{ID}.j2").read_text(encoding="utf-8") == EDITED
    assert post(studio, "save", template=SHIPPED, was=was)["own"]["template"] == SHIPPED


def down_after(calls: int) -> Callable[[Request], ServerReply | str]:
    """A model that answers so many calls, and then hangs up."""
    left = iter(range(calls))

    def replied(request: Request) -> ServerReply | str:
        return completion(KEYWORDS) if next(left, None) is not None else ServerReply(hang_up=True)

    return replied


def test_171_a_model_that_is_down_in_the_middle_is_said_where_it_happened(folder: Path) -> None:
    with LoopbackServer(down_after(3)) as model, trying(folder, model) as studio:
        found = post(studio, "try", topics=["T1", "T2", "T3"])
        assert [(one["topic"], one["side"]) for one in found["tried"]] == [
            ("T1", "shipped"),
            ("T1", "edited"),
            ("T2", "shipped"),
            ("T2", "edited"),
        ]
        assert all(one["replies"] == [KEYWORDS] for one in found["tried"][:3])
        assert found["ended"].startswith("the edited template on T2: ")
        assert found["tried"][3]["error"] in found["ended"]
        assert "not-a-real-key" not in found["ended"]
        assert found["of"] == 6
        assert found["gaps"]["topics"] == 1
        assert goes_on(studio)


def test_172_a_budget_that_is_used_up_in_the_middle_is_one_for_all_requests(folder: Path) -> None:
    with LoopbackServer([KEYWORDS]) as model, trying(folder, model, budget={"calls": 3}) as studio:
        found = post(studio, "try", topics=["T1", "T2"])
        assert [("error" in one) for one in found["tried"]] == [False, False, False, True]
        assert "budget" in found["ended"]
        assert len(model.requests) == 3
        again = post(studio, "try", topics=["T1"])
        assert [("error" in one) for one in again["tried"]] == [True]
        assert len(model.requests) == 3
        assert goes_on(studio)


def test_173_a_reply_that_cannot_be_used_is_what_came_of_its_template(folder: Path) -> None:
    def replied(request: Request) -> str:
        return "no JSON here" if "NAME WOMEN." in request["messages"][-1]["content"] else KEYWORDS

    with LoopbackServer(replied) as model, trying(folder, model) as studio:
        found = post(studio, "try", topics=["T1", "T2"])
        assert found["ended"] is None
        assert len(found["tried"]) == 4
        for one in found["tried"]:
            edited = one["side"] == "edited"
            assert set(one["replies"]) == {"no JSON here" if edited else KEYWORDS}
            assert ("invalid reply" in one["end"]) == edited
        # Verdicts are not refined with: the reply itself is the error there.
        text = (shipped_folder() / "utility_filter.j2").read_text(encoding="utf-8")
        found = post(studio, "try", id="utility_filter", template=text, query="lawyer")
        assert found["ended"] is None
        assert all("not the JSON object" in one["error"] and one["replies"] for one in found["tried"])
        assert goes_on(studio)
