"""Spans of OpenTelemetry and log lines as JSON: where somebody collects them, and nothing in them that was asked."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from fairagent.errors import FairAgentError
from fairagent.guests.testing import LoopbackServer
from fairagent.guests.testing.server import ServerReply
from fairagent.storage.telemetry import FIELDS, JsonLines, about_request, span

QUERY = "lawyer with hidden words"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """What a program that collects spans has; as the SDK's, whose provider can be set but once in a process."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


@pytest.fixture
def opened(no_variables: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    from fairagent import FairAgent

    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    rows = [{"id": f"d{n}", "text": f"a lawyer pleads {n}", "sex": "f" if n > 15 else "m"} for n in range(24)]

    def make(model: LoopbackServer | None = None) -> Any:
        more: dict[str, Any] = {}
        if model:
            more["model"] = {"name": "tiny", "base_url": model.url, "attempts": 1}
            more |= {"profile": "offline", "generate": {"kind": "llm"}}
            more["prices"] = {"tiny": {"input": 1e6, "output": 1e6}}
        return FairAgent.from_records(rows, id="id", groups=["sex"], engine="bm25", target="uniform", cache="", **more)

    return make


def spans(exporter: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in exporter.get_finished_spans():
        found.setdefault(one.name.split()[0], []).append(one)
    return found


def test_a_search_is_a_tree(exporter: Any, opened: Any) -> None:
    opened().search(QUERY)
    found = spans(exporter)
    (search,) = found["invoke_agent"]
    named = ("gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.data_source.id")
    assert [search.attributes[name] for name in named] == ["invoke_agent", "fairagent", "records"]
    assert found["retrieval"][0].attributes["fairagent.documents"] == 24
    inner = [*found["retrieval"], *found["rerank"]]
    assert {one.parent.span_id for one in inner} == {search.context.span_id}
    assert all(search.start_time <= one.start_time <= one.end_time <= search.end_time for one in inner)
    assert "hidden" not in "".join(one.to_json() for one in exporter.get_finished_spans())


def test_a_call_of_a_model_tells_tokens_and_cost_and_no_text(exporter: Any, opened: Any) -> None:
    with LoopbackServer(["She pleaded secretly [1]."]) as model:
        usage = opened(model).answer(QUERY).usage
    found = spans(exporter)
    (chat,), (answer,) = found["chat"], found["answer"]
    assert chat.name == "chat tiny"
    assert dict(chat.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "tiny",
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "fairagent.dollars": pytest.approx(usage.cost),
        "fairagent.calls": 1,
        "fairagent.cached": False,
    }
    assert chat.parent.span_id == answer.context.span_id
    text = "".join(one.to_json() for one in exporter.get_finished_spans())
    assert not [hidden for hidden in ("secretly", "hidden", "not-a-real-key") if hidden in text]


def test_a_failure_is_told_by_its_type_alone(exporter: Any, opened: Any) -> None:
    with LoopbackServer([ServerReply(hang_up=True)]) as model, pytest.raises(FairAgentError) as raised:
        opened(model).answer(QUERY)
    for name in ("chat", "answer"):
        (one,) = spans(exporter)[name]
        assert (one.status.status_code.name, one.status.description) == ("ERROR", None)
        assert one.attributes["error.type"] == type(raised.value).__name__
        assert not one.events


SECRET = "a query about somebody"


def line(texts: bool = False, message: str = "said %s", args: Any = ("this",), **more: Any) -> dict[str, Any]:
    record = logging.LogRecord("fairagent.x", logging.WARNING, "file", 1, message, args, more.pop("exc_info", None))
    record.__dict__.update(more)
    text = JsonLines(texts).format(record)
    assert "\n" not in text
    read: dict[str, Any] = json.loads(text)
    return read


def raised() -> Any:
    """A group of exceptions, one caused by another, one raised while another was handled, with notes."""
    try:
        try:
            try:
                raise KeyError(SECRET)
            except KeyError as error:
                error.add_note(SECRET)
                raise ValueError(SECRET) from error
        except ValueError as error:
            raise ExceptionGroup(SECRET, [error, OSError(2, SECRET)]) from None
    except ExceptionGroup:
        return sys.exc_info()


def test_without_a_collector_a_span_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    with span("search", {}) as opened:
        opened.set_attributes({"n": 1})
    assert not [one for one in sys.modules if one.startswith("opentelemetry")]


def test_a_line_has_time_level_event_and_the_requests_fields() -> None:
    with about_request(request="r1"), about_request(user="ada"):
        found = line(**{FIELDS: {"status": 200, "ms": 1.5}})
    assert found.pop("time").endswith("+00:00")
    assert found == {
        "level": "warning", "logger": "fairagent.x", "event": "said this", "request": "r1", "user": "ada",
        "status": 200, "ms": 1.5,
    }  # fmt: skip
    assert "request" not in line()


@pytest.mark.parametrize("bad", ["two\nlines", "\x1b[31mred", "\u2028", "\ud800"])
def test_no_message_breaks_a_line_or_steers_a_terminal(bad: str) -> None:
    found = line(message="%s", args=(bad,))
    assert "\x1b" not in found["event"]
    assert found["level"] == "warning"


def test_a_traceback_is_one_field_without_messages() -> None:
    found = line(exc_info=raised())
    assert all(told in found["traceback"] for told in ("KeyError", "ValueError", "test_telemetry.py"))
    assert SECRET not in json.dumps(found)
    # They are there where they are wanted.
    assert line(texts=True, exc_info=raised())["traceback"].count(SECRET) >= 3
