"""Spans of OpenTelemetry, where the program that searches collects them; nothing is imported for them.

Who collects spans has imported `opentelemetry.trace` (its SDK does so, and `opentelemetry-instrument` for programs as
they are). Names and attributes are those of the semantic conventions for generative AI where there are some
(`gen_ai.*`), else `fairagent.*`. Texts (queries, prompts, replies) are in none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from fairagent.types import Usage

Value = str | bool | int | float
"""What an attribute may be; None is left out."""
OPERATION = "gen_ai.operation.name"
SOURCE = "gen_ai.data_source.id"


class Span(Protocol):
    """A span that is open while its block runs."""

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Give it attributes."""


class _NoSpan:
    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        pass


@contextmanager
def span(name: str, attributes: Mapping[str, Value]) -> Iterator[Span]:
    """A span of this name, which is a part of the one that is open here; an error is told by its type alone."""
    api: Any = sys.modules.get("opentelemetry.trace")
    # A module that is just being imported in another thread is not there yet.
    if api is None or not hasattr(api, "get_tracer") or not hasattr(api, "StatusCode"):
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


def tell_usage(span: Span, usage: Usage, cached: bool = False) -> None:
    """What a call took; from the cache: what it would have taken."""
    dollars = 0.0 if cached else usage.cost
    span.set_attributes(
        {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "fairagent.calls": 0 if cached else usage.calls,
            "fairagent.cached": cached,
            **({} if dollars is None else {"fairagent.dollars": dollars}),
        }
    )
