"""Cases 45 to 50: what a server does to a connection, and that it costs a stated time and memory and no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from fairagent.errors import FatalModelError, ModelError, ReplyInvalid, TransientModelError
from fairagent.llm import ModelRequest
from fairagent.llm.budget import Budget
from fairagent.llm.openai import NO_COUNT, OpenAIModel
from fairagent.llm.request import LONGEST_REPLY, Reply, parse_reply
from fairagent.llm.server import MOST_TOKENS, Breaker
from fairagent.settings import BudgetSettings, ModelSettings, Price

from .hostile import EVENT, REPLY, HostileServer, Plan, Step, answer, bomb, dripped, packed, reply, said

pytestmark = pytest.mark.usefixtures("no_variables")

ASKED = ModelRequest((("user", "Which color?"),))
CANARY = "sk-canary-0123456789abcdef"


def ask(plan: Plan, stream: bool = False, budget: Budget | None = None, **settings: Any) -> tuple[Any, int, float]:
    """What the server's answer comes to, how many requests it got, and the seconds, which a busy machine makes more."""
    with HostileServer(plan) as server:
        given = {"name": "tiny", "base_url": server.url, "attempts": 1, **settings}
        model = OpenAIModel(
            ModelSettings(**given), {"OPENAI_API_KEY": CANARY}, budget, Price(input=1, output=1), sleep=lambda _: None
        )
        # What takes seconds to load is no part of the time.
        assert model._client
        started = time.monotonic()
        try:
            came: Any = model.stream(ASKED, lambda piece: None) if stream else model.complete(ASKED)
        except ModelError as error:
            came = error
        finally:
            model.close()
        return came, len(server.requests), time.monotonic() - started


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_45_a_redirect_is_not_followed_and_names_the_new_host(stream: bool) -> None:
    with HostileServer(lambda: [reply()]) as other:
        place = other.url.replace("http://", f"http://user:{CANARY}@")
        for status in (300, 301, 302, 303, 307, 308, 399):
            budget = Budget(BudgetSettings(calls=3))
            plan = [answer(b"", status, location=place)]
            came, requests, _ = ask(lambda plan=plan: plan, stream, budget, attempts=5)
            assert type(came) is FatalModelError
            assert f"answered {status}: it sends requests on to {other.url.removesuffix('/v1')}, where" in str(came)
            assert CANARY not in str(came)
            assert (requests, came.usage.calls, other.requests) == (1, 1, [])


# Case 46

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


def unending(piece: bytes, pause: float, begin: bytes = b"") -> Plan:
    def plan() -> Iterator[Step]:
        yield begin
        while True:
            yield piece
            yield pause

    return plan


DRIPS: dict[str, tuple[Plan, bool]] = {
    "nothing at all": (unending(b"", 1.0), False),
    "the status": (lambda: dripped(HEAD, 0.1), False),
    "headers without an end": (unending(b"x", 0.1, HEAD + b"X: "), False),
    "interim answers": (unending(b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.01), True),
    "a body": (lambda: dripped(reply(), 0.1), False),
    "chunks": (unending(b"1\r\n \r\n", 0.1, HEAD + b"transfer-encoding: chunked\r\n\r\n"), True),
    "an error's body": (unending(b"x", 0.1, b"HTTP/1.1 500 X\r\n\r\n"), False),
    "a line without an end": (unending(b"x", 0.1, STREAM_HEAD + b"data: "), True),
    "comments": (unending(b": still here\n", 0.1, STREAM_HEAD), True),
    "a fast stream without an end": (unending(EVENT, 0.001, STREAM_HEAD), True),
}
"""What comes without an end, and whether a stream was asked for."""


@pytest.mark.parametrize("drip", DRIPS)
def test_46_an_attempt_and_a_stream_have_an_end_however_slowly_they_come(drip: str) -> None:
    plan, stream = DRIPS[drip]
    came, requests, seconds = ask(plan, stream, timeout=0.5, deadline=1.0)
    assert isinstance(came, ModelError if stream else TransientModelError)
    assert not isinstance(came, FatalModelError)
    assert requests == 1
    assert seconds > 0.4


# Case 47

CLIENT = """\
import json, resource, sys
from fairagent.errors import ModelError
from fairagent.llm import ModelRequest
from fairagent.llm.openai import OpenAIModel
from fairagent.settings import ModelSettings

def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def ask(url, stream):
    model = OpenAIModel(ModelSettings(name="tiny", base_url=url, attempts=1), {})
    asked = ModelRequest((("user", "Which color?"),))
    try:
        return "reply", (model.stream(asked, lambda piece: None) if stream else model.complete(asked)).text[:20]
    except ModelError as error:
        return type(error).__name__, str(error)
    finally:
        model.close()

good, *others = sys.argv[1:]
ask(good, False)
before = most()
for place, stream in zip(others[::2], others[1::2]):
    print(json.dumps([*ask(place, stream == "stream"), most() - before]))
"""
"""Asks a good server, and then the others: what came of each, its words, and the most MB since then."""

SPACES = b" " * (1 << 20)


def large(piece: bytes, megabytes: int, kind: str = "application/json") -> Plan:
    def plan() -> Iterator[Step]:
        yield answer(b"", content_length="", content_type=kind)
        for _ in range(megabytes):
            yield piece * ((1 << 20) // len(piece))

    return plan


def nested(field: bytes, unit: bytes, megabytes: int = 15) -> Plan:
    body = b'{"' + field + b'": [' + unit * ((megabytes << 20) // len(unit)) + b"1]}"
    return lambda: [answer(body)]


def gigabyte(coding: str, wbits: int, unit: bytes = b" ", kind: str = "application/json") -> Plan:
    body = bomb(unit, 1000, wbits)
    assert len(body) < 3 << 20
    return lambda: [answer(body, content_encoding=coding, content_type=kind)]


STREAM = "text/event-stream"
TOO_MUCH: list[tuple[Plan, str, str]] = [
    (gigabyte("gzip", 31), "whole", "sent more than 16 MB as one answer; the rest was not read"),
    (gigabyte("deflate", 15), "whole", "sent more than 16 MB"),
    (lambda: [answer(b"\x0b\x02\x80", content_encoding="br")], "whole", "packed its answer in a way"),
    (lambda: [answer(packed(packed(b"x")), content_encoding="gzip, gzip")], "whole", "'gzip, gzip'"),
    (large(b" ", 50), "whole", "sent more than 16 MB"),
    (lambda: [answer(b"x" * (50 << 20), 500)], "whole", "answered 500"),
    (nested(b"choices", b"{},"), "whole", "more than 500,000 values"),
    (nested(b"choices", b'{"a":1},', 1), "whole", "not a chat completion API"),
    (nested(b"logprobs", b'["a"],', 1), "whole", "no choices"),
    (nested(b"usage", b"[", 15), "whole", "more than 500,000 values"),
    (large(b"x", 3, STREAM), "stream", "sent a line of more than 1 MB"),
    (large(EVENT, 50, STREAM), "stream", "sent more than 500,000 lines"),
    (large(b":" + b"x" * 1022 + b"\n", 50, STREAM), "stream", "sent more than 16 MB"),
    (gigabyte("gzip", 31, EVENT, STREAM), "stream", "sent more than 500,000 lines"),
]


@pytest.mark.slow
def test_47_no_more_is_read_than_is_stated() -> None:
    """One process asks them all, since it needs a second to start."""
    with ExitStack() as opened:
        good = opened.enter_context(HostileServer(lambda: [reply()]))
        command = [sys.executable, "-c", CLIENT, good.url]
        for plan, how, _ in TOO_MUCH:
            command += [opened.enter_context(HostileServer(plan)).url, how]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRAGENT_", "OPENAI_"))}
        paths = {"PYTHONPATH": os.pathsep.join(sys.path), "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(command, env=kept | paths, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line, (_, _, words) in zip(done.stdout.splitlines(), TOO_MUCH, strict=True):
        kind, told, memory = json.loads(line)
        assert kind in ("ModelError", "FatalModelError", "TransientModelError")
        assert words in told
        # Of the whole process since it began to ask: the most that any case so far has taken.
        assert memory < 120, words


def test_47_an_answer_that_is_packed_without_being_asked_for_is_read() -> None:
    body = json.dumps(REPLY | said("red" * 100_000)).encode()
    for coding, wbits in (("gzip", 31), ("X-GZIP ", 31), ("deflate", 15), ("identity", 0)):
        sent = answer(packed(body, wbits) if wbits else body, content_encoding=coding)
        assert ask(lambda sent=sent: [sent])[0].text == "red" * 100_000
    broken = packed(body)[:-900] + b"\xff" * 900
    came, requests, _ = ask(lambda: [answer(broken, content_encoding="gzip")], attempts=2)
    assert isinstance(came, TransientModelError)
    assert "broke off" in str(came)
    assert requests == 2


@pytest.mark.parametrize("count", ["1" + "0" * 400, "-5", "3.5", "true", '"12"', str(MOST_TOKENS + 1)])
def test_48_a_count_of_tokens_that_cannot_be_is_estimated_and_noted(count: str) -> None:
    budget = Budget(BudgetSettings(tokens=10_000, dollars=1.0))
    for field in ("prompt_tokens", "completion_tokens"):
        usage = {"prompt_tokens": 11, "completion_tokens": 7} | {field: "?"}
        body = json.dumps(REPLY | {"usage": usage}).replace('"?"', count).encode()
        came, _, _ = ask(lambda body=body: [answer(body)], budget=budget)
        # 12 bytes were asked and 19 answered, four to a token.
        assert (came.input_tokens, came.output_tokens, came.estimated, came.notes) == (3, 5, True, (NO_COUNT,))
        assert came.cost == pytest.approx(8e-6)


def test_49_the_first_request_holds_up_the_others_no_longer_than_its_time() -> None:
    """The first one is stuck; the others, who have more time, go on when its time is over."""
    breaker, stuck = Breaker(), threading.Event()

    def first() -> str:
        return breaker.run(lambda: "late" if stuck.wait() else "never", seconds=0.3)

    with ThreadPoolExecutor(5) as pool:
        late = pool.submit(first)
        time.sleep(0.1)
        others = [pool.submit(breaker.run, lambda: "fine", None, 3000.0) for _ in range(4)]
        try:
            assert [other.result(timeout=250) for other in others] == ["fine"] * 4
        finally:
            stuck.set()
        assert late.result(timeout=250) == "late"
    assert breaker.run(lambda: "still fine") == "still fine"


# Case 50

ODD: list[tuple[Plan, str]] = [
    (lambda: [answer(json.dumps(REPLY).encode(), content_type="application/json; charset=utf-7")], "reply"),
    (lambda: [answer(packed(SPACES * 20, 15), content_type="application/json; charset=zlib")], "TransientModelError"),
    (lambda: [answer(b"no", 400, content_type="text/plain; charset=base64_codec")], "ModelError"),
    (lambda: [reply(model="?").replace(b"?", b"\xff")], "reply"),
    (lambda: [reply(model="\ud800")], "TransientModelError"),
    (lambda: [answer(b"[" * 500)], "TransientModelError"),
    (lambda: [answer(b'{"error":' * 900 + b"1" + b"}" * 900, 400)], "ModelError"),
    (lambda: [answer(b'{"code": ' + b"9" * 9000 + b"}", 400)], "ModelError"),
    (lambda: [b"HTTP/1.1 200 X\r\ncontent-length: " + b"9" * 5000 + b"\r\n\r\n"], "TransientModelError"),
    (lambda: [answer(json.dumps(REPLY).encode(), set_cookie="a=b; expires=" + "0" * 5000)], "reply"),
    (lambda: [HEAD + b"X: " + b"x" * 200_000], "TransientModelError"),
    (lambda: [b"220 smtp.example.org ESMTP\r\n"], "TransientModelError"),
    (lambda: [], "TransientModelError"),
    (lambda: [HEAD, None], "TransientModelError"),
    (lambda: [reply(**said("red", "x" * 100_000))], "reply"),
]


def test_50_odd_answers_reach_no_decoder_and_are_errors_of_ours() -> None:
    """Charsets, halves of characters, depth, digits, cookies, heads, what is no HTTP, nothing, a reset, long ones."""
    for place, (plan, kind) in enumerate(ODD):
        came, _, _ = ask(plan)
        assert (type(came).__name__ if isinstance(came, ModelError) else "reply") == kind, place
        assert len(str(came)) < 2000


def test_50_a_reply_that_is_too_long_to_be_the_form_is_not_read() -> None:
    class Colors(Reply):
        colors: list[str]

    characters, values = '{"colors": ["' + "a" * 300_000 + '"]}', '{"colors": [' + "1," * 100_000 + "1]}"
    for text in (characters, values, "{x}" * 80_000):
        with pytest.raises(ReplyInvalid, match=r"longer than 262,144 characters, or 10,000 values") as caught:
            parse_reply(text, Colors)
        assert len(caught.value.raw) == 2000
    most = '{"colors": ["' + "a" * (LONGEST_REPLY - 16) + '"]}'
    assert len(parse_reply(most, Colors).colors[0]) == LONGEST_REPLY - 16


def test_50_the_key_is_hidden_however_a_server_writes_it() -> None:
    spelled = "".join(f"\\u{ord(sign):04x}" for sign in CANARY)
    body = json.dumps(REPLY | said("?")).replace("?", spelled).encode()
    came, _, _ = ask(lambda: [answer(body)])
    assert came.text == "***"
    for message in (spelled, CANARY[:5] + "\\u200b" + CANARY[5:]):
        body = f'{{"error": {{"message": "{message}", "code": "{message}"}}}}'.encode()
        came, _, _ = ask(lambda body=body: [answer(body, 400)])
        assert "***" in str(came)
        assert CANARY not in str(came)
