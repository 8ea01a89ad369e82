"""The door against a scripted server: what is sent, how often, and what comes back or is raised."""

from __future__ import annotations

import json
import logging
import traceback

import pytest

from fairagent.errors import (
    FatalModelError,
    ModelError,
    ReplyInvalid,
    ReplyRefused,
    ReplyTruncated,
    TransientModelError,
)
from fairagent.llm import ModelRequest, Reply, ask

from .conftest import CANARY
from .server import ServerReply, completion, error

ASKED = ModelRequest((("system", "Name colors."), ("user", "Two, please, as JSON.")))


class Colors(Reply):
    colors: list[str]


COLORS = ModelRequest(ASKED.messages, reply=Colors)
GOOD = completion('{"colors": ["red", "blue"]}')
HTML = ServerReply("<!doctype html><html><body>Sign in</body></html>", content_type="text/html; charset=utf-8")


def in_body(**fields: object) -> ServerReply:
    return ServerReply({"error": {"message": "boom", **fields}})


def test_a_reply_with_its_usage(server, make_model, slept):
    server.script = [completion("red and blue")]
    reply = make_model().complete(ASKED)
    assert (reply.text, reply.model, reply.finish) == ("red and blue", "tiny-2026", "stop")
    assert (reply.input_tokens, reply.output_tokens, reply.estimated, reply.calls) == (11, 7, False, 1)
    assert reply.seconds > 0
    assert reply.usage.cost is None
    assert slept == []


def test_what_goes_over_the_wire(server, make_model):
    server.script = [GOOD]
    model = make_model(temperature=0.7, max_tokens=50)
    model.complete(ASKED)
    model.complete(ModelRequest(ASKED.messages, Colors, temperature=0.0, max_tokens=20, seed=3))
    model.complete(ModelRequest(ASKED.messages, max_tokens=500))
    messages = [{"role": "system", "content": "Name colors."}, {"role": "user", "content": "Two, please, as JSON."}]
    assert server.requests == [
        {"model": "tiny", "messages": messages, "temperature": 0.7, "max_tokens": 50},
        {
            "model": "tiny",
            "messages": messages,
            "temperature": 0.0,
            "max_tokens": 20,
            "seed": 3,
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": "Colors",
                    "strict": True,
                    "schema": {
                        "type": "object",
                        "properties": {"colors": {"type": "array", "items": {"type": "string"}}},
                        "required": ["colors"],
                        "additionalProperties": False,
                    },
                },
            },
        },
        {"model": "tiny", "messages": messages, "temperature": 0.7, "max_tokens": 50},
    ]
    assert server.paths == ["/v1/chat/completions"] * 3
    assert server.keys == [f"Bearer {CANARY}"] * 3


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_overload_is_tried_exactly_as_often_as_set(server, make_model, slept, status):
    server.script = [error(status, "out of breath")]
    with pytest.raises(TransientModelError, match=f"{status}: out of breath") as caught:
        make_model(attempts=4).complete(ASKED)
    assert len(server.requests) == 4
    assert caught.value.usage.calls == 4
    assert len(slept) == 3
    assert all(0 <= wait <= limit for wait, limit in zip(slept, [0.5, 1.0, 2.0], strict=True))


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (401, "invalid_api_key", "OPENAI_API_KEY"),
        (400, "invalid_api_key", "OPENAI_API_KEY"),
        (429, "insufficient_quota", "quota or credit"),
        (404, "model_not_found", "model.name ('tiny')"),
        (405, None, "model.base_url"),
    ],
)
def test_fatal_errors_are_asked_once(server, make_model, slept, status, code, advice):
    server.script = [error(status, f"no, {CANARY} is wrong", code)]
    with pytest.raises(FatalModelError) as caught:
        make_model().complete(ASKED)
    assert len(server.requests) == 1
    assert slept == []
    message = str(caught.value)
    assert message.startswith("127.0.0.1:")
    assert advice in message
    assert "no, *** is wrong" in message
    assert caught.value.usage.calls == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_is_not_accepted_says_nothing_about_the_next(server, make_model, status):
    server.script = [error(status, "context length exceeded", "context_length_exceeded")]
    with pytest.raises(ModelError, match=f"{status} context_length_exceeded: context length exceeded") as caught:
        make_model().complete(ASKED)
    assert type(caught.value) is ModelError
    assert len(server.requests) == 1


# answer, error, words of it, requests that are sent when 2 attempts are allowed
ODD_SUCCESSES = [
    (HTML, FatalModelError, "not a chat completion API (got text/html); check model.base_url", 1),
    (ServerReply('{"choices": [{"mess'), TransientModelError, "broke off", 2),
    (ServerReply(GOOD.body, cut=9), TransientModelError, "no connection", 2),
    (in_body(code=502), TransientModelError, "502: boom", 2),
    (in_body(code="server_error"), TransientModelError, "503 server_error: boom", 2),
    (in_body(), FatalModelError, "with an error: boom", 1),
    (in_body(code="content_filter"), ReplyRefused, "content_filter: boom", 1),
    (ServerReply({"choices": []}), ModelError, "no choices", 1),
    (ServerReply({"object": "list"}), FatalModelError, "no choices", 1),
    (completion(None), ReplyInvalid, "tiny-2026 sent an empty reply", 1),
    (completion(None, refusal="I cannot."), ReplyRefused, "declined to answer: I cannot.", 1),
    (completion("red", finish="content_filter"), ReplyRefused, "(content filter)", 1),
    (completion('{"colors": ["red"]}', finish="length"), ReplyTruncated, "after 7 tokens; raise model.max_tokens", 2),
]


@pytest.mark.parametrize(("answer", "kind", "words", "requests"), ODD_SUCCESSES)
def test_odd_successes(server, make_model, answer, kind, words, requests):
    server.script = [answer]
    with pytest.raises(kind) as caught:
        make_model(attempts=2).complete(ASKED)
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert len(server.requests) == requests
    assert caught.value.usage.calls == requests


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": -1, "completion_tokens": 1}, 7])
def test_missing_usage_is_estimated(server, make_model, usage):
    server.script = [completion("red and blue", usage=usage)]
    reply = make_model().complete(ASKED)
    assert reply.estimated
    # 12 + 21 and 12 bytes, four to a token
    assert (reply.input_tokens, reply.output_tokens) == (9, 3)


def test_the_key_is_shown_nowhere(server, make_model, caplog, slept):
    caplog.set_level(logging.DEBUG)
    echo = f"key {CANARY} echoed"
    server.script = [
        error(500, echo),
        completion(f'{{"colors": ["{CANARY}"]}}'),
        error(400, echo),
        completion(None, refusal=echo),
        completion(echo, finish="length"),
        completion(echo, finish="length"),
        error(429, echo, retry_after="900"),
    ]
    fatal = [error(401, echo), in_body(message=echo), ServerReply(echo, content_type="text/plain")]
    model = make_model()
    colors, _ = ask(model, ASKED, Colors)
    assert colors.colors == ["***"]
    shown = [repr(model), repr(model.endpoint), json.dumps(model.payload(COLORS)), repr(vars(model))]
    models = [model] * 4
    for answer in fatal:
        server.script.append(answer)
        models.append(make_model())
    for model in models:
        with pytest.raises(ModelError) as caught:
            model.complete(ASKED)
        shown += ["".join(traceback.format_exception(caught.value)), repr(vars(caught.value)), repr(caught.value)]
        assert caught.value.__context__ is None
    assert len(server.requests) == len(server.script)
    assert caplog.text
    assert CANARY not in "\n".join([*shown, caplog.text])
    assert server.keys == [f"Bearer {CANARY}"] * len(server.script)
