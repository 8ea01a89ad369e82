"""The Fair RAG experiment on a collection: its documents are the items, and those that were judged relevant useful."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fairagent.answer import Answerer
from fairagent.evaluate.engine.kind import Opened
from fairagent.evaluate.engine.outcome import Outcome
from fairagent.evaluate.engine.systems import System, build_systems
from fairagent.evaluate.judged_kind import Judge
from fairagent.evaluate.kinds.fair_rag.drawing import most_exposed, rankings
from fairagent.evaluate.kinds.fair_rag.section import CollectionDrawing, Draws
from fairagent.evaluate.kinds.fair_rag.values import Drawn, values
from fairagent.exposure import ExposureMeter
from fairagent.found import hits_of
from fairagent.generate import ExtractiveGenerator, fit
from fairagent.measures import DIVERGENCES, Uniform, jensen_shannon
from fairagent.memo import Memo
from fairagent.pipeline import build_answerer
from fairagent.query import as_query
from fairagent.retrieve.base import texts_for
from fairagent.types import Document, Exposure, FloatArray, Query, Ranking, SearchResult, Usage

KEPT_TERMS = 200_000
"""Sentences whose terms are kept: the same documents are read again and again."""


@dataclass(frozen=True, slots=True, eq=False)
class DrawnSystem:
    """One row: the system whose candidates are drawn, how they are, and who answers from them."""

    system: System
    answerer: Answerer
    draws: Draws


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A system's candidates for a topic, best first, `pool.ids` of which the first k are its own ranking."""

    search: SearchResult
    pool: Ranking


@dataclass(frozen=True, slots=True, eq=False)
class FairRagTrial:
    """Draws rankings of each topic, answers from them and measures all of it; threads may share it."""

    judge: Judge
    section: CollectionDrawing
    seed: int
    rows: Mapping[str, DrawnSystem]
    _found: Memo = field(default_factory=Memo)

    @classmethod
    def open(cls, opened: Opened, section: CollectionDrawing) -> FairRagTrial:
        """The trial of an experiment over a collection."""
        plan, systems = opened.plan, build_systems(opened)
        answerers: dict[str, Answerer] = {}
        rows = {}
        for name, row in plan.systems.items():
            draws, system = Draws.model_validate(row.row), systems[name]
            if draws.system not in answerers:
                answerer = build_answerer(replace(system.site, engine=system.agent.retriever))
                answerers[draws.system] = _remembering(answerer)
            rows[name] = DrawnSystem(system, answerers[draws.system], draws)
        return cls(Judge.of(plan, opened.collection), section, plan.experiment.seed, rows)

    def outcome(self, system: str, id: str) -> Outcome:
        """See `Trial.outcome`."""
        topic = self.judge.collection.topics[id]
        row, query = self.rows[system], as_query(topic)
        found: Found = self._found.get((row.draws.system, id), lambda: self._search(row.system, id))
        items, useful = self._items(id, found.pool)
        lists = rankings(row.draws, found.pool.scores, useful, self.section, self.seed, id)
        utilities, rested_on, usage = self._answered(row, query, items, useful, lists)
        drawn = Drawn(lists, useful, utilities, rested_on)
        meter = self._meter(id)
        shown = meter.weigh(items, drawn.exposure)
        first = found.search.trace.steps[0].ranking.top(self.section.k)
        stages = {
            "gap retrieved": meter.weigh(first.ids, np.ones(len(first))),
            "gap re-ranked": shown,
            "gap cited": meter.weigh(items, drawn.attributed),
        }
        by_dimension: dict[str, dict[str, float]] = {target.dimension: {} for target in meter.targets}
        for stage, exposures in stages.items():
            for exposure in exposures:
                by_dimension[exposure.dimension][stage] = gap(exposure)
        trace = found.search.trace
        ranked = most_exposed(items, drawn.exposure, self.section.k)
        return Outcome.of(
            topic,
            system,
            {"": values(drawn, self.section), **by_dimension},
            trace.usage + usage,
            search=found.search,
            hits=self.judge.hits(id, hits_of(ranked, meter, row.system.agent.retriever)),
            exposures=shown,
            cited=stages["gap cited"],
            oracle=row.draws.oracle or (trace.oracle and row.system.sees_groups),
        )

    def _search(self, system: System, id: str) -> Found:
        found = system.agent.find(self.judge.collection.topics[id], self.section.pool)
        return Found(found.result(found.pool), found.pool)

    def _items(self, id: str, pool: Ranking) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
        """The topic's items, the pool first, then what is useful and was not found; and which are useful, (n,)."""
        grades = self.judge.collection.qrels[id]
        found = set(pool.ids)
        missed = sorted(document for document, grade in grades.items() if grade > 0 and document not in found)
        items = (*pool.ids, *missed)
        return items, np.array([grades.get(document, 0) > 0 for document in items])

    def _answered(
        self, row: DrawnSystem, query: Query, items: Sequence[str], useful: NDArray[np.bool_], found: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray, Usage]:
        """The utility of each ranking (N,), what its answer rests on (N, k'), and what all of that took."""
        answerer, spent = row.answerer, Usage()
        shown = sorted({*found.ravel().tolist()})
        ids = [items[item] for item in shown]
        texts = dict(zip(shown, texts_for(query, ids, row.system.agent.retriever), strict=True))
        weights: dict[tuple[int, ...], FloatArray] = {}
        for ranking in found.tolist():
            if (key := tuple(ranking)) in weights:
                continue
            weights[key], usage = _rests_on(answerer, query, [texts[item] for item in key])
            spent = spent + usage
        rested_on = np.array([weights[tuple(ranking)] for ranking in found.tolist()])
        fit = max(1, min(self.section.k, int(useful.sum())))
        return (rested_on * useful[found]).sum(axis=1) / fit, rested_on, spent

    def _meter(self, id: str) -> ExposureMeter:
        targets = self.judge.targets(id)
        return ExposureMeter(self.judge.collection, id, targets, self.section.k, Uniform(), DIVERGENCES["js"])


def gap(exposure: Exposure) -> float:
    """1 - AWRF of the known groups' shares, in [0, ln 2]: all of it where nothing is shown that has a label."""
    return jensen_shannon(exposure.shares, exposure.target) if exposure.shares.any() else math.log(2)


def _rests_on(answerer: Answerer, query: Query, documents: Sequence[Document]) -> tuple[FloatArray, Usage]:
    """How far the answer from `documents` rests on each of them, in [0, 1]; 0 for those that the filter removes."""
    assert answerer.attributor  # checked before
    spent = Usage()
    kept: tuple[Document, ...] = tuple(documents)
    if answerer.contexts.filter:
        filtered = answerer.contexts.filter.filter(query.text, documents)
        kept, spent = filtered.documents, filtered.usage
    context, _ = fit(kept, answerer.contexts.tokens)
    answer = answerer.generator.answer(query, context)
    attribution = answerer.attributor.attribute(query.text, answer, context)
    found = dict(zip((document.id for document in context), attribution.weights.tolist(), strict=True))
    weights = np.array([found.get(document.id, 0.0) for document in documents])
    return weights, spent + answer.usage + attribution.usage


def _remembering(answerer: Answerer) -> Answerer:
    """`answerer`; one that takes sentences remembers their terms."""
    generator = answerer.generator
    if isinstance(generator, ExtractiveGenerator):
        analyze = lru_cache(maxsize=KEPT_TERMS)(generator.analyze)
        return replace(answerer, generator=replace(generator, analyze=analyze))
    return answerer
