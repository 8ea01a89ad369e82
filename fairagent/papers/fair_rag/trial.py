"""The Fair RAG experiment on a collection: its documents are the items, and those that were judged relevant useful.

The Fair RAG experiment on LaMP: each question has items of its own, and answers are compared with the right ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.extend import (
    BUNDLED,
    DIVERGENCES,
    Answerer,
    Attributor,
    DenseConfig,
    Document,
    Exposure,
    ExposureMeter,
    ExtractiveGenerator,
    FloatArray,
    HitRecord,
    Judge,
    Memo,
    Model,
    Opened,
    Outcome,
    Prompts,
    Query,
    Ranking,
    SearchResult,
    SpladeConfig,
    System,
    Topic,
    Uniform,
    Usage,
    as_query,
    build_answerer,
    build_systems,
    encoder,
    fit,
    hits_of,
    jensen_shannon,
    site_of,
    texts_for,
)
from fairagent.papers.fair_rag.drawn import generator
from fairagent.papers.fair_rag.draws import (
    CollectionDrawing,
    Drawing,
    Draws,
    TopicDraws,
    most_exposed,
    rankings,
    values,
)
from fairagent.papers.fair_rag.lamp import LampQuestion, answer_from, score_items

KEPT_TERMS = 200_000
"""Sentences whose terms are kept: the same documents are read again and again."""


@dataclass(frozen=True, slots=True, eq=False)
class DrawnSystem:
    """One row: the system whose candidates are drawn, how they are, and who answers from them."""

    system: System
    answerer: Answerer
    draws: Draws


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePool:
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
        found: CandidatePool = self._found.get((row.draws.system, id), lambda: self._search(row.system, id))
        items, useful = self._items(id, found.pool)
        lists = rankings(row.draws, found.pool.scores, useful, self.section, self.seed, id)
        utilities, rested_on, usage = self._answered(row, query, items, useful, lists)
        drawn = TopicDraws(lists, useful, utilities, rested_on)
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

    def _search(self, system: System, id: str) -> CandidatePool:
        found = system.agent.find(self.judge.collection.topics[id], self.section.pool)
        return CandidatePool(found.result(found.pool), found.pool)

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


@dataclass(frozen=True, slots=True, eq=False)
class LampSystem:
    """One row: what scores the items, how they are drawn, who answers, and which items help that generator."""

    engine: Any
    draws: Draws
    model: Model
    prompts: Prompts
    attributor: Attributor | None
    useful: Mapping[str, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class LampTrial:
    """Draws rankings of each question's items, has it answered from them and measures all of it; threads may share it.

    An answer is worth what the task's metric says; where less is better (LaMP-3), what is missing to the worst.
    """

    section: Drawing
    seed: int
    questions: Mapping[str, LampQuestion]
    rows: Mapping[str, LampSystem]
    _scored: Memo = field(default_factory=Memo)

    @classmethod
    def open(
        cls,
        opened: Opened,
        section: Drawing,
        questions: Mapping[str, LampQuestion],
        useful: Mapping[str, Mapping[str, NDArray[np.bool_]]],
    ) -> LampTrial:
        """The trial of an experiment; `useful` are the items that help, generator -> question -> (n,)."""
        memo, rows = opened.memo, {}
        for name, system in opened.plan.systems.items():
            site = site_of(system, opened.collection, opened.models, memo=memo)
            engine, draws = system.settings.engine, Draws.model_validate(system.row)
            scorer: Any = "okapi"
            if isinstance(engine, DenseConfig):
                scorer = encoder(site, engine.encoder or BUNDLED)
            elif isinstance(engine, SpladeConfig):
                scorer = engine.encoder(site)
            attributor = memo.get(("attributor", draws.system), partial(system.settings.attribute.build, site))
            helping = useful[generator(system)]
            rows[name] = LampSystem(scorer, draws, site.model, site.prompts, attributor, helping)
        return cls(section, opened.plan.experiment.seed, questions, rows)

    def outcome(self, system: str, id: str) -> Outcome:
        """See `Trial.outcome`."""
        row, question = self.rows[system], self.questions[id]
        scores = self._scored.get((row.draws.system, id), lambda: score_items(question, row.engine))
        useful = row.useful[id]
        found = rankings(row.draws, scores, useful, self.section, self.seed, id)
        utilities, rested_on, usage = self._answered(row, question, found)
        drawn = TopicDraws(found, useful, utilities, rested_on)
        shown = most_exposed([item.id for item in question.items], drawn.exposure, self.section.k)
        helping = {item.id: bool(helps) for item, helps in zip(question.items, useful, strict=True)}
        scores = shown.scores.tolist()
        hits = (HitRecord(item, "", score, helping[item], {}) for item, score in zip(shown.ids, scores, strict=True))
        return Outcome.of(
            Topic(id, question.query),
            system,
            {"": values(drawn, self.section)},
            usage,
            hits=tuple(hits),
            oracle=row.draws.oracle,
        )

    def _answered(
        self, row: LampSystem, question: LampQuestion, found: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray | None, Usage]:
        """The utility of each ranking (N,), what its answer rests on (N, k'), if that is asked, and what it took."""
        spent = Usage()
        known: dict[tuple[int, ...], tuple[float, FloatArray | None]] = {}
        utility = question.task.utility
        for ranking in map(tuple, found.tolist()):
            if ranking in known:
                continue
            items = [question.items[item] for item in ranking]
            answer = answer_from(row.model, row.prompts, question, items)
            spent = spent + answer.usage
            weights = None
            if row.attributor:
                documents = [Document(item.id, item.text) for item in items]
                attribution = row.attributor.attribute(question.query, answer, documents)
                spent, weights = spent + attribution.usage, attribution.weights
            worth = utility(answer.text, [question.gold])
            known[ranking] = (utility.upper - worth if utility.lower_is_better else worth), weights
        answered = [known[ranking] for ranking in map(tuple, found.tolist())]
        rested_on = np.array([weights for _, weights in answered]) if row.attributor else None
        return np.array([worth for worth, _ in answered]), rested_on, spent
