"""What the spans of calls of language models tell: model, tokens, cost; prompts and replies where texts may be told."""

from __future__ import annotations

import json

from fairagent.llm.request import Message, ModelReply
from fairagent.storage.spans import NO_SPAN, OPERATION, Span, span
from fairagent.types import Usage


def call_span(operation: str, model: str) -> Span:
    """The span of a call with all its attempts; `operation` is "chat" or "embeddings"."""
    return span(f"{operation} {model}", {OPERATION: operation, "gen_ai.request.model": model})


def tell_usage(span: Span, usage: Usage, cached: bool = False) -> None:
    """What a call took; from the cache: what it would have taken."""
    if span is not NO_SPAN:
        span.tell(
            {
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "fairagent.calls": 0 if cached else usage.calls,
                "fairagent.dollars": 0.0 if cached else usage.cost,
                "fairagent.cached": cached,
            }
        )


def tell_reply(span: Span, messages: tuple[Message, ...], reply: ModelReply) -> None:
    """What came of a call."""
    if span is NO_SPAN:
        return
    tell_usage(span, reply.usage.whole, reply.cached)
    span.tell({"gen_ai.response.model": reply.model or None, "gen_ai.response.finish_reasons": (reply.finish,)})
    if span.texts:
        span.tell(
            {
                "gen_ai.input.messages": json.dumps([_message(role, text) for role, text in messages]),
                "gen_ai.output.messages": json.dumps([_message("assistant", reply.text)]),
            }
        )


def _message(role: str, text: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}
