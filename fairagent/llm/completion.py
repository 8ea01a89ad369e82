"""Reading a chat completion, whole or streamed, and the chances of letters as its beginning (`top_logprobs`)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from fairagent.errors import FatalModelError, ReplyError, ReplyInvalid, ReplyRefused, ReplyTruncated
from fairagent.llm.endpoint import Endpoint
from fairagent.llm.faults import Body, TokenCount, broken_off, in_body, quote, read_body
from fairagent.llm.request import ModelReply, ModelRequest, estimate_tokens
from fairagent.types.clean import THOUGHTS

LARGEST_SUM = 1.01
"""The sum of chances up to which they are rounded, and not made up."""
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
        place = _beginning(_Logprobs.model_validate(logprobs).content, letters)
    except ValidationError:
        return ()
    chances = dict.fromkeys(letters, 0.0)
    for token in place.top_logprobs if place else ():
        if _is_answer(token.token, letters):
            chances[_MARKS.sub("", token.token)[0]] += math.exp(token.logprob)
    return tuple(chances.items()) if all(chances.values()) and sum(chances.values()) <= LARGEST_SUM else ()


def _beginning(places: list[_TokenPlace], letters: str) -> _TokenPlace | None:
    """The place at which the answer begins; None where it begins with something else."""
    before, end_of_thoughts, _ = "".join(place.token for place in places).rpartition(THOUGHTS[1])
    thought = len(before) + len(end_of_thoughts)
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


class _ChatMessage(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _ChatChoice(BaseModel):
    message: _ChatMessage
    finish_reason: str | None = None
    logprobs: Any = None


NO_COUNT = "the server's count of tokens cannot be right: estimated"


class _ChatTokens(BaseModel):
    prompt_tokens: TokenCount
    completion_tokens: TokenCount


class _ChatCompletion(Body):
    # Of a million wrong choices the first one says enough.
    choices: list[_ChatChoice] | None = Field(None, fail_fast=True)
    model: str | None = None


def read_completion(body: str, content_type: str, request: ModelRequest, endpoint: Endpoint, model: str) -> ModelReply:
    """The reply in `body`, which `model` sent as the answer to `request`.

    Raises FatalModelError (not a chat API, an error in the body, no choice), TransientModelError (broken off on the
    way, an overload in the body), ModelError (too many values), ReplyTruncated, ReplyRefused, ReplyInvalid (no text);
    the last three with `usage`.
    """
    completion = read_body(_ChatCompletion, body, content_type, endpoint, "a chat completion", model)
    if not completion.choices:
        raise FatalModelError(f"{endpoint.host} answered without a reply (no choices); is it a chat completion API?")
    choice = completion.choices[0]
    # Again: in the body the key may have been written in JSON's escapes.
    text, refusal = endpoint.hide(choice.message.content or ""), choice.message.refusal or ""
    name, finish = quote(completion.model or model, endpoint), quote(choice.finish_reason or "stop", endpoint)
    try:
        tokens = _ChatTokens.model_validate(completion.usage)
        reply = ModelReply(text, tokens.prompt_tokens, tokens.completion_tokens, name, finish)
    except ValidationError:
        read, usage = estimate_tokens(*(message for _, message in request.messages)), completion.usage
        # A server may have counted, be it wrongly, or not at all.
        counted = isinstance(usage, dict) and None not in map(usage.get, _ChatTokens.model_fields)
        notes = (NO_COUNT,) if counted else ()
        reply = ModelReply(text, read, estimate_tokens(text), name, finish, estimated=True, notes=notes)
    if request.choices:
        reply = replace(reply, chances=chances_of(choice.logprobs, request.choices))
    error: ReplyError
    if choice.finish_reason == "length" and request.whole:
        error = cut_off(reply)
    elif refusal or choice.finish_reason == "content_filter":
        reason = f": {quote(refusal, endpoint)}" if refusal else " (content filter)"
        error = ReplyRefused(f"{name} declined to answer{reason}", raw=refusal or text)
    elif not text.strip():
        error = ReplyInvalid(f"{name} sent an empty reply")
    else:
        return reply
    error.usage = reply.usage
    raise error


def cut_off(reply: ModelReply) -> ReplyTruncated:
    """The error for a reply that ends at its limit."""
    return ReplyTruncated(
        f"{reply.model} was cut off after {reply.output_tokens} tokens; raise model.max_tokens in the settings, "
        "and max_tokens in the prompt template where it is lower",
        raw=reply.text,
    )


STREAM = "text/event-stream"
"""The content type of a stream; a server that cannot stream sends a whole completion instead."""


class _ChunkChoice(BaseModel):
    delta: _ChatMessage = _ChatMessage()
    finish_reason: str | None = None


class _Chunk(Body):
    choices: list[_ChunkChoice] = Field([], fail_fast=True)
    model: str | None = None


def read_stream(
    lines: Iterable[str], request: ModelRequest, endpoint: Endpoint, model: str, on_text: Callable[[str], None]
) -> ModelReply:
    """The reply whose pieces come in `lines`; each goes to `on_text` as it comes.

    Raises what `read_completion` raises, when the stream is at its end; TransientModelError where it ends too early.
    """
    text, refusal, finish, name, usage = [], [], "", model, None
    complete = False
    for line in lines:
        # Comments, which keep a connection open, and the other fields mean nothing here.
        field, _, content = line.partition(":")
        if field != "data" or not (content := content.strip()):
            continue
        if content == "[DONE]":
            complete = True
            break
        try:
            chunk = _Chunk.model_validate_json(content)
        except ValidationError:
            raise broken_off(endpoint.host) from None
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
        raise broken_off(endpoint.host)
    message = {"content": "".join(text), "refusal": "".join(refusal)}
    whole = {"choices": [{"message": message, "finish_reason": finish or "stop"}], "model": name, "usage": usage}
    return read_completion(json.dumps(whole), "application/json", request, endpoint, model)
