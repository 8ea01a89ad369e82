"""The models of a run: one door, one budget, one cache and one breaker for all that call them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from fairagent.errors import BudgetExceeded, FatalModelError
from fairagent.guests.testing import ServerReply, completion, error
from fairagent.llm.cache import ReplyCache
from fairagent.llm.models import Models
from fairagent.llm.openai import OpenAIModel
from fairagent.llm.request import ModelRequest
from fairagent.settings import BudgetSettings, ModelSettings, Price

from .conftest import CANARY

ASKED = ModelRequest((("user", "A color, please."),))
KEY = {"OPENAI_API_KEY": CANARY}
PRICES = {"tiny": Price(input=2, output=10)}


def named(server, **more: object) -> ModelSettings:
    return ModelSettings(**{"name": "tiny", "base_url": server.url, **more})


def test_systems_share_replies_whatever_their_patience(server, tmp_path: Path) -> None:
    server.script = [completion("red"), completion("blue")]
    models = Models(tmp_path / "cache", prices=PRICES, environ=KEY)
    assert models.open(named(server)).complete(ASKED).text == "red"
    assert models.open(named(server, timeout=5, attempts=2, deadline=7)).complete(ASKED).text == "red"
    assert models.open(named(server, temperature=0.9)).complete(ASKED).text == "blue"
    assert len(server.requests) == 2
    paid = models.usage
    assert (paid.calls, paid.input_tokens, paid.output_tokens) == (2, 22, 14)
    assert paid.cost == pytest.approx((22 * 2 + 14 * 10) / 1e6)
    assert paid.saved
    assert (paid.saved.calls, paid.saved.cost) == (1, pytest.approx((11 * 2 + 7 * 10) / 1e6))
    models.close()


def test_the_next_run_asks_nothing_and_another_server_is_another(server, tmp_path: Path) -> None:
    server.script = [completion("red")]
    for _ in range(2):
        models = Models(tmp_path / "cache", environ=KEY)
        assert models.open(named(server)).complete(ASKED).text == "red"
        models.close()
    assert len(server.requests) == 1
    # The key and the user in the address are no part of the request.
    other = Models(tmp_path / "cache", environ={"OPENAI_API_KEY": "sk-another-key-0123"})
    url = server.url.replace("http://", "http://me:secret@")
    assert other.open(named(server, base_url=url)).complete(ASKED).cached
    elsewhere = other.open(named(server, base_url=server.url.replace("127.0.0.1", "localhost")))
    assert not elsewhere.complete(ASKED).cached
    other.close()
    held = (tmp_path / "cache" / "cache.db").read_bytes()
    assert CANARY.encode() not in held
    assert b"secret" not in held


def test_the_price_of_today_counts_also_of_what_the_server_had_cached(server, tmp_path: Path) -> None:
    told = {"prompt_tokens": 1000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 900}}
    server.script = [completion("red", usage=told)]
    some, none = Price(input=2, output=10), Price(input=0, output=0)
    for price, cost in ((None, None), (some, 2050e-6), (Price(input=2, output=10, cached=0.5), 700e-6), (none, 0.0)):
        models = Models(tmp_path / "cache", prices={"tiny": price} if price else {}, environ=KEY)
        whole = models.open(named(server)).complete(ASKED).usage.whole
        assert (whole.calls, whole.cost) == (1, None if cost is None else pytest.approx(cost))
        models.close()
    assert len(server.requests) == 1


@pytest.mark.parametrize(("answer", "allowed"), [(completion("red"), 3), (error(401, code="invalid_api_key"), 0)])
def test_a_budget_and_a_wrong_key_are_of_all_systems(server, answer, allowed) -> None:
    server.script = [answer]
    models = Models("", BudgetSettings(calls=3), environ=KEY)
    first = models.open(named(server, temperature=0.0))
    assert models.open(named(server, temperature=0.0)) is first
    for temperature in range(allowed):
        models.open(named(server, temperature=0.1 * temperature)).complete(ASKED)
    for _ in range(2):
        with pytest.raises(BudgetExceeded if allowed else FatalModelError):
            models.open(named(server, temperature=1.0)).complete(ASKED)
    assert len(server.requests) == models.usage.calls == (allowed or 1)
    models.close()


def no_temperature(request: dict[str, Any]) -> ServerReply:
    return error(400, "`temperature` is deprecated for this model.") if "temperature" in request else completion("red")


def test_what_a_server_refuses_is_remembered_for_the_next_process(server, tmp_path: Path) -> None:
    server.script = no_temperature
    for text, requests in (("Which color?", 2), ("And now?", 3)):
        models = Models(tmp_path / "cache", environ=KEY)
        reply = models.open(named(server)).complete(ModelRequest((("user", text),)))
        assert (reply.text, reply.notes, len(server.requests)) == ("red", ("no temperature",), requests)
        models.close()
    # Another model of the server is another; what is remembered is no reply, and goes with the replies.
    models = Models(tmp_path / "cache", environ=KEY)
    models.open(named(server, name="other")).complete(ASKED)
    models.close()
    assert len(server.requests) == 5
    cache = ReplyCache(tmp_path / "cache")
    assert (cache.stats().replies, cache.clear()) == (3, 3)
    cache.close()
    models = Models(tmp_path / "cache", environ=KEY)
    models.open(named(server)).complete(ASKED)
    models.close()
    assert len(server.requests) == 7


@pytest.mark.parametrize("row", ["", "{}", '{"form": 9}', '{"other": 1}', "[1]"])
def test_a_damaged_memory_is_none(server, tmp_path: Path, row: str) -> None:
    server.script = no_temperature
    cache = ReplyCache(tmp_path / "cache")
    model = OpenAIModel(named(server), KEY)
    model.remember_in(cache)
    model.complete(ASKED)
    with sqlite3.connect(tmp_path / "cache" / "cache.db") as rows:
        rows.execute("UPDATE Cache SET value = ? WHERE key LIKE '+%'", (row,))
    again = OpenAIModel(named(server), KEY)
    again.remember_in(cache)
    assert again.complete(ASKED).text == "red"
    assert len(server.requests) == 4
    cache.close()
    again.close()
    model.close()
