"""Any OpenAI-compatible server (OpenAI, vLLM, Ollama, llama.cpp, LiteLLM ...) as a `Model`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from fairagent.errors import (
    BudgetExceeded,
    FatalModelError,
    ModelError,
    ReplyError,
    ReplyInvalid,
    ReplyRefused,
    ReplyTruncated,
    TransientModelError,
)
from fairagent.llm.capabilities import IGNORED, json_schema
from fairagent.llm.exchange import attempt
from fairagent.llm.replies import without_thoughts
from fairagent.llm.request import (
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolCalls,
    check_room,
    estimate_tokens,
    longest_reply,
)
from fairagent.llm.server import (
    MOST_VALUES,
    Body,
    Call,
    Refused,
    ServerModel,
    TokenCount,
    broken_off,
)
from fairagent.storage.readers import parse_json
from fairagent.types import Usage
from fairagent.types.clean import logger

log = logger(__name__)

LONGER = 2
"""By this factor a reply that was cut off may be longer at its second and last try."""
CUT_OFF = f"cut off, asked again for up to {LONGER} times the tokens"

_MARKS = re.compile(r"[\s\W_]+")

LogProbability = Annotated[float, Field(le=1e-3, allow_inf_nan=False)]
"""At most 0, but for rounding: beyond it, nothing that a server reports of chances can be believed."""


class _TokenChance(BaseModel):
    token: str
    logprob: LogProbability


class _TokenPlace(_TokenChance):
    top_logprobs: list[_TokenChance] = Field([], fail_fast=True)


class _Logprobs(BaseModel):
    content: list[_TokenPlace] = Field(fail_fast=True)


def chances_of(logprobs: object, letters: str) -> tuple[tuple[str, float], ...]:
    """The chance of each of the `letters`, in (0, 1] and together at most 1; () where not all of them are reported.

    `logprobs` is that of a chat completion's choice, whatever it is. The answer begins with the first token of letters
    alone, marks aside; in a JSON object, with the first one of its value. A token that begins with a letter counts for
    it: "BA" is a vote for B.

    >>> top = [{"token": "A", "logprob": math.log(0.6)}, {"token": " B", "logprob": math.log(0.3)}]
    >>> [(letter, round(p, 3)) for letter, p in chances_of({"content": [{**top[0], "top_logprobs": top}]}, "AB")]
    [('A', 0.6), ('B', 0.3)]
    """
    try:
        places = _Logprobs.model_validate(logprobs).content
    except ValidationError:
        return ()
    whole = "".join(place.token for place in places)
    left, first, colon = len(whole) - len(without_thoughts(whole)), "", False
    for place in places:
        left -= len(place.token)
        if left >= 0:
            continue
        bare = _MARKS.sub("", place.token)
        # An object's value comes after its key.
        if bare and set(bare) <= set(letters) and (colon or first != "{"):
            break
        first = first or place.token.lstrip()[:1]
        colon = colon or (first == "{" and ":" in place.token)
        if bare and first != "{":
            # Prose is no answer.
            return ()
    else:
        return ()
    chances = dict.fromkeys(letters, 0.0)
    for token in place.top_logprobs:
        bare = _MARKS.sub("", token.token)
        if bare and set(bare) <= set(letters):
            chances[bare[0]] += math.exp(token.logprob)
    # A sum of a little more than 1 is rounded, and not made up.
    return tuple(chances.items()) if all(chances.values()) and sum(chances.values()) <= 1.01 else ()


CALLS = '{"calls":'
"""How a reply begins that came as calls of tools."""
NO_COUNT = "the server's count of tokens cannot be right: estimated"


def _joined_parts(content: object) -> object:
    """The text of a message's content, which some servers send as a list of parts, thoughts among them."""
    if not isinstance(content, list):
        return content
    return "".join(
        str(part.get("text") or "") for part in content if isinstance(part, dict) and part.get("type") == "text"
    )


def _written(arguments: object) -> object:
    return json.dumps(arguments) if isinstance(arguments, dict) else arguments or ""


class _Function(BaseModel):
    name: str | None = None
    arguments: Annotated[str, BeforeValidator(_written)] = ""


class _ToolCall(BaseModel):
    index: int | None = None
    function: _Function = _Function()


def _tool_calls(calls: Iterable[_ToolCall]) -> str:
    """The calls of a reply as the text of `ToolCalls`."""
    made = []
    for one in calls:
        value: Any = one.function.arguments
        with suppress(ValueError):
            value = parse_json(value or "{}")
        arguments = value if isinstance(value, dict) else one.function.arguments
        made.append(ToolCall(name=one.function.name or "", arguments=arguments))
    return ToolCalls(calls=made).model_dump_json()


def _with_turns(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages of a request with tools: earlier `ToolCalls` as such, each with an id that what it came to names."""
    turns: list[dict[str, Any]] = []
    ids: Iterator[str] = iter(())
    for number, (role, text) in enumerate(messages):
        turn: dict[str, Any] = {"role": role, "content": text}
        if role == "tool":
            turn["tool_call_id"] = next(ids)
        elif role == "assistant" and messages[number + 1][0] == "tool":
            # Nine letters and digits: Mistral takes no other ids.
            calls: list[dict[str, Any]] = [
                {
                    "id": f"call{number:02}{place:03}",
                    "type": "function",
                    "function": {"name": one.name, "arguments": one.text},
                }
                for place, one in enumerate(ToolCalls.model_validate_json(text).calls)
            ]
            ids, turn = iter([one["id"] for one in calls]), {"role": role, "content": None, "tool_calls": calls}
        turns.append(turn)
    return turns


class _ChatMessage(BaseModel):
    content: Annotated[str | None, BeforeValidator(_joined_parts)] = None
    reasoning_content: str | None = None
    tool_calls: list[_ToolCall] | None = Field(None, fail_fast=True)
    refusal: str | None = None


class _ChatChoice(BaseModel):
    message: _ChatMessage | None
    finish_reason: str | None = None
    logprobs: Any = None


class _ChunkChoice(BaseModel):
    delta: _ChatMessage | None = None
    finish_reason: str | None = None


class _PromptTokens(BaseModel):
    cached_tokens: TokenCount | None = None


class _ChatTokens(BaseModel):
    prompt_tokens: TokenCount
    completion_tokens: TokenCount


class _CachedTokens(BaseModel):
    """How many of the prompt's tokens the server had cached, as OpenAI tells it, or as DeepSeek does."""

    prompt_tokens_details: _PromptTokens | None = None
    prompt_cache_hit_tokens: TokenCount | None = None


class _ChatCompletion(Body):
    # Of a million wrong choices the first one says enough.
    choices: list[_ChatChoice] | None = Field(None, fail_fast=True)
    model: str | None = None


class _Chunk(Body):
    choices: list[_ChunkChoice] | None = Field(None, fail_fast=True)
    model: str | None = None


@dataclass(slots=True)
class _ChatCall(Call):
    """One `complete`, or one `stream` where there is an `on_text`; `pieces` of a stream have come so far."""

    request: ModelRequest = field(kw_only=True)
    on_text: Callable[[str], None] | None = None
    pieces: list[str] = field(default_factory=list)
    tries: int = 0
    longer: int = 1
    plain: bool = False
    cut_off: ReplyTruncated | None = None
    before: Usage = field(default_factory=Usage)

    def pass_on(self, piece: str) -> None:
        """Keep the next piece of the answer, and give it to `on_text`."""
        self.pieces.append(piece)
        if self.on_text:
            self.on_text(piece)

    @property
    def shown(self) -> str:
        """What was passed on so far."""
        return "".join(self.pieces) if self.on_text else ""


LONGEST_LINE = 1 << 20
"""The longest line of a stream, in bytes; a line holds a few words."""


def lines(chunks: Iterable[bytes], host: str) -> Iterator[str]:
    r"""The lines (UTF-8) of a body, as they come; they end with \n or \r\n, as those of a stream of events do.

    Raises ModelError for one without an end, and beyond half a million.

    >>> list(lines([b"da", b"ta: a\r\ndata: b\n", b"\ndata", b": \xe2\x80", b"\xa8"], "host"))
    ['data: a', 'data: b', '', 'data: \u2028']
    """
    rest, count = bytearray(), 0
    for chunk in chunks:
        rest += chunk
        if b"\n" in chunk:
            *ended, rest = rest.split(b"\n")
            count += len(ended)
            if count > MOST_VALUES:
                raise ModelError(f"{host} sent more than {MOST_VALUES:,} lines as one answer; the rest was not read")
            yield from (line.removesuffix(b"\r").decode("utf-8", "replace") for line in ended)
        if len(rest) > LONGEST_LINE:
            raise ModelError(f"{host} sent a line of more than {LONGEST_LINE >> 20} MB; the rest was not read")
    if rest:
        yield rest.removesuffix(b"\r").decode("utf-8", "replace")


class OpenAIModel(ServerModel):
    """A model behind a chat completion API; see `ServerModel`.

    A JSON reply is requested in the strictest form that the server takes (`Capabilities`).
    """

    def identity(self, request: ModelRequest) -> dict[str, Any]:
        """Everything that may change the reply, but for what the server refuses, as plain values without a secret."""
        identity = {"server": self.endpoint.base_url, **self._full_payload(request)}
        if request.reply is not None:
            identity["reply"] = json_schema(request)
        return identity if request.whole else {**identity, "whole": False}

    def payload(
        self, request: ModelRequest, longer: int = 1, streamed: bool = False, plain: bool = False
    ) -> dict[str, Any]:
        """The body of the request as this server takes it.

        `longer` multiplies the longest reply; `plain`: without a form of replies.
        """
        streamed = streamed or self.capabilities.known.streams_only
        options = {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
        return self.capabilities.shape(self._full_payload(request, longer) | options, request, plain)

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's answer; see `Model.complete`. Raises BudgetExceeded as well."""
        return self._run(request, None)

    def stream(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """The model's answer, piece by piece; see `StreamingModel.stream`. Raises BudgetExceeded as well.

        Until the first piece has come, what fails is tried again as in `complete`.
        """
        return self._run(request, on_text)

    def _full_payload(self, request: ModelRequest, longer: int = 1) -> dict[str, Any]:
        settings = self.settings
        payload: dict[str, Any] = {
            "model": settings.name,
            "messages": [{"role": role, "content": text} for role, text in request.messages],
            "temperature": settings.temperature if request.temperature is None else request.temperature,
            "max_tokens": longest_reply(settings, request.max_tokens, request.judged) * longer,
        }
        if request.seed is not None:
            payload["seed"] = request.seed
        if request.choices:
            payload |= {"logprobs": True, "top_logprobs": 20}  # the most that OpenAI allows
        if request.tools:
            functions = [
                {"name": name, "description": does, "parameters": arguments} for name, does, arguments in request.tools
            ]
            payload["tools"] = [{"type": "function", "function": function} for function in functions]
            payload |= {"tool_choice": "required", "messages": _with_turns(request.messages)}
        return payload

    def _run(self, request: ModelRequest, on_text: Callable[[str], None] | None) -> ModelReply:
        check_room(self.settings, request)
        call = _ChatCall(self._clock(), self.settings.deadline, request=request, on_text=on_text)

        def notes() -> tuple[str, ...]:
            retries = max(0, call.tries - 1)
            return (
                *([f"{retries} retr{'y' if retries == 1 else 'ies'}"] if retries else []),
                *([CUT_OFF] if call.cut_off and call.longer == LONGER else []),
                *self.capabilities.lacks(request),
            )

        # All attempts at a form are one turn of the breaker, so that of many threads one learns what the server takes.
        sort = (request.reply is not None, request.seed is not None, on_text is not None, bool(request.choices))
        reply, usage = self._repeat(lambda: self._attempt(call), sort, call, notes)
        return reply.with_usage(usage)

    def _attempt(self, call: _ChatCall) -> tuple[ModelReply, Usage]:
        """One try: a request, and again where the server could not take its form or cut the reply off."""
        call.tries += 1
        while True:
            payload = self.payload(call.request, call.longer, call.on_text is not None, call.plain)
            error: ModelError
            note: str | None = None
            try:
                reply = attempt(partial(self._post, payload, call), lambda: call.shown)
                if "tool_choice" not in payload or reply.text.startswith(CALLS):
                    self.capabilities.took(payload, call.plain)
                    return reply, reply.usage
                error, note = ReplyInvalid(IGNORED), self.capabilities.learn(payload, IGNORED)
                call.spent += reply.usage
            except Refused as refused:
                error, note = refused.error, self.capabilities.learn(payload, refused.body)
                last = isinstance(error, TransientModelError) and call.tries >= self.settings.attempts
                if last and "response_format" in payload and not self.capabilities.known.form_taken:
                    # A server that fails on the form alone (500) says nothing of it.
                    call.plain, note = True, note or "once more, without response_format"
            except ReplyTruncated as truncated:
                error = truncated
                if "tool_choice" in payload and not truncated.raw.startswith(CALLS):
                    note, call.spent = self.capabilities.learn(payload, IGNORED), call.spent + truncated.usage
                elif not call.shown and call.longer == 1:
                    call.longer, note = LONGER, CUT_OFF
                    call.cut_off, call.before, call.spent = truncated, call.spent, call.spent + truncated.usage
            except BudgetExceeded:
                if call.cut_off is None:
                    raise
                # No room for the longer try: the first one is what there is.
                error, call.cut_off, call.spent = call.cut_off, None, call.before
            if note is None:
                # Out of the handlers: what the server wrote in full must not be its context.
                raise error
            log.info("%s: %s", self, note)

    def _post(self, payload: dict[str, Any], call: _ChatCall) -> ModelReply:
        """One request, if the budget has room for it."""
        # An estimate may be too low by half where the text is no English prose; usage then settles it.
        most = payload.get("max_tokens") or payload["max_completion_tokens"]
        texts = (text for _, text in call.request.messages)
        tokens = estimate_tokens(*texts, *map(json.dumps, payload.get("tools", ()))), most
        read, given_up = partial(self._read, call), lambda: estimate_tokens(call.shown)
        return self._request("/chat/completions", payload, call, tokens, read, given_up, refusable=True)[0]

    def _read(self, call: _ChatCall, response: Any) -> tuple[ModelReply, Usage]:
        """The reply, whole or a stream, whatever was asked for, passed on as it comes."""
        call.pieces = []
        error: ModelError
        try:
            with closing(response):
                streams = "text/event-stream" in response.headers.get("content-type", "")
                if streams:
                    completion = self._joined(lines(response.iter_bytes(), self.endpoint.host), call)
                else:
                    response.read()
                    completion = self._read_body(_ChatCompletion, response, "a chat completion")
                reply = self._reply_of(completion, call.request)
                if not streams:
                    call.pass_on(reply.text)
                return reply, reply.usage
        except ModelError as raised:
            error = raised
        if call.shown and not error.usage.calls:
            if isinstance(error, TransientModelError):
                error = ModelError(f"{error}; it is not asked for again, since part of it was shown")
            read = estimate_tokens(*(text for _, text in call.request.messages))
            error.usage = Usage(1, read, estimate_tokens(call.shown), estimated=True)
        raise error

    def _joined(self, stream: Iterator[str], call: _ChatCall) -> _ChatCompletion:
        """The completion whose pieces are passed on as they come; TransientModelError where it ends too early."""
        whole, refusal, finish, complete = _ChatCompletion(), "", "", False
        calls: dict[int, _ToolCall] = {}
        for line in stream:
            # Whoever listens takes time as well.
            if self._clock() > call.end:
                raise TransientModelError(f"{self.endpoint.host} did not finish in time (model.deadline)")
            # Comments, which keep a connection open, and the other fields mean nothing here.
            name, _, content = line.partition(":")
            if name != "data" or not (content := content.strip()):
                continue
            if complete := content == "[DONE]":
                break
            try:
                chunk = _Chunk.model_validate_json(content)
            except ValidationError:
                raise broken_off(self.endpoint.host) from None
            if chunk.error:
                raise self._error_in_body(chunk.error)
            whole.model, whole.usage = chunk.model or whole.model, chunk.usage or whole.usage
            # The last chunk with the usage has no choice.
            for choice in (chunk.choices or ())[:1]:
                delta = choice.delta or _ChatMessage()
                finish, refusal = choice.finish_reason or finish, refusal + (delta.refusal or "")
                for place, part in enumerate(delta.tool_calls or ()):
                    begun = calls.setdefault(place if part.index is None else part.index, part).function
                    if begun is not part.function:
                        begun.name = begun.name or part.function.name
                        begun.arguments += part.function.arguments
                if piece := self.hide(delta.content or ""):
                    call.pass_on(piece)
        if not complete and not finish:
            raise broken_off(self.endpoint.host)
        message = _ChatMessage(content="".join(call.pieces), refusal=refusal, tool_calls=[*calls.values()] or None)
        whole.choices = [_ChatChoice(message=message, finish_reason=finish or "stop")]
        return whole

    def _reply_of(self, completion: _ChatCompletion, request: ModelRequest) -> ModelReply:
        """The reply in a completion; ModelError where there is none; cut off, refused and empty ones raise theirs."""
        quote = self.endpoint.quote
        if not completion.choices:
            # An empty list is this reply's fault, perhaps a content filter; none at all is another sort of server.
            kind = ModelError if "choices" in completion.model_fields_set else FatalModelError
            raise kind(f"{self.endpoint.host} answered without a reply (no choices); is it a chat completion API?")
        choice = completion.choices[0]
        name, finish = quote(completion.model or self.name), quote(choice.finish_reason or "stop")
        if choice.message is None or finish == "error":
            raise TransientModelError(f"{self.endpoint.host} broke off: a reply without a message, or with an error")
        content = choice.message.content or ""
        notes: tuple[str, ...] = ()
        if request.tools and choice.message.tool_calls:
            content = _tool_calls(choice.message.tool_calls)
        elif request.reply is not None and not content.strip():
            # A server's parser took the object for a tool call or for thoughts.
            if choice.message.tool_calls:
                content, notes = choice.message.tool_calls[0].function.arguments, ("the reply came as a tool call",)
            elif choice.message.reasoning_content:
                content, notes = choice.message.reasoning_content, ("the reply came as reasoning_content",)
        # Again: in the body the key may have been written in JSON's escapes.
        text, refusal = self.hide(content), choice.message.refusal or ""
        try:
            tokens, cached = _ChatTokens.model_validate(completion.usage), 0
            with suppress(ValidationError):
                own = _CachedTokens.model_validate(completion.usage)
                details = own.prompt_tokens_details or _PromptTokens()
                cached = min(details.cached_tokens or own.prompt_cache_hit_tokens or 0, tokens.prompt_tokens)
            counts = tokens.prompt_tokens, tokens.completion_tokens
            cost = self.cost(*counts, cached)
            reply = ModelReply(text, *counts, name, finish, notes=notes, cost=cost, cached_tokens=cached)
        except ValidationError:
            read, usage = estimate_tokens(*(message for _, message in request.messages)), completion.usage
            # A server may have counted, be it wrongly, or not at all.
            counted = isinstance(usage, dict) and None not in map(usage.get, _ChatTokens.model_fields)
            notes = (*notes, NO_COUNT) if counted else notes
            counts = read, estimate_tokens(text)
            reply = ModelReply(text, *counts, name, finish, notes=notes, cost=self.cost(*counts), estimated=True)
        error: ReplyError
        if choice.finish_reason == "length" and request.whole:
            error = ReplyTruncated(
                f"{name} was cut off after {reply.output_tokens} tokens; raise model.max_tokens in the settings, and "
                "max_tokens in the prompt template where it is lower",
                raw=text,
            )
        elif refusal or choice.finish_reason == "content_filter":
            reason = f": {quote(refusal)}" if refusal else " (content filter)"
            error = ReplyRefused(f"{name} declined to answer{reason}", raw=refusal or text)
        elif not text.strip():
            error = ReplyInvalid(f"{name} sent an empty reply")
        else:
            return replace(reply, chances=chances_of(choice.logprobs, request.choices) if request.choices else ())
        error.usage = reply.usage
        raise error
