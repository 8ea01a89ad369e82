"""A server of chat completions and embeddings on the loopback interface that answers from a script, and records."""

import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

JSON = "application/json"


@dataclass(frozen=True)
class ServerReply:
    """One scripted answer: `body` is sent as it is where it is a text, as JSON else.

    `delay` is in seconds, `cut` leaves out the last bytes that the header promises, `hang_up` sends nothing at all.
    """

    body: Any = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON
    delay: float = 0.0
    cut: int = 0
    hang_up: bool = False


def completion(text: str | None, finish: str = "stop", usage: Any = (11, 7), **message: Any) -> ServerReply:
    """A well-formed chat completion; `usage` are the tokens in and out, or what to send in their place, None nothing.

    `message` are further fields of the reply's message, e.g. `refusal`.
    """
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny-2026",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
        ],
    }
    if isinstance(usage, tuple):
        usage = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    if usage is not None:
        body["usage"] = usage
    return ServerReply(body)


def streamed(*pieces: str, finish: str | None = "stop", usage: Any = (11, 7), done: bool = True) -> ServerReply:
    """A chat completion in pieces, as server-sent events; `usage` is as in `completion`.

    Without a `finish`, and without `done`, it breaks off.
    """
    chunks: list[dict[str, Any]] = [
        {"model": "tiny-2026", "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
        for piece in pieces
    ]
    if finish:
        chunks.append({"model": "tiny-2026", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if isinstance(usage, tuple):
        usage = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    if usage is not None:
        chunks.append({"model": "tiny-2026", "choices": [], "usage": usage})
    events = [json.dumps(chunk) for chunk in chunks] + (["[DONE]"] if done else [])
    return ServerReply("".join(f"data: {event}\n\n" for event in events), content_type="text/event-stream")


def embeddings(texts: Sequence[str], length: int = 16, usage: int | None = 3) -> ServerReply:
    """A well-formed answer to `texts`: every word has a place in its text's vector; `usage` are tokens a text.

    >>> embeddings(["red", "red red"], length=2).body["data"][1]
    {'object': 'embedding', 'index': 1, 'embedding': [0.0, 2.0]}
    """
    rows = []
    for text in texts:
        row = [0.0] * length
        for word in text.lower().split():
            row[zlib.crc32(word.encode()) % length] += 1.0
        rows.append(row)
    data = [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(rows)]
    body: dict[str, Any] = {"object": "list", "model": "tiny-2026", "data": data}
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage * len(texts), "total_tokens": usage * len(texts)}
    return ServerReply(body)


def error(
    status: int, message: str = "something", code: str | None = None, param: str | None = None, **headers: str
) -> ServerReply:
    """An error as OpenAI sends it; header names are written with underscores."""
    body = {"error": {"message": message, "type": "some_error", "param": param, "code": code}}
    return ServerReply(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


Request = dict[str, Any]
"""The JSON body that a client sent."""


class LoopbackServer:
    """An OpenAI-compatible server at `url` on 127.0.0.1, for tests; a context manager.

    It answers with the next of `script`, and with its last from then on, or with what a function of the request says;
    a text stands for the `completion` of it, or for it `streamed`, as the request says. Requests for embeddings get
    `embeddings` of the input, unless the script has an answer. `requests`, `paths` and `keys` (the header
    Authorization) are the log, in the order of arrival. Threads may call it; each request has a thread of its own.

    >>> from urllib.request import Request, urlopen
    >>> with LoopbackServer(["red"]) as server:
    ...     request = Request(f"{server.url}/chat/completions", data=b'{"model": "tiny"}')
    ...     json.load(urlopen(request))["choices"][0]["message"]["content"]
    ...     server.requests
    'red'
    [{'model': 'tiny'}]
    """

    def __init__(self, script: Sequence[ServerReply | str] | Callable[[Request], ServerReply | str] = ()) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.paths: list[str] = []
        self.keys: list[str] = []
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # A small answer is sent at once, not when the client has confirmed the head.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                _send(self, server._answer(self))

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        """The address for `model.base_url` or OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _answer(self, handler: BaseHTTPRequestHandler) -> ServerReply:
        request = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        with self._lock:
            self.requests.append(request)
            self.paths.append(handler.path)
            self.keys.append(handler.headers.get("authorization", ""))
            number = len(self.requests)
        embedding = handler.path.endswith("/embeddings")
        if callable(self.script):
            answer = self.script(request)
        elif self.script:
            answer = self.script[min(number, len(self.script)) - 1]
        elif embedding:
            answer = ""
        else:
            answer = error(501, "this server has no script")
        if isinstance(answer, ServerReply):
            return answer
        if embedding:
            return embeddings(request["input"])
        return streamed(*answer.partition(" ")) if request.get("stream") else completion(answer)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # As many clients as a test has threads may come at once; the default of 5 would make some wait for a second.
    request_queue_size = 128


def _send(handler: BaseHTTPRequestHandler, answer: ServerReply) -> None:
    if answer.delay:
        time.sleep(answer.delay)
    if answer.hang_up:
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)
        return
    body = (answer.body if isinstance(answer.body, str) else json.dumps(answer.body)).encode()
    try:
        handler.send_response(answer.status)
        for name, value in {"content-type": answer.content_type, **answer.headers}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: len(body) - answer.cut])
        handler.close_connection = handler.close_connection or answer.cut > 0
    except (BrokenPipeError, ConnectionResetError):
        # The client did not wait.
        handler.close_connection = True
