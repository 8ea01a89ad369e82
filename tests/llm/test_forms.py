"""The table of replies: what servers send around a reply, times what models write into it, through real HTTP.

Written by us in the forms that their references and public reports show; no text of theirs is copied.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from fairagent.errors import ReplyInvalid, ReplyRefused, ReplyTruncated
from fairagent.guests.testing.server import ServerReply
from fairagent.llm import ModelRequest, ask
from fairagent.llm.request import Reply
from fairagent.types.clean import visible


class Keywords(Reply):
    keywords: list[str]


RIGHT = ["piano", "drums"]
GOOD, DRAFT = '{"keywords": ["piano", "drums"]}', '{"keywords": ["wrong"]}'
THINK = f"Perhaps {DRAFT}? No."

TOKENS = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}

# Of each server: fields of its message, of its choice and of its body, and how its models think aloud.
SERVERS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    "openai": (
        *({"refusal": None, "annotations": []}, {"logprobs": None}),
        {"usage": {**TOKENS, "completion_tokens_details": {"reasoning_tokens": 0}}, "system_fingerprint": "fp_1"},
        "",
    ),
    "vllm, qwen": (
        *({"reasoning_content": None, "tool_calls": []}, {"stop_reason": None, "logprobs": None}),
        *({"usage": {**TOKENS, "prompt_tokens_details": None}, "prompt_logprobs": None}, f"{THINK}\n</think>\n\n"),
    ),
    "with a parser": (
        *({"reasoning_content": THINK, "reasoning": THINK, "tool_calls": None}, {"stop_reason": None}),
        *({"usage": {**TOKENS, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6}}, ""),
    ),
    "llama.cpp": ({}, {}, {"usage": TOKENS, "timings": {"predicted_ms": 1.5}}, f"<think>{THINK}</think>"),
    "gemini": ({"extra_content": {}}, {}, {"usage": {**TOKENS, "completion_tokens": 0}}, f"<thought>{THINK}</thought>"),
    "mistral": ({"tool_calls": None, "prefix": False}, {}, {"usage": TOKENS}, "parts"),
    "gpt-oss": (
        *({}, {}, {"usage": None}),
        f"<|channel|>analysis<|message|>{THINK}<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
}
# What the models write: the text, and what has to be made of it: how it was mended, or the error of three requests.
WRITTEN: dict[str, tuple[str, str | type[Exception]]] = {
    "as asked": (GOOD, ""),
    "fenced": (f"```json\n{GOOD}\n```", ""),
    "in prose": (f"Of course! Here they are:\n\n{GOOD}\n\nLet me know if you need more {{keywords}}.", ""),
    "after a draft": (f"First idea: {DRAFT}. Better:\n{GOOD}", ""),
    "a comma too many": ('{"keywords": ["piano", "drums",],}', "not quite JSON"),
    "single quotes": ("{'keywords': ['piano', 'drums']}", "not quite JSON"),
    "with a key of its own": ('{"reasoning": "jazz", "keywords": ["piano", "drums"]}', "other keys"),
    "the list alone": ('["piano", "drums"]', "a list without its key"),
    "no list": ('{"keywords": "piano, drums"}', "a list as text"),
    "in another language": ("Keine Ahnung, was gemeint ist.", ReplyInvalid),
    "nothing": ("", ReplyInvalid),
    "cut off": ('{"keywords": ["piano", "dr', ReplyTruncated),
    "declined": ("I cannot help with that.", ReplyRefused),
}


def body_of(server: str, text: str, finish: str) -> dict[str, Any]:
    message, choice, body, thoughts = SERVERS[server]
    content: Any = thoughts + text
    if thoughts == "parts":
        content = [{"type": "thinking", "thinking": [{"type": "text", "text": THINK}]}, {"type": "text", "text": text}]
    elif server == "gpt-oss":
        content += "<|return|>"
    message = {"role": "assistant", "content": content, **message}
    if finish == "content_filter":
        message["refusal"] = text
    choices = [{"index": 0, "message": message, "finish_reason": finish, **choice}]
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny", "choices": choices, **body}


@pytest.mark.parametrize(("server_name", "written"), [*product(SERVERS, WRITTEN)])
def test_the_table_of_replies(server, make_model, server_name, written):
    text, outcome = WRITTEN[written]
    if not text and SERVERS[server_name][0].get("reasoning_content"):
        # What there is was taken for thoughts; it has the draft alone, which is read, and said to be that.
        outcome = "reasoning_content"
    finish = {"cut off": "length", "declined": "content_filter"}.get(written, "stop")
    server.script = [ServerReply(body_of(server_name, text, finish))]
    request = ModelRequest((("system", "Give keywords."), ("user", "jazz")))
    if isinstance(outcome, type):
        with pytest.raises(outcome) as caught:
            ask(make_model(), request, Keywords)
        assert len(server.requests) == {ReplyInvalid: 3, ReplyTruncated: 2, ReplyRefused: 1}[outcome]
        assert visible(str(caught.value)) == str(caught.value)
        return
    value, usage = ask(make_model(), request, Keywords)
    assert len(server.requests) == usage.calls == 1
    if outcome == "reasoning_content":
        assert (value.keywords, usage.notes) == (["wrong"], ("the reply came as reasoning_content",))
    else:
        assert value.keywords == RIGHT
        mended = [note for note in usage.notes if "mended" in note]
        assert mended == ([f"a reply was mended: {outcome}"] if outcome else [])
