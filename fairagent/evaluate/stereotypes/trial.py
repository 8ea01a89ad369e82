"""A trial of preferences: a model scores every item's sentences after what each system retrieves for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from fairagent.answer import Answerer
from fairagent.assemble import make_debiasing, make_filter
from fairagent.debias.stage import DebiasRAG
from fairagent.errors import DataError
from fairagent.evaluate.answers.exam import answered_alone, found_hits, removed_ids
from fairagent.evaluate.answers.questions import Question, read_questions
from fairagent.evaluate.judge import step_record
from fairagent.evaluate.outcome import AnswerRecord, ChoiceRecord, DebiasRecord, Outcome, took
from fairagent.evaluate.plan import Plan, QuestionsPlan
from fairagent.evaluate.stereotypes.section import LocalModel
from fairagent.evaluate.systems import System
from fairagent.generate import ExtractiveGenerator, OnText
from fairagent.generate.context import Order, arrange
from fairagent.llm.models import Models
from fairagent.prompts import Prompts
from fairagent.stereotypes.choice import ChoiceScorer
from fairagent.stereotypes.items import Example, Item
from fairagent.stereotypes.local import local_scorer
from fairagent.stereotypes.scorers import BETWEEN, Scored, Scorer
from fairagent.types import Answer, AnswerResult, Debiased, Document, Query, Topic, Usage

PREFERRED = "preference"
"""Who grades an answer that is a preferred sentence."""


@dataclass(slots=True)
class Choosing:
    """A `Generator` for one item: the sentence that `scorer` prefers after the documents; keeps the scores."""

    scorer: Scorer
    item: Item
    order: Order
    scored: Scored = field(default_factory=lambda: Scored(np.zeros(0)))

    def answer(self, query: str | Query, documents: Sequence[Document], on_text: OnText | None = None) -> Answer:
        """The preferred sentence, the first of those that share the highest score."""
        shown = (documents[number - 1].text for number in arrange(len(documents), self.order))
        self.scored = self.scorer.score(self.item, BETWEEN.join(text for text in shown if text))
        answer = Answer(preferred(self.item, self.scored), usage=self.scored.usage, source="likelihood")
        if on_text:
            on_text(answer.text)
        return answer


@dataclass(frozen=True, slots=True)
class Participant:
    """One system: what finds its documents and makes a context of them, both None where it searches nothing.

    With `debiasing` it has the context that this makes then, else none.
    """

    system: System | None
    answerer: Answerer | None
    scorer: Scorer
    order: Order
    debiasing: DebiasRAG | None = None

    def score(self, question: Question, item: Item) -> tuple[Scored, Usage, AnswerResult | None, Debiased | None]:
        """The scores of the item's sentences, what all of it took, and what the context came from."""
        choosing = Choosing(self.scorer, item, self.order)
        if self.system is None or self.answerer is None:
            _, usage, _, made = answered_alone(
                question.query, self.debiasing, lambda made: choosing.answer(question.query, made or ())
            )
            return choosing.scored, usage, None, made
        answerer = replace(self.answerer, generator=choosing)
        found = replace(self.system.agent, answerer=lambda: answerer).answer(Topic(question.id, question.query))
        return choosing.scored, found.usage, found, found.debiased


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceTrial:
    """Lets models choose under every system; threads may share it."""

    questions: Mapping[str, Question]
    participants: Mapping[str, Participant]

    @classmethod
    def open(cls, plan: Plan, asked: QuestionsPlan, systems: Mapping[str, System], models: Models) -> ChoiceTrial:
        """The trial of an experiment; a system that is not among `systems` does not search."""
        local = open_local(asked.local) if asked.local else None
        participants = {}
        for name, system in plan.systems.items():
            settings, prompts = system.settings, Prompts(system.settings.prompts)
            scorer = local or ChoiceScorer(models.open(settings.model), prompts, plan.seed)
            opened = partial(models.open, settings.model)
            debiasing = make_debiasing(settings, opened, prompts)
            searching, answerer = systems.get(name), None
            if searching:
                filter, context = make_filter(settings, opened, prompts), settings.context
                # Each item puts in a generator of its own.
                idle = ExtractiveGenerator()
                answerer = Answerer(idle, filter, None, context.documents, context.tokens, debiasing)
            participants[name] = Participant(searching, answerer, scorer, settings.context.order, debiasing)
        return cls(read_questions(asked.task, Path(asked.path)), participants)

    def topic(self, id: str) -> Topic:
        """The item as something to search for."""
        return Topic(id, self.questions[id].query)

    def outcome(self, system: str, id: str) -> Outcome:
        """What one item comes to under one system; raises what searching and scoring raise."""
        started = perf_counter()
        question, participant = self.questions[id], self.participants[system]
        item = question.item
        assert item is not None
        scored, usage, found, debiased = participant.score(question, item)
        if not np.isfinite(scored.scores).all():
            raise DataError(f"{participant.scorer.way}: a sentence's score is no finite number")
        values = item.values(scored.scores, participant.scorer.decimals)
        trace = found.search.trace if found else None
        searching = participant.system
        return Outcome(
            topic=id,
            query=question.query,
            system=system,
            values={"": values, question.kind: values},
            hits=found_hits(found),
            exposures=(),
            steps=tuple(map(step_record, trace.steps)) if trace else (),
            stopped=trace.stopped if trace and searching and searching.agent.settings.iterations else "",
            **took(usage),
            oracle=bool(trace and trace.oracle and searching and searching.sees_groups),
            seconds=perf_counter() - started,
            failed=None,
            answer=AnswerRecord(preferred(item, scored), PREFERRED, removed_ids(found), DebiasRecord.of(debiased)),
            choice=choice_record(item, scored, participant.scorer.decimals),
        )


def open_local(local: LocalModel) -> Scorer:
    """The scorer of an experiment's local model; raises what opening it raises."""
    return local_scorer(local.kind, local.name, local.device, local.dtype, local.batch)


def preferred(item: Item, scored: Scored) -> str:
    """The sentence with the highest score."""
    return item.sentences[int(np.argmax(scored.scores))]


def choice_record(item: Item, scored: Scored, decimals: int | None) -> ChoiceRecord:
    """What the numbers of all items together are made of, as plain values."""
    scores = tuple(float(score) for score in scored.scores)
    if isinstance(item, Example):
        return ChoiceRecord(item.kind, item.part, item.target, scores, decimals)
    return ChoiceRecord(item.kind, "stereo" if item.stereo else "antistereo", "", scores, decimals)
