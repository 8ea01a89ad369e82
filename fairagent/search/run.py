"""A search before and after it is served: its outcome, and the hits, notes and trace that users see."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from fairagent.collection.exposure import ExposureMeter, total_gap
from fairagent.collection.targets import below_corpus, following
from fairagent.retrieve.base import Retriever, TextSource, engine_seconds, shown
from fairagent.search.loop.base import LoopResult, relevance_in
from fairagent.settings import Settings
from fairagent.types import Document, Draw, Hit, Query, Ranking, SearchResult, Trace, Usage, common
from fairagent.types.common import Alarm
from fairagent.types.search import FAIRNESS


@dataclass(frozen=True, slots=True, eq=False)
class SearchRun:
    """A search before it is served: the candidates of `query` in their final order (`pool`), and what the loop did.

    `own` is the engine's list, `meter` what measures its rankings, `first_meter` what did before documents were
    weighed. `started` and `engine_started` are the clocks' readings when the search began.
    """

    query: Query
    pool: Ranking
    own: Ranking
    first_meter: ExposureMeter
    meter: ExposureMeter
    loop: LoopResult
    retriever: Retriever
    settings: Settings
    notes: tuple[str, ...]
    alarms: tuple[Alarm, ...]
    started: float
    engine_started: float

    def result(
        self, ranking: Ranking, draw: Draw | None = None, notes: tuple[str, ...] = (), answers: bool = False
    ) -> SearchResult:
        """The first `settings.n` documents of `ranking`, with their titles and groups, and the trace.

        `answers`: an answer is made of them.
        """
        settings, meter, steps = self.settings, self.meter, self.loop.steps
        served = ranking.top(settings.n)
        usage, weighed = sum((step.usage for step in steps), Usage()), self.loop.served
        if weighed and weighed.ranking.ids == served.ids and not meter.collection.label_errors:
            exposures, relevance = weighed.exposures, weighed.relevance
        else:
            exposures = meter.measure_served(served)
            relevance = relevance_in(weighed.weighed, served, meter) if weighed else 0.0
        trace = Trace(
            query=self.query,
            profile=settings.profile,
            engine=str(settings.engine),
            steps=steps,
            stopped=self.loop.stopped,
            candidates=settings.candidates,
            reranker=str(settings.rerank),
            exposures=exposures,
            gap=total_gap(exposures),
            targets=tuple(target.source for target in meter.targets),
            oracle=meter.oracle,
            usage=usage,
            seconds=perf_counter() - self.started,
            engine_seconds=engine_seconds() - self.engine_started,
            draw=draw,
            relevance_kept=weighed.kept(relevance) if weighed else None,
            relevance=relevance,
            fairness=weighed.dial.price if weighed else FAIRNESS,
            collection=meter.collection.name,
            entered=sum(id in self.loop.entered for id in served.ids),
            notes=(
                *self.notes,
                *following(meter.targets),
                *unused_refiner(settings),
                *(() if answers else unused_filter(settings)),
                *notes,
            ),
            alarms=(
                *self.alarms,
                *below_corpus(meter.targets, meter.collection),
                *(alarm for step in steps for alarm in step.alarms),
                *common.of_usage(usage),
            ),
        )
        hits = hits_of(served, meter, self.retriever, self.query, steps[0].ranking if steps else None)
        return SearchResult(self.query, served, hits, trace, self.loop.candidates.ids)


def unused_refiner(settings: Settings) -> tuple[str, ...]:
    """That a refiner was set which no loop uses, and what to set; nothing where none was set, or one is used."""
    used = any(part is settings.refine for part in settings.loop.uses(settings))
    if "refine" not in settings.model_fields_set or used or not settings.loops:
        return ()
    also = ", or loop.actions=[keywords]" if settings.refine.templates else ""
    return (f"refine: {settings.refine} is not used, since loop: {settings.loop} uses none; set loop=fair-qr{also}",)


def unused_filter(settings: Settings) -> tuple[str, ...]:
    """That a search without an answer makes no use of the filter that was set, and what does; nothing where it does."""
    if not settings.filter.templates or any(one is settings.filter for one in settings.loop.uses(settings)):
        return ()
    return (f"filter: {settings.filter} is not used: a search writes no answer; set loop.actions=[filter]",)


def hits_of(
    ranking: Ranking,
    meter: ExposureMeter,
    retriever: Retriever,
    query: Query | None = None,
    own: Ranking | None = None,
) -> tuple[Hit, ...]:
    """The documents with their texts and columns (where the engine keeps texts) and the known groups they belong to.

    Their scores are those of the engine's `own` list; without one, of `ranking`.
    """
    scored = own or ranking
    scores = dict(zip(scored.ids, scored.scores.tolist(), strict=True))
    labels = [(target.dimension, target.labels) for target in meter.targets]
    memberships = [rows[:, 1:].tolist() for rows in meter.memberships(ranking.ids)]
    documents = shown(ranking.ids, retriever, query or Query("")) if isinstance(retriever, TextSource) else None
    hits = []
    for i, id in enumerate(ranking.ids):
        one = documents[i] if documents else Document(id, "")
        groups = {
            dimension: {label: share for label, share in zip(names, rows[i], strict=True) if share > 0}
            for (dimension, names), rows in zip(labels, memberships, strict=True)
        }
        hits.append(Hit(i + 1, id, scores.get(id), one.title, groups, one.snippet, one.text, one.extra))
    return tuple(hits)
