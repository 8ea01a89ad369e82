"""The breaker alone, where requests are functions begun inside one another; addresses, keys and demanded waits."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from fairagent.errors import BackendUnavailable, FatalModelError, ModelError, SettingsError, TransientModelError
from fairagent.guests.testing import ServerReply, completion, error
from fairagent.llm import ModelRequest
from fairagent.llm.budget import limited_by
from fairagent.llm.exchange import one_search
from fairagent.llm.openai import OpenAIModel
from fairagent.llm.server import MOST_FAILURES, PAUSE, Breaker, Endpoint, NotConnected, is_local, retry_after
from fairagent.settings import ModelSettings

ASKED = ModelRequest((("user", "Which color?"),))


class Clock:
    now = 1e9 + 0.1

    def __call__(self) -> float:
        return self.now


def answer() -> str:
    return "fine"


def fail() -> str:
    raise TransientModelError("busy")


def failed(breaker: Breaker, times: int = 1, request=fail) -> float | None:
    """When the last of so many failures says to come back."""
    for _ in range(times):
        with pytest.raises(TransientModelError) as caught:
            breaker.run(request)
    return caught.value.retry_after


def test_it_opens_for_a_while_and_closes_by_one_answer_or_opens_again():
    clock = Clock()
    breaker = Breaker(clock)
    # The one that opens it says when to come back, and never a rounding error later than one may be willing to wait.
    assert PAUSE >= failed(breaker, MOST_FAILURES) == pytest.approx(PAUSE)
    clock.now += PAUSE - 1
    with pytest.raises(TransientModelError, match="failed 5 times in a row and is left alone for 1 s") as caught:
        breaker.run(answer)
    assert caught.value.retry_after == pytest.approx(1)
    clock.now += 1
    assert failed(breaker) == pytest.approx(PAUSE)
    clock.now += PAUSE
    assert breaker.run(answer) == "fine"
    assert failed(breaker) is None


@pytest.mark.parametrize("late", ["fails", "answers"])
def test_what_was_on_its_way_does_not_lengthen_the_pause_and_may_end_it(late):
    clock = Clock()
    breaker = Breaker(clock)
    breaker.run(answer)

    def overtaken() -> str:
        failed(breaker, MOST_FAILURES)
        clock.now += 20
        return fail() if late == "fails" else answer()

    if late == "fails":
        assert failed(breaker, 1, overtaken) == pytest.approx(PAUSE - 20)
    else:
        assert breaker.run(overtaken) == breaker.run(answer) == "fine"


def test_a_fatal_error_stays():
    breaker = Breaker()
    breaker.run(answer)

    def refused() -> str:
        raise FatalModelError("no key")

    for request in (refused, answer, answer):
        with pytest.raises(FatalModelError, match="no key"):
            breaker.run(request)


@pytest.mark.parametrize("error", [ModelError("too long"), KeyboardInterrupt(), ValueError()])
def test_an_answer_that_is_no_use_is_an_answer_and_who_gives_up_leaves_the_turn_to_the_next(error):
    breaker = Breaker()

    def stop() -> str:
        raise error

    failed(breaker, MOST_FAILURES - 1)
    with pytest.raises(type(error)):
        breaker.run(stop)
    if isinstance(error, ModelError):
        failed(breaker, MOST_FAILURES - 1)
    assert breaker.run(answer) == "fine"


def test_a_server_that_was_never_reached_is_tried_again_later_while_nobody_waits_and_ends_an_experiment(make_model):
    clock = Clock()
    breaker = Breaker(clock)

    def silent() -> str:
        raise NotConnected("silent")

    failed(breaker, 1, silent)
    clock.now += PAUSE

    def asked_meanwhile() -> str:
        with pytest.raises(TransientModelError, match="left alone for 30 s"):
            breaker.run(answer)
        return "fine"

    assert breaker.run(asked_meanwhile) == breaker.run(answer) == "fine"
    # Topics without the model would be counted as its own.
    model = make_model(base_url="http://127.0.0.1:9/v1")
    for calls in (1, 0):
        with one_search(serves=False), pytest.raises(FatalModelError, match="no connection to") as caught:
            model.complete(ASKED)
        assert caught.value.usage.calls == calls


def test_requests_go_through_the_proxy_that_the_environment_names(make_model, server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
    server.script = [completion("red")]
    assert make_model(base_url="http://llm.example.org/v1").complete(ASKED).text == "red"
    assert server.paths == ["http://llm.example.org/v1/chat/completions"]
    # The loopback interface is in NO_PROXY, which may name networks as well.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    for straight in ("127.0.0.1,localhost", "127.0.0.0/8", "x/8,127.1.1.1/8"):
        monkeypatch.setenv("NO_PROXY", straight)
        assert make_model().complete(ASKED).text == "red"
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
    with pytest.raises(TransientModelError):
        make_model(attempts=1).complete(ASKED)
    monkeypatch.setenv("HTTP_PROXY", "ftp://127.0.0.1:9")
    with pytest.raises(BackendUnavailable, match=r"it has to be http://HOST:PORT"):
        make_model(base_url="http://llm.example.org/v1")


def test_one_users_failures_are_no_one_elses() -> None:
    model, other = (OpenAIModel(ModelSettings(name="tiny", base_url="http://127.0.0.1:9/v1")) for _ in range(2))
    other.share(model)
    with limited_by(None, "mallory"):
        failed(model.breaker, MOST_FAILURES)
        with pytest.raises(TransientModelError, match="left alone"):
            other.breaker.run(answer)
    assert other.breaker.run(answer) == "fine"


KEY = {"OPENAI_API_KEY": "sk-canary-0123456789abcdef"}


@pytest.mark.parametrize(
    ("setting", "environ", "url"),
    [
        ("", KEY, "https://api.openai.com/v1"),
        ("", {**KEY, "OPENAI_BASE_URL": " "}, "https://api.openai.com/v1"),
        ("", {"OPENAI_BASE_URL": "http://localhost:11434/v1"}, "http://localhost:11434/v1"),
        ("http://127.0.0.1:8000/v1", {**KEY, "OPENAI_BASE_URL": "http://other/v1"}, "http://127.0.0.1:8000/v1"),
        ("http://[::1]:8000/v1", {}, "http://[::1]:8000/v1"),
        ("https://anna:secret@llm.example.org/v1#x", KEY, "https://llm.example.org/v1"),
        ("https://llm.example.org/v1/chat/completions ", KEY, "https://llm.example.org/v1"),
        ("https://llm.example.org/v1/", KEY, "https://llm.example.org/v1"),
    ],
)
def test_the_setting_beats_the_environment_and_openai_is_last(setting, environ, url):
    endpoint = Endpoint.find(setting, environ)
    assert endpoint.base_url == url
    assert endpoint.host in url
    assert "secret" not in repr(endpoint)


def test_a_query_of_the_address_stays_behind_the_path_of_each_request(server, make_model):
    address = f"{server.url}/openai/deployments/gpt?api-version=2024-10-21"
    server.script = [completion("red")]
    make_model(base_url=address).complete(ASKED)
    assert server.paths[-1].endswith("/openai/deployments/gpt/chat/completions?api-version=2024-10-21")


@pytest.mark.parametrize("url", ["", "https://llm.example.org/v1", "http://8.8.8.8/v1"])
@pytest.mark.parametrize("key", [{}, {"OPENAI_API_KEY": " \n"}])
def test_no_key_says_what_to_set_and_what_works_without(url, key):
    with pytest.raises(BackendUnavailable) as caught:
        OpenAIModel(ModelSettings(base_url=url), key)
    for words in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "`profile: offline` works without a model"):
        assert words in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_local_server_needs_no_key():
    for host in ("localhost", "127.0.0.1", "[::1]", "10.0.0.4", "192.168.1.7:8000", "ollama", "a.local"):
        assert Endpoint.find(f"http://{host}/v1", {}).key.get_secret_value() == ""
    assert not is_local("api.openai.com")


@pytest.mark.parametrize("key", ["sk-canary…", "sk-canary\n-second-line", "“sk-canary”"])
def test_a_key_that_cannot_be_one_is_not_quoted(key):
    with pytest.raises(SettingsError, match="OPENAI_API_KEY holds characters") as caught:
        Endpoint.find("", {"OPENAI_API_KEY": key})
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "Fri, 01 May 2026 12:00:20 GMT"}, 20.0),
        ({"retry-after": "Fri, 01 May 2026 12:00:20"}, 20.0),
        ({"retry-after": "Fri, 01 May 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "Fri, 01 May 99999999 12:00:20 GMT"}, None),
    ],
)
def test_retry_after(headers, seconds):
    assert retry_after(headers, datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)) == seconds


class Ticking(Clock):
    """Time that passes while somebody sleeps, and nobody else sees."""

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def ticking(server) -> Iterator[tuple[Ticking, OpenAIModel]]:
    clock = Ticking()
    settings = ModelSettings(name="tiny", base_url=server.url, deadline=40, attempts=99)
    model = OpenAIModel(settings, KEY, sleep=clock.sleep, clock=clock)
    yield clock, model
    model.close()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"timeout": 0.05}, "did not answer in time"),
        ({"base_url": "http://127.0.0.1:9/v1"}, "no connection to"),
    ],
)
def test_a_server_that_was_never_reached_is_asked_once_and_not_waited_for(make_model, server, slept, settings, said):
    server.script = [ServerReply(delay=0.5)]
    model = make_model(**settings)
    for calls in (1, 0):
        with pytest.raises(TransientModelError, match=said) as caught:
            model.complete(ASKED)
        assert caught.value.usage.calls == calls
    assert (slept, len(server.requests)) == ([], int("timeout" in settings))


def test_one_search_has_one_deadline_for_what_fails(server, ticking):
    clock, model = ticking
    server.script = ["red", error(503, "busy", retry_after="15")]
    with one_search():
        assert model.complete(ASKED).text == "red"
        # Asked at 0, 15 and 30 seconds, since 45 would be too late; once more at 30; and not at 45.
        for seconds, requests in ((0, 1 + 3), (30, 1 + 4), (45, 1 + 4)):
            clock.now = Clock.now + seconds
            with pytest.raises(TransientModelError):
                model.complete(ASKED)
            assert len(server.requests) == requests
    with one_search(), pytest.raises(TransientModelError):
        model.complete(ASKED)
    assert len(server.requests) == 1 + 4 + 2
    # An answer begins it anew.
    server.script, clock.now = ["red"], Clock.now + 100
    busy, _ = error(503, "busy", retry_after="15"), model.complete(ASKED)
    with one_search():
        for _ in range(2):
            server.requests.clear()
            server.script = [busy, busy, "red"]
            assert model.complete(ASKED).text == "red"
    assert clock.now == pytest.approx(Clock.now + 160)


def test_a_key_that_expires_ends_the_models_part_of_a_search_and_an_experiment(server, make_model):
    for serves, kind in ((True, ModelError), (False, FatalModelError)):
        server.script = ["red", error(401, "expired")]
        server.requests.clear()
        model = make_model()
        with one_search(serves):
            assert model.complete(ASKED).text == "red"
            for _ in range(2):
                with pytest.raises(ModelError, match="Set OPENAI_API_KEY") as caught:
                    model.complete(ASKED)
                assert type(caught.value) is kind
        assert len(server.requests) == 2
    # One that was never right is an error everywhere.
    server.script = [error(401, "who are you")]
    with one_search(), pytest.raises(FatalModelError):
        make_model().complete(ASKED)


def test_a_search_for_addresses_without_an_end_has_one(make_model, monkeypatch, slept):
    held = threading.Event()
    monkeypatch.setattr("fairagent.llm.transport.socket.getaddrinfo", lambda *_: held.wait(60))
    with pytest.raises(TransientModelError, match=r"no connection to llm\.example\.org"):
        make_model(base_url="http://llm.example.org/v1", timeout=0.05).complete(ASKED)
    held.set()
    assert slept == []


def test_every_address_of_a_server_is_tried_in_the_time_for_all(make_model, server, monkeypatch):
    server.script = ["red"]
    port = int(server.url.split(":")[2].removesuffix("/v1"))
    entries, find = [(0, 0, 0, "", (address, port)) for address in ("127.0.0.9", "127.0.0.1")], socket.getaddrinfo

    def found(host: str, *more: Any) -> Any:
        return entries if host == "many.localhost" else find(host, *more)

    monkeypatch.setattr("fairagent.llm.transport.socket.getaddrinfo", found)
    # The first one refuses.
    assert make_model(base_url=f"http://many.localhost:{port}/v1").complete(ASKED).text == "red"
