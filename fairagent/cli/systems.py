"""Systems side by side on the topics of a collection: the plain engine, and the agent with each re-ranker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from fairagent.agent import FairAgent
from fairagent.assemble import make_agent
from fairagent.cli.terminal import progress_bar
from fairagent.collection import Collection
from fairagent.evaluate.topics import mean_over_topics, standard_measures
from fairagent.query import as_query
from fairagent.retrieve.rm3 import Engine
from fairagent.settings import Settings
from fairagent.types import Ranking, Topic

RERANKERS = ("original", "fused", "exposure")

Search = Callable[[Topic], tuple[Ranking, int]]
"""A topic's ranking, and how many calls of a language model it took."""


@dataclass(frozen=True, slots=True)
class Fairness:
    """Means over the topics that count for one dimension; the product is taken topic by topic."""

    awrf: float
    product: float


@dataclass(frozen=True, slots=True)
class Row:
    """One system: nDCG over all judged topics, fairness by dimension, and what all topics took together."""

    system: str
    ndcg: float
    fairness: Mapping[str, Fairness]
    calls: int
    seconds: float


def compare(collection: Collection, retriever: Engine, settings: Settings) -> Iterator[Row]:
    """Run every system on every topic, and judge it at cut-off `settings.n`.

    Java compiles what it runs often, so the agent goes over all topics once before anything is timed.
    """
    _run("warming up", _searching(agent_with(settings.reranking.kind, collection, retriever, settings)), collection, 1)

    def plain(topic: Topic) -> tuple[Ranking, int]:
        return retriever.search(as_query(topic), settings.n), 0

    yield _run("BM25", plain, collection, settings.n)
    for kind in RERANKERS:
        agent = agent_with(kind, collection, retriever, settings)
        yield _run(f"agent, {kind}", _searching(agent), collection, settings.n)


def agent_with(kind: str, collection: Collection, retriever: Engine, settings: Settings) -> FairAgent:
    """The agent that `settings` describe, but with the re-ranker `kind`."""
    reranking = settings.reranking.model_copy(update={"kind": kind})
    chosen = settings.model_copy(update={"reranking": reranking})
    return make_agent(collection, retriever, chosen, retriever)


def systems_table(rows: Sequence[Row], n: int) -> Table:
    """The rows as a table; the best value of each measure is bold."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("\nsystem", no_wrap=True)
    table.add_column(f"\nnDCG@{n}", justify="right")
    for dimension in rows[0].fairness:
        table.add_column(f"{dimension}\nAWRF@{n}", justify="right")
        table.add_column("\nproduct", justify="right")
    table.add_column("\ncalls", justify="right")
    table.add_column("\nseconds", justify="right")
    values = [_values(row) for row in rows]
    best = [max(column) for column in zip(*values, strict=True)]
    for row, numbers in zip(rows, values, strict=True):
        cells = [Text(f"{v:.3f}", "bold" if v == top else "") for v, top in zip(numbers, best, strict=True)]
        table.add_row(row.system, *cells, f"{row.calls:,}", f"{row.seconds:.2f}")
    return table


def rows_record(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows as plain values."""
    return [asdict(row) for row in rows]


def _searching(agent: FairAgent) -> Search:
    def search(topic: Topic) -> tuple[Ranking, int]:
        result = agent.search(topic)
        return result.ranking, result.trace.usage.calls

    return search


def _run(system: str, search: Search, collection: Collection, n: int) -> Row:
    topics = list(collection.topics.values())
    rankings: dict[str, Ranking] = {}
    calls = 0
    started = perf_counter()
    with progress_bar() as bar:
        for topic in bar.track(topics, description=system):
            rankings[topic.id], used = search(topic)
            calls += used
    seconds = perf_counter() - started
    relevance, fairness, product = standard_measures(n)
    (ndcg,) = mean_over_topics(collection, None, rankings, n, [relevance])
    by_dimension = {
        dimension: Fairness(*mean_over_topics(collection, dimension, rankings, n, [fairness, product]))
        for dimension in collection.groups.dimensions
    }
    return Row(system, ndcg, by_dimension, calls, seconds)


def _values(row: Row) -> list[float]:
    return [row.ndcg, *(value for fairness in row.fairness.values() for value in (fairness.awrf, fairness.product))]
