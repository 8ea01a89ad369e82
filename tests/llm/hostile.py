"""A server that sends whatever bytes a test wants, in whatever time: what http.server would not let it send."""

from __future__ import annotations

import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterable
from typing import Any

LEFT = "left"
Step = bytes | float | str | None
"""What it does next: send these bytes, wait so many seconds or (LEFT) until the client has gone, or (None) reset."""
Plan = Callable[[], Iterable[Step]]
REPLY = {
    "model": "tiny",
    "choices": [{"message": {"role": "assistant", "content": '{"colors": ["red"]}'}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 11, "completion_tokens": 7},
}


class HostileServer(socketserver.ThreadingTCPServer):
    """Reads a request of each connection on the loopback interface, and follows `plan`, then hangs up.

    `asked` connections have come so far, of which `ended` are over; `sent` counts bytes.
    """

    daemon_threads, block_on_close, request_queue_size = True, False, 64
    asked = ended = sent = 0

    def __init__(self, plan: Plan) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.StreamRequestHandler)
        self.plan, self.stopped = plan, threading.Event()
        self.heads: list[str] = []
        self.requests: list[bytes] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"

    def __enter__(self) -> HostileServer:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.shutdown()
        self.server_close()

    def finish_request(self, request: Any, client_address: Any) -> None:
        self.asked += 1
        try:
            with request.makefile("rb") as file:
                head, length = b"", 0
                while (line := file.readline()) not in (b"\r\n", b""):
                    head += line
                    length = int(line.partition(b":")[2]) if line.lower().startswith(b"content-length") else length
                self.heads.append(head.decode("latin-1"))
                self.requests.append(file.read(length))
            for step in self.plan():
                if step is None:
                    request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    request.close()
                    return
                if isinstance(step, bytes):
                    request.sendall(step)
                    self.sent += len(step)
                elif step == LEFT:
                    while request.recv(1 << 16):
                        pass
                elif self.stopped.wait(float(step)):
                    return
        except OSError:
            pass  # The client has gone.
        finally:
            self.ended += 1


def answer(body: bytes, status: int = 200, **headers: str) -> bytes:
    """A whole answer, well-formed; header names are written with underscores."""
    named = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value != "")
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + body


def reply(**changes: Any) -> bytes:
    """The answer that is asked for, or one in which these fields are others."""
    return answer(json.dumps(REPLY | changes).encode())
