"""The stand-ins that are shipped: they do what their users' tests rely on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from fairagent.errors import ReplyRefused, UsageError
from fairagent.guests.testing import LoopbackServer, ScriptedModel, ServerReply, completion, error
from fairagent.llm import ModelReply, ModelRequest
from fairagent.llm.budget import ledger
from fairagent.types import Usage

ASKED = ModelRequest((("user", "A color, please: {\u200b}"),))


def post(server: LoopbackServer, body: dict[str, Any]) -> tuple[int, Any, dict[str, Any]]:
    """The status, the headers and the body of the answer."""
    reply = httpx.post(f"{server.url}/chat/completions", json=body, trust_env=False, timeout=250)
    return reply.status_code, reply.headers, reply.json()


def said(server: LoopbackServer, body: dict[str, Any]) -> str:
    return post(server, body)[2]["choices"][0]["message"]["content"]


def test_a_scripted_model_writes_to_the_ledger_as_models_do():
    refused = ReplyRefused("no")
    refused.usage = Usage(1, 20, 3)
    model = ScriptedModel([ModelReply('{"name": "red"}', 5, 3, calls=2), refused])
    with ledger() as spent:
        model.complete(ASKED)
        with pytest.raises(ReplyRefused):
            model.complete(ASKED)
        with pytest.raises(UsageError):
            model.complete(ASKED)
    assert (spent.usage.calls, spent.usage.input_tokens, spent.usage.output_tokens) == (3, 25, 6)
    assert len(model.requests) == 3


def test_the_server_follows_its_script_and_keeps_a_log():
    with LoopbackServer(["red", completion("blue"), error(429, "slow down", retry_after="2")]) as server:
        assert [said(server, {"n": n}) for n in range(2)] == ["red", "blue"]
        for _ in range(2):
            status, headers, body = post(server, {"n": 2})
            assert (status, headers["retry-after"], body["error"]["message"]) == (429, "2", "slow down")
    assert server.requests == [{"n": 0}, {"n": 1}, {"n": 2}, {"n": 2}]
    assert server.paths == ["/v1/chat/completions"] * 4


def test_the_server_may_answer_by_a_function():
    def answer(request: dict[str, Any]) -> ServerReply | str:
        return request["color"].upper()

    with LoopbackServer(answer) as server, ThreadPoolExecutor(16) as threads:
        colors = [f"color{n}" for n in range(64)]
        answers = list(threads.map(lambda color: said(server, {"color": color}), colors))
    assert answers == [color.upper() for color in colors]
    assert len(server.requests) == 64
