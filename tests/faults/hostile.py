"""A server that sends whatever bytes a test wants, in whatever time: what http.server would not let it send."""

from __future__ import annotations

import json
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Step = bytes | float | None
"""What the server does next: send these bytes, wait so many seconds, or (None) reset the connection."""
Plan = Callable[[], Iterable[Step]]

REPLY = {
    "model": "tiny",
    "choices": [{"message": {"role": "assistant", "content": '{"colors": ["red"]}'}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 11, "completion_tokens": 7},
}
EVENT = b'data: {"choices": [{"delta": {"content": "red "}}]}\n\n'


class HostileServer:
    """Accepts connections on the loopback interface, reads a request of each, and follows `plan`, then hangs up.

    `requests` are the bodies that came. A context manager.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.requests: list[bytes] = []
        self._stopped = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"

    def __enter__(self) -> HostileServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        # Linux wakes who waits in accept by this; closing would not.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                self.requests.append(_request(connection))
                for step in self.plan():
                    if step is None:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return
                    if isinstance(step, float):
                        if self._stopped.wait(step):
                            return
                    else:
                        connection.sendall(step)
            except OSError:
                return  # The client has gone.


def _request(connection: socket.socket) -> bytes:
    """The body of the request that comes."""
    came = b""
    while b"\r\n\r\n" not in came:
        came += _some(connection)
    head, _, body = came.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += _some(connection)
    return body


def _some(connection: socket.socket) -> bytes:
    if not (some := connection.recv(65536)):
        raise OSError("closed")
    return some


def answer(body: bytes, status: int = 200, **headers: str) -> bytes:
    """A whole answer, well-formed; header names are written with underscores."""
    named = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value != "")
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + body


def reply(**changes: Any) -> bytes:
    """The answer that is asked for, or one in which these fields are others."""
    return answer(json.dumps(REPLY | changes).encode())


def said(text: str, finish: str = "stop") -> dict[str, Any]:
    """The field `choices` of a reply that says this."""
    return {"choices": [{"message": {"content": text}, "finish_reason": finish}]}


def dripped(sent: bytes, pause: float, size: int = 1) -> Iterator[Step]:
    """`sent` a few bytes at a time, with a pause after each."""
    for start in range(0, len(sent), size):
        yield sent[start : start + size]
        yield pause


def packed(body: bytes, wbits: int = 31) -> bytes:
    """`body` as gzip, or as zlib with 15."""
    pack = zlib.compressobj(wbits=wbits)
    return pack.compress(body) + pack.flush()


def bomb(unit: bytes, megabytes: int, wbits: int = 31) -> bytes:
    """So many megabytes of `unit`, about a thousandth as long; without an end, since nobody shall get there."""
    pack = zlib.compressobj(9, wbits=wbits)
    megabyte = unit * ((1 << 20) // len(unit))
    begin, block = (pack.compress(megabyte) + pack.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return begin + block * (megabytes - 1)
