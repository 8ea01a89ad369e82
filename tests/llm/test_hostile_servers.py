"""Cases 5, 6, 8, 11, 12, 20, 45 to 50, 85 and 86: what a model's server does wrong, and what happens then.

What it does to a connection costs a stated time and memory and no more.
"""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluate import words
from evaluate.stereotypes import bench
from scripted import Engine, agent

from fairagent.errors import (
    BudgetExceeded,
    FatalModelError,
    ModelError,
    ReplyRefused,
    TransientModelError,
)
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.run import Results, load_run
from fairagent.evaluate.workers import threads
from fairagent.guests.testing import LoopbackServer, ScriptedModel, ServerReply, completion, error
from fairagent.llm import ModelRequest, Reply, ask
from fairagent.llm.budget import Budget
from fairagent.llm.models import Models
from fairagent.llm.openai import NO_COUNT, OpenAIModel
from fairagent.llm.prompts import Prompts
from fairagent.llm.server import MOST_TOKENS, Breaker
from fairagent.search.refine import LlmRefiner
from fairagent.settings import BudgetSettings, ModelSettings, Price

from .conftest import CANARY
from .hostile import REPLY, HostileServer, Plan, Step, answer, reply

ASKED = ModelRequest((("system", "Name colors."), ("user", "Two, please, as JSON.")))
PRICE = Price(input=1000.0, output=10000.0)


class Colors(Reply):
    colors: list[str]


TEXT = '{"colors": ["red", "blue"]}'
GOOD = completion(TEXT)


@pytest.mark.parametrize("given", ["3600", "Tue, 01 Jan 2999 00:00:00 GMT"])
def test_05_no_wait_is_longer_than_the_deadline(server, make_model, slept, given):
    server.script = [error(503, retry_after=given)]
    with pytest.raises(TransientModelError):
        make_model().complete(ASKED)
    assert (slept, len(server.requests)) == ([], 1)


BROKEN = {
    "slow": ServerReply(GOOD.body, delay=0.5),
    "reset": ServerReply(hang_up=True),
    "cut": ServerReply(GOOD.body, cut=5),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
def test_06_what_broke_off_is_counted_and_charged_once(server, make_model, fault):
    longest = 20
    # Room for one call and its successor's reservation (the two texts are 9 tokens), and not for a second charge.
    budget = Budget(BudgetSettings(calls=3, tokens=18 + 9 + longest))
    model = make_model(budget, PRICE, timeout=0.2, max_tokens=longest)
    server.script = [fault, GOOD]
    # One that was silent from the first is not tried again.
    model.breaker.run(str)
    usage = model.complete(ASKED).usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (2, 11, 7)
    assert usage.cost == pytest.approx(0.011 + 0.07)
    assert model.complete(ASKED).usage.calls == 1
    with pytest.raises(BudgetExceeded):
        model.complete(ASKED)
    assert len(server.requests) == 3


UNSUPPORTED = [
    (
        *("temperature", {}, "no temperature"),
        error(
            *(400, "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1) is."),
            *("unsupported_value", "temperature"),
        ),
    ),
    (
        *("max_tokens", {"max_completion_tokens": 400}, "max_completion_tokens in place of max_tokens"),
        error(
            *(400, "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens'."),
            *("unsupported_parameter", "max_tokens"),
        ),
    ),
    ("seed", {}, "no seed", error(422, "seed: Extra inputs are not permitted")),
    ("temperature", {}, "no temperature", error(400, "`temperature` is deprecated for this model.")),
    ("temperature", {}, "no temperature", error(400, "invalid temperature: only 1 is allowed for this model")),
]


@pytest.mark.parametrize(("name", "instead", "note", "refusal"), UNSUPPORTED)
def test_08_a_parameter_is_dropped_once_and_the_real_ones_are_noted(server, make_model, name, instead, note, refusal):
    server.script = lambda request: refusal if name in request else GOOD
    model, request = make_model(), ModelRequest(ASKED.messages, seed=7)
    usages = [model.complete(request).usage for _ in range(2)]
    assert [usage.calls for usage in usages] == [2, 1]
    assert [usage.notes for usage in usages] == [(note,)] * 2
    given = server.requests[0]
    assert server.requests[1] == server.requests[2] == {k: v for k, v in given.items() if k != name} | instead
    assert server.requests[2] == model.payload(request)


@pytest.mark.parametrize(
    "words",
    [
        "System role not supported",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    ],
)
def test_08_a_server_without_a_system_role_gets_its_text_with_the_users(server, make_model, words):
    server.script = lambda request: error(400, words) if request["messages"][0]["role"] == "system" else GOOD
    model, request = make_model(), ModelRequest((("system", "Name colors."), ("user", "Which?")))
    assert [model.complete(request).usage.calls for _ in range(2)] == [2, 1]
    assert server.requests[-1]["messages"] == [{"role": "user", "content": "Name colors.\n\nWhich?"}]


def test_11_a_reply_that_was_cut_off_is_asked_for_once_more(server, make_model):
    server.script = [completion('{"colors": ["red"]}', finish="length", usage=(11, 30)), GOOD]
    reply = make_model(price=PRICE, max_tokens=30).complete(ModelRequest(ASKED.messages, Colors))
    assert [request["max_tokens"] for request in server.requests] == [30, 60]
    assert reply.text == TEXT
    usage = reply.usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (2, 22, 37)
    assert usage.cost == pytest.approx(0.022 + 0.37)
    assert any("cut off" in note for note in usage.notes)


REFUSALS = {
    "refusal": completion(None, refusal="I cannot help with that."),
    "filter": completion("", finish="content_filter"),
    "status": error(400, "The prompt was filtered", "content_filter"),
}


@pytest.mark.parametrize("answer", REFUSALS.values(), ids=REFUSALS)
def test_12_a_refusal_ends_the_refinement_and_not_the_search(server, make_model, answer):
    server.script = [answer]
    refiner = LlmRefiner(make_model(), Prompts())
    result = agent(Engine({"q": "m1 m2 m3 m4 f1 f2"}), refiner).search("q")
    assert result.trace.stopped.startswith("refused: ")
    assert len(result.ranking) == 4
    # Not corrected, not repeated, and not to be taken for a reply.
    assert (len(server.requests), result.trace.usage.calls) == (1, 1)
    with pytest.raises(ReplyRefused):
        refiner.model.complete(ASKED)


def test_20_a_correction_does_not_grow():
    huge = json.dumps({"colors": "red" * 5000, **{f"key{i}" * 100: i for i in range(50)}})
    model = ScriptedModel(["first " * 1000, huge, TEXT])
    ask(model, ASKED, Colors)
    first, second, third = (request.messages for request in model.requests)
    for corrected in (second, third):
        assert [role for role, _ in corrected] == ["system", "user"]
        assert corrected[0] == first[0]
        assert corrected[1][1].startswith(first[1][1])
        assert len(corrected[1][1]) < len(first[1][1]) + 1500
    # Each of them tells of the last fault alone.
    assert ["no JSON object" in one[1][1] for one in (second, third)] == [True, False]
    assert "first first" not in second[1][1]


def bench_run(folder: Path, **model: Any) -> Results:
    """A small benchmark of stereotypes, judged by the server's model."""
    text = bench.write_stereoset(folder / "benchmark.txt").read_text(encoding="utf-8")
    if "context" in model:
        long = text.replace('"The nurse is good."', f'"{"The nurse is good. " * 200}"')
        (folder / "benchmark.txt").write_text(long, encoding="utf-8")
    systems = {"alone": {"profile": "engine", "engine": "none", "model": {"name": "tiny", "attempts": 1, **model}}}
    about = {"kind": "stereoset", "name": "small", "questions": {"path": "benchmark.txt"}, "systems": systems}
    with threads(1) as workers:
        return run_experiment(check_experiment(words.write(folder, json.dumps(about))), folder / "run", workers)


@pytest.fixture
def judging(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> LoopbackServer:
    """The server of the environment answers the benchmark."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("FAIRAGENT_CACHE", "''")
    server.script = bench.model
    return server


def test_85_what_does_not_fit_is_not_sent_and_the_others_are_asked(judging: LoopbackServer, tmp_path: Path) -> None:
    model = Models().open(ModelSettings(name="tiny", context=149, max_tokens=50))
    with pytest.raises(ModelError, match=r"about 100 tokens .* 149 tokens"):
        model.complete(ModelRequest((("user", "word " * 80),)))
    assert judging.requests == []
    run = bench_run(tmp_path, max_tokens=20, context=600)
    failed = {one.topic: str(one.failed) for one in run.outcomes if one.failed}
    assert list(failed) == ["q4"]
    assert "600 tokens" in failed["q4"]
    assert len(judging.requests) == 3


def test_86_what_is_done_stays_and_the_same_run_goes_on(judging: LoopbackServer, tmp_path: Path) -> None:
    down = [False, False, True, True]

    def answer(request: dict[str, object]) -> ServerReply:
        reply = bench.model(request)
        return replace(reply, cut=20) if down and down.pop(0) else reply

    judging.script = answer
    assert [bool(one.failed) for one in bench_run(tmp_path).outcomes] == [False, False, True, True]
    assert len(judging.requests) == 4
    assert not any(one.failed for one in bench_run(tmp_path).outcomes)
    assert len(judging.requests) == 6
    assert load_run(tmp_path / "run").excluded == {}


# 45 to 50.

EVENT = b'data: {"choices": [{"delta": {"content": "red "}}]}\n\n'
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


def said(text: str, finish: str = "stop") -> dict[str, Any]:
    """The field `choices` of a reply that says this."""
    return {"choices": [{"message": {"content": text}, "finish_reason": finish}]}


def packed(body: bytes, wbits: int = 31) -> bytes:
    """`body` as gzip, or as zlib with 15."""
    pack = zlib.compressobj(wbits=wbits)
    return pack.compress(body) + pack.flush()


def asked(plan: Plan, stream: bool = False, budget: Budget | None = None, **settings: Any) -> tuple[Any, int]:
    """What the server's answer comes to, and how many requests it got."""
    with HostileServer(plan) as server:
        given = ModelSettings(**{"name": "tiny", "base_url": server.url, "attempts": 1, **settings})
        price = Price(input=1, output=1)
        model = OpenAIModel(given, {"OPENAI_API_KEY": CANARY}, budget, price, sleep=lambda _: None)
        question = ModelRequest((("user", "Which color?"),))
        try:
            came: Any = model.stream(question, lambda piece: None) if stream else model.complete(question)
        except ModelError as error:
            came = error
        finally:
            model.close()
        return came, len(server.requests)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_45_a_redirect_is_not_followed_and_names_the_new_host(stream: bool) -> None:
    with HostileServer(lambda: [reply()]) as other:
        place = other.url.replace("http://", f"http://user:{CANARY}@")
        for status in (300, 301, 302, 303, 307, 308, 399):
            plan = [answer(b"", status, location=place)]
            came, requests = asked(lambda plan=plan: plan, stream, Budget(BudgetSettings(calls=3)), attempts=5)
            assert type(came) is FatalModelError
            assert f"answered {status}: it sends requests on to {other.url.removesuffix('/v1')}, where" in str(came)
            assert CANARY not in str(came)
            assert (requests, came.usage.calls, other.requests) == (1, 1, [])


def unending(piece: bytes, pause: float, begin: bytes = b"") -> Plan:
    def plan() -> Iterator[Step]:
        yield begin
        while True:
            yield piece
            yield pause

    return plan


def dripped(sent: bytes) -> Plan:
    """A byte at a time, with a pause after each."""
    return lambda: (step for byte in sent for step in (bytes([byte]), 0.1))


DRIPS: dict[str, tuple[Plan, bool]] = {
    "nothing at all": (unending(b"", 1.0), False),
    "the status": (dripped(HEAD), False),
    "headers without an end": (unending(b"x", 0.1, HEAD + b"X: "), False),
    "interim answers": (unending(b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.01), True),
    "a body": (dripped(reply()), False),
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
    begun = time.monotonic()
    came, requests = asked(plan, stream, timeout=0.5, deadline=1.0)
    assert isinstance(came, ModelError if stream else TransientModelError)
    assert not isinstance(came, FatalModelError)
    assert requests == 1
    assert time.monotonic() - begun > 0.4


STREAM = "text/event-stream"


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
    """A thousand megabytes of `unit`, a thousandth as long; without an end, since nobody shall get there."""
    pack, megabyte = zlib.compressobj(9, wbits=wbits), unit * ((1 << 20) // len(unit))
    begin, block = (pack.compress(megabyte) + pack.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    body = begin + block * 999
    assert len(body) < 3 << 20
    return lambda: [answer(body, content_encoding=coding, content_type=kind)]


TOO_MUCH: list[tuple[Plan, bool, str]] = [
    (gigabyte("gzip", 31), False, "sent more than 16 MB as one answer; the rest was not read"),
    (gigabyte("deflate", 15), False, "sent more than 16 MB"),
    (lambda: [answer(b"\x0b\x02\x80", content_encoding="br")], False, "packed its answer in a way"),
    (lambda: [answer(packed(packed(b"x")), content_encoding="gzip, gzip")], False, "'gzip, gzip'"),
    (large(b" ", 50), False, "sent more than 16 MB"),
    (lambda: [answer(b"x" * (50 << 20), 500)], False, "answered 500"),
    (nested(b"choices", b"{},"), False, "more than 500,000 values"),
    (nested(b"choices", b'{"a":1},', 1), False, "not a chat completion API"),
    (nested(b"logprobs", b'["a"],', 1), False, "no choices"),
    (nested(b"usage", b"[", 15), False, "more than 500,000 values"),
    (large(b"x", 3, STREAM), True, "sent a line of more than 1 MB"),
    (large(EVENT, 50, STREAM), True, "sent more than 500,000 lines"),
    (large(b":" + b"x" * 1022 + b"\n", 50, STREAM), True, "sent more than 16 MB"),
    (gigabyte("gzip", 31, EVENT, STREAM), True, "sent more than 500,000 lines"),
]


def memory(which: str) -> int:
    """The kilobytes that this process has in memory (VmRSS), or has had at most (VmHWM)."""
    return int(Path("/proc/self/status").read_text().partition(f"{which}:")[2].split()[0])


@pytest.mark.parametrize(("plan", "stream", "named"), TOO_MUCH)
def test_47_no_more_is_read_than_is_stated(plan: Plan, stream: bool, named: str) -> None:
    Path("/proc/self/clear_refs").write_text("5")  # the most begins anew
    before = memory("VmRSS")
    came, _ = asked(plan, stream)
    assert isinstance(came, ModelError)
    assert named in str(came)
    # The server's part of it is below 60 MB.
    assert memory("VmHWM") - before < 180_000


def test_47_an_answer_that_is_packed_without_being_asked_for_is_read() -> None:
    body = json.dumps(REPLY | said("red" * 100_000)).encode()
    for coding, wbits in (("gzip", 31), ("X-GZIP ", 31), ("deflate", 15), ("identity", 0)):
        sent = answer(packed(body, wbits) if wbits else body, content_encoding=coding)
        assert asked(lambda sent=sent: [sent])[0].text == "red" * 100_000
    broken = packed(body)[:-900] + b"\xff" * 900
    came, requests = asked(lambda: [answer(broken, content_encoding="gzip")], attempts=2)
    assert isinstance(came, TransientModelError)
    assert "broke off" in str(came)
    assert requests == 2


@pytest.mark.parametrize("count", ["1" + "0" * 400, "-5", "3.5", "true", '"12"', str(MOST_TOKENS + 1)])
def test_48_a_count_of_tokens_that_cannot_be_is_estimated_and_noted(count: str) -> None:
    budget = Budget(BudgetSettings(tokens=10_000, dollars=1.0))
    for field in ("prompt_tokens", "completion_tokens"):
        usage = {"prompt_tokens": 11, "completion_tokens": 7} | {field: "?"}
        body = json.dumps(REPLY | {"usage": usage}).replace('"?"', count).encode()
        came, _ = asked(lambda body=body: [answer(body)], budget=budget)
        # 12 bytes were asked and 19 answered, four to a token.
        assert (came.input_tokens, came.output_tokens, came.estimated, came.notes) == (3, 5, True, (NO_COUNT,))
        assert came.cost == pytest.approx(8e-6)


def test_49_the_first_request_holds_up_the_others_no_longer_than_its_time() -> None:
    """The first one is stuck; the others, who have more time, go on when its time is over."""
    breaker, stuck = Breaker(), threading.Event()
    with ThreadPoolExecutor(5) as pool:
        late = pool.submit(breaker.run, lambda: "late" if stuck.wait() else "never", None, 0.3)
        time.sleep(0.1)
        others = [pool.submit(breaker.run, lambda: "fine", None, 3000.0) for _ in range(4)]
        try:
            assert [other.result(timeout=250) for other in others] == ["fine"] * 4
        finally:
            stuck.set()
        assert late.result(timeout=250) == "late"
    assert breaker.run(lambda: "still fine") == "still fine"


ODD: list[tuple[Plan, str]] = [
    (lambda: [answer(json.dumps(REPLY).encode(), content_type="application/json; charset=utf-7")], "reply"),
    (lambda: [answer(packed(b" " * 20_000_000, 15), content_type="application/json; charset=zlib")], "Transient"),
    (lambda: [answer(b"no", 400, content_type="text/plain; charset=base64_codec")], ""),
    (lambda: [reply(model="?").replace(b"?", b"\xff")], "reply"),
    (lambda: [reply(model="\ud800")], "Transient"),
    (lambda: [answer(b"[" * 500)], "Transient"),
    (lambda: [answer(b'{"error":' * 900 + b"1" + b"}" * 900, 400)], ""),
    (lambda: [answer(b'{"code": ' + b"9" * 9000 + b"}", 400)], ""),
    (lambda: [b"HTTP/1.1 200 X\r\ncontent-length: " + b"9" * 5000 + b"\r\n\r\n"], "Transient"),
    (lambda: [answer(json.dumps(REPLY).encode(), set_cookie="a=b; expires=" + "0" * 5000)], "reply"),
    (lambda: [HEAD + b"X: " + b"x" * 200_000], "Transient"),
    (lambda: [b"220 smtp.example.org ESMTP\r\n"], "Transient"),
    (lambda: [], "Transient"),
    (lambda: [HEAD, None], "Transient"),
    (lambda: [reply(**said("red", "x" * 100_000))], "reply"),
]


def test_50_odd_answers_reach_no_decoder_and_are_errors_of_ours() -> None:
    """Charsets, halves of characters, depth, digits, cookies, heads, what is no HTTP, nothing, a reset, long ones."""
    for place, (plan, kind) in enumerate(ODD):
        came, _ = asked(plan)
        assert (type(came).__name__ if isinstance(came, ModelError) else "reply") in (kind, f"{kind}ModelError"), place
        assert len(str(came)) < 2000


def test_50_the_key_is_hidden_however_a_server_writes_it() -> None:
    spelled = "".join(f"\\u{ord(sign):04x}" for sign in CANARY)
    body = json.dumps(REPLY | said("?")).replace("?", spelled).encode()
    assert asked(lambda: [answer(body)])[0].text == "***"
    for message in (spelled, CANARY[:5] + "\\u200b" + CANARY[5:]):
        body = f'{{"error": {{"message": "{message}", "code": "{message}"}}}}'.encode()
        came, _ = asked(lambda body=body: [answer(body, 400)])
        assert "***" in str(came)
        assert CANARY not in str(came)
