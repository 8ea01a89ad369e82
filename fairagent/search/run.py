"""The result of a search: its hits, notes, alarms and trace as users see them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from fairagent.collection.exposure import ExposureMeter, total_gap, worse_dimensions
from fairagent.collection.targets import below_corpus, following
from fairagent.llm.budget import Ledger
from fairagent.measures import UNIFORM
from fairagent.measures.objective import estimated_relevance, objective
from fairagent.retrieve.base import FusedEngine, Retriever, TextSource, Vocabulary, engine_seconds, shown
from fairagent.search.loop.base import FinalList, LoopResult, lacking, relevance_in, without
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.search.rerank.frontier import PRICES
from fairagent.settings import Settings
from fairagent.settings.tree import read_profile
from fairagent.types import AnswerResult, Document, Draw, Hit, Query, Ranking, SearchResult, Trace, common
from fairagent.types.change import ABOUT, SHOWN_CHANGE
from fairagent.types.common import UNLABELED, WORSE, Alarm
from fairagent.types.search import FAIRNESS

OFF = 0.05
"""By how much a group's exposure has to miss its target before a note or an alarm says so."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchRun:
    """A search before it is served: the candidates of `query` in their final order (`pool`), and what the loop did.

    `meter` measures its rankings; `first_meter` did before documents were weighed. `started` are the clocks' readings
    when it began: of all time, and of the engine's part. `reranking` counts what re-rankers asked of models.
    """

    query: Query
    pool: Ranking
    engine_list: Ranking
    first_meter: ExposureMeter
    meter: ExposureMeter
    loop: LoopResult
    retriever: Retriever
    settings: Settings
    started: tuple[float, float]
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    reranking: Ledger = field(default_factory=Ledger)

    def result(
        self, ranking: Ranking, draw: Draw | None = None, notes: tuple[str, ...] = (), answers: bool = False
    ) -> SearchResult:
        """The first `settings.n` documents of `ranking` with their trace; `answers`: an answer is made of them."""
        settings, meter, steps, reranked = self.settings, self.meter, self.loop.steps, self.loop.reranked
        top = ranking.top(settings.n)
        usage = sum((step.usage for step in steps), self.reranking.usage)
        if reranked and reranked.ranking.ids == top.ids and not meter.collection.label_errors:
            exposures, relevance = reranked.exposures, reranked.relevance
        else:
            exposures = meter.measure_served(top)
            relevance = relevance_in(reranked.estimates, top, meter) if reranked else 0.0
        frontier = reranked.frontier if reranked else None
        unused = () if answers else unused_filter(settings)
        refines = any(part is settings.refine for part in settings.loop.uses(settings))
        if "refine" in settings.model_fields_set and settings.loops and not refines:
            why = f"is not used, since loop: {settings.loop} uses none; set loop=fair-qr"
            if settings.refine.templates and settings.loop.asks_with(settings):
                template, by_loop = settings.refine.templates[0], settings.loop.asks_with(settings)[0]
                why = f"asks with {by_loop}, for all groups at once; with {template}, one by one, under loop=fair-qr"
            elif settings.refine.templates and not settings.model.name:
                why = "is not used, since no model is named; set model.name"
            unused = (f"refine: {settings.refine} {why}", *unused)
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
            seconds=perf_counter() - self.started[0],
            engine_seconds=engine_seconds() - self.started[1],
            draw=draw,
            relevance_kept=frontier.share(relevance) if frontier else None,
            relevance=relevance,
            fairness=reranked.dial.price if reranked else FAIRNESS,
            collection=meter.collection.name,
            entered=sum(id in self.loop.entered for id in top.ids),
            notes=(
                *self.notes,
                *self.reranking.usage.notes,
                *following(meter.targets),
                *unused,
                *notes,
                *unpriced(settings),
            ),
            alarms=(
                *self.alarms,
                *below_corpus(meter.targets, meter.collection),
                *(alarm for step in steps for alarm in step.alarms),
                *common.of_usage(usage),
            ),
        )
        hits = hits_of(top, meter, self.retriever, self.query, steps[0].ranking if steps else None)
        return SearchResult(self.query, top, hits, trace, self.loop.candidates.ids)

    def with_least_gap(self, answer: AnswerResult) -> AnswerResult:
        """The answer, with the gap of the fairest list of as many candidates, all alike relevant, in places alike."""
        reranked, exposures = self.loop.reranked, answer.exposures
        if reranked is None or reranked.frontier is None or not exposures.context:
            return answer
        alike = Ranking(reranked.pool.ranking.ids, np.ones(len(reranked.pool.ranking)))
        pool = replace(reranked.pool, n=len(answer.context), ranking=alike, engine_list=alike)
        walker = ExposureReranker(discount=UNIFORM, divergence=self.settings.divergence)
        fairest = float(walker.frontier(pool).gap.min())
        return replace(answer, exposures=replace(exposures, least_gap=min(fairest, exposures.context_gap)))


def unpriced(settings: Settings) -> tuple[str, ...]:
    """A note that the prices which are set have none for the model."""
    name = settings.model.name
    missing = settings.prices and name and name not in settings.prices
    how = f"set prices: {{{name}: {{input: ..., output: ...}}}}"
    return (f"no price is known for {name}: money is not counted; {how}",) if missing else ()


def unused_filter(settings: Settings) -> tuple[str, ...]:
    """A note that the filter which was set is not used, and what would use it; nothing where it is.

    Nor where it is the profile's: that is for answers.
    """
    if not settings.filter.templates or any(one is settings.filter for one in settings.loop.uses(settings)):
        return ()
    if settings.profile and "filter" in read_profile(settings.profile):
        return ()
    return (f"filter: {settings.filter} is not used: a search writes no answer; set loop.actions=[filter]",)


def hits_of(
    ranking: Ranking,
    meter: ExposureMeter,
    retriever: Retriever,
    query: Query | None = None,
    engine_list: Ranking | None = None,
) -> tuple[Hit, ...]:
    """The documents with their texts and columns, where the engine keeps texts, and the known groups they belong to.

    Their scores are those of the `engine_list`; without one, of `ranking`.
    """
    scored = engine_list or ranking
    scores = dict(zip(scored.ids, scored.scores.tolist(), strict=True))
    memberships = [
        (target.dimension, target.labels, rows[:, 1:].tolist())
        for target, rows in zip(meter.targets, meter.memberships(ranking.ids), strict=True)
    ]
    documents = shown(ranking.ids, retriever, query or Query("")) if isinstance(retriever, TextSource) else None
    hits = []
    for i, id in enumerate(ranking.ids):
        one = documents[i] if documents else Document(id, "")
        groups = {
            dimension: {label: share for label, share in zip(labels, rows[i], strict=True) if share > 0}
            for dimension, labels, rows in memberships
        }
        hits.append(Hit(i + 1, id, scores.get(id), one.title, groups, one.snippet, one.text, one.extra))
    return tuple(hits)


def notes_of(reranked: FinalList, result: LoopResult, first: ExposureMeter, meter: ExposureMeter) -> tuple[str, ...]:
    """Where the list is less fair than the engine's own, what would be fairer, and what types of documents changed."""
    before, after = result.steps[0].exposures, reranked.exposures
    # Dimensions that hardly apply to the query, and so do not count, are named as well.
    worse = worse_dimensions(before, [replace(one, importance=1.0) for one in after])
    notes = [
        f"less fair than the engine's own list in {now.dimension}: "
        f"a gap of {now.divergence:.4f}, the engine's is {was.divergence:.4f}"
        for was, now in zip(before, after, strict=True)
        if now.dimension in worse
    ]
    return (*notes, *fairer(reranked, meter), *moved_by_types(first, meter))


def moved_by_types(before: ExposureMeter, after: ExposureMeter) -> list[str]:
    """A note for each dimension in which types of documents have changed what those without a label should get."""
    unlabeled = zip(after.targets, before.unlabeled, after.unlabeled, strict=False)
    dues = [(one.dimension, was.shares.sum(), now.shares.sum()) for one, was, now in unlabeled]
    return [
        f"in {dimension} the target of documents without a label is {now:.0%}, not the {was:.0%} of the engine's list: "
        f"the query asks for the type of documents that {'have labels' if now < was else 'have none'}"
        for dimension, was, now in dues
        if abs(now - was) > OFF
    ]


def fairer(reranked: FinalList, meter: ExposureMeter) -> list[str]:
    """What keeps the group that lacks most from its target: the price of the gap, or too few candidates of it.

    The price that is named is the least that gives the group about all it can have. Nothing is said where no group
    lacks five percentage points.
    """
    lists = reranked.frontier
    lack = next((one for one in lacking(reranked.exposures) if one.target - one.share >= OFF), None)
    if lists is None or lack is None:
        return []
    dimension = next(place for place, one in enumerate(meter.targets) if one.dimension == lack.group.dimension)
    labeled = meter.memberships(lists.ids)[dimension][:, 1:]
    members, some = labeled[:, meter.targets[dimension].labels.index(lack.group.label)], labeled.sum(axis=1)
    weights = meter.discount(lists.places.shape[1])
    of_group, of_all = (weights @ one[lists.places.T] for one in (members, some))
    now, most, line = lists.gap[lists.choose(reranked.dial)], 0.0, str(lack)
    for price in reversed(PRICES):
        number = lists.at_price(price)
        if lists.gap[number] >= now:
            break
        share = min(lack.target, float(of_group[number] / of_all[number])) if of_all[number] > 0 else 0.0
        most = most or share
        if share < max(lack.share, most - 2 * ABOUT) + ABOUT:
            break
        left = lists.share(float(lists.relevance[number]))
        line = f"{lack}; fairness {price:g} reaches {share:.0%}, keeping {left:.0%} of the relevance"
    places, there, unlabeled = round(lack.target * meter.n), int((members > 0).sum()), int((some <= 0).sum())
    if there >= places and line != str(lack):
        return [line]
    count = f"{there} of the {len(labeled)} candidates {'is' if there == 1 else 'are'} of this group"
    why = f"too few for its {places} of {meter.n} places" if there < places else "and no fairer list has more of them"
    return [f"{line}; {count}, {why}" + (f", {unlabeled} have no label" if unlabeled else "")]


def engine_notes(engine: Retriever, query: Query, engine_list: Ranking) -> tuple[str, ...]:
    """Notes that the list for `query` is empty, that no word of it is known, and which fused engines failed."""
    notes = list[str]()
    if not len(engine_list):
        known = not isinstance(engine, Vocabulary) or any(map(engine.document_frequency, str(query).split()))
        notes.append("the query retrieves nothing" if known else "no word of the query is known, so nothing is found")
    failures = engine.failures(query) if isinstance(engine, FusedEngine) else {}
    return (*notes, *(f"engine {name} failed, the others serve: {error}" for name, error in failures.items()))


def alarms_of(reranked: FinalList, result: LoopResult, engine_list: Ranking, meter: ExposureMeter) -> tuple[Alarm, ...]:
    """That documents without a label get too much or too little, and that a list has a smaller J than the engine's own.

    Only a loop whose re-ranker does not choose among the lists of a frontier can serve such a list.
    """
    alarms = tuple(
        Alarm(
            UNLABELED,
            f"in {one.dimension} documents without a label get {one.unknown:.0%} of the exposure, "
            f"their target is {one.unknown_target:.0%}",
        )
        for one in reranked.exposures
        if one.unknown_target is not None and abs(one.unknown - one.unknown_target) > OFF
    )
    if reranked.frontier is not None or not result.stopped or not len(engine_list):
        return alarms
    scores = engine_list.scores
    relevance = estimated_relevance(scores, float(scores[0]), float(scores[-1]))
    estimates = dict(zip(engine_list.ids, relevance.tolist(), strict=True))
    head = without(engine_list, result.removed).top(meter.n)
    relevances = np.array([relevance_in(estimates, one, meter) for one in (reranked.ranking, head)])
    gaps = np.array([reranked.gap, total_gap(meter.measure(head))])
    after, before = objective(relevances, gaps, reranked.dial.price).tolist()
    if after >= before - SHOWN_CHANGE:
        return alarms
    what = f"a relevance of {relevances[0]:.3f} and a gap of {gaps[0]:.3f}, its {relevances[1]:.3f} and {gaps[1]:.3f}"
    return (*alarms, Alarm(WORSE, f"{what}; it is served all the same"))
