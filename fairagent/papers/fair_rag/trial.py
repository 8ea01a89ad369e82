"""The Fair RAG experiment, topic by topic: rankings are drawn, answered from, and measured.

On a collection its documents are the items, and those that were judged relevant are useful; in LaMP each question has
items of its own, and answers are compared with the right ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.answer.answering import Answerer
from fairagent.answer.attribution import Attributor, attribute_with
from fairagent.answer.context import fit
from fairagent.answer.filtering import filter_with
from fairagent.answer.generators import answer_with
from fairagent.collection.exposure import ExposureMeter
from fairagent.evaluate.judging import Judge
from fairagent.evaluate.kind import Opened
from fairagent.evaluate.outcome import HitRecord, Outcome
from fairagent.evaluate.plan import System, build_systems, site_of
from fairagent.llm import Model
from fairagent.llm.prompts import Prompts
from fairagent.measures import UNIFORM, jensen_shannon
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
from fairagent.retrieve.base import as_query, texts_for
from fairagent.retrieve.encoders import EncoderPart
from fairagent.retrieve.vectors import encoder
from fairagent.search.pipeline import build_answerer
from fairagent.search.run import hits_of
from fairagent.storage.threads import Memo
from fairagent.types import Document, Exposure, FloatArray, Query, Ranking, SearchResult, Topic, Usage

CACHED_TERMS = 200_000
"""Sentences whose terms are cached: the same documents are read again and again."""

Answered = tuple[float, FloatArray | None, Usage]
"""What the answer to a ranking is worth, how far it rests on each item (k',), and what it took."""


def drawn_and_answered(
    lists: NDArray[np.intp], useful: NDArray[np.bool_], answer: Callable[[tuple[int, ...]], Answered]
) -> tuple[TopicDraws, Usage]:
    """The rankings `lists` (N, k') with their answers; each different ranking is answered once."""
    answers: dict[tuple[int, ...], Answered] = {}
    ranked = [tuple(ranking) for ranking in lists.tolist()]
    for ranking in ranked:
        if ranking not in answers:
            answers[ranking] = answer(ranking)
    weights = [answers[ranking][1] for ranking in ranked]
    rested_on = None if weights[0] is None else np.array(weights)
    utilities = np.array([answers[ranking][0] for ranking in ranked])
    return TopicDraws(lists, useful, utilities, rested_on), sum((usage for *_, usage in answers.values()), Usage())


@dataclass(frozen=True, slots=True, eq=False)
class DrawnSystem:
    """One row: the system whose candidates are drawn, how they are, and who answers from them."""

    system: System
    answerer: Answerer
    draws: Draws


@dataclass(frozen=True, slots=True, eq=False)
class TopicOutcome:
    """What was drawn for a topic: the search, the ids of its items (n,), their rankings with answers, what it took."""

    search: SearchResult
    items: tuple[str, ...]
    drawn: TopicDraws
    usage: Usage


@dataclass(frozen=True, slots=True, eq=False)
class FairRagTrial:
    """Draws rankings of each topic, answers from them and measures all of it; threads may share it."""

    judge: Judge
    section: CollectionDrawing
    seed: int
    rows: Mapping[str, DrawnSystem]
    _candidates: Memo = field(default_factory=Memo)

    @classmethod
    def open(cls, opened: Opened, section: CollectionDrawing) -> FairRagTrial:
        plan, systems = opened.plan, build_systems(opened)
        answerers: dict[str, Answerer] = {}
        rows = {}
        for name, row in plan.systems.items():
            draws, system = Draws.model_validate(row.row), systems[name]
            if draws.system not in answerers:
                answerer = build_answerer(replace(system.site, engine=system.agent.retriever))
                generator: Any = answerer.generator
                if analyze := getattr(generator, "analyze", None):
                    cached = replace(generator, analyze=lru_cache(maxsize=CACHED_TERMS)(analyze))
                    answerer = replace(answerer, generator=cached)
                answerers[draws.system] = answerer
            rows[name] = DrawnSystem(system, answerers[draws.system], draws)
        return cls(Judge.of(plan, opened.collection), section, plan.experiment.seed, rows)

    def draw(self, system: str, id: str) -> TopicOutcome:
        """The rankings of a row for a topic, with their answers."""
        collection, k = self.judge.collection, self.section.k
        row = self.rows[system]
        query, retriever = as_query(collection.topics[id]), row.system.agent.retriever
        search, pool = self._candidates.get((row.draws.system, id), lambda: self._search(row.system, id))
        # The pool first, then what is useful and was not retrieved.
        grades = {one: self.section.grades.get(grade, grade) for one, grade in collection.qrels[id].items()}
        pooled = set(pool.ids)
        items = (*pool.ids, *sorted(one for one, grade in grades.items() if grade > 0 and one not in pooled))
        useful = np.array([grades.get(item, 0) > 0 for item in items])
        lists = rankings(row.draws, pool.scores, useful, self.section, self.seed, id)
        shown = sorted({*lists.ravel().tolist()})
        texts = dict(zip(shown, texts_for(query, [items[item] for item in shown], retriever), strict=True))
        enough = 1 if self.section.enough == "one" else max(1, min(k, int(useful.sum())))

        def answer(ranking: tuple[int, ...]) -> Answered:
            weights, usage = _rests_on(row.answerer, query, [texts[item] for item in ranking])
            return min(float((weights * useful[list(ranking)]).sum()) / enough, 1.0), weights, usage

        drawn, usage = drawn_and_answered(lists, useful, answer)
        return TopicOutcome(search, items, drawn, usage)

    def outcome(self, system: str, id: str) -> Outcome:
        collection, k, row = self.judge.collection, self.section.k, self.rows[system]
        of_topic = self.draw(system, id)
        search, items, drawn = of_topic.search, of_topic.items, of_topic.drawn
        meter = ExposureMeter(collection, id, self.judge.targets(id), k, UNIFORM, "js")
        first = search.trace.steps[0].ranking.top(k)
        stages = {
            "gap retrieved": meter.weigh(first.ids, np.ones(len(first))),
            "gap re-ranked": meter.weigh(items, drawn.exposure),
            "gap cited": meter.weigh(items, drawn.attributed),
        }
        by_dimension: dict[str, dict[str, float]] = {target.dimension: {} for target in meter.targets}
        for stage, exposures in stages.items():
            for exposure in exposures:
                by_dimension[exposure.dimension][stage] = gap(exposure)
        shown = most_exposed(items, drawn.exposure, k)
        return Outcome.of(
            collection.topics[id],
            system,
            {"": values(drawn, self.section), **by_dimension},
            search.trace.usage + of_topic.usage,
            search=search,
            hits=self.judge.hits(id, hits_of(shown, meter, row.system.agent.retriever), shown.scores),
            exposures=stages["gap re-ranked"],
            cited=stages["gap cited"],
            oracle=row.draws.oracle or (search.trace.oracle and row.system.sees_groups),
        )

    def _search(self, system: System, id: str) -> tuple[SearchResult, Ranking]:
        """A system's search for a topic, and its candidates, best first: the first k are its own ranking."""
        run = system.agent.find(self.judge.collection.topics[id], self.section.pool)
        return run.result(run.pool), run.pool


def gap(exposure: Exposure) -> float:
    """1 - AWRF of the known groups' shares, in [0, ln 2]: all of it where nothing is shown that has a label."""
    return jensen_shannon(exposure.shares, exposure.target) if exposure.shares.any() else math.log(2)


def _rests_on(answerer: Answerer, query: Query, documents: Sequence[Document]) -> tuple[FloatArray, Usage]:
    """How far the answer from `documents` rests on each of them, in [0, 1]; 0 for those that the filter removes."""
    assert answerer.attributor  # checked before
    spent, passed = Usage(), tuple(documents)
    if answerer.contexts.filter:
        filtered = filter_with(answerer.contexts.filter, query, documents)
        passed, spent = filtered.documents, filtered.usage
    context, _ = fit(passed, answerer.contexts.tokens)
    answer = answer_with(answerer.generator, query, context)
    attribution = attribute_with(answerer.attributor, query, answer, context)
    weights = dict(zip((document.id for document in context), attribution.weights.tolist(), strict=True))
    usage = spent + answer.usage + attribution.usage
    return np.array([weights.get(document.id, 0.0) for document in documents]), usage


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
        memo, rows = opened.memo, {}
        for name, system in opened.plan.systems.items():
            site = site_of(system, opened.collection, opened.models, memo=memo)
            engine, draws = system.settings.engine, Draws.model_validate(system.row)
            scorer: Any = "okapi"
            if named := getattr(engine, "text_encoder", ""):
                scorer = encoder(site, named)
            elif isinstance(engine, EncoderPart):
                scorer = engine.open_encoder(memo)
            attributor = memo.get(("attributor", draws.system), partial(system.settings.attribute.build, site))
            helping = useful[generator(system)]
            rows[name] = LampSystem(scorer, draws, site.model, site.prompts, attributor, helping)
        return cls(section, opened.plan.experiment.seed, questions, rows)

    def outcome(self, system: str, id: str) -> Outcome:
        row, question = self.rows[system], self.questions[id]
        scores = self._scored.get((row.draws.system, id), lambda: score_items(question, row.engine))
        useful, utility = row.useful[id], question.task.utility

        def answer(ranking: tuple[int, ...]) -> Answered:
            items = [question.items[item] for item in ranking]
            reply = answer_from(row.model, row.prompts, question, items)
            usage, weights = reply.usage, None
            if row.attributor:
                documents = [Document(item.id, item.text) for item in items]
                attribution = row.attributor.attribute(question.query, reply, documents)
                usage, weights = usage + attribution.usage, attribution.weights
            worth = utility(reply.text, question.golds)
            return utility.upper - worth if utility.lower_is_better else worth, weights, usage

        lists = rankings(row.draws, scores, useful, self.section, self.seed, id)
        drawn, usage = drawn_and_answered(lists, useful, answer)
        shown = most_exposed([item.id for item in question.items], drawn.exposure, self.section.k)
        helping = {item.id: bool(helps) for item, helps in zip(question.items, useful, strict=True)}
        ranked = zip(shown.ids, shown.scores.tolist(), strict=True)
        return Outcome.of(
            Topic(id, question.query),
            system,
            {"": values(drawn, self.section)},
            usage,
            hits=tuple(HitRecord(item, "", score, helping[item], {}) for item, score in ranked),
            oracle=row.draws.oracle,
        )
