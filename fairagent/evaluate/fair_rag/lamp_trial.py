"""The Fair RAG experiment on LaMP: each question has items of its own, and answers are compared with the right ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.attribute import Attributor
from fairagent.collection import Collection
from fairagent.collection.lamp import LampQuestion
from fairagent.evaluate.fair_rag.asking import answer_from
from fairagent.evaluate.fair_rag.drawing import most_exposed, rankings
from fairagent.evaluate.fair_rag.lamp import generators, lamp_of, read_labels
from fairagent.evaluate.fair_rag.rows import generator
from fairagent.evaluate.fair_rag.section import Draws, FairRag, LampFiles
from fairagent.evaluate.fair_rag.values import Drawn, values
from fairagent.evaluate.outcome import HitRecord, Outcome, took
from fairagent.evaluate.plan import Plan
from fairagent.evaluate.systems import site_of
from fairagent.llm import Model
from fairagent.llm.models import Models
from fairagent.memo import Memo
from fairagent.prompts import Prompts
from fairagent.retrieve.profiles import score_items
from fairagent.retrieve.splade import SpladeConfig
from fairagent.retrieve.vectors import DenseConfig, encoder
from fairagent.types import Document, FloatArray, Topic, Usage


@dataclass(frozen=True, slots=True, eq=False)
class Row:
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

    section: FairRag
    seed: int
    questions: Mapping[str, LampQuestion]
    rows: Mapping[str, Row]
    _scored: Memo = field(default_factory=Memo)

    @classmethod
    def open(cls, plan: Plan, section: FairRag, files: LampFiles, collection: Collection, models: Models) -> LampTrial:
        """The trial of an experiment; DataError where labels are missing."""
        lamp = lamp_of(collection)
        labels = read_labels(generators(plan.systems, lamp, files, os.environ))
        useful = {key: {id: of.useful(id) for id in of.gains} for key, of in labels.items()}
        memo = Memo()
        rows = {}
        for name, system in plan.systems.items():
            assert system.draws  # every row of such an experiment has them
            site, engine = site_of(system, collection, models, memo=memo), system.settings.engine
            scorer: Any = "okapi"
            if isinstance(engine, DenseConfig):
                scorer = encoder(site, engine.encoder)
            elif isinstance(engine, SpladeConfig):
                scorer = engine.encoder(site)
            attributor = memo.get(("attributor", system.draws.system), partial(system.settings.attribute.build, site))
            rows[name] = Row(scorer, system.draws, site.model, site.prompts, attributor, useful[generator(system)])
        return cls(section, plan.seed, {question.id: question for question in lamp.questions}, rows)

    def topic(self, id: str) -> Topic:
        """The question as something to search for."""
        return Topic(id, self.questions[id].query)

    def outcome(self, system: str, id: str) -> Outcome:
        """What one question comes to in one row; raises what asking models raises."""
        started = perf_counter()
        row, question = self.rows[system], self.questions[id]
        scores = self._scored.get((row.draws.system, id), lambda: score_items(question, row.engine))
        useful = row.useful[id]
        found = rankings(row.draws, scores, useful, self.section, self.seed, id)
        utilities, rested_on, usage = self._answered(row, question, found)
        drawn = Drawn(found, useful, utilities, rested_on)
        shown = most_exposed([item.id for item in question.items], drawn.exposure, self.section.k)
        helping = {item.id: bool(helps) for item, helps in zip(question.items, useful, strict=True)}
        return Outcome(
            topic=id,
            query=question.query,
            system=system,
            values={"": values(drawn, self.section)},
            hits=tuple(
                HitRecord(item, "", score, helping[item], {})
                for item, score in zip(shown.ids, shown.scores.tolist(), strict=True)
            ),
            exposures=(),
            steps=(),
            stopped="",
            **took(usage),
            oracle=row.draws.oracle,
            seconds=perf_counter() - started,
            failed=None,
        )

    def _answered(
        self, row: Row, question: LampQuestion, found: NDArray[np.intp]
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
