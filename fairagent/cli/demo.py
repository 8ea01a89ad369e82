"""`fairagent demo`: the whole way on a collection made up for it, without a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairagent.cli.options import AsJson
from fairagent.cli.terminal import console, progress_bar
from fairagent.settings import Settings

if TYPE_CHECKING:
    from rich.table import Table

    from fairagent.collection import Collection
    from fairagent.types import Ranking, SearchResult, Topic, Usage

RERANKERS = ("original", "fused", "exposure")


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One system over all topics; `seconds` is what its searches took together."""

    system: str
    rankings: Mapping[str, Ranking]
    calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """What the table shows of a run: nDCG, and for each dimension AWRF and their product."""

    system: str
    ndcg: float
    fairness: Mapping[str, tuple[float, float]]
    calls: int
    seconds: float


def demo(
    folder: Annotated[Path, typer.Option("--folder", metavar="DIR", help="Where to put it.")] = Path("fairagent-demo"),
    people: Annotated[int, typer.Option("--people", metavar="N", help="How many people to make up.")] = 3000,
    as_json: AsJson = False,
) -> None:
    """Make up a collection, index it, and compare BM25 with the agent on its topics; no key is needed.

    Nothing in the collection is about the world: it shows how fairagent works. Every run makes the same one.
    """
    from fairagent.assemble import make_refiner, make_reranker, open_retriever
    from fairagent.agent import FairAgent
    from fairagent.cli.indexing import ensure_index
    from fairagent.collection import load_collection
    from fairagent.collection.demo import write_demo
    from fairagent.query import as_query
    from fairagent.report.record import to_json
    from fairagent.types import Usage

    file = write_demo(folder, people=people)
    collection = load_collection(file)
    settings = Settings()
    indexed = ensure_index(collection, folder / "index", settings.retrieval)
    retriever = open_retriever(collection, indexed.folder, settings)
    refiner = make_refiner(settings, retriever)

    def agent_with(kind: str) -> FairAgent:
        chosen = settings.model_copy(update={"reranking": settings.reranking.model_copy(update={"kind": kind})})
        return FairAgent(collection, retriever, refiner, make_reranker(chosen, retriever), chosen)

    def plain(topic: Topic) -> tuple[Ranking, Usage]:
        return retriever.search(as_query(topic), settings.n), Usage()

    def fair(agent: FairAgent) -> Callable[[Topic], tuple[Ranking, Usage]]:
        def search(topic: Topic) -> tuple[Ranking, Usage]:
            result = agent.search(topic)
            return result.ranking, result.trace.usage

        return search

    topics = list(collection.topics.values())
    runs = [run("BM25", plain, topics)]
    runs += [run(f"agent, {kind} re-ranking", fair(agent_with(kind)), topics) for kind in RERANKERS]
    rows = [judge(collection, each, settings.n) for each in runs]
    if as_json:
        typer.echo(to_json(_record(collection, rows, indexed.folder, settings.n)))
        return
    out = console()
    out.print(f"{indexed.manifest.documents:,} biographies of people who never lived, {len(topics)} topics, in {folder}")
    out.print(systems_table(rows, settings.n))
    _explain(collection, settings.n)
    result = agent_with(settings.reranking.kind).search(topics[0])
    _tell(result, file, indexed.folder)


def run(system: str, search: Callable[[Topic], tuple[Ranking, Usage]], topics: Sequence[Topic]) -> Run:
    """Search for every topic, with a progress bar."""
    rankings: dict[str, Ranking] = {}
    calls = 0
    started = perf_counter()
    with progress_bar() as bar:
        for topic in bar.track(topics, description=system):
            rankings[topic.id], usage = search(topic)
            calls += usage.calls
    return Run(system, rankings, calls, perf_counter() - started)
