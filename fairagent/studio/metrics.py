"""What a server does, in numbers, for Prometheus: requests, searches that run and wait, calls of models, the index.

No label has a query, a text, a document or a user: routes are as they are declared, so that their number is bounded.
Nothing is waited for, neither a lane nor an index that is being opened.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fairagent.extend import Usage
from fairagent.studio.desk import Desk
from fairagent.studio.lanes import Lanes

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Bounds of the histogram's buckets."""
MEDIA = "text/plain; version=0.0.4; charset=utf-8"


class StudioMetrics:
    """The numbers of one server; each has a registry of its own. Threads may share it."""

    def __init__(self, desk: Desk, lanes: Lanes, models: Lanes) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "fairagent_requests", "Requests by route and status.", ("route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "fairagent_request_seconds",
            "Seconds from the head of a request to the end of its reply.",
            ("route",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._registry.register(DeskCollector(desk, {"search": lanes, "model": models}))

    def observe(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All of it, in Prometheus's text format."""
        return generate_latest(self._registry)


class DeskCollector(Collector):
    """What is read when it is asked for, and not counted here."""

    def __init__(self, desk: Desk, lanes: dict[str, Lanes]) -> None:
        self._desk, self._lanes = desk, lanes

    def collect(self) -> Iterator[Metric]:
        """The metrics of now."""
        state = self._desk.state
        yield GaugeMetricFamily("fairagent_collection_documents", "Documents of the open index.", state.documents)
        yield CounterMetricFamily(
            "fairagent_index_reopened", "How often a replaced index was opened.", state.openings - 1
        )
        running = GaugeMetricFamily("fairagent_lane_running", "Pieces of work that are being done.", labels=("lane",))
        waiting = GaugeMetricFamily("fairagent_lane_waiting", "Pieces of work that wait for a lane.", labels=("lane",))
        for name, lanes in self._lanes.items():
            busy, idle = lanes.load
            running.add_metric((name,), busy)
            waiting.add_metric((name,), idle)
        yield running
        yield waiting
        yield from _of_models(state.usage)


def _of_models(usage: Usage) -> Iterator[Metric]:
    saved = usage.saved or Usage()
    yield CounterMetricFamily("fairagent_model_calls", "Requests to language models, failed ones too.", usage.calls)
    yield CounterMetricFamily("fairagent_model_failures", "Of those, without a usable reply.", usage.unusable)
    tokens = CounterMetricFamily("fairagent_model_tokens", "Tokens that language models read, write.", labels=("kind",))
    tokens.add_metric(("input",), usage.input_tokens)
    tokens.add_metric(("output",), usage.output_tokens)
    yield tokens
    # Without a price nothing is known, and 0 would be wrong.
    if usage.cost is not None:
        yield CounterMetricFamily("fairagent_model_dollars", "What they cost, in US dollars.", usage.cost)
    yield CounterMetricFamily("fairagent_model_cached_calls", "Calls that the cache has saved.", saved.calls)
