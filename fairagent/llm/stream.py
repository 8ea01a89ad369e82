"""Reading a streamed chat completion (server-sent events)."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from fairagent.errors import TransientModelError
from fairagent.llm.endpoint import Endpoint
from fairagent.llm.faults import in_body
from fairagent.llm.request import ModelReply, ModelRequest
from fairagent.llm.wire import read_completion

KIND = "text/event-stream"
"""The content type of a stream; a server that cannot stream sends a whole completion instead."""

_LAST = "[DONE]"


class _Delta(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Chunk(BaseModel):
    choices: list[_Choice] = []
    error: Any = None
    model: str | None = None
    usage: Any = None


def read_stream(
    lines: Iterable[str], request: ModelRequest, endpoint: Endpoint, model: str, on_text: Callable[[str], None]
) -> ModelReply:
    """The reply whose pieces come in `lines`; `on_text` is told each as it comes.

    Raises what `read_completion` raises, when the stream is at its end; TransientModelError where it ends too early.
    """
    text, refusal, finish, name, usage = "", "", "", model, None
    complete = False
    for data in _events(lines):
        if data == _LAST:
            complete = True
            break
        chunk = _parse(data, endpoint)
        if chunk.error:
            raise in_body(chunk.error, endpoint, model)
        name, usage = chunk.model or name, chunk.usage or usage
        # The last chunk with the usage has no choice.
        for choice in chunk.choices[:1]:
            finish = choice.finish_reason or finish
            refusal += choice.delta.refusal or ""
            if piece := endpoint.hide(choice.delta.content or ""):
                text += piece
                on_text(piece)
    if not complete and not finish:
        raise _broken_off(endpoint)
    message = {"content": text, "refusal": refusal}
    whole = {"choices": [{"message": message, "finish_reason": finish or "stop"}], "model": name, "usage": usage}
    return read_completion(json.dumps(whole), "application/json", request, endpoint, model)


def _events(lines: Iterable[str]) -> Iterator[str]:
    """The data of each event; comments, which keep a connection open, and the other fields say nothing here."""
    for line in lines:
        field, _, value = line.partition(":")
        if field == "data" and value.strip():
            yield value.strip()


def _parse(data: str, endpoint: Endpoint) -> _Chunk:
    try:
        return _Chunk.model_validate_json(data)
    except ValidationError:
        raise _broken_off(endpoint) from None


def _broken_off(endpoint: Endpoint) -> TransientModelError:
    return TransientModelError(f"the answer of {endpoint.host} broke off on the way")
