"""The door against a scripted server: what is sent, how often, and what comes back or is raised."""

from __future__ import annotations

import json
import logging
import math
import threading
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from fairagent.errors import (
    FatalModelError,
    ModelError,
    ReplyInvalid,
    ReplyRefused,
    ReplyTruncated,
    TransientModelError,
)
from fairagent.guests.testing import LoopbackServer as Server
from fairagent.guests.testing import ServerReply, completion, error, streamed
from fairagent.llm import ModelRequest, Reply, StreamingModel, ask
from fairagent.llm.budget import Budget, Ledger
from fairagent.llm.cache import ReplyCache
from fairagent.llm.capabilities import FORMS, Capabilities, json_schema
from fairagent.llm.models import CachingModel
from fairagent.llm.openai import chances_of
from fairagent.llm.request import ModelReply, list_within, one_for_each, text_like, text_within
from fairagent.settings import BudgetSettings, Price

from .conftest import CANARY, MakeModel
from .hostile import HostileServer
from .test_cache import Scripted

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
    assert (reply.text, reply.model, reply.finish, reply.calls) == ("red and blue", "tiny-2026", "stop", 1)
    assert (reply.input_tokens, reply.output_tokens, reply.estimated) == (11, 7, False)
    assert reply.seconds > 0
    assert (reply.usage.cost, slept) == (None, [])


def test_what_goes_over_the_wire(server, make_model):
    server.script = [GOOD]
    model = make_model(temperature=0.7, max_tokens=50)
    model.complete(ASKED)
    model.complete(ModelRequest(ASKED.messages, Colors, temperature=0.0, max_tokens=20, seed=3))
    model.complete(ModelRequest(ASKED.messages, max_tokens=500))
    messages = [{"role": "system", "content": "Name colors."}, {"role": "user", "content": "Two, please, as JSON."}]
    plain = {"model": "tiny", "messages": messages, "temperature": 0.7, "max_tokens": 50}
    form = {"type": "json_schema", "json_schema": json_schema(COLORS)}
    formed = plain | {"temperature": 0.0, "max_tokens": 20, "seed": 3, "response_format": form}
    assert server.requests == [plain, formed, plain]
    assert server.paths == ["/v1/chat/completions"] * 3
    assert server.keys == [f"Bearer {CANARY}"] * 3


def test_overload_is_tried_exactly_as_often_as_set(server, make_model, slept):
    server.script = [error(503, "out of breath")]
    with pytest.raises(TransientModelError) as caught:
        make_model(attempts=4).complete(ASKED)
    assert len(server.requests) == caught.value.usage.calls == 4
    assert len(slept) == 3
    assert all(0 <= wait <= limit for wait, limit in zip(slept, [0.5, 1.0, 2.0], strict=True))


SAID = f"no, {CANARY} is wrong"

# answer, error, words of it, requests that are sent when 2 attempts are allowed
WRONG = [
    *(
        (error(status, "out of breath"), TransientModelError, f"{status}: out of breath", 2)
        for status in (408, 409, 429, 500, 502, 503, 529)
    ),
    (error(401, SAID, "invalid_api_key"), FatalModelError, "no, *** is wrong. Set OPENAI_API_KEY", 1),
    (error(400, SAID, "invalid_api_key"), FatalModelError, "OPENAI_API_KEY", 1),
    (error(429, SAID, "insufficient_quota"), FatalModelError, "quota or credit", 1),
    (error(404, SAID, "model_not_found"), FatalModelError, "model.name ('tiny')", 1),
    (error(405, SAID), FatalModelError, "model.base_url", 1),
    *((error(status, "too long", "long"), ModelError, f"{status} long: too long", 1) for status in (400, 413, 422)),
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


@pytest.mark.parametrize(("answer", "kind", "words", "requests"), WRONG)
def test_what_is_no_reply_is_an_error_of_its_kind(server, make_model, answer, kind, words, requests):
    server.script = [answer]
    with pytest.raises(kind) as caught:
        make_model(attempts=2).complete(ASKED)
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert CANARY not in str(caught.value)
    assert len(server.requests) == caught.value.usage.calls == requests


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}, 7])
def test_missing_usage_is_estimated(server, make_model, usage):
    server.script = [completion("red and blue", usage=usage)]
    reply = make_model().complete(ASKED)
    # 12 + 21 and 12 bytes, four to a token
    assert (reply.input_tokens, reply.output_tokens, reply.estimated) == (9, 3, True)


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


WANTED = {"model": "tiny", "messages": [], "temperature": 0.3, "max_tokens": 400, "seed": 1}


class Named(Reply):
    """What the model is to think of it."""

    id: str
    passed: bool = Field(alias="pass")
    why: Annotated[str, text_within(20)]
    title: Literal["a", "b"] | None = None


class Bounded(Reply):
    """A form with every bound that there is."""

    words: Annotated[list[Annotated[str, text_like("^[^a]{1,3}$")]], list_within(2)]
    of: list[Named]


BOUNDED = ModelRequest((("user", "Hello"),), Bounded, narrowed={"of": one_for_each(Named, "id", ["x", "y"])})
NO_BOUNDS = "Invalid schema for response_format 'Bounded': 'maxLength' is not permitted."
WITHIN = {"minLength": 1, "maxLength": 20}


def closed(**properties: Any) -> dict[str, Any]:
    """A bare object with these properties, all of them required, and no other."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def named(*ids: str, **why: object) -> dict[str, Any]:
    id = {"type": "string", "enum": list(ids)} if ids else {"type": "string"}
    title = {"anyOf": [{"enum": ["a", "b"], "type": "string"}, {"type": "null"}]}
    return closed(id=id, **{"pass": {"type": "boolean"}}, why={"type": "string", **why}, title=title)


def schema_in(shaped: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = shaped["response_format"]["json_schema"]["schema"]
    return schema


def test_the_first_rung_bounds_every_text_and_list_and_names_each_item() -> None:
    items = {"type": "string", "pattern": "^[^a]{1,3}$"}
    each = [named("x", **WITHIN), named("y", **WITHIN)]
    assert schema_in(Capabilities().shape(WANTED, BOUNDED)) == {
        "$defs": {"Named": named(**WITHIN)},
        **closed(
            words={"type": "array", "items": items, "maxItems": 2},
            of={"type": "array", "prefixItems": each, "minItems": 2, "maxItems": 2},
        ),
    }


def test_a_server_that_takes_no_bounds_gets_the_schema_with_the_enums_alone() -> None:
    capabilities = Capabilities()
    assert capabilities.learn(capabilities.shape(WANTED, BOUNDED), NO_BOUNDS) == f"no response_format {FORMS[0]}"
    shaped = capabilities.shape(WANTED, BOUNDED)
    assert shaped["response_format"]["type"] == "json_schema"
    assert schema_in(shaped) == {
        "$defs": {"Named": named()},
        **closed(words={"type": "array", "items": {"type": "string"}}, of={"type": "array", "items": named("x", "y")}),
    }
    assert capabilities.lacks(BOUNDED) == (f"no response_format {FORMS[0]}",)


def test_each_refusal_is_one_rung_down() -> None:
    capabilities = Capabilities()
    for form in FORMS[:3]:
        shaped = capabilities.shape(WANTED, BOUNDED)
        assert capabilities.learn(shaped, "response_format: not supported") == f"no response_format {form}"
    assert "response_format" not in capabilities.shape(WANTED, BOUNDED)
    # A server without schemas has none with bounds either: that says nothing more.
    assert capabilities.lacks(BOUNDED) == ("no response_format json_schema", "no response_format json_object")


TOLD = {"A": 0.5, "B": 0.25, "The": 0.2}


def place(token: str, **told: float) -> dict[str, Any]:
    return {"token": token, "logprob": -1.0, "top_logprobs": [one(text, chance) for text, chance in told.items()]}


def one(token: str, chance: float) -> dict[str, Any]:
    return {"token": token, "logprob": math.log(chance)}


LETTERS, PROSE, BRACE = place("A", **TOLD), place("The", **TOLD), place("{", **TOLD)
MIXED = {"A": 0.2, " A": 0.1, "AB": 0.2, '"B': 0.25, "BAC": 0.05, "Bear": 0.1}


def after(*tokens: str) -> list[dict[str, Any]]:
    return [*(place(token, A=0.01, B=0.99) for token in tokens), LETTERS, place("B", A=0.9, B=0.1)]


@pytest.mark.parametrize(
    ("places", "letters", "told"),
    [
        # The answer begins with its first letter.
        (after(), "AB", {"A": 0.5, "B": 0.25}),
        (after(" "), "AB", {"A": 0.5, "B": 0.25}),
        (after("{", '"order', '":', ' "'), "AB", {"A": 0.5, "B": 0.25}),
        (after("<think>", "A", " or B?", "</think>", "\n"), "AB", {"A": 0.5, "B": 0.25}),
        # A token counts for the letter that it begins with.
        ([place("AB", **MIXED)], "AB", {"A": 0.5, "B": 0.25}),
        ([place("AB", **MIXED, C=0.1)], "ABC", {"A": 0.5, "B": 0.3, "C": 0.1}),
        # None are told where a letter is missing or the answer is prose.
        ([place("A", A=0.9)], "AB", {}),
        ([PROSE, LETTERS], "AB", {}),
        ([BRACE, LETTERS], "AB", {}),
    ],
)
def test_the_chances_of_letters(places: list[dict[str, Any]], letters: str, told: dict[str, float]) -> None:
    found = chances_of({"content": places}, letters)
    assert {letter: round(chance, 6) for letter, chance in found} == told


@pytest.mark.parametrize("logprobs", [None, {}, {"content": None}, {"content": [{"token": 3}]}, "none", []])
def test_what_a_server_sends_in_their_place_is_nothing(logprobs: object) -> None:
    assert chances_of(logprobs, "AB") == ()


QUESTION = ModelRequest((("user", "Which color?"),))


@pytest.fixture
def told() -> list[str]:
    return []


def test_the_pieces_are_told_as_they_are_and_counted(server: Server, make_model: MakeModel, told: list[str]) -> None:
    server.script = [streamed("red", " and", " blue")]
    reply = make_model(price=Price(input=1, output=10)).stream(QUESTION, told.append)
    assert told == ["red", " and", " blue"]
    assert (reply.text, reply.model, reply.finish) == ("red and blue", "tiny-2026", "stop")
    assert (reply.input_tokens, reply.output_tokens, reply.estimated, reply.calls) == (11, 7, False, 1)
    assert reply.cost == pytest.approx(81e-6)
    (sent,) = server.requests
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})


@pytest.mark.parametrize(("name", "left"), [("stream_options", {"stream"}), ("stream", set())])
def test_a_server_that_takes_no_stream_or_no_options_of_it(
    name: str, left: set[str], server: Server, make_model: MakeModel, told: list[str]
) -> None:
    server.script = lambda request: (
        error(400, f"Unrecognized request argument supplied: {name}")
        if name in request
        else (streamed("red", usage=None) if "stream" in request else completion("red"))
    )
    model = make_model()
    for _ in range(2):
        assert model.stream(QUESTION, told.append).text == "red"
    assert len(server.requests) == 3
    assert {"stream", "stream_options"} & server.requests[-1].keys() == left
    assert model.complete(QUESTION).notes == ()


def test_what_fails_before_the_first_piece_is_tried_again(
    server: Server, make_model: MakeModel, told: list[str], slept: list[float]
) -> None:
    server.script = [error(503), ServerReply("", content_type="text/event-stream"), streamed("red")]
    reply = make_model().stream(QUESTION, told.append)
    assert (reply.text, reply.calls, told, len(slept)) == ("red", 3, ["red"], 2)
    assert reply.notes == ("2 retries",)


BEGUN = streamed("red", " and", finish=None, usage=None, done=False)


@pytest.mark.parametrize(
    "broken",
    [
        BEGUN,
        replace(streamed("red", " and"), cut=200),
        replace(BEGUN, body=BEGUN.body + 'data: {"choices": [{"del\n\n'),
        replace(BEGUN, body=BEGUN.body + 'data: {"error": {"message": "overloaded", "code": 503}}\n\n'),
    ],
    ids=["no end", "connection cut", "half a chunk", "an error"],
)
def test_what_breaks_off_after_a_piece_is_an_error_and_no_retry(
    broken: ServerReply, server: Server, make_model: MakeModel, told: list[str], slept: list[float]
) -> None:
    server.script = [broken, streamed("blue")]
    with pytest.raises(ModelError, match="not asked for again, since part of it was shown") as caught:
        make_model().stream(QUESTION, told.append)
    assert not isinstance(caught.value, TransientModelError | FatalModelError)
    assert (told, len(server.requests), slept) == (["red", " and"], 1, [])
    assert (caught.value.usage.calls, caught.value.usage.output_tokens, caught.value.usage.estimated) == (1, 2, True)


def test_a_listener_that_has_gone_ends_it_and_the_budget_knows_what_came(server: Server, make_model: MakeModel) -> None:
    server.script = [streamed("red and green and", " blue")]
    budget = Budget(BudgetSettings(tokens=1000))

    def gone(piece: str) -> None:
        raise BrokenPipeError

    model = make_model(budget)
    with pytest.raises(BrokenPipeError):
        model.stream(QUESTION, gone)
    assert budget.used["tokens"] == 3 + 5
    assert budget.reserved["tokens"] == 0
    assert model.stream(QUESTION, lambda piece: None).text == "red and green and blue"


def test_a_piece_is_told_before_the_next_one_is_written(make_model: MakeModel) -> None:
    heard = threading.Event()

    def plan() -> Iterator[bytes]:
        first, _, rest = streamed("red", " and blue").body.partition("\n\n")
        yield b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + f"{first}\n\n".encode()
        if heard.wait(250):
            yield rest.encode()

    with HostileServer(plan) as slow:
        # The server waits until the first piece is heard.
        assert make_model(base_url=slow.url).stream(QUESTION, lambda piece: heard.set()).text == "red and blue"


class Stream(Scripted):
    """Streams its scripted answers word by word."""

    def stream(self, request: ModelRequest, on_text: Any) -> ModelReply:
        reply = self.complete(request)
        for word in reply.text.split(" "):
            on_text(word)
        return reply


def test_a_finished_stream_is_kept_and_a_hit_yields_its_text(cache: ReplyCache, told: list[str]) -> None:
    tally = Ledger()
    model = Stream(["red and blue"])
    door = CachingModel(model, cache, tally)
    assert isinstance(door, StreamingModel)
    assert not door.stream(QUESTION, told.append).cached
    assert told == ["red", "and", "blue"]
    told.clear()
    again = door.stream(QUESTION, told.append)
    assert (again.cached, again.text, told) == (True, "red and blue", ["red and blue"])
    assert door.complete(QUESTION).cached
    assert len(model.requests) == 1
    assert (tally.usage.calls, tally.usage.saved and tally.usage.saved.calls) == (1, 2)


def test_a_server_that_fails_on_the_form_alone_is_asked_once_without_it(
    server: Server, make_model: MakeModel, slept: list[float]
) -> None:
    server.script = lambda request: error(500) if "response_format" in request else GOOD
    model = make_model(attempts=3)
    value, usage = ask(model, COLORS, Colors)
    assert value.colors == ["red", "blue"]
    assert (usage.calls, len(slept)) == (4, 2)
    assert usage.notes == ("2 retries", "no response_format json_schema", "no response_format json_object")
    assert ask(model, COLORS, Colors)[1].calls == 1


def test_a_form_that_was_taken_once_is_not_given_up_for_an_overload(server: Server, make_model: MakeModel) -> None:
    server.script = [GOOD, error(500)]
    model = make_model(attempts=2)
    ask(model, COLORS, Colors)
    with pytest.raises(TransientModelError):
        ask(model, COLORS, Colors)
    assert all("response_format" in request for request in server.requests)
    # And where nothing helps, nothing is learned.
    server.script = [error(500)]
    model = make_model(attempts=2)
    with pytest.raises(TransientModelError):
        ask(model, COLORS, Colors)
    assert model.capabilities.lacks(COLORS) == ()


@pytest.mark.parametrize(
    ("more", "cost"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 900}}, 100 * 2 + 900 * 0.5 + 50),
        ({"prompt_tokens_details": {"cached_tokens": 900.0}, "prompt_tokens": 1000.0}, 100 * 2 + 900 * 0.5 + 50),
        ({"prompt_cache_hit_tokens": 400, "prompt_cache_miss_tokens": 600}, 600 * 2 + 400 * 0.5 + 50),
        # More than were sent cannot have been cached, and what is no count is none.
        ({"prompt_tokens_details": {"cached_tokens": 9000}}, 1000 * 0.5 + 50),
        ({"prompt_tokens_details": {"cached_tokens": -3}}, 1000 * 2 + 50),
        ({"prompt_tokens_details": None}, 1000 * 2 + 50),
    ],
)
def test_cached_tokens_have_their_own_price(
    server: Server, make_model: MakeModel, more: dict[str, Any], cost: float
) -> None:
    server.script = [completion("red", usage={"prompt_tokens": 1000, "completion_tokens": 5} | more)]
    budget = Budget()
    usage = make_model(budget, Price(input=2, output=10, cached=0.5)).complete(QUESTION).usage
    assert (usage.input_tokens, usage.estimated, usage.cost) == (1000, False, pytest.approx(cost / 1e6))
    assert budget.used["dollars"] == pytest.approx(cost / 1e6)


def test_a_server_that_does_nothing_but_stream_is_asked_for_streams(server: Server, make_model: MakeModel) -> None:
    # One that streams unasked is read all the same.
    server.script = [streamed("red", " and blue")]
    reply = make_model().complete(QUESTION)
    assert (reply.text, reply.input_tokens, reply.calls) == ("red and blue", 11, 1)
    refusal = error(400, "This model only support stream mode, please enable the stream parameter.")
    server.script = lambda request: streamed('{"colors": ', '["red"]}') if "stream" in request else refusal
    server.requests.clear()
    model = make_model()
    for requests in (2, 3):
        value, usage = ask(model, COLORS, Colors)
        assert (value.colors, usage.input_tokens, len(server.requests)) == (["red"], 11, requests)
    assert usage.notes == ("streamed, as the server does nothing else",)
