"""A server's likelihoods, against a scripted one on the loopback interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.errors import BudgetExceeded, FatalModelError
from fairagent.guests.testing import LoopbackServer, ServerReply
from fairagent.llm.budget import Budget
from fairagent.llm.cache import ReplyCache
from fairagent.llm.likelihood import EndpointModel
from fairagent.settings import BudgetSettings, ModelSettings

Request = dict[str, Any]


def tokens_of(prompt: str) -> list[str]:
    return [word if not place else f" {word}" for place, word in enumerate(prompt.split(" "))]


def echo(request: Request) -> ServerReply:
    """As vLLM: a mark for the beginning, the words of the prompt, one word more; log-probability -(place)."""
    tokens = ["<s>", *tokens_of(request["prompt"]), " more"]
    logprobs = {
        "tokens": tokens,
        "token_logprobs": [None, *(-float(place) for place in range(1, len(tokens)))],
        "text_offset": [0] * len(tokens),
    }
    usage = {"prompt_tokens": len(tokens) - 1, "completion_tokens": 1, "total_tokens": len(tokens)}
    return ServerReply({"model": "tiny", "choices": [{"index": 0, "text": "", "logprobs": logprobs}], "usage": usage})


def chat(request: Request) -> ServerReply:
    said = "".join(f"<{message['role']}>{message['content']}" for message in request["messages"])
    entries = [None] + [
        {str(place): {"logprob": -float(place), "rank": 1, "decoded_token": character}}
        for place, character in enumerate(said, start=1)
    ]
    return ServerReply({"choices": [{"index": 0, "message": {"content": "x"}}], "prompt_logprobs": entries})


@pytest.fixture
def ask(no_variables: None) -> Iterator[Callable[..., tuple[EndpointModel, LoopbackServer]]]:
    opened: list[Any] = []

    def make(script: Any, **more: Any) -> tuple[EndpointModel, LoopbackServer]:
        server = LoopbackServer(script)
        server.__enter__()
        settings = ModelSettings(name="tiny", base_url=server.url, attempts=3)
        model = EndpointModel(settings, environ={}, sleep=lambda seconds: None, **more)
        opened.extend([server, model])
        return model, server

    yield make
    for one in opened:
        one.close() if isinstance(one, EndpointModel) else one.__exit__()


def test_the_texts_tokens_are_told_apart_from_all_others(ask: Any) -> None:
    model, server = ask(echo)
    scores = model.score([("the judge", " is good"), ("a b c", " d"), ("", "the judge")])
    assert [score.tolist() for score in scores] == [[-3.0, -4.0], [-4.0], [-1.0, -2.0]]
    asked = next(request for request in server.requests if request["prompt"] == "the judge is good")
    assert (asked["echo"], asked["logprobs"], asked["max_tokens"]) == (True, 1, 1)
    assert set(server.paths) == {"/v1/completions"}


def test_a_chat_takes_the_servers_template_and_vllms_form(ask: Any) -> None:
    model, server = ask(chat, chat=True)
    (score,) = model.score([("hi", "no")])
    # <user>hi<assistant>no: the last two of 21 characters.
    assert score.tolist() == [-20.0, -21.0]
    assert server.requests[0]["prompt_logprobs"] == 0
    assert server.requests[0]["continue_final_message"] is True


@pytest.mark.parametrize(
    "choice",
    [
        {"text": "the judge is good", "logprobs": None},
        {"text": " x", "logprobs": {"tokens": [" x"], "token_logprobs": [-1.0]}},
        {"text": " x", "logprobs": {"content": [{"token": " x", "logprob": -1.0}]}},
        {"text": " x", "logprobs": {"token_logprobs": [None, -1.0]}},
    ],
)
def test_a_server_without_log_probabilities_is_named(ask: Any, choice: Request) -> None:
    model, server = ask([ServerReply({"choices": [{"index": 0, **choice}]})])
    with pytest.raises(FatalModelError, match="tells no log-probabilities") as raised:
        model.score([("a", " b"), ("a", " c")])
    assert server.url.split("/")[2] in str(raised.value)
    assert len(server.requests) == 1


def test_nothing_is_asked_twice_with_a_cache_and_a_budget_holds(ask: Any, tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies")
    model, server = ask(echo, cache=cache, workers=1, budget=Budget(BudgetSettings(calls=3)))
    first = model.score([("a", " b c"), ("a", " b")])
    again = model.score([("a", " b"), ("a", " b c")])
    assert len(server.requests) == 2
    np.testing.assert_array_equal(first[0], again[1])
    for key in list(cache._rows.iterkeys()):
        cache._rows.set(key, '{"text": "[\\"no number\\"]", "input_tokens": 1, "output_tokens": 0}')
    assert model.score([("a", " b")])[0].tolist() == [-2.0]
    with pytest.raises(BudgetExceeded, match="3 calls"):
        model.score([("a", " c")])
    assert len(server.requests) == 3
    cache.close()
