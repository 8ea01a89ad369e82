"""Cases 1 to 12, 20, 85 and 86: what a model's server does wrong, and what happens then."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluate import words
from evaluate.stereotypes import bench
from scripted import Engine, agent

from fairagent.errors import (
    BudgetExceeded,
    ModelError,
    ReplyRefused,
    TransientModelError,
)
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.run import Results, load_run
from fairagent.evaluate.workers import threads
from fairagent.guests.testing import LoopbackServer, ScriptedModel, ServerReply, completion, error
from fairagent.llm import ModelRequest, Reply, ask
from fairagent.llm.budget import Budget
from fairagent.llm.models import Models
from fairagent.llm.openai import OpenAIModel
from fairagent.llm.prompts import Prompts
from fairagent.search.refine.asking import LlmRefiner
from fairagent.settings import BudgetSettings, ModelSettings, Price

CANARY = "sk-canary-0123456789abcdef"
ASKED = ModelRequest((("system", "Name colors."), ("user", "Two, please, as JSON.")))
PRICE = Price(input=1000.0, output=10000.0)


class Colors(Reply):
    colors: list[str]


FORMED = ModelRequest(ASKED.messages, Colors)
TEXT = '{"colors": ["red", "blue"]}'
GOOD = completion(TEXT)


class Clock:
    """Time that passes only while somebody sleeps, and for a frozen one not even then."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        self.frozen = False
        self._lock = threading.Lock()

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.waits.append(seconds)
            self.now += 0.0 if self.frozen else seconds


@pytest.fixture
def server(no_variables: None) -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


MakeModel = Callable[..., OpenAIModel]


@pytest.fixture
def make_model(server: LoopbackServer, clock: Clock) -> Iterator[MakeModel]:
    made = []

    def make(budget: Budget | None = None, price: Price | None = None, **settings: Any) -> OpenAIModel:
        values = ModelSettings(**{"name": "tiny", "base_url": server.url, **settings})
        environ = {"OPENAI_API_KEY": CANARY}
        made.append(OpenAIModel(values, environ, budget, price, sleep=clock.sleep, clock=clock))
        return made[-1]

    yield make
    for model in made:
        model.close()


def test_05_no_wait_is_longer_than_the_deadline(server, make_model, clock):
    for given in ("3600", "Tue, 01 Jan 2999 00:00:00 GMT"):
        server.script = [error(503, retry_after=given)]
        server.requests.clear()
        with pytest.raises(TransientModelError):
            make_model().complete(ASKED)
        assert clock.waits == []
        assert len(server.requests) == 1
    server.script = [error(503, retry_after="20")]
    begun = clock.now
    with pytest.raises(TransientModelError):
        make_model(deadline=50).complete(ASKED)
    assert len(server.requests) == 1 + 3
    assert clock.now - begun == 40


BROKEN = {
    "slow": ServerReply(GOOD.body, delay=0.5),
    "reset": ServerReply(hang_up=True),
    "cut": ServerReply(GOOD.body, cut=5),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
def test_06_what_broke_off_is_counted_and_charged_once(server, make_model, fault):
    longest = 20
    # Room for one call and its successor's reservation (the two texts are 9 tokens), and not for a second charge.
    budget = Budget(BudgetSettings(calls=3, tokens=18 + 9 + longest))
    model = make_model(budget, PRICE, timeout=0.2, max_tokens=longest)
    server.script = [fault, GOOD]
    usage = model.complete(ASKED).usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (2, 11, 7)
    assert usage.cost == pytest.approx(0.011 + 0.07)
    assert model.complete(ASKED).usage.calls == 1
    with pytest.raises(BudgetExceeded):
        model.complete(ASKED)
    assert len(server.requests) == 3


def picky(*refusals: tuple[Callable[[dict[str, Any]], bool], ServerReply]) -> Callable[[dict[str, Any]], ServerReply]:
    """A server that gives the first refusal which fits the request, and else a good reply."""

    def answer(request: dict[str, Any]) -> ServerReply:
        return next((refusal for fits, refusal in refusals if fits(request)), GOOD)

    return answer


PARAMETER_REFUSALS = {
    "temperature": error(
        *(400, "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1) is."),
        *("unsupported_value", "temperature"),
    ),
    "max_tokens": error(
        *(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."),
        *("unsupported_parameter", "max_tokens"),
    ),
    "seed": error(422, "seed: Extra inputs are not permitted"),
}
INSTEAD = {
    "temperature": ({}, "no temperature"),
    "max_tokens": ({"max_completion_tokens": 400}, "max_completion_tokens in place of max_tokens"),
    "seed": ({}, "no seed"),
}


@pytest.mark.parametrize("name", PARAMETER_REFUSALS)
def test_08_a_parameter_is_dropped_once_and_the_real_ones_are_noted(server, make_model, name):
    server.script = picky((lambda request: name in request, PARAMETER_REFUSALS[name]))
    model = make_model()
    request = ModelRequest(ASKED.messages, seed=7)
    usages = [model.complete(request).usage for _ in range(2)]
    assert [usage.calls for usage in usages] == [2, 1]
    instead, note = INSTEAD[name]
    assert [usage.notes for usage in usages] == [(note,)] * 2
    given = server.requests[0]
    assert server.requests[1] == server.requests[2] == {k: v for k, v in given.items() if k != name} | instead
    assert server.requests[2] == model.payload(request)


CUT = completion('{"colors": ["red"]}', finish="length", usage=(11, 30))


def test_11_a_reply_that_was_cut_off_is_asked_for_once_more(server, make_model):
    server.script = [CUT, GOOD]
    reply = make_model(price=PRICE, max_tokens=30).complete(FORMED)
    assert [request["max_tokens"] for request in server.requests] == [30, 60]
    assert reply.text == TEXT
    usage = reply.usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (2, 22, 37)
    assert usage.cost == pytest.approx(0.022 + 0.37)
    assert any("cut off" in note for note in usage.notes)


REFUSALS = {
    "refusal": completion(None, refusal="I cannot help with that."),
    "filter": completion("", finish="content_filter"),
    "status": error(400, "The prompt was filtered", "content_filter"),
}


@pytest.mark.parametrize("answer", REFUSALS.values(), ids=REFUSALS)
def test_12_a_refusal_ends_the_refinement_and_not_the_search(server, make_model, answer):
    server.script = [answer]
    refiner = LlmRefiner(make_model(), Prompts())
    result = agent(Engine({"q": "m1 m2 m3 m4 f1 f2"}), refiner).search("q")
    assert result.trace.stopped.startswith("refused: ")
    assert len(result.ranking) == 4
    # Not corrected, not repeated, and not to be taken for a reply.
    assert len(server.requests) == 1
    assert result.trace.usage.calls == 1
    with pytest.raises(ReplyRefused):
        refiner.model.complete(ASKED)


def test_20_a_correction_does_not_grow():
    huge = json.dumps({"colors": "red" * 5000, **{f"key{i}" * 100: i for i in range(50)}})
    model = ScriptedModel(["first " * 1000, huge, TEXT])
    ask(model, ASKED, Colors)
    first, second, third = (request.messages for request in model.requests)
    for corrected in (second, third):
        assert [role for role, _ in corrected] == ["system", "user"]
        assert corrected[0] == first[0]
        assert corrected[1][1].startswith(first[1][1])
        assert len(corrected[1][1]) < len(first[1][1]) + 1500
    # Each of them tells of the last fault alone.
    assert "no JSON object" in second[1][1]
    assert "no JSON object" not in third[1][1]
    assert "first first" not in second[1][1]


def bench_run(folder: Path, **model: Any) -> Results:
    """A small benchmark of stereotypes, judged by the server's model."""
    text = bench.write_stereoset(folder / "benchmark.txt").read_text(encoding="utf-8")
    if "context" in model:
        long = text.replace('"The nurse is good."', f'"{"The nurse is good. " * 200}"')
        (folder / "benchmark.txt").write_text(long, encoding="utf-8")
    systems = {"alone": {"profile": "engine", "engine": "none", "model": {"name": "tiny", "attempts": 1, **model}}}
    about = {"kind": "stereoset", "name": "small", "questions": {"path": "benchmark.txt"}, "systems": systems}
    with threads(1) as workers:
        return run_experiment(check_experiment(words.write(folder, json.dumps(about))), folder / "run", workers)


@pytest.fixture
def default_server(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> LoopbackServer:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("FAIRAGENT_CACHE", "''")
    server.script = bench.model
    return server


def test_85_what_does_not_fit_is_not_sent_and_the_others_are_asked(
    default_server: LoopbackServer, tmp_path: Path
) -> None:
    model = Models().open(ModelSettings(name="tiny", context=149, max_tokens=50))
    with pytest.raises(ModelError, match=r"about 100 tokens .* 149 tokens"):
        model.complete(ModelRequest((("user", "word " * 80),)))
    assert default_server.requests == []
    run = bench_run(tmp_path, max_tokens=20, context=600)
    failed = {one.topic: str(one.failed) for one in run.outcomes if one.failed}
    assert list(failed) == ["q4"]
    assert "600 tokens" in failed["q4"]
    assert len(default_server.requests) == 3


def test_86_what_is_done_stays_and_the_same_run_goes_on(default_server: LoopbackServer, tmp_path: Path) -> None:
    down = [False, False, True, True]

    def answer(request: dict[str, object]) -> ServerReply:
        reply = bench.model(request)
        return replace(reply, cut=20) if down and down.pop(0) else reply

    default_server.script = answer
    assert [bool(one.failed) for one in bench_run(tmp_path).outcomes] == [False, False, True, True]
    assert len(default_server.requests) == 4
    assert not any(one.failed for one in bench_run(tmp_path).outcomes)
    assert len(default_server.requests) == 6
    assert load_run(tmp_path / "run").excluded == {}
