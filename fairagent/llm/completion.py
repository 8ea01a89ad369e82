"""Reading a chat completion, whole or streamed; malformed bodies that come with HTTP 200 become errors.

How likely a model found each of some letters as the beginning of its answer, as servers tell it (`top_logprobs`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from fairagent.errors import (
    FatalModelError,
    ReplyError,
    ReplyInvalid,
    ReplyRefused,
    ReplyTruncated,
    TransientModelError,
)
from fairagent.llm.connection import check_values
from fairagent.llm.endpoint import Endpoint
from fairagent.llm.faults import in_body, quote
from fairagent.llm.request import ModelReply, ModelRequest, estimate_tokens
from fairagent.types.clean import THOUGHTS

MOST = 1.01
"""The sum of chances up to which they are rounded, and not made up."""
_MARKS = re.compile(r"[\s\W_]+")


LogProbability = Annotated[float, Field(le=1e-3, allow_inf_nan=False)]
"""At most 0, but for rounding: beyond it, nothing that a server says of chances can be believed."""


class _Token(BaseModel):
    token: str
    logprob: LogProbability


class _Place(_Token):
    top_logprobs: list[_Token] = Field([], fail_fast=True)


class _Logprobs(BaseModel):
    content: list[_Place] = Field(fail_fast=True)


def chances_of(logprobs: object, letters: str) -> tuple[tuple[str, float], ...]:
    """The chance of each of the `letters`, in (0, 1] and together at most 1; () where not all of them are told.

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
    place = _beginning(places, letters)
    if place is None:
        return ()
    found = dict.fromkeys(letters, 0.0)
    for one in place.top_logprobs:
        if _is_answer(one.token, letters):
            found[_MARKS.sub("", one.token)[0]] += math.exp(one.logprob)
    return tuple(found.items()) if all(found.values()) and sum(found.values()) <= MOST else ()


def _beginning(places: list[_Place], letters: str) -> _Place | None:
    """The place at which the answer begins; None where it begins with something else."""
    texts = [place.token for place in places]
    thought = "".join(texts).rfind(THOUGHTS[1]) + len(THOUGHTS[1]) if THOUGHTS[1] in "".join(texts) else 0
    length, first, colon, value = 0, "", False, True
    for place in places:
        length += len(place.token)
        if length <= thought:
            continue
        if value and _is_answer(place.token, letters):
            return place
        first = first or place.token.lstrip()[:1]
        if first == "{":
            # An object's value comes after its key.
            colon = colon or ":" in place.token
            value = colon
        elif _MARKS.sub("", place.token):
            # Prose is no answer.
            return None
    return None


def _is_answer(token: str, letters: str) -> bool:
    bare = _MARKS.sub("", token)
    return bool(bare) and set(bare) <= set(letters)


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: Any = None


MOST_TOKENS = 100_000_000
"""More than any model reads or writes at once: a larger count is none."""
NO_COUNT = "the server's count of tokens cannot be right: estimated"


class _Tokens(BaseModel):
    # Strict: neither 3.5 nor true is a count.
    prompt_tokens: int = Field(ge=0, le=MOST_TOKENS, strict=True)
    completion_tokens: int = Field(ge=0, le=MOST_TOKENS, strict=True)


class _Completion(BaseModel):
    # Of a million wrong choices the first one says enough.
    choices: list[_Choice] | None = Field(None, fail_fast=True)
    error: Any = None
    model: str | None = None
    usage: Any = None


def read_completion(body: str, content_type: str, request: ModelRequest, endpoint: Endpoint, model: str) -> ModelReply:
    """The reply in `body`, which `model` sent as the answer to `request`.

    Raises FatalModelError (not a chat API, an error in the body, no choice), TransientModelError (broken off on the
    way, an overload in the body), ModelError (too many values), ReplyTruncated, ReplyRefused, ReplyInvalid (no text);
    the last three with `usage`.
    """
    completion = _parse(endpoint.hide(body), content_type, endpoint)
    if completion.error:
        raise in_body(completion.error, endpoint, model)
    if not completion.choices:
        raise FatalModelError(f"{endpoint.host} answered without a reply (no choices); is it a chat completion API?")
    choice = completion.choices[0]
    # Again: in the body the key may have been written in JSON's escapes.
    text, refusal = endpoint.hide(choice.message.content or ""), choice.message.refusal or ""
    reply = _counted(completion, text, choice.finish_reason or "stop", endpoint, request, model)
    fault: ReplyError
    if request.choices:
        reply = replace(reply, chances=chances_of(choice.logprobs, request.choices))
    if choice.finish_reason == "length" and request.whole:
        fault = ReplyTruncated(
            f"{reply.model} was cut off after {reply.output_tokens} tokens; raise model.max_tokens in the settings, "
            "and max_tokens in the prompt template where it is lower",
            raw=text,
        )
    elif refusal or choice.finish_reason == "content_filter":
        said = f": {quote(refusal, endpoint)}" if refusal else " (content filter)"
        fault = ReplyRefused(f"{reply.model} declined to answer{said}", raw=refusal or text)
    elif not text.strip():
        fault = ReplyInvalid(f"{reply.model} sent an empty reply")
    else:
        return reply
    fault.usage = reply.usage
    raise fault


def _parse(body: str, content_type: str, endpoint: Endpoint) -> _Completion:
    check_values(body, endpoint.host)
    try:
        return _Completion.model_validate_json(body)
    except ValidationError as error:
        cut_off = error.errors()[0]["type"] == "json_invalid" and "json" in content_type
    if cut_off:
        raise TransientModelError(f"the answer of {endpoint.host} broke off on the way")
    kind = quote(content_type.partition(";")[0], endpoint) or "no content type"
    raise FatalModelError(f"{endpoint.host} is not a chat completion API (got {kind}); check model.base_url")


def _counted(
    completion: _Completion, text: str, finish: str, endpoint: Endpoint, request: ModelRequest, model: str
) -> ModelReply:
    name, finish = quote(completion.model or model, endpoint), quote(finish, endpoint)
    try:
        tokens = _Tokens.model_validate(completion.usage)
    except ValidationError:
        read = estimate_tokens(*(message for _, message in request.messages))
        notes = (NO_COUNT,) if _counts(completion.usage) else ()
        return ModelReply(text, read, estimate_tokens(text), name, finish, estimated=True, notes=notes)
    return ModelReply(text, tokens.prompt_tokens, tokens.completion_tokens, name, finish)


def _counts(usage: object) -> bool:
    """Whether a server has counted at all, be it wrongly."""
    return isinstance(usage, dict) and None not in map(usage.get, _Tokens.model_fields)


STREAM = "text/event-stream"
"""The content type of a stream; a server that cannot stream sends a whole completion instead."""

_LAST = "[DONE]"


class _ChunkChoice(BaseModel):
    delta: _Message = _Message()
    finish_reason: str | None = None


class _Chunk(BaseModel):
    choices: list[_ChunkChoice] = Field([], fail_fast=True)
    error: Any = None
    model: str | None = None
    usage: Any = None


def read_stream(
    lines: Iterable[str], request: ModelRequest, endpoint: Endpoint, model: str, on_text: Callable[[str], None]
) -> ModelReply:
    """The reply whose pieces come in `lines`; `on_text` is told each as it comes.

    Raises what `read_completion` raises, when the stream is at its end; TransientModelError where it ends too early.
    """
    text, refusal, finish, name, usage = [], [], "", model, None
    complete = False
    for data in _events(lines):
        if data == _LAST:
            complete = True
            break
        chunk = _parse_chunk(data, endpoint)
        if chunk.error:
            raise in_body(chunk.error, endpoint, model)
        name, usage = chunk.model or name, chunk.usage or usage
        # The last chunk with the usage has no choice.
        for choice in chunk.choices[:1]:
            finish = choice.finish_reason or finish
            refusal.append(choice.delta.refusal or "")
            if piece := endpoint.hide(choice.delta.content or ""):
                text.append(piece)
                on_text(piece)
    if not complete and not finish:
        raise _broken_off(endpoint)
    message = {"content": "".join(text), "refusal": "".join(refusal)}
    whole = {"choices": [{"message": message, "finish_reason": finish or "stop"}], "model": name, "usage": usage}
    return read_completion(json.dumps(whole), "application/json", request, endpoint, model)


def _events(lines: Iterable[str]) -> Iterator[str]:
    """The data of each event; comments, which keep a connection open, and the other fields say nothing here."""
    for line in lines:
        field, _, value = line.partition(":")
        if field == "data" and value.strip():
            yield value.strip()


def _parse_chunk(data: str, endpoint: Endpoint) -> _Chunk:
    try:
        return _Chunk.model_validate_json(data)
    except ValidationError:
        raise _broken_off(endpoint) from None


def _broken_off(endpoint: Endpoint) -> TransientModelError:
    return TransientModelError(f"the answer of {endpoint.host} broke off on the way")
