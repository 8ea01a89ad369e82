"""A model server, clocks and a network that do what a seed says, inside the process that asks; no time passes.

What the server was asked and how it answered is kept in a file outside the folder of the run, so that it outlives the
process: its n-th request has the n-th fate, whichever process sends it.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from email.utils import format_datetime
from itertools import chain
from pathlib import Path
from typing import Any, Self

import httpcore

WORDS = ("judge", "singer", "painter", "miner", "nurse", "pilot", "writer", "cook")
HOSTILE_ATTEMPTS = 2
"""Attempts of the command in which a call may fail for good: a topic is given up after three."""
TROUBLED_ATTEMPTS = 4
"""Attempts in which anything goes wrong at all."""
FATES = (
    *("late", "too late", "drip", "overload", "overload until", "error", "web page", "reset", "reset midway", "cut"),
    *("garbage", "prose", "longer", "empty", "refused", "quota", "wrong key", "unreachable", "long overload"),
)
MILD = ("late", "drip", "overload", "overload until", "error", "reset", "reset midway", "cut")
"""Fates of a request that the next one makes good."""
DISK = ("ENOSPC", "EIO", "half", "torn", "kill", "full")


class Seed:
    """All that a seed decides; 0 is a world in which nothing goes wrong."""

    def __init__(self, number: int) -> None:
        self.number = number

    def chance(self, *what: object) -> random.Random:
        return random.Random(f"{self.number} {what}")

    def fate(self, request: int, attempt: int, before: str) -> str:
        """What becomes of the n-th request to the server, which comes after one of another fate."""
        chance = self.chance("request", request)
        if not self.number or attempt >= TROUBLED_ATTEMPTS or chance.random() < 0.55:
            return "good"
        if attempt < HOSTILE_ATTEMPTS:
            return chance.choice(FATES)
        return "good" if before != "good" else chance.choice(MILD)

    def failures(self, attempt: int, points: int) -> dict[int, str]:
        """What fails on the disk in an attempt: at which of so many points, and how."""
        chance = self.chance("disk", attempt)
        if not self.number or attempt >= TROUBLED_ATTEMPTS or chance.random() < 0.3:
            return {}
        count = chance.choice((1, 1, 2))
        return {chance.randrange(1, points): chance.choice(DISK) for _ in range(count)}

    def budget(self, attempt: int) -> dict[str, int]:
        """The budget of an attempt."""
        chance = self.chance("budget", attempt)
        if not self.number or attempt >= TROUBLED_ATTEMPTS or chance.random() < 0.5:
            return {}
        return {"calls": chance.randrange(1, 7)}

    def jump(self, request: int) -> tuple[float, float]:
        """By how much the clock of the wall jumps at a request, also backwards; and that of the machine, forwards."""
        chance = self.chance("clock", request)
        if not self.number or chance.random() < 0.6:
            return 0.0, 0.0
        return chance.choice((-86_400.0, -1.0, 3_600.0, 86_400.0 * 400)), chance.choice((0.0, 0.0, 0.0, 100.0, 400.0))


class Log:
    """What the server remembers: a line for each request (body, fate), and for each answer that was read to its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.entries: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def add(self, **entry: Any) -> None:
        """Remember it, whatever happens to this process."""
        self.entries.append(entry)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if "fate" in entry]


class Clock:
    """The time of the machine and of the wall, which pass where somebody waits."""

    def __init__(self) -> None:
        self.machine, self.wall = 1000.0, 1.7e9

    def monotonic(self) -> float:
        return self.machine

    def time(self) -> float:
        return self.wall

    def sleep(self, seconds: float) -> None:
        self.machine += max(0.0, seconds)
        self.wall += max(0.0, seconds)


class Server(httpcore.NetworkBackend):
    """The network, with the server at its end."""

    def __init__(self, seed: Seed, attempt: int, log: Log, clock: Clock) -> None:
        self.seed, self.attempt, self.log, self.clock = seed, attempt, log, clock

    def connect_tcp(self, *_: Any, **__: Any) -> httpcore.NetworkStream:
        requests = self.log.requests
        if self._fate(len(requests)) == "unreachable":
            self.log.add(body="", fate="unreachable", attempt=self.attempt)
            raise httpcore.ConnectError("refused")
        return Connection(self)

    def _fate(self, number: int) -> str:
        before = self.log.requests[-1]["fate"] if number else "good"
        return self.seed.fate(number, self.attempt, before)

    def answer(self, body: str) -> Iterator[tuple[float, bytes | None]]:
        """Pieces of the answer, each after so many seconds; None is a reset, and the end another one if it is early."""
        number = len(self.log.requests)
        fate = self._fate(number)
        if fate == "unreachable":
            fate = "good"  # it is connected already
        self.log.add(body=body, fate=fate, attempt=self.attempt)
        wall, machine = self.seed.jump(number)
        self.clock.wall += wall
        self.clock.machine += machine
        yield from _pieces(fate, self._reply(json.loads(body)), self.seed.chance("answer", number), self.clock)
        if fate in ("good", "late", "drip"):
            self.log.add(read=body, attempt=self.attempt)

    def _reply(self, request: Any) -> str:
        """What the model says: by the prompt, without what was wrong with an earlier reply."""
        prompt = request["messages"][-1]["content"]
        asked = (json.loads(entry["body"])["messages"][-1]["content"] for entry in self.log.requests if entry["body"])
        first = min((text for text in asked if prompt.startswith(text)), key=len, default=prompt)
        chance = random.Random(first)
        return json.dumps({"keywords": ["she", *chance.sample(WORDS, 2)]})


def _pieces(fate: str, text: str, chance: random.Random, clock: Clock) -> Iterator[tuple[float, bytes | None]]:
    whole = _answer(200, _completion(text))
    delay = {"late": 50.0, "too late": 61.0}.get(fate, 0.5)
    if fate == "drip":
        yield from ((2.0, whole[start : start + 40]) for start in range(0, len(whole), 40))
    elif fate in ("overload", "long overload", "overload until"):
        seconds = chance.choice((0.0, 1.0, 25.0)) if fate != "long overload" else 120.0
        until = format_datetime(datetime.fromtimestamp(clock.wall + seconds, UTC), usegmt=True)
        yield delay, _answer(429, '{"error": {"message": "slow down"}}', until if "until" in fate else f"{seconds:g}")
    elif fate == "error":
        yield delay, _answer(chance.choice((500, 502, 503)), "busy")
    elif fate == "web page":
        yield delay, _answer(200, "<html>hello</html>", kind="text/html")
    elif fate == "reset":
        yield delay, None
    elif fate in ("reset midway", "cut"):
        yield delay, whole[: chance.randrange(1, len(whole))]
        yield delay, None if fate == "reset midway" else b""
    elif fate == "garbage":
        yield delay, _answer(200, chance.randbytes(60).hex() + "{")
    elif fate == "prose":
        yield delay, _answer(200, _completion("I would rather not say."))
    elif fate == "longer":
        yield delay, _answer(200, _completion(text[:5], "length"))
    elif fate == "empty":
        yield delay, _answer(200, '{"choices": []}')
    elif fate == "refused":
        yield delay, _answer(200, _completion("", "content_filter"))
    elif fate == "quota":
        yield delay, _answer(429, '{"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}')
    elif fate == "wrong key":
        yield delay, _answer(401, '{"error": {"message": "no"}}')
    else:
        yield delay, whole


def _completion(text: str, finish: str = "stop") -> str:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
    return json.dumps({"model": "tiny", "choices": [choice], "usage": {"prompt_tokens": 400, "completion_tokens": 30}})


def _answer(status: int, body: str, retry: str = "", kind: str = "application/json") -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(body.encode())}"]
    lines += [f"retry-after: {retry}"] * bool(retry)
    return "\r\n".join([*lines, "", body]).encode()


class Connection(httpcore.NetworkStream):
    """One connection; a read may take what is left of the time, as that of a real one."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._sent = b""
        self._coming: Iterator[tuple[float, bytes | None]] = iter(())
        self._here = b""

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._sent += buffer
        head, _, body = self._sent.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        if body and len(body) >= length:
            self._sent = b""
            self._coming = self.server.answer(body.decode())

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        from fairagent.llm import transport

        if not self._here:
            left = transport._left(timeout)
            delay, piece = next(self._coming, (0.0, b""))
            if delay > left:
                self.server.clock.sleep(left)
                raise httpcore.ReadTimeout("late")
            self.server.clock.sleep(delay)
            if piece is None:
                raise httpcore.ReadError("reset")
            self._here = piece
        found, self._here = self._here[:max_bytes], self._here[max_bytes:]
        if not self._here:
            # What is read to its end is paid for, whatever comes next.
            self._look_ahead()
        return found

    def _look_ahead(self) -> None:
        following = next(self._coming, None)
        if following:
            self._coming = chain((following,), self._coming)

    def close(self) -> None:
        self._coming, self._here = iter(()), b""

    def get_extra_info(self, info: str) -> Any:
        return None


def enter(seed: int, attempt: int, log: Path) -> None:
    """Have this process live in the world of a seed from now on."""
    from fairagent.llm import budget, exchange, faults, server, transport

    clock = Clock()
    network = Server(Seed(seed), attempt, Log(log), clock)
    random.seed(f"{seed} {attempt}")

    class Now(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(clock.wall, tz)

    transport._TimedBackend = lambda: network  # type: ignore[assignment, misc]
    server.ServerModel.__init__.__defaults__ = (os.environ, None, None, clock.sleep, clock.monotonic)
    server.ServerState.__init__.__defaults__ = (clock.monotonic,)
    budget.Budget.__init__.__defaults__ = (None, clock.monotonic)
    faults.datetime = exchange.datetime = Now  # type: ignore[assignment, misc]
    time.monotonic = time.perf_counter = clock.monotonic
    time.time, time.sleep = clock.time, clock.sleep
