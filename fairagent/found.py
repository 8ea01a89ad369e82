"""`Found`: the outcome of a search before it is served: the re-ranked candidates and their trace."""

from dataclasses import dataclass
from time import perf_counter

from fairagent import alarms
from fairagent.alarms import Alarm
from fairagent.estimates import below_corpus, following
from fairagent.exposure import ExposureMeter, total_gap
from fairagent.retrieve.base import Retriever, TextSource, shown
from fairagent.retrieve.clock import engine_seconds
from fairagent.retrieve.fused import FusedRetriever
from fairagent.settings import Settings
from fairagent.types import Draw, Hit, Query, Ranking, SearchResult, Step, Trace, Usage


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The candidates of `query` in their final order (`pool`), of which `result` serves the first.

    `started` and `engine_started` are the clocks' readings when the search began, `retrieved` is as in `SearchResult`;
    `entered` are the documents that only a second search has retrieved.
    """

    query: Query
    pool: Ranking
    steps: tuple[Step, ...]
    stopped: str
    meter: ExposureMeter
    retriever: Retriever
    settings: Settings
    notes: tuple[str, ...]
    alarms: tuple[Alarm, ...]
    started: float
    engine_started: float
    retrieved: tuple[str, ...] = ()
    entered: frozenset[str] = frozenset()

    def result(self, ranking: Ranking, draw: Draw | None = None) -> SearchResult:
        """The first `settings.n` documents of `ranking`, with their titles and groups, and the trace."""
        served = ranking.top(self.settings.n)
        exposures = self.meter.measure(served)
        hits = hits_of(served, self.meter, self.retriever)
        usage = sum((step.usage for step in self.steps), Usage())
        trace = Trace(
            query=self.query,
            profile=self.settings.profile,
            engine=str(self.settings.engine),
            steps=self.steps,
            stopped=self.stopped,
            candidates=self.settings.candidates,
            reranker=str(self.settings.rerank),
            exposures=exposures,
            gap=total_gap(exposures),
            targets=tuple(target.source for target in self.meter.targets),
            oracle=self.meter.oracle,
            usage=usage,
            seconds=perf_counter() - self.started,
            engine_seconds=engine_seconds() - self.engine_started,
            draw=draw,
            entered=sum(id in self.entered for id in served.ids),
            notes=(*self.notes, *following(self.meter.targets), *unused_refiner(self.settings)),
            alarms=(
                *self.alarms,
                *below_corpus(self.meter.targets, self.meter.collection),
                *(alarm for step in self.steps for alarm in step.alarms),
                *alarms.of_usage(usage),
            ),
        )
        return SearchResult(self.query, served, hits, trace, self.retrieved)


def engine_notes(engine: Retriever, query: Query) -> tuple[str, ...]:
    """What is to be known about the engine: which of several failed at `query`."""
    failures = engine.failures(query) if isinstance(engine, FusedRetriever) else {}
    return tuple(f"engine {name} failed, the others serve: {error}" for name, error in failures.items())


def unused_refiner(settings: Settings) -> tuple[str, ...]:
    """That a refiner was set which no loop asks, and what to set; nothing where none was set, or one is asked."""
    if "refine" not in settings.model_fields_set or settings.loop.kind != "controller":
        return ()
    also = f", or loop.evidence={settings.refine}" if settings.refine.kind in ("llm", "grounded") else ""
    return (f"refine: {settings.refine} was not asked, since loop: controller asks none; set loop=fair-qr{also}",)


def hits_of(ranking: Ranking, meter: ExposureMeter, retriever: Retriever) -> tuple[Hit, ...]:
    """The documents with their titles (where the engine keeps texts) and the known groups they belong to."""
    labels = [(target.dimension, target.labels) for target in meter.targets]
    memberships = [rows[:, 1:].tolist() for rows in meter.memberships(ranking.ids)]
    documents = shown(ranking.ids, retriever) if isinstance(retriever, TextSource) else None
    hits = []
    for i, (id, score) in enumerate(zip(ranking.ids, ranking.scores.tolist(), strict=True)):
        title, snippet = (documents[i].title, documents[i].snippet) if documents else ("", "")
        groups = {
            dimension: {label: share for label, share in zip(names, rows[i], strict=True) if share > 0}
            for (dimension, names), rows in zip(labels, memberships, strict=True)
        }
        hits.append(Hit(i + 1, id, score, title, groups, snippet))
    return tuple(hits)
