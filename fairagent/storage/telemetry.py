"""Spans of OpenTelemetry, where the program that searches collects them, and log lines as JSON.

Names and attributes of spans are those of the semantic conventions for generative AI where there are some (`gen_ai.*`),
else `fairagent.*`. Texts (queries, prompts, replies) are in none; nor are they in log lines by default: of an exception
only its type and its places in the code are told, not its message, which may quote what was asked.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from fairagent.types import Usage
from fairagent.types.clean import printable

OPERATION, SOURCE = "gen_ai.operation.name", "gen_ai.data_source.id"
FIELDS = "fields"
"""The attribute of a log record, by `extra`, that has further fields of its line."""


class _NoSpan:
    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        pass


@contextmanager
def span(name: str, attributes: Mapping[str, str | bool | int | float]) -> Iterator[Any]:
    """A span of this name, a part of the one that is open here; an error is told by its type alone.

    Nothing is imported for it: who collects spans has imported `opentelemetry.trace`.
    """
    api: Any = sys.modules.get("opentelemetry.trace")
    # A module that is just being imported in another thread is not there yet.
    if not hasattr(api, "get_tracer") or not hasattr(api, "StatusCode"):
        yield _NoSpan()
        return
    with api.get_tracer("fairagent").start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as opened:
        try:
            yield opened
        except BaseException as error:
            opened.set_attribute("error.type", type(error).__qualname__)
            opened.set_status(api.Status(api.StatusCode.ERROR))
            raise


def call_span(operation: str, model: str) -> Any:
    """The span of a call of a model with all its attempts; `operation` is "chat" or "embeddings"."""
    return span(f"{operation} {model}", {OPERATION: operation, "gen_ai.request.model": model})


def tell_usage(span: Any, usage: Usage, cached: bool = False) -> None:
    """What a call took; from the cache: what it would have taken."""
    attributes = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "fairagent.calls": 0 if cached else usage.calls,
        "fairagent.cached": cached,
        "fairagent.dollars": 0.0 if cached else usage.cost,
    }
    span.set_attributes({name: value for name, value in attributes.items() if value is not None})


_about: ContextVar[Mapping[str, object] | None] = ContextVar("about", default=None)


@contextmanager
def about_request(**fields: object) -> Iterator[None]:
    """Log lines of what is done in the block, also in threads that share its context, have these fields."""
    token = _about.set({**(_about.get() or {}), **fields})
    try:
        yield
    finally:
        _about.reset(token)


class JsonLines(logging.Formatter):
    """One JSON object a line: `time` (UTC), `level`, `logger`, `event`, those of the request, and `traceback`.

    With `texts` a traceback ends with the exception's message, which may quote a query.
    """

    def __init__(self, texts: bool = False) -> None:
        super().__init__()
        self._texts = texts

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": printable(record.getMessage()),
            **(_about.get() or {}),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            trace = traceback.TracebackException.from_exception(record.exc_info[1])
            if not self._texts:
                _remove_messages(trace, set())
            line["traceback"] = printable("".join(trace.format()))
        return json.dumps(line, default=str)


def _remove_messages(trace: traceback.TracebackException, seen: set[int]) -> None:
    """Take the messages of an exception, and of those that it came from or is a group of, out of a traceback."""
    if id(trace) in seen:
        return
    seen.add(id(trace))
    trace._str = ""  # type: ignore[attr-defined]
    if hasattr(trace, "__notes__"):
        trace.__notes__ = None
    for other in (trace.__cause__, trace.__context__, *(trace.exceptions or ())):
        if other is not None:
            _remove_messages(other, seen)


def logs_as_json() -> bool:
    """Whether all log lines are JSON."""
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger().handlers)


def log_as_json(texts: bool = False) -> None:
    """From here on all log lines, and Python's warnings, are JSON on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(texts))
    logging.captureWarnings(True)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("fairagent").setLevel(logging.INFO)
