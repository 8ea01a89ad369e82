"""What a search says beside its list: where it is less fair than the engine's own, what would be fairer, and alarms."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairagent.collection.exposure import ExposureMeter, total_gap, worse_dimensions
from fairagent.measures.objective import estimated_relevance, objective
from fairagent.retrieve.base import FusedEngine, Retriever, Vocabulary
from fairagent.search.loop.base import LoopResult, Served, lacking, relevance_in, without
from fairagent.search.rerank.frontier import PRICES
from fairagent.types import Exposure, Query, Ranking
from fairagent.types.change import ABOUT, SHOWN_CHANGE
from fairagent.types.common import UNLABELED, WORSE, Alarm

LACKS = 0.05
"""By how much a group's exposure has to miss its target before a note says what would give it more."""
UNLABELED_OFF = 0.05
"""By how much the exposure of documents without a label may differ from their target before an alarm says so."""


def less_fair(own: Sequence[Exposure], served: Sequence[Exposure]) -> tuple[str, ...]:
    """The dimensions in which what is served is less fair than the engine's own list, each as a note.

    So are those that hardly apply to the query, and do not count.
    """
    worse = worse_dimensions(own, [replace(one, importance=1.0) for one in served])
    return tuple(
        f"less fair than the engine's own list in {after.dimension}: "
        f"a gap of {after.divergence:.4f}, the engine's is {was.divergence:.4f}"
        for was, after in zip(own, served, strict=True)
        if after.dimension in worse
    )


def unlabeled_off(served: Sequence[Exposure]) -> tuple[Alarm, ...]:
    """That documents without a label get more or less of the exposure than they should, an alarm a dimension."""
    return tuple(
        Alarm(
            UNLABELED,
            f"in {one.dimension} documents without a label get {one.unknown:.0%} of the exposure, "
            f"their target is {one.unknown_target:.0%}",
        )
        for one in served
        if one.unknown_target is not None and abs(one.unknown - one.unknown_target) > UNLABELED_OFF
    )


def moved_by_types(before: ExposureMeter, after: ExposureMeter) -> tuple[str, ...]:
    """Where types of documents have changed what those without a label should get, a note a dimension."""
    pairs = zip(after.targets, before.unlabeled, after.unlabeled, strict=False)
    dues = [(one.dimension, was.shares.sum(), now.shares.sum()) for one, was, now in pairs]
    return tuple(
        f"in {dimension} the target of documents without a label is {now:.0%}, not the {was:.0%} of the engine's list: "
        f"the query asks for the type of documents that {'have labels' if now < was else 'have none'}"
        for dimension, was, now in dues
        if abs(now - was) > UNLABELED_OFF
    )


def held_back(served: Served, meter: ExposureMeter) -> tuple[str, ...]:
    """What keeps the group that lacks most from its target: the price of the gap, or what is among the candidates.

    A higher price is the least that gives it about all there is for it. Nothing where no group lacks five percentage
    points, or the re-ranker chooses among no lists.
    """
    lists = served.frontier
    lack = next((one for one in lacking(served.exposures) if one.target - one.share >= LACKS), None)
    if lists is None or lack is None:
        return ()
    dimension = next(place for place, one in enumerate(meter.targets) if one.dimension == lack.group.dimension)
    known = meter.memberships(lists.ids)[dimension][:, 1:]
    label = meter.targets[dimension].labels.index(lack.group.label)
    of_all, of_group = (
        meter.discount(lists.places.shape[1]) @ one[lists.places.T] for one in (known.sum(1), known[:, label])
    )
    now, most, said = lists.gap[lists.choose(served.dial)], 0.0, ""
    for price in reversed(PRICES):
        number = lists.at_price(price)
        if lists.gap[number] >= now:
            break
        share = min(lack.target, float(of_group[number] / of_all[number])) if of_all[number] > 0 else 0.0
        most = most or share
        if share < max(lack.share, most - 2 * ABOUT) + ABOUT:
            break
        said = f"{lack}; fairness {price:g} reaches {share:.0%}, keeping {lists.kept[number]:.0%} of the relevance"
    places = round(lack.target * meter.n)
    there, unlabeled = int((known[:, label] > 0).sum()), int((known.sum(1) <= 0).sum())
    if said and there >= places:
        return (said,)
    count = f"{there} of the {len(known)} candidates {'is' if there == 1 else 'are'} of this group"
    why = f"too few for its {places} of {meter.n} places" if there < places else "and no fairer list has more of them"
    return (f"{said or lack}; {count}, {why}" + (f", {unlabeled} have no label" if unlabeled else ""),)


def engine_notes(engine: Retriever, query: Query, own: Ranking) -> tuple[str, ...]:
    """That its list `own` for `query` is empty, and whether it knows a word, and which of several fused ones failed."""
    notes = list[str]()
    if not len(own):
        known = not isinstance(engine, Vocabulary) or any(map(engine.document_frequency, str(query).split()))
        notes.append("the query retrieves nothing" if known else "no word of the query is known, so nothing is found")
    failures = engine.failures(query) if isinstance(engine, FusedEngine) else {}
    return (*notes, *(f"engine {name} failed, the others serve: {error}" for name, error in failures.items()))


def notes_of(served: Served, result: LoopResult, first: ExposureMeter, meter: ExposureMeter) -> tuple[str, ...]:
    """Where the list is less fair than the engine's own, what would be fairer, and what types of documents changed."""
    return (
        *less_fair(result.steps[0].exposures, served.exposures),
        *held_back(served, meter),
        *moved_by_types(first, meter),
    )


def alarms_of(served: Served, result: LoopResult, own: Ranking, meter: ExposureMeter) -> tuple[Alarm, ...]:
    """That documents without a label get too much or too little, and that a list is worse than the engine's own.

    That is so where its relevance, by the engine, less the price of its gap is smaller: only a loop whose re-ranker
    does not choose among the lists of a frontier can serve one.
    """
    alarms = unlabeled_off(served.exposures)
    if served.frontier is not None or not result.stopped or not len(own):
        return alarms
    relevance = estimated_relevance(own.scores, float(own.scores[0]), float(own.scores[-1]))
    of = dict(zip(own.ids, relevance.tolist(), strict=True))
    head = without(own, result.removed).top(meter.n)
    relevances = np.array([relevance_in(of, served.ranking, meter), relevance_in(of, head, meter)])
    gaps = np.array([served.gap, total_gap(meter.measure(head))])
    after, before = objective(relevances, gaps, served.dial.price).tolist()
    if after >= before - SHOWN_CHANGE:
        return alarms
    what = f"a relevance of {relevances[0]:.3f} and a gap of {gaps[0]:.3f}, its {relevances[1]:.3f} and {gaps[1]:.3f}"
    return (*alarms, Alarm(WORSE, f"{what}; it is served all the same"))
