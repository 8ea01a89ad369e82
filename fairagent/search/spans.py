"""What the spans of a search and an answer are called, and what they tell: numbers and names of parts, no texts."""

from __future__ import annotations

import time

from fairagent.collection import Collection
from fairagent.search.loop.base import OnStep
from fairagent.settings import Settings
from fairagent.storage.spans import NO_SPAN, OPERATION, SOURCE, Span, Value, span
from fairagent.types import Query, Ranking, Step

AGENT = "fairagent"


def search_span(collection: Collection, settings: Settings) -> Span:
    """The span of a whole search."""
    about: dict[str, Value | None] = {
        OPERATION: "invoke_agent",
        "gen_ai.agent.name": AGENT,
        SOURCE: collection.name,
        "fairagent.n": settings.n,
        "fairagent.engine": settings.engine.kind,
        "fairagent.loop": settings.loop.kind,
        "fairagent.rerank": settings.rerank.kind,
    }
    return span(f"invoke_agent {AGENT}", about)


def retrieval_span(collection: Collection) -> Span:
    """The span of one search of the engine."""
    return span(f"retrieval {collection.name}", {OPERATION: "retrieval", SOURCE: collection.name})


def tell_retrieved(span: Span, query: Query, ranking: Ranking) -> None:
    """What an engine has found; the query where texts may be told."""
    if span is not NO_SPAN:
        span.tell(
            {
                "fairagent.documents": len(ranking),
                "gen_ai.retrieval.query.text": query.text if span.texts else None,
            }
        )


def step_spans(span: Span, on_step: OnStep) -> OnStep:
    """`on_step`, and a span for each step, from the end of the one before, or the beginning of the search."""
    if span is NO_SPAN:
        return on_step
    since = time.time_ns()

    def both(step: Step) -> None:
        nonlocal since
        about: dict[str, Value | None] = {
            "fairagent.step.source": step.source,
            "fairagent.step.gap": step.gap,
            "fairagent.step.accepted": step.accepted,
            "fairagent.step.documents": len(step.ranking),
        }
        since = span.part("step", since, about)
        on_step(step)

    return both
