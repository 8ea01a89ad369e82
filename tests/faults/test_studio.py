"""Cases 148 to 154, 198 to 204, 237 and 238: who leaves the studio or mcp, is silent, slow or wrong; how both end."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import chromium, needs_chromium, waited
from llm.hostile import LEFT, HostileServer, answer
from studio_server import TOKEN, Studio, asking, desk_of, running, write_collection
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.guests.testing import LoopbackServer
from fairagent.guests.testing.server import ServerReply, streamed
from fairagent.storage.threads import sleep
from fairagent.studio.lanes import Lanes
from fairagent.studio.server import User, hash_of

QUERY = {"query": "lawyer"}
LONG = 60


@pytest.fixture
def silent() -> Iterator[HostileServer]:
    """A model server that takes requests and never answers; `ended` are those whose client has gone."""
    with HostileServer(lambda: [LEFT]) as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_collection(tmp_path_factory.mktemp("studio"))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, no_variables: None) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")


@pytest.fixture(scope="module")
def studio(folder: Path) -> Iterator[Studio]:
    with running(desk_of(folder, cache="")) as studio:
        yield studio


def patient(silent: HostileServer) -> dict[str, Any]:
    """A model that is waited for longer than any test takes."""
    named = {"name": "tiny", "base_url": silent.url, "timeout": 3000, "deadline": 3000}
    return {"model": named, "profile": "offline", "generate": {"kind": "llm"}}


def started(folder: Path, silent: HostileServer, *command: str, **more: Any) -> subprocess.Popen[str]:
    """The program with such a model."""
    options = ["-c", str(folder / "collection.yaml"), "--index", str(folder / "index"), "--set", "engine=bm25"]
    settings = {"target": "population", "cache": "", **patient(silent)}
    options += [part for name, value in settings.items() for part in ("--set", f"{name}={json.dumps(value)}")]
    environ, pipe = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, subprocess.PIPE
    arguments = [sys.executable, "-m", "fairagent", *command, *options]
    return subprocess.Popen(arguments, cwd=folder, env=environ, text=True, stdout=pipe, stderr=pipe, **more)


class Talk:
    """A client of `fairagent mcp`, whose standard input it keeps open."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self.say("initialize", 0, **about)
        self.reply(0)
        self.say("notifications/initialized")

    def say(self, method: str, id: int | None = None, **params: Any) -> None:
        """A request, or without an id a notification."""
        assert self._process.stdin
        told = {"jsonrpc": "2.0", "method": method, "params": params, **({} if id is None else {"id": id})}
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()

    def call(self, id: int, tool: str, **arguments: Any) -> None:
        """The request of a tool."""
        self.say("tools/call", id, name=tool, arguments=arguments)

    def reply(self, id: int) -> Any:
        """The reply to the request of this id; others before it are passed over."""
        assert self._process.stdout
        for line in self._process.stdout:
            told = json.loads(line)
            if told.get("id") == id:
                return told["result"]
        raise AssertionError("the server has gone")


def raw(studio: Studio, path: str, body: Any = None, accept: str = "*/*", length: int | None = None) -> socket.socket:
    """A connection that has sent a request, and whose client can leave as it likes."""
    address = httpx.URL(studio.url)
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: {address.host}:{address.port}\r\n"
        f"Authorization: Bearer {studio.token}\r\nAccept: {accept}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content) if length is None else length}\r\n\r\n"
    )
    connection = socket.create_connection((address.host, address.port), timeout=LONG)
    connection.sendall(head.encode() + content)
    return connection


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
def test_198_mcp_ends_by_a_signal_while_its_input_is_open_and_a_model_is_asked(
    folder: Path, silent: HostileServer, number: signal.Signals, code: int
) -> None:
    with started(folder, silent, "mcp", stdin=subprocess.PIPE) as process:
        Talk(process).call(1, "answer", **QUERY)
        waited(lambda: silent.asked == 1)
        process.send_signal(number)
        assert process.wait(LONG) == code
        assert process.stderr
        assert "Traceback" not in process.stderr.read()
    waited(lambda: silent.ended == 1)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_199_a_silent_model_holds_up_no_search_and_who_leaves_ends_the_request_to_it(
    folder: Path, silent: HostileServer, tmp_path: Path, accept: str, cached: bool
) -> None:
    """More clients than there are lanes; half of them ask the same, so that they wait for each other."""
    desk = desk_of(folder, cache=str(tmp_path) if cached else "", **patient(silent))
    with running(desk) as studio, studio.client() as client:
        for turn in range(1, 3):
            before = silent.asked
            queries = [f"lawyer {turn}", *[f"lawyer {turn} {number}" for number in range(5)]] * 2
            clients = [raw(studio, "/api/answer", {"query": query}, accept) for query in queries]
            waited(lambda before=before: silent.asked > before)
            # Nothing of these waits for a model; they would wait for the clients, who do not leave before.
            assert client.post("/api/search", json=QUERY).status_code == 200
            assert client.get("/api/document", params={"id": "d02"}).status_code == 200
            assert client.get("/health").json()["ok"]
            for one in clients:
                one.close()
            waited(lambda: silent.asked == silent.ended)
        # The lanes of models are free again, all four.
        held = [raw(studio, "/api/answer", {"query": "court"}, accept)]
        waited(lambda: silent.asked == silent.ended + 1)
        held[0].close()


def test_200_a_call_that_is_cancelled_ends_and_so_does_all_when_the_client_leaves(
    folder: Path, silent: HostileServer
) -> None:
    with started(folder, silent, "mcp", stdin=subprocess.PIPE) as process:
        talk = Talk(process)
        for id in range(1, 6):
            talk.call(id, "answer", query=f"lawyer {id}")
        waited(lambda: silent.asked == 1)
        talk.call(6, "search", **QUERY)
        assert talk.reply(6)["structuredContent"]["hits"]
        for id in range(1, 6):
            talk.say("notifications/cancelled", requestId=id)
        waited(lambda: silent.asked == silent.ended)
        asked = silent.asked
        talk.call(7, "answer", **QUERY)
        waited(lambda: silent.asked == asked + 1)
        assert process.stdin
        process.stdin.close()
        assert process.wait(LONG) == 0
        assert process.stderr
        assert "Traceback" not in process.stderr.read()
    waited(lambda: silent.asked == silent.ended)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow)],
)
def test_152_and_202_serve_ends_at_once_while_requests_wait_come_in_and_are_not_read(
    folder: Path, silent: HostileServer, number: signal.Signals, code: int
) -> None:
    with started(folder, silent, "serve", "--port", "0") as process, ExitStack() as left:
        assert process.stdout
        url, _, token = process.stdout.readline().strip().partition("/#token=")
        studio = Studio(None, url, token)  # type: ignore[arg-type]
        plain = left.enter_context(raw(studio, "/api/answer", QUERY))
        stream = left.enter_context(raw(studio, "/api/answer", QUERY, "text/event-stream"))
        left.enter_context(raw(studio, "/api/answer", QUERY, length=5000))
        left.enter_context(socket.create_connection(("127.0.0.1", httpx.URL(url).port or 0)))
        waited(lambda: silent.asked == 1)
        process.send_signal(number)
        assert process.wait(LONG) == code
        said = process.stderr.read() if process.stderr else ""
        assert "Traceback" not in said
        assert "Cancel" not in said
        for reply in (plain, stream):
            told = b"".join(iter(lambda reply=reply: reply.recv(1 << 16), b""))
            assert b"the server ends" in told


def test_151_fifty_at_once_are_answered_and_more_than_may_wait_are_told_so(folder: Path) -> None:
    held, begun = threading.Event(), threading.Event()
    desk = desk_of(folder, cache="")
    desk.document = lambda id: (begun.set(), held.wait(), {"id": id})[-1]  # type: ignore[assignment, method-assign]
    with (
        running(desk, lanes=Lanes(lanes=1, waiting=50)) as studio,
        ThreadPoolExecutor(61) as pool,
        studio.client() as client,
    ):
        first = pool.submit(client.get, "/api/document?id=d02")
        assert begun.wait(60)
        asked = [pool.submit(client.post, "/api/search", json=QUERY) for _ in range(60)]
        waited(lambda: sum(one.done() for one in asked) == 10)
        held.set()
        assert first.result().status_code == 200
        statuses = sorted(one.result().status_code for one in asked)
    assert statuses == [200] * 50 + [503] * 10


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


def test_148_a_model_that_breaks_off_leaves_what_came_and_one_that_is_down_is_an_error(folder: Path) -> None:
    def told(reply: ServerReply) -> tuple[str, str, Any]:
        """The pieces of the answer's text, and the last event."""
        with LoopbackServer([reply]) as model, running(asking(folder, model.url, generate={"kind": "llm"})) as studio:
            events = studio.events("/api/answer", QUERY)
            studio.post("/api/search", QUERY)
        return "".join(data["text"] for kind, data in events if kind == "text"), *events[-1]

    pieces, last, found = told(streamed("A lawyer ", "pleaded [1]", finish=None, usage=None, done=False))
    assert pieces.startswith("A lawyer pleaded")
    assert (last, found["truncated"], found["answer"]) == ("result", True, pieces)
    pieces, last, found = told(ServerReply(hang_up=True))
    assert (pieces, last) == ("", "error")
    assert "not-a-real-key" not in found["error"]


def test_149_and_153_a_query_of_a_megabyte_is_refused_unread_and_a_fault_of_ours_told_without_its_story(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio.post("/api/search", {"query": "a" * 1_000_000}, 413)
    with studio.client() as client:
        pieces = (b'{"query": "' if not n else b"a" * 10_000 for n in range(101))
        head = {"content-type": "application/json"}
        assert client.post("/api/search", content=pieces, headers=head).status_code == 413
    assert len(studio.post("/api/search", {"query": "a" * 2001}, 400)["error"]) < 500

    def broken(*_: Any) -> Any:
        raise RuntimeError("/secret/path")

    with monkeypatch.context() as patch:
        patch.setattr(studio.desk, "search", broken)
        assert "/secret" not in str(studio.post("/api/search", QUERY, 500))
        ((kind, told),) = studio.events("/api/search", QUERY)
        assert (kind, "/secret" in str(told)) == ("error", False)
    studio.post("/api/search", QUERY)


def test_199_of_one_user_five_silent_requests_do_not_hold_up_another(folder: Path, silent: HostileServer) -> None:
    users = {hash_of(name): User(name=name, sha256=hash_of(name)) for name in ("ada", "bob")}
    desk, begun = desk_of(folder, cache="", **patient(silent)), list[str]()
    desk.answer = lambda asked, tell, trace: (begun.append(asked.query), sleep(LONG))  # type: ignore[method-assign]
    with running(desk, token="ada", admission=users) as studio, ExitStack() as left:
        for _ in range(5):
            left.enter_context(raw(studio, "/api/answer", {"query": "of ada"}))
        waited(lambda: begun == ["of ada"] * 2)
        left.enter_context(raw(dataclasses.replace(studio, token="bob"), "/api/answer", {"query": "of bob"}))
        waited(lambda: begun[2:] == ["of bob"])


def test_199_who_leaves_pays_for_what_was_sent(folder: Path, silent: HostileServer) -> None:
    """Else a client that asks and leaves would spend without a limit."""
    limited = {**patient(silent), "budget": {"calls": 2}}
    with running(desk_of(folder, cache="", **limited)) as studio:
        for turn in range(2):
            with raw(studio, "/api/answer", {"query": f"lawyer {turn}"}):
                waited(lambda turn=turn: silent.asked == turn + 1)
            waited(lambda: silent.asked == silent.ended)
        with raw(studio, "/api/answer", {"query": "lawyer"}) as connection:
            assert connection.recv(12) == b"HTTP/1.1 429"


@needs_chromium
def test_201_another_port_of_this_machine_never_gets_the_token(folder: Path, tmp_path: Path) -> None:
    with (
        running(desk_of(folder, cache="")) as studio,
        HostileServer(lambda: [answer(b"<p>other</p>", content_type="text/html")]) as server,
        chromium(tmp_path / "profile") as page,
    ):
        page.open(studio.address)
        page.wait("document.querySelectorAll('#controls > *, #more > *').length > 5")
        assert page.run("location.hash + location.search") == ""
        assert page.do("Network.getAllCookies")["cookies"] == []
        page.open(server.url)
        waited(lambda: server.heads)
        sent = "".join(server.heads).lower()
        assert not [word for word in (TOKEN.lower(), "cookie", "authorization") if word in sent]
        assert page.run("sessionStorage.length") == 0


def test_203_who_is_silent_after_a_reply_is_cut_off_and_of_too_many_the_last_is_told_so(folder: Path) -> None:
    with running(desk_of(folder, cache=""), limits={"most": 3, "idle": 1}) as studio, ExitStack() as left:
        address = httpx.URL(studio.url)
        for _ in range(2):
            left.enter_context(socket.create_connection((address.host, address.port), timeout=LONG))

        def answered() -> bytes:
            """The status that comes; then the other side ends the connection."""
            with raw(studio, "/health") as connection, suppress(ConnectionResetError):
                status = connection.recv(12)
                while connection.recv(1 << 16):
                    pass
            return status

        assert answered() == b"HTTP/1.1 503"
        left.close()
        waited(lambda: answered() == b"HTTP/1.1 200")


def test_204_and_238_a_document_or_an_argument_that_is_not_there(studio: Studio) -> None:
    for id in ("nothing", "", "d02 ", "x" * 5000, "\u202e", "../d02"):
        assert len(str(studio.get("/api/document", 404, id=id))) < 300
    assert studio.get("/api/document", id="d02")["title"] == "Page 2"
    with studio.client() as client:
        for reply, name in (
            (client.get("/api/document?id=d01&lenght=5"), "lenght"),
            (client.get("/api/document?id=d01&id=d02"), "id"),
            (client.post("/api/search?fairness=1", json=QUERY), "fairness"),
        ):
            assert reply.status_code == 400
            assert name in reply.json()["error"]
