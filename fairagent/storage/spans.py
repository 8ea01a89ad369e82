"""Spans of OpenTelemetry, where the program that searches collects them; nothing is imported for them.

Who collects spans has imported `opentelemetry.trace` (its SDK does so, and `opentelemetry-instrument` for programs as
they are). Where nobody has, a span is nothing at all. Names and attributes are those of the semantic conventions for
generative AI where there are some (`gen_ai.*`), else `fairagent.*`. Texts (queries, prompts, replies) are in none, but
where OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is `true`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

Value = str | bool | int | float | Sequence[str]
"""What an attribute may be; None is left out."""

OPERATION = "gen_ai.operation.name"
SOURCE = "gen_ai.data_source.id"
TEXTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable by which instrumentations of OpenTelemetry are told to record texts."""
_OPEN = ("true", "1", "span_only", "span_and_event")


class Span:
    """A span that is open while its block runs; this one is nothing."""

    texts = False
    """Whether texts may be told."""

    def tell(self, attributes: Mapping[str, Value | None]) -> None:
        """Give it attributes."""

    def part(self, name: str, since: int, attributes: Mapping[str, Value | None]) -> int:
        """A part of it that has ended now and began at `since`, of `time.time_ns`; the time of now."""
        return since

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


NO_SPAN = Span()


class RecordedSpan(Span):
    """One that is collected; an exception that ends it is told by its type alone."""

    def __init__(self, api: Any, name: str, attributes: Mapping[str, Value | None]) -> None:
        self._api = api
        self._tracer = api.get_tracer("fairagent")
        self._open = self._tracer.start_as_current_span(
            name, attributes=_known(attributes), record_exception=False, set_status_on_exception=False
        )
        self._span: Any = None
        self.texts = os.environ.get(TEXTS, "").lower() in _OPEN

    def tell(self, attributes: Mapping[str, Value | None]) -> None:
        """Give it attributes."""
        self._span.set_attributes(_known(attributes))

    def part(self, name: str, since: int, attributes: Mapping[str, Value | None]) -> int:
        """As of any span."""
        now = time.time_ns()
        self._tracer.start_span(name, start_time=since, attributes=_known(attributes)).end(now)
        return now

    def __enter__(self) -> Self:
        self._span = self._open.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self._span.set_attribute("error.type", kind.__qualname__)
            self._span.set_status(self._api.Status(self._api.StatusCode.ERROR))
        self._open.__exit__(kind, error, traceback)


def _known(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in attributes.items() if value is not None}


def span(name: str, attributes: Mapping[str, Value | None]) -> Span:
    """A span of this name, which is a part of the one that is open here; a context manager."""
    api = sys.modules.get("opentelemetry.trace")
    # A module that is just being imported in another thread is not there yet.
    if api is None or not hasattr(api, "get_tracer") or not hasattr(api, "StatusCode"):
        return NO_SPAN
    return RecordedSpan(api, name, attributes)
