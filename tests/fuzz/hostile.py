"""A server that sends whatever bytes a test wants, in whatever time: what http.server would not let it send."""

from __future__ import annotations

import json
import random
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


# Servers at random -----------------------------------------------------------------------------------------------

NUMBERS = (
    "1" + "0" * 400,
    "-5",
    "3.5",
    "true",
    "1e400",
    "NaN",
    "Infinity",
    '"12"',
    "null",
    "[]",
    "9" * 5000,
    "0",
    "17",
)
PLACES = (
    "http://192.0.2.1/v1",
    "//192.0.2.1:99999999",
    "https://[::1",
    "/v1/chat/completions",
    "",
    "http://" + "a" * 70_000,
    "ftp://x\x7f",
    "http://user:pass@192.0.2.1:81/",
    "javascript:1",
    "\u202e",
)
CODINGS = ("gzip", "deflate", "br", "zstd", "gzip, gzip", "identity", "x" * 3000, "compress", "GZIP")
TYPES = (
    "application/json",
    "text/event-stream",
    "text/html",
    "application/json; charset=utf-7",
    "application/json; charset=zlib",
    "text/event-stream; charset=utf-16",
    "application/json; charset=idna",
    "",
    "\x01\x02",
)
TEXTS = (
    "[" * 100_000,
    '{"colors":' * 5000,
    "{x}" * 80_000,
    '{"colors": ["\\ud800"]}',
    "\x00" * 1000,
    "<think>" * 50_000,
    '{"colors": [' + "1," * 100_000 + "1]}",
    "\u202e\u200b{}",
    "🎨" * 100_000,
    '{"colors": ["' + "a" * 3_000_000 + '"]}',
    "",
    " \n",
)


def hostile_plan(seed: int) -> tuple[str, list[Step]]:
    """What a server does that wants to hurt: its name, and the steps; the same for the same seed."""
    chance = random.Random(seed)
    name = chance.choice(list(KINDS))
    steps = list(KINDS[name](chance))
    # However it is sent: as it is, in pieces, slowly, cut off, reset, or with rubbish in it.
    way = chance.choice(("whole", "whole", "whole", "pieces", "drip", "cut", "reset", "noise", "stop"))
    if way == "pieces":
        steps = [part for step in steps for part in (_pieces(step, chance) if isinstance(step, bytes) else [step])]
    elif way == "drip":
        steps = [part for step in steps for part in (_slow(step, chance) if isinstance(step, bytes) else [step])]
    elif way == "cut":
        steps = [step[: chance.randrange(len(step) + 1)] if isinstance(step, bytes) else step for step in steps]
    elif way == "reset":
        steps = [*steps[: chance.randrange(len(steps)) + 1], None]
    elif way == "noise":
        steps = [_noisy(step, chance) if isinstance(step, bytes) and len(step) < 100_000 else step for step in steps]
    elif way == "stop":
        steps = [*steps[:1], 30.0]
    return f"{name} {way}", steps


def _pieces(step: bytes, chance: random.Random) -> Iterator[Step]:
    size = max(1, len(step) // chance.randrange(2, 40))
    yield from (step[start : start + size] for start in range(0, len(step), size))


def _slow(step: bytes, chance: random.Random) -> Iterator[Step]:
    begin = chance.randrange(len(step) + 1)
    yield step[:begin]
    yield from dripped(step[begin : begin + 1000], 0.05)
    yield step[begin + 1000 :]


def _noisy(step: bytes, chance: random.Random) -> bytes:
    noisy = bytearray(step)
    for _ in range(chance.randrange(1, 20)):
        place = chance.randrange(len(noisy) + 1)
        noisy[place : place + chance.randrange(3)] = chance.randbytes(chance.randrange(4))
    return bytes(noisy)


def _redirect(chance: random.Random) -> Iterator[Step]:
    yield answer(b"", chance.randrange(300, 400), location=chance.choice(PLACES))


def _status(chance: random.Random) -> Iterator[Step]:
    status = chance.choice(
        (100, 101, 199, 204, 206, 400, 401, 402, 404, 407, 408, 413, 418, 422, 429, 500, 503, 599, 999)
    )
    bodies = (
        b"",
        b"[" * 900,
        b'{"error": ' * 300,
        b'{"error": {"code": ' + b"9" * 5000,
        b"\xff\x00" * 500,
        b'"\\ud800"',
    )
    body = chance.choice(
        (*bodies, b"x" * 2_000_000, json.dumps({"error": {"message": "temperature " * 9000}}).encode())
    )
    waits = ("nan", "-1", "1e999", "Mon, 99 Foo", "9" * 4000, "0.01", "Fri, 01 May 99999999 12:00:20 GMT", " ")
    yield answer(body, status, retry_after=chance.choice(waits), retry_after_ms=chance.choice(waits))


def _numbers(chance: random.Random) -> Iterator[Step]:
    usage = f'{{"prompt_tokens": {chance.choice(NUMBERS)}, "completion_tokens": {chance.choice(NUMBERS)}}}'
    yield answer(json.dumps(REPLY | {"usage": "?"}).replace('"?"', usage).encode())


def _shape(chance: random.Random) -> Iterator[Step]:
    wrong: list[Any] = [None, [], {}, "x", 1, True, [[]], [{}], {"a": {}}, "x" * 100_000, list(range(50_000))]
    field = chance.choice(("choices", "model", "usage", "error", "object"))
    yield reply(**{field: chance.choice(wrong)})


def _text(chance: random.Random) -> Iterator[Step]:
    yield reply(**said(chance.choice(TEXTS), chance.choice(("stop", "length", "content_filter", "x" * 9000, "stop"))))


def _json(chance: random.Random) -> Iterator[Step]:
    unit = chance.choice((b"[],", b"{},", b"[", b'{"a":', b"1,", b'"\\u0000",', b"[[[[]]]],", b'{"choices":[{}]},'))
    field = chance.choice((b"choices", b"logprobs", b"usage", b"error", b"x"))
    yield answer(b'{"' + field + b'":[' + unit * (chance.choice((1000, 100_000, 6_000_000)) // len(unit)) + b"1]}")


def _coded(chance: random.Random) -> Iterator[Step]:
    body = chance.choice((json.dumps(REPLY).encode(), b"\x1f\x8b" + b"\x00" * 500, b"", b"\xff" * 5000))
    wbits = chance.choice((31, 15, 0))
    yield answer(packed(body, wbits) if wbits else body, content_encoding=chance.choice(CODINGS))


def _bomb(chance: random.Random) -> Iterator[Step]:
    wbits = chance.choice((31, 15))
    unit = chance.choice((b" ", b"0", b"[", b'{"a":', b"data: \n", b"\n"))
    body = bomb(unit, chance.choice((10, 1000)), wbits)
    kind = chance.choice(("application/json", "text/event-stream"))
    yield answer(body, content_encoding="gzip" if wbits == 31 else "deflate", content_type=kind)


def _large(chance: random.Random) -> Iterator[Step]:
    unit = chance.choice((b"x", b" ", b"\n", b"data: \n\n", b": \n", EVENT, b"\xf0\x9f\x8e\xa8", b"\x00"))
    piece = unit * (65536 // len(unit))
    yield answer(b"", content_length="", content_type=chance.choice(TYPES[:3]))
    for _ in range(50 << 4):
        yield piece


def _headers(chance: random.Random) -> Iterator[Step]:
    odd = (
        b"X: " + b"y" * 200_000 + b"\r\n",
        b"X: y\r\n" * 20_000,
        b"content-length: " + b"9" * 5000 + b"\r\n",
        b"content-length: -1\r\n",
        b"content-length: 1\r\ncontent-length: 2\r\n",
        b"transfer-encoding: gzip, chunked\r\n",
        b"set-cookie: " + b"a=b; expires=" + b"0" * 5000 + b"\r\n",
        b"no colon\r\n",
        b": \r\n",
        b" folded\r\n",
        b"X\x00Y: \xff\r\n",
        b"content-type: \xf0\x9f\x8e\xa8\r\n",
    )
    begin = chance.choice(
        (b"HTTP/1.1 200 OK", b"HTTP/1.0 200 OK", b"HTTP/9.9 200 OK", b"ICY 200", b"", b"HTTP/1.1 2e2 OK")
    )
    yield begin + b"\r\n" + b"".join(chance.sample(odd, 2)) + b"\r\n" + json.dumps(REPLY).encode()


def _interim(chance: random.Random) -> Iterator[Step]:
    for _ in range(chance.choice((3, 2000))):
        yield b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
        yield 0.001
    yield reply()


def _chunks(chance: random.Random) -> Iterator[Step]:
    sizes = (
        b"5",
        b"FFFFFFFFFFFFFFFF",
        b"0" * 50 + b"5",
        b"-1",
        b"5; x=" + b"y" * 200_000,
        b"g",
        b"",
        b"0",
        b"5 ",
        b"0x5",
    )
    body = b"".join(chance.choice(sizes) + b"\r\nhello\r\n" for _ in range(chance.randrange(1, 6)))
    end = chance.choice((b"0\r\n\r\n", b"0\r\n" + b"x: y\r\n" * 30_000 + b"\r\n", b"", b"0\r\n"))
    yield answer(b"", content_length="", transfer_encoding="chunked") + body + end


def _length(chance: random.Random) -> Iterator[Step]:
    body = json.dumps(REPLY).encode()
    wrong = chance.choice((0, 1, len(body) - 1, len(body) + 1, 10**9, 10**30))
    yield answer(body, content_length=str(wrong))


def _stream(chance: random.Random) -> Iterator[Step]:
    yield answer(b"", content_length="", content_type=chance.choice(TYPES[1:6:2]))
    events = (
        EVENT,
        b"data: {}\n\n",
        b"data: " + b"[" * 100_000 + b"\n\n",
        b"data: [DONE]\n\n",
        b'data: {"error": {"code": 503}}\n\n',
        b'data: {"choices": [{"delta": {"content": "' + b"x" * 50_000 + b'"}}]}\n\n',
        b'data: {"usage": {"prompt_tokens": -1, "completion_tokens": true}, "choices": []}\n\n',
        b"data: \xff\xfe\n\n",
        b"data: \x00\n\n",
        b": comment\n" * 1000,
        b"data" * 500_000,
        b'data: {"choices": [{"delta": {}, "finish_reason": "length"}]}\n\n',
    )
    for _ in range(chance.randrange(1, 30)):
        yield chance.choice(events)
    if chance.random() < 0.3:
        for _ in range(2000):
            yield EVENT
            yield 0.01


KINDS: dict[str, Callable[[random.Random], Iterator[Step]]] = {
    "redirect": _redirect,
    "status": _status,
    "numbers": _numbers,
    "shape": _shape,
    "text": _text,
    "json": _json,
    "coding": _coded,
    "bomb": _bomb,
    "large": _large,
    "headers": _headers,
    "interim": _interim,
    "chunks": _chunks,
    "length": _length,
    "stream": _stream,
}
