"""Comparison of systems on a collection's topics: engines alone, the dullest baselines, the paper's loop, the agent."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from fairagent.cli.options import progress_bar
from fairagent.evaluate.comparison import SIGN, Equal, equal_systems
from fairagent.evaluate.judging import FUSED, SYSTEMS, mean_over_topics, standard_measures
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.pipeline import build, resolve, with_settings
from fairagent.settings import Settings
from fairagent.types import Ranking


@dataclass(frozen=True, slots=True)
class Fairness:
    """Means over the topics that count for one dimension; the product is taken topic by topic."""

    awrf: float
    product: float


@dataclass(frozen=True, slots=True)
class SystemMeans:
    """One system: nDCG over all judged topics, fairness by dimension, and what all topics took together.

    `equal` says which system before it has the same rankings on all topics; None: none has.
    """

    system: str
    ndcg: float
    fairness: Mapping[str, Fairness]
    calls: int
    seconds: float
    equal: Equal | None = None


def compare(site: Site) -> Iterator[SystemMeans]:
    """Run every system on every topic, and judge it at the settings' cut-off; without vectors `FUSED` is no row.

    The agent goes over all topics once before anything is timed: what the others read is in memory then.
    """
    agent = build(site)
    _run("warming up", agent)
    refined: dict[str, int] = {}
    ranked: dict[str, list[tuple[str, ...]]] = {}
    settings: dict[str, Settings] = {}
    for name, overrides in SYSTEMS.items():
        if name == FUSED and not agent.settings.engine.inner:
            continue
        tried = build(with_settings(site, resolve(site.settings, overrides)))
        means, rankings, refined[name] = _run(name, tried)
        ranked[name], settings[name] = [one.ids for one in rankings.values()], tried.settings
        equal = {one.system: one for one in equal_systems(ranked, settings, refined)}
        yield replace(means, equal=equal.get(name))


def systems_table(rows: Sequence[SystemMeans], n: int) -> Table:
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
        table.add_row(f"{row.system}{f' {SIGN}' * bool(row.equal)}", *cells, f"{row.calls:,}", f"{row.seconds:.2f}")
    return table


def rows_record(rows: Sequence[SystemMeans]) -> list[dict[str, Any]]:
    """The rows as plain values."""
    return [asdict(row) for row in rows]


def _run(system: str, agent: FairAgent) -> tuple[SystemMeans, dict[str, Ranking], int]:
    """The system's row, its rankings by topic, and on how many topics its loop accepted a refinement."""
    collection, n = agent.collection, agent.settings.n
    rankings: dict[str, Ranking] = {}
    calls = refined = 0
    started = perf_counter()
    with progress_bar() as bar:
        for topic in bar.track(list(collection.topics.values()), description=system):
            result = agent.search(topic)
            rankings[topic.id] = result.ranking
            calls += result.trace.usage.calls
            refined += any(step.accepted and step.aim for step in result.trace.steps)
    seconds = perf_counter() - started
    relevance, fairness, product = standard_measures(n)
    (ndcg,) = mean_over_topics(collection, None, rankings, [relevance])
    by_dimension = {
        dimension: Fairness(*mean_over_topics(collection, dimension, rankings, [fairness, product]))
        for dimension in collection.groups.dimensions
    }
    return SystemMeans(system, ndcg, by_dimension, calls, seconds), rankings, refined


def _values(row: SystemMeans) -> list[float]:
    return [row.ndcg, *(value for fairness in row.fairness.values() for value in (fairness.awrf, fairness.product))]
