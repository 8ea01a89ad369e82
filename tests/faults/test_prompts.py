"""Cases 25 to 27, 165 to 173 and 218: templates that are wrong, hostile or changed; the Prompts page of the studio."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from studio_server import Studio, asking, desk_of, running, write_collection

from fairagent.errors import DataError, PromptError, UsageError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.run import Results
from fairagent.evaluate.workers import threads
from fairagent.guests.testing import LoopbackServer
from fairagent.guests.testing.server import Request, ServerReply, completion
from fairagent.llm.prompts import Prompts, shipped_folder

from . import life
from .harness import failing

EXPERIMENT = """\
name: prompts
collection: collection.yaml
topics: 2
settings: {index: index, engine: bm25, target: uniform, model: {name: tiny}}
systems:
  default: {loop: fair-qr, refine: llm, iterations: 2}
  mine: {loop: fair-qr, refine: llm, iterations: 2, prompts: mine}
"""


@pytest.fixture
def file(server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment whose second system has templates of its own, in a folder beside it; the program runs elsewhere."""
    server.script = ['{"keywords": ["she"]}']
    life.write(tmp_path)
    (tmp_path / "compare.yaml").write_text(EXPERIMENT.replace("index: index", f"index: '{tmp_path / 'index'}'"))
    for name in ("mine", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "compare.yaml"


def template(id: str = "refine_query") -> str:
    return Prompts()[id].path.read_text(encoding="utf-8")


def write(file: Path, text: str, id: str = "refine_query") -> Path:
    path = file.parent / "mine" / f"{id}.j2"
    path.write_text(text, encoding="utf-8")
    return path


def run(file: Path, *, new: bool = False) -> Results:
    with threads(1) as workers:
        return run_experiment(check_experiment(file), file.parent / "run", workers, new)


def test_25_all_faults_of_all_templates_come_with_file_and_line_before_anything_is_paid(
    file: Path, server: LoopbackServer
) -> None:
    shipped = template()
    last = shipped.count("\n")
    refine = write(file, f"{shipped}{{{{ qeury }}}}\n{{% if query %}}\n")
    unclosed = write(file, template("answer") + "{{ query }\n", "answer")
    headless = write(file, "Find keywords.", "utility_filter")
    unused = write(file, template("attribute").replace("{{ answer|tojson }}", ""), "attribute")
    misspelt = write(file, template("fairness_filter"), "fairnes_filter")
    with pytest.raises(PromptError) as caught:
        check_experiment(file)
    found = str(caught.value)
    for words in (
        f"{refine}:{last + 2}: Unexpected end of template",
        f"{unclosed}:{template('answer').count(chr(10)) + 1}: unexpected '}}'",
        f"{headless}:1: no head",
        f"{unused}:5: required variable 'answer' is never used",
        f"{misspelt}: no shipped template 'fairnes_filter'; did you mean 'fairness_filter'?",
    ):
        assert words in found
    assert caught.value.exit_code == 4
    assert server.requests == []


def test_27_an_edited_template_refuses_to_go_on_and_names_its_file(file: Path, server: LoopbackServer) -> None:
    write(file, template().replace("Answer with one", "Reply with one"))
    run(file)
    asked = len(server.requests)
    prompts = {request["messages"][1]["content"].count("Reply with one") for request in server.requests}
    assert prompts == {0, 1}

    write(file, template().replace("Answer with one", "Please reply with one"))
    with pytest.raises((DataError, UsageError)) as caught:
        run(file)
    assert "systems.mine.prompts.refine_query.j2" in str(caught.value)
    assert "systems.default" not in str(caught.value)
    assert "--new" in str(caught.value)
    assert len(server.requests) == asked

    run(file, new=True)
    assert any("Please reply" in request["messages"][1]["content"] for request in server.requests[asked:])


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


ID = "refine_query"
SHIPPED = (shipped_folder() / f"{ID}.j2").read_text(encoding="utf-8")
EDITED = SHIPPED.replace("[user]\n", "[user]\nNAME WOMEN.\n", 1)
KEYWORDS = '{"keywords": ["judges"]}'


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "mine"


@pytest.fixture
def studio(folder: Path, own: Path) -> Iterator[Studio]:
    """A studio without a model."""
    with running(desk_of(folder, cache=""), prompts=own) as studio:
        yield studio


def post(studio: Studio, path: str, status: int = 200, **body: Any) -> Any:
    return studio.post(f"/api/prompts/{path}", {"id": ID, "template": EDITED, **body}, status)


def file_of(studio: Studio) -> Any:
    """What is told of the user's own file."""
    return studio.get(f"/api/prompts/{ID}")["own"]


FAULTY = [
    ("[user]\n", "[user]\n{{ nobody }}\n", "unknown variable 'nobody'"),
    ("[user]\n", "[user]\n{% if query %}\n", "Unexpected end of template"),
    ("version: 4\n", "version: [3\n", "the head is"),
    ("[user]\n", "[nobody]\n", "no section 'nobody'"),
    ("[user]\n", "[user]\n{% for i in range(1000000000) %}x{% endfor %}", ""),
    ("[user]\n", "[user]\n{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", ""),
]


def test_165_and_166_a_template_with_faults_or_without_end_is_neither_saved_nor_tried(folder: Path, own: Path) -> None:
    with LoopbackServer([KEYWORDS]) as model, running(asking(folder, model.url), prompts=own) as studio:
        for old, new, words in FAULTY:
            text = SHIPPED.replace(old, new, 1)
            found = post(studio, "check", template=text, query="lawyer")
            (fault, *_) = [fault for fault in found["faults"] if words in fault["message"]]
            assert fault["line"]
            assert found["messages"] == []
            for path, more in (("save", {}), ("try", {"query": "lawyer"})):
                assert words in post(studio, path, 400, template=text, **more)["error"]
        assert model.requests == []
    assert not own.exists()


def test_167_an_id_that_leads_elsewhere_is_none_and_no_link_is_followed(
    studio: Studio, own: Path, tmp_path: Path
) -> None:
    for id in ("../refine_query", "/etc/passwd", "variants/few-shot/refine_query", "", "x" * 101):
        for path in ("check", "save"):
            post(studio, path, 400, id=id)
        with studio.client() as client:
            reply = client.get(f"/api/prompts/{id.replace('/', '%2f') or '%20'}")
            # A client makes /api of /api/prompts/.. by itself.
            assert reply.status_code in (400, 404) or reply.url.path == "/docs"
            assert "root:" not in reply.text
    assert not own.exists()
    other = tmp_path / "other.j2"
    other.write_text(SHIPPED, encoding="utf-8")
    own.mkdir()
    (own / f"{ID}.j2").symlink_to(other)
    assert "is a link to another file" in post(studio, "save", 400, was=file_of(studio)["sha256"])["error"]
    assert other.read_text(encoding="utf-8") == SHIPPED
    assert (own / f"{ID}.j2").is_symlink()


@pytest.mark.parametrize("place", [shipped_folder(), shipped_folder() / "variants" / "few-shot"])
def test_167_a_shipped_template_is_never_written(folder: Path, tmp_path: Path, place: Path) -> None:
    before = (place / f"{ID}.j2").read_bytes()
    (tmp_path / "link").symlink_to(place)
    for named in (place, tmp_path / "link"):
        with running(desk_of(folder, cache=""), prompts=named) as studio:
            assert "shipped templates" in post(studio, "save", 400, was=file_of(studio)["sha256"])["error"]
    assert (place / f"{ID}.j2").read_bytes() == before


def test_168_and_170_a_file_that_changed_meanwhile_stays_as_it_is_and_so_does_one_on_a_full_disk(
    studio: Studio, own: Path
) -> None:
    was, path = post(studio, "save", was="")["own"]["sha256"], own / f"{ID}.j2"
    with failing(own, "ENOSPC", 1):
        said = post(studio, "save", 503, template=SHIPPED, was=was)["error"]
    assert "cannot be written (No space left on device)" in said
    assert [one.name for one in own.iterdir()] == [path.name]
    assert path.read_text(encoding="utf-8") == EDITED
    for theirs in ("theirs", None):
        path.write_text(theirs, encoding="utf-8") if theirs else path.unlink()
        post(studio, "save", 409, template=SHIPPED, was=was)
        now = file_of(studio)
        assert now["template"] == theirs == (path.read_text(encoding="utf-8") if path.exists() else None)
        was = post(studio, "save", was=now["sha256"])["own"]["sha256"]
        assert path.read_text(encoding="utf-8") == EDITED

    def save(number: int) -> int:
        with studio.client() as client:
            body = {"id": ID, "template": EDITED.replace("NAME WOMEN.", f"NAME {number}."), "was": was}
            return client.post("/api/prompts/save", json=body).status_code

    # Of those who save at once all but one are told.
    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(save, range(4))) == [200, 409, 409, 409]


def test_169_a_file_that_is_no_template_is_never_overwritten(studio: Studio, own: Path) -> None:
    own.mkdir()
    path = own / f"{ID}.j2"
    for content in (b"\xff\xfe\x00", b"x" * 40_000, None):
        path.unlink(missing_ok=True)
        path.mkdir() if content is None else path.write_bytes(content)
        found = studio.get(f"/api/prompts/{ID}")
        assert found["own"]["fault"]
        assert found["versions"][0]["template"] == SHIPPED
        for was in ("", found["own"]["sha256"]):
            post(studio, "save", 400, was=was)
        assert path.is_dir() or path.read_bytes() == content


def test_171_and_172_and_173_what_fails_while_trying(folder: Path) -> None:
    """A model that is down midway, a budget that is used up, and replies of no use."""
    left = iter(range(3))

    def down(request: Request) -> ServerReply | str:
        return completion(KEYWORDS) if next(left, None) is not None else ServerReply(hang_up=True)

    with LoopbackServer(down) as model, running(asking(folder, model.url)) as studio:
        found = post(studio, "try", topics=["T1", "T2", "T3"])
    assert [("error" in one) for one in found["tried"]] == [False, False, False, True]
    assert (found["tried"][3]["topic"], found["tried"][3]["side"], found["of"]) == ("T2", "edited", 6)
    assert found["ended"].startswith("the edited template on T2: ")
    assert "not-a-real-key" not in found["ended"]
    with LoopbackServer([KEYWORDS]) as model, running(asking(folder, model.url, budget={"calls": 3})) as studio:
        found = post(studio, "try", topics=["T1", "T2"])
        assert [("error" in one) for one in found["tried"]] == [False, False, False, True]
        assert "budget" in found["ended"]
        assert [("error" in one) for one in post(studio, "try", topics=["T1"])["tried"]] == [True]
        assert len(model.requests) == 3

    def useless(request: Request) -> str:
        return "no JSON here" if "NAME WOMEN." in request["messages"][-1]["content"] else KEYWORDS

    with LoopbackServer(useless) as model, running(asking(folder, model.url)) as studio:
        found = post(studio, "try", topics=["T1", "T2"])
    assert (found["ended"], len(found["tried"])) == (None, 4)
    for one in found["tried"]:
        edited = one["side"] == "edited"
        assert set(one["replies"]) == {"no JSON here" if edited else KEYWORDS}
        assert ("invalid reply" in one["end"]) == edited
