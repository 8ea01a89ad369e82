"""A search server on the loopback interface that answers as a healthy one does, but for what a test sets."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fairagent.guests.opensearch.index import LOADED, ServerIndex
from fairagent.guests.opensearch.server import Address, Credentials, Server

TEXT = {"type": "text", "analyzer": "english"}
FIELDS = {"id": {"type": "keyword"}, "title": TEXT, "text": TEXT, "contents": TEXT, "gender": {"type": "keyword"}}
SHARDS = {"total": 3, "successful": 3, "skipped": 0, "failed": 0}


@dataclass(frozen=True)
class Answer:
    """What the server sends: `body` as it is where it is bytes, as JSON else."""

    body: Any
    status: int = 200
    head: Mapping[str, str] = field(default_factory=dict)


def found(*ids: str, **more: Any) -> dict[str, Any]:
    """The answer to a search that found these, each with its place from the end as the score."""
    hits = [
        {"_index": "i", "_id": id, "_score": float(len(ids) - place), "_source": {"id": id, "title": id, "text": id}}
        for place, id in enumerate(ids)
    ]
    return {"timed_out": False, "_shards": SHARDS, "hits": {"hits": hits}, **more}


def refused(kind: str, reason: str, status: int) -> Answer:
    """An error as a server tells it."""
    cause = {"type": kind, "reason": reason}
    return Answer({"error": {"root_cause": [cause], **cause}, "status": status}, status)


Script = Callable[[int, Any], Any]
"""(number of such a request, from 1; its body) -> an `Answer`, or the JSON of one."""


class SearchServer:
    """Answers `script` of a path's last part where there is one, and healthily else. A context manager.

    `requests` are (method, path, header Authorization) of what came; `bodies` what was sent, by the last part.
    """

    def __init__(self, **script: Any) -> None:
        self.script = script
        self.requests: list[tuple[str, str, str]] = []
        self.bodies: dict[str, list[Any]] = {}
        self.waited: list[float] = []
        self.meta: dict[str, Any] | None = None
        self.there = True
        self.documents: dict[str, Any] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # A small answer is sent at once, not when the client has confirmed the head.
            disable_nagle_algorithm = True

            def answer(self) -> None:
                outer.answer(self)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> SearchServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def index(self, timeout: float = 5.0, attempts: int = 3, environ: Mapping[str, str] | None = None) -> ServerIndex:
        """The index `i` on it, whose waits are noted and not waited for; the key is the variable KEY."""
        credentials = Credentials("KEY") if environ else Credentials()
        address = Address.find(self.url, credentials, environ or {})
        return ServerIndex(Server(address, timeout, attempts, sleep=self.waited.append), "i", LOADED)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        sent = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        path = handler.path.partition("?")[0]
        self.requests.append((handler.command, handler.path, handler.headers.get("authorization", "")))
        last = "health" if "/health/" in path else path.rsplit("/", 1)[-1].strip("_") or "root"
        body = (
            [json.loads(line) for line in sent.splitlines()]
            if last in ("bulk", "msearch")
            else json.loads(sent or b"null")
        )
        self.bodies.setdefault(last, []).append(body)
        script = self.script.get(last)
        told = script(len(self.bodies[last]), body) if callable(script) else script
        if told is None:
            told = self.healthy(handler.command, last, body)
        told = told if isinstance(told, Answer) else Answer(told)
        raw = told.body if isinstance(told.body, bytes) else json.dumps(told.body).encode()
        handler.send_response(told.status)
        head = {"content-type": "application/json", "content-length": str(len(raw)), **told.head}
        for name, value in head.items():
            handler.send_header(name, value)
        handler.end_headers()
        try:
            handler.wfile.write(raw)
        except OSError:
            handler.close_connection = True

    def healthy(self, method: str, last: str, body: Any) -> Any:
        """What a healthy server answers."""
        if last == "root":
            return {"version": {"number": "8.15.3"}}
        if not self.there and last != "i":
            return refused("index_not_found_exception", "no such index [i]", 404)
        if last == "mapping" and method == "PUT":
            self.meta = body["_meta"]
        elif last == "mapping":
            return {"i": {"mappings": {"properties": FIELDS, **({"_meta": self.meta} if self.meta else {})}}}
        elif last == "i":
            self.there, self.meta = method == "PUT", (body or {}).get("mappings", {}).get("_meta")
        elif last == "health":
            return {"status": "green", "active_primary_shards": 3, "number_of_data_nodes": 3}
        elif last == "settings":
            return {"i": {"settings": {"index": {"number_of_shards": "3"}}}}
        elif last == "search":
            return found("a", "b")
        elif last == "count":
            return {"count": len(self.documents), "_shards": SHARDS}
        elif last == "bulk":
            self.documents |= {action["index"]["_id"]: one for action, one in zip(body[::2], body[1::2], strict=True)}
            return {"errors": False, "items": [{"index": {"_id": id, "status": 201}} for id in self.ids(body)]}
        elif last == "termvectors":
            return {"found": True, "term_vectors": {}}
        return {"acknowledged": True, "_shards": SHARDS}

    @staticmethod
    def ids(body: Any) -> list[str]:
        """The ids of a bulk request."""
        return [action["index"]["_id"] for action in body[::2]]
