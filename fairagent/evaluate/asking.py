"""Asking a model for an answer that stands as it is: greedily, and cut off where its template says."""

from __future__ import annotations

from fairagent.clean import THOUGHTS, visible
from fairagent.errors import ReplyTruncated
from fairagent.llm import Message, Model, ModelRequest
from fairagent.prompts import Prompt
from fairagent.types import Answer

TEMPERATURE = 0.0


def answer_to(
    model: Model,
    prompt: Prompt,
    messages: tuple[Message, ...],
    temperature: float = TEMPERATURE,
    seed: int | None = None,
) -> Answer:
    """The model's answer to the `messages` that `prompt` was filled to; one that is cut off at its limit will do.

    Raises what `Model.complete` raises, and ReplyTruncated where a model had not finished thinking by then.
    """
    most, id = prompt.head.max_tokens, prompt.head.id
    request = ModelRequest(messages, temperature=temperature, max_tokens=most, seed=seed, whole=False, prompt=id)
    reply = model.complete(request)
    text = said(reply.text)
    if not text:
        error = ReplyTruncated(
            f"nothing but thoughts came within {most} tokens; let the model think less, or raise max_tokens in "
            f"the template {prompt.head.id}",
            raw=reply.text,
        )
        error.usage = reply.usage
        raise error
    return Answer(text, usage=reply.usage, source="llm")


def said(reply: str) -> str:
    """What a model says, without what it thinks aloud before; "" where it never comes to say anything.

    >>> said("<think>A stereotype.</think> No."), said("<think>Let me see")
    ('No.', '')
    """
    begin, end = THOUGHTS
    _, found, after = reply.rpartition(end)
    text = visible(after).strip()
    return "" if not found and text.startswith(begin) else text
