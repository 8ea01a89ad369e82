"""A chat completion server on the loopback interface that answers from a script and keeps what it was asked."""

from __future__ import annotations

import json
import socket
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    """One scripted answer; `delay` is in seconds, `cut` leaves out the last bytes that the header promises."""

    body: Any = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = JSON
    delay: float = 0.0
    cut: int = 0
    hang_up: bool = False

    def encoded(self) -> bytes:
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


def completion(text: str | None, finish: str = "stop", usage: Any = (11, 7), **message: Any) -> Answer:
    """A well-formed chat completion."""
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
    return Answer(body)


def error(status: int, message: str = "something", code: str | None = None, **headers: str) -> Answer:
    """An error as OpenAI sends it; header names are written with underscores."""
    body = {"error": {"message": message, "type": "some_error", "param": None, "code": code}}
    return Answer(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


class Server:
    """Answers with the next of `script`, and with its last one from then on; a context manager."""

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.paths: list[str] = []
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server._answer(self, body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _answer(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        with self._lock:
            self.requests.append(request)
            self.paths.append(handler.path)
            self.keys.append(handler.headers.get("authorization", ""))
            answer = self.script[min(len(self.requests), len(self.script)) - 1]
        if answer.delay:
            time.sleep(answer.delay)
        if answer.hang_up:
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        body = answer.encoded()
        try:
            handler.send_response(answer.status)
            for name, value in {"content-type": answer.content_type, **answer.headers}.items():
                handler.send_header(name, value)
            handler.send_header("content-length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body[: len(body) - answer.cut])
            handler.close_connection = handler.close_connection or answer.cut > 0
        except BrokenPipeError:
            # The client did not wait.
            handler.close_connection = True
