"""The Fair RAG experiment on LaMP: each question has items of its own, and answers are compared with the right ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.attribute import Attributor
from fairagent.collection.lamp import LampQuestion
from fairagent.evaluate.engine.kind import Opened
from fairagent.evaluate.engine.outcome import HitRecord, Outcome
from fairagent.evaluate.engine.systems import site_of
from fairagent.evaluate.kinds.fair_rag.drawing import most_exposed, rankings
from fairagent.evaluate.kinds.fair_rag.drawn import generator
from fairagent.evaluate.kinds.fair_rag.lamp_asking import answer_from
from fairagent.evaluate.kinds.fair_rag.section import Drawing, Draws
from fairagent.evaluate.kinds.fair_rag.values import Drawn, values
from fairagent.llm import Model
from fairagent.memo import Memo
from fairagent.prompts import Prompts
from fairagent.retrieve.encoder import BUNDLED
from fairagent.retrieve.profiles import score_items
from fairagent.retrieve.splade import SpladeConfig
from fairagent.retrieve.vectors import DenseConfig, encoder
from fairagent.types import Document, FloatArray, Topic, Usage


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
        drawn = Drawn(found, useful, utilities, rested_on)
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
