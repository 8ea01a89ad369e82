"""Cases 198 to 204 of docs/reliability.md: who asks the studio or mcp and leaves, is silent or slow; how both end."""

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
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import chromium, needs_chromium, waited
from studio_server import TOKEN, Studio, desk_of, running, write_collection

from fairagent.storage.cancellation import sleep
from fairagent.studio.server import User, hash_of

PROGRAM = "from fairagent.cli import main; main()"
QUERY = {"query": "lawyer"}
LONG = 60


class SilentServer:
    """A model server that takes requests and never answers; `ended` are those whose client has gone."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self.asked = self.ended = 0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._hold, args=(connection,), daemon=True).start()

    def _hold(self, connection: socket.socket) -> None:
        self.asked += 1
        with connection:
            while connection.recv(1 << 16):
                pass
        self.ended += 1

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def silent() -> Iterator[SilentServer]:
    server = SilentServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_collection(tmp_path_factory.mktemp("studio"))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, no_variables: None) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")


def model_settings(silent: SilentServer) -> dict[str, Any]:
    """A model that is waited for longer than any test takes."""
    named = {"name": "tiny", "base_url": silent.url, "timeout": 3000, "deadline": 3000}
    return {"model": named, "profile": "offline", "generate": {"kind": "llm"}}


def started(folder: Path, silent: SilentServer, *command: str, **more: Any) -> subprocess.Popen[str]:
    """The program, with that model."""
    options = ["-c", str(folder / "collection.yaml"), "--index", str(folder / "index"), "--set", "engine=bm25"]
    settings = {"target": "population", "cache": "", **model_settings(silent)}
    options += [part for name, value in settings.items() for part in ("--set", f"{name}={json.dumps(value)}")]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *command, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


class Talk:
    """A client of `fairagent mcp`, whose standard input it keeps open."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self.ask(0, "initialize", **about)
        self.reply(0)
        self.say("notifications/initialized")

    def say(self, method: str, **params: Any) -> None:
        """A notification."""
        self._send({"method": method, "params": params})

    def ask(self, id: int, method: str, **params: Any) -> None:
        """A request."""
        self._send({"id": id, "method": method, "params": params})

    def call(self, id: int, tool: str, **arguments: Any) -> None:
        """The request of a tool."""
        self.ask(id, "tools/call", name=tool, arguments=arguments)

    def reply(self, id: int) -> Any:
        """The reply to the request of this id; others before it are passed over."""
        assert self._process.stdout
        for line in self._process.stdout:
            told = json.loads(line)
            if told.get("id") == id:
                return told["result"]
        raise AssertionError("the server has gone")

    def _send(self, message: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()


def raw(studio: Studio, path: str, body: Any = None, accept: str = "*/*", length: int | None = None) -> socket.socket:
    """A connection that has sent a request, and whose client can leave as it likes."""
    address = httpx.URL(studio.url)
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{'GET' if body is None else 'POST'} {path} HTTP/1.1",
        f"Host: {address.host}:{address.port}",
        f"Authorization: Bearer {studio.token}",
        f"Accept: {accept}",
        "Content-Type: application/json",
        f"Content-Length: {len(content) if length is None else length}",
    )
    connection = socket.create_connection((address.host, address.port), timeout=LONG)
    connection.sendall("\r\n".join((*head, "", "")).encode() + content)
    return connection


def closed(connection: socket.socket) -> bool:
    """Whether the other side ends the connection, whatever it says before; TimeoutError where it does not."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


# --- 198: the end of mcp -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
def test_198_mcp_ends_by_a_signal_while_its_input_is_open_and_a_model_is_asked(
    folder: Path, silent: SilentServer, number: signal.Signals, code: int
) -> None:
    with started(folder, silent, "mcp", stdin=subprocess.PIPE) as process:
        Talk(process).call(1, "answer", **QUERY)
        waited(lambda: silent.asked == 1)
        process.send_signal(number)
        assert process.wait(LONG) == code
        assert process.stderr
        assert "Traceback" not in process.stderr.read()
    waited(lambda: silent.ended == 1)


# --- 199: who leaves a silent model, in the studio -----------------------------------------------------------------


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_199_a_silent_model_holds_up_no_search_and_who_leaves_ends_the_request_to_it(
    folder: Path, silent: SilentServer, tmp_path: Path, accept: str, cached: bool
) -> None:
    """More clients than there are lanes; half of them ask the same, so that they wait for each other."""
    desk = desk_of(folder, cache=str(tmp_path) if cached else "", **model_settings(silent))
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


def test_199_of_one_user_five_silent_requests_do_not_hold_up_another(folder: Path, silent: SilentServer) -> None:
    users = {hash_of(name): User(name=name, sha256=hash_of(name)) for name in ("ada", "bob")}
    desk = desk_of(folder, cache="", **model_settings(silent))
    begun: list[str] = []

    def answer(asked: Any, tell: Any, trace: bool) -> Any:
        begun.append(asked.query)
        sleep(LONG)

    desk.answer = answer  # type: ignore[method-assign]
    with running(desk, token="ada", admission=users) as studio, ExitStack() as left:
        for _ in range(5):
            left.enter_context(raw(studio, "/api/answer", {"query": "of ada"}))
        waited(lambda: begun == ["of ada"] * 2)
        left.enter_context(raw(dataclasses.replace(studio, token="bob"), "/api/answer", {"query": "of bob"}))
        waited(lambda: begun[2:] == ["of bob"])


def test_199_who_leaves_pays_for_what_was_sent(folder: Path, silent: SilentServer) -> None:
    """Else a client that asks and leaves would spend without a limit."""
    limited = {**model_settings(silent), "budget": {"tokens": 2000}}
    with running(desk_of(folder, cache="", **limited)) as studio:
        replies = []
        for turn in range(30):
            asked = silent.asked
            with raw(studio, "/api/answer", {"query": f"lawyer {turn}"}) as connection:
                connection.setblocking(False)

                def told(connection: socket.socket = connection, asked: int = asked) -> bool:
                    with suppress(BlockingIOError):
                        replies.append(connection.recv(1 << 16))
                    return bool(replies) or silent.asked > asked

                waited(told)
            if replies:
                break
            waited(lambda: silent.asked == silent.ended)
    assert replies[0].startswith(b"HTTP/1.1 429")
    assert silent.asked > 1


# --- 200: the same for mcp -----------------------------------------------------------------------------------------


def test_200_a_call_that_is_cancelled_ends_and_so_does_all_when_the_client_leaves(
    folder: Path, silent: SilentServer
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


@pytest.mark.slow
def test_200_a_client_that_reads_no_more_and_then_leaves(folder: Path, silent: SilentServer) -> None:
    with started(folder, silent, "mcp", stdin=subprocess.PIPE) as process:
        talk = Talk(process)
        assert process.stdout
        assert process.stdin
        process.stdout.close()
        talk.ask(1, "tools/list")
        process.stdin.close()
        assert process.wait(LONG) == 0
        assert process.stderr
        assert process.stderr.read() == ""


# --- 201: the token ------------------------------------------------------------------------------------------------


@contextmanager
def other_port() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Another program on this machine, and the headers of what browsers ask it."""
    heads: list[dict[str, str]] = []

    class Recording(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heads.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>other</title>")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Recording) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", heads
        finally:
            server.shutdown()


@needs_chromium
def test_201_another_port_of_this_machine_never_gets_the_token(folder: Path, tmp_path: Path) -> None:
    with (
        running(desk_of(folder, cache="")) as studio,
        other_port() as (other, heads),
        chromium(tmp_path / "profile") as page,
    ):
        page.open(studio.address)
        page.wait("document.querySelectorAll('#controls > *, #more > *').length > 5")
        assert page.run("location.hash + location.search") == ""
        assert page.do("Network.getAllCookies")["cookies"] == []
        page.run(f"void open({json.dumps(other)})")
        waited(lambda: heads)
        page.open(other)
        waited(lambda: len(heads) > 1)
        assert all(TOKEN not in value for head in heads for value in head.values())
        assert all("cookie" not in head and "authorization" not in head for head in heads)
        assert page.run("sessionStorage.length") == 0
        # The tab goes back, with its token.
        page.run("history.back()")
        page.wait("document.querySelectorAll('#controls > *, #more > *').length > 5")


# --- 202: the end of serve -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow)],
)
def test_152_and_202_serve_ends_at_once_while_requests_wait_come_in_and_are_not_read(
    folder: Path, silent: SilentServer, number: signal.Signals, code: int
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


# --- 203: uvicorn's limits -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def studio(folder: Path) -> Iterator[Studio]:
    with running(desk_of(folder, cache="")) as studio:
        yield studio


def test_203_who_is_silent_after_a_reply_is_cut_off_and_of_too_many_the_last_is_told_so(folder: Path) -> None:
    with running(desk_of(folder, cache=""), limits={"most": 3, "kept": 1}) as studio, ExitStack() as left:
        address = httpx.URL(studio.url)
        for _ in range(2):
            left.enter_context(socket.create_connection((address.host, address.port), timeout=LONG))
        with raw(studio, "/health") as third:
            assert third.recv(12) == b"HTTP/1.1 503"
            assert closed(third)
        left.close()

        def answered() -> bool:
            with raw(studio, "/health") as other:
                # And then cut off, since nothing more is asked.
                return other.recv(12) == b"HTTP/1.1 200" and closed(other)

        waited(answered)


# --- 204: what is not there ------------------------------------------------------------


@pytest.mark.parametrize("id", ["nothing", "", "d02 ", "x" * 5000, "\u202e", "../d02"])
def test_204_a_document_that_is_not_there(studio: Studio, id: str) -> None:
    with studio.client() as client:
        reply = client.get("/api/document", params={"id": id})
        assert reply.status_code == 404
        assert "not in the index" in reply.json()["error"]
        assert len(reply.text) < 300
        assert client.get("/api/document", params={"id": "d02"}).json()["title"] == "Page 2"
