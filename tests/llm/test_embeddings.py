"""A server's embeddings through the one door: what is sent, what is kept, paid and refused."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.errors import BudgetExceeded, FatalModelError, ModelError, ReplyInvalid
from fairagent.guests.testing import LoopbackServer as Server
from fairagent.guests.testing import ServerReply, embeddings, error
from fairagent.llm.budget import Budget, Ledger, ledger
from fairagent.llm.cache import ReplyCache
from fairagent.llm.capabilities import BATCH
from fairagent.llm.embeddings import EmbeddingModel
from fairagent.llm.models import Models
from fairagent.settings import BudgetSettings, ModelSettings, Price

from .conftest import CANARY

KEY = {"OPENAI_API_KEY": CANARY}
TEXTS = ["judge of the court", "river", "judge judge", "a boat"]
MANY = [f"text number {number}" for number in range(5 * BATCH + 3)]

Make = Callable[..., EmbeddingModel]


@pytest.fixture
def make(server: Server, slept: list[float]) -> Iterator[Make]:
    made: list[EmbeddingModel] = []

    def model(
        cache: ReplyCache | None = None,
        limits: BudgetSettings | None = None,
        price: Price | None = None,
        tally: Ledger | None = None,
        **settings: Any,
    ) -> EmbeddingModel:
        values = ModelSettings(**{"name": "small", "base_url": server.url, **settings})
        made.append(EmbeddingModel(values, KEY, Budget(limits), price, cache, tally, sleep=slept.append))
        return made[-1]

    yield model
    for one in made:
        one.close()


def vectors(texts: list[str], length: int = 16) -> np.ndarray:
    body: Any = embeddings(texts, length).body
    return np.array([item["embedding"] for item in body["data"]], dtype=np.float32)


def changed(**item: Any) -> Callable[[dict[str, Any]], ServerReply]:
    """A server whose last vector of an answer is another one."""

    def answer(request: dict[str, Any]) -> ServerReply:
        body: Any = embeddings(request["input"]).body
        body["data"][-1].update(item)
        return ServerReply(body)

    return answer


def test_what_goes_over_the_wire_and_comes_back(server: Server, make: Make) -> None:
    tally = Ledger()
    model = make(tally=tally, price=Price(input=2, output=0))
    with ledger() as kept:
        found = model.embed(TEXTS)
    assert np.array_equal(found, vectors(TEXTS))
    assert found.dtype == np.float32
    assert server.requests == [{"model": "small", "input": TEXTS, "encoding_format": "float"}]
    assert server.paths == ["/v1/embeddings"]
    assert server.keys == [f"Bearer {CANARY}"]
    assert kept.usage == tally.usage
    assert (tally.usage.calls, tally.usage.input_tokens, tally.usage.output_tokens) == (1, 12, 0)
    assert tally.usage.cost == pytest.approx(12 * 2 / 1e6)
    assert not tally.usage.estimated
    assert model.dimension == 16


def test_many_texts_are_several_requests_and_each_is_asked_once(server: Server, make: Make) -> None:
    found = make().embed([*MANY, *MANY[:7]])
    assert np.array_equal(found, vectors([*MANY, *MANY[:7]]))
    assert sorted(len(request["input"]) for request in server.requests) == [3, *[BATCH] * 5]
    assert sorted(text for request in server.requests for text in request["input"]) == sorted(MANY)


@pytest.mark.parametrize(
    ("answer", "error_type", "says"),
    [
        (changed(embedding=[1.0] * 15), ReplyInvalid, "several lengths"),
        (changed(embedding=[1e39] * 16), ReplyInvalid, "not finite"),
        (changed(embedding="AAAA"), ReplyInvalid, "another form"),
        (changed(embedding="AAA="), ReplyInvalid, "another form"),
        (changed(index=0), ReplyInvalid, "numbered from 0"),
        (lambda request: embeddings(request["input"][1:]), ReplyInvalid, "3 vectors; 4 were expected"),
        (lambda request: ServerReply({"object": "list"}), FatalModelError, "is it an embeddings API"),
        (lambda request: ServerReply({"error": {"message": "no such model"}}), FatalModelError, "no such model"),
        (lambda request: error(401, "who are you"), FatalModelError, "OPENAI_API_KEY"),
        (lambda request: error(400, "input too long"), ModelError, "input too long"),
    ],
)
def test_what_is_no_answer_is_an_error_that_names_the_server(
    server: Server, make: Make, cache: ReplyCache, answer: Any, error_type: type[ModelError], says: str
) -> None:
    server.script = answer
    with pytest.raises(error_type, match=says) as raised:
        make(cache).embed(TEXTS)
    assert "127.0.0.1" in str(raised.value)
    assert len(server.requests) == 1
    assert cache.stats().replies == 0
    assert CANARY not in "".join(traceback.format_exception(raised.value))


def test_no_text_is_paid_for_twice(server: Server, make: Make, cache: ReplyCache) -> None:
    price = Price(input=2, output=0)
    first = make(cache, price=price).embed(TEXTS)
    tally = Ledger()
    again = make(cache, price=price, tally=tally).embed([*TEXTS[::-1], "new"])
    assert np.array_equal(again[:4], first[::-1])
    assert [request["input"] for request in server.requests] == [TEXTS, ["new"]]
    saved = tally.usage.saved
    assert saved is not None
    assert (saved.calls, saved.input_tokens, saved.cost) == (1, 12, pytest.approx(24 / 1e6))
    assert (tally.usage.calls, tally.usage.input_tokens) == (1, 3)
    # Another model, or another server's, is another.
    make(cache, name="large").embed(["new"])
    assert len(server.requests) == 3


@pytest.mark.parametrize("limits", [{"calls": 2}, {"tokens": 300}, {"dollars": 0.0003}])
def test_a_budget_is_kept_and_what_was_paid_for_stays(
    server: Server, make: Make, cache: ReplyCache, limits: dict[str, float]
) -> None:
    price = Price(input=1, output=0)
    with pytest.raises(BudgetExceeded, match=next(iter(limits))):
        make(cache, BudgetSettings(**limits), price).embed(MANY)
    asked = [text for request in server.requests for text in request["input"]]
    assert 0 < len(asked) < len(MANY)
    assert np.array_equal(make(cache, price=price).embed(MANY), vectors(MANY))
    asked = [text for request in server.requests for text in request["input"]]
    assert sorted(asked) == sorted(MANY)


def test_models_open_it_with_the_runs_budget_prices_and_cache(server: Server, tmp_path: Path) -> None:
    settings = ModelSettings(name="small", base_url=server.url)
    models = Models(tmp_path / "cache", BudgetSettings(calls=1), {"small": Price(input=2, output=0)}, KEY)
    model = models.open_embeddings(settings)
    assert models.open_embeddings(settings) is model
    for _ in range(2):
        model.embed(["judge"])
        assert (models.usage.calls, models.usage.cost) == (1, pytest.approx(6 / 1e6))
    with pytest.raises(BudgetExceeded):
        model.embed(["river"])
    models.close()


@pytest.mark.parametrize(
    "refusal",
    [
        error(413, "batch size 3 > maximum allowed batch size 2"),
        error(400, "batch size is invalid, it should not be larger than 10."),
        error(422, "too many inputs, at most 10"),
    ],
)
def test_a_server_that_takes_fewer_texts_gets_fewer_and_is_not_asked_for_more(
    server: Server, make: Make, cache: ReplyCache, refusal: ServerReply
) -> None:
    server.script = lambda request: refusal if len(request["input"]) > 10 else embeddings(request["input"])
    tally = Ledger()
    model = make(tally=tally)
    model.remember_in(cache)
    texts = MANY[:BATCH]
    assert np.array_equal(model.embed(texts), vectors(texts))
    # 32 and twice or once 16 are too many; the rest is eights.
    assert [len(request["input"]) for request in server.requests] == [32, 16, 8, 8, 8, 8]
    assert (tally.usage.calls, tally.usage.unusable) == (6, 2)
    # A text that is refused alone is an error.
    server.script = [refusal]
    with pytest.raises(ModelError, match=r"127\.0\.0\.1"):
        make().embed(TEXTS[:2])
    assert [len(request["input"]) for request in server.requests[6:]] == [2, 1]
    server.script = lambda request: embeddings(request["input"])
    server.requests.clear()
    again = make()
    again.remember_in(cache)
    assert np.array_equal(again.embed(texts), vectors(texts))
    assert [len(request["input"]) for request in server.requests] == [8, 8, 8, 8]


def test_a_server_without_an_encoding_format_gets_none_and_vectors_in_base64_are_read(
    server: Server, make: Make
) -> None:
    def script(request: dict[str, Any]) -> ServerReply:
        if "encoding_format" in request:
            return error(400, "Unsupported parameter: encoding_format")
        body: Any = embeddings(request["input"]).body
        for item in body["data"]:
            item["embedding"] = base64.b64encode(np.array(item["embedding"], "<f4").tobytes()).decode()
        return ServerReply(body)

    server.script = script
    model = make()
    for texts in (TEXTS, ["new"]):
        assert np.array_equal(model.embed(texts), vectors(texts))
    assert len(server.requests) == 3
