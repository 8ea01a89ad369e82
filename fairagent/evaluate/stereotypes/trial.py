"""A trial of preferences: a model scores every item's sentences after what each system retrieves for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np

from fairagent.agent import FairAgent
from fairagent.answer import Contexts
from fairagent.collection import Collection
from fairagent.errors import DataError
from fairagent.evaluate.answers.exam import found_hits, removed_ids
from fairagent.evaluate.answers.questions import Question, read_questions
from fairagent.evaluate.judge import step_record
from fairagent.evaluate.outcome import AnswerRecord, ChoiceRecord, DebiasRecord, Outcome, took
from fairagent.evaluate.plan import Plan, QuestionsPlan
from fairagent.evaluate.stereotypes.section import LocalModel
from fairagent.evaluate.systems import System, site_of
from fairagent.generate.context import Order, arrange
from fairagent.llm.models import Models
from fairagent.pipeline import build_contexts
from fairagent.stereotypes.choice import ChoiceScorer
from fairagent.stereotypes.items import Example, Item
from fairagent.stereotypes.local import local_scorer
from fairagent.stereotypes.scorers import BETWEEN, Scored, Scorer
from fairagent.types import Debiased, Document, Filtered, SearchResult, Topic, Usage

PREFERRED = "preference"
"""Who grades an answer that is a preferred sentence."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What an item's sentences were scored after: the context, how it came about, and what all of it took."""

    documents: Sequence[Document]
    usage: Usage = field(default_factory=Usage)
    search: SearchResult | None = None
    filtered: Filtered | None = None
    debiased: Debiased | None = None


@dataclass(frozen=True, slots=True)
class Participant:
    """One system: what finds its documents (None where it searches nothing), and what makes a context of them.

    Without a search the context is what `contexts.debiasing` makes, if there is one, else empty.
    """

    agent: FairAgent | None
    contexts: Contexts
    scorer: Scorer
    order: Order

    def score(self, question: Question, item: Item) -> tuple[Scored, Shown]:
        """The scores of the item's sentences, and what they were scored after."""
        shown = self._shown(question)
        arranged = (shown.documents[number - 1].text for number in arrange(len(shown.documents), self.order))
        return self.scorer.score(item, BETWEEN.join(text for text in arranged if text)), shown

    def _shown(self, question: Question) -> Shown:
        if self.agent:
            found = self.agent.search(Topic(question.id, question.query))
            context = self.contexts.make(found, self.agent.retriever)
            usage = found.trace.usage + context.usage
            return Shown(context.documents, usage, found, context.filtered, context.debiased)
        if self.contexts.debiasing:
            made = self.contexts.debiasing.apply(question.query, ())
            return Shown(made.documents, made.usage, debiased=made)
        return Shown(())


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceTrial:
    """Lets models choose under every system; threads may share it."""

    questions: Mapping[str, Question]
    participants: Mapping[str, Participant]

    @classmethod
    def open(
        cls,
        plan: Plan,
        asked: QuestionsPlan,
        collection: Collection,
        systems: Mapping[str, System],
        models: Models,
    ) -> ChoiceTrial:
        """The trial of an experiment; a system that is not among `systems` does not search."""
        local = open_local(asked.local) if asked.local else None
        participants = {}
        for name, system in plan.systems.items():
            searching = systems.get(name)
            site = searching.site if searching else site_of(system, collection, models)
            scorer = local or ChoiceScorer(site.model, site.prompts, plan.seed)
            contexts = build_contexts(site)
            agent = searching.agent if searching else None
            participants[name] = Participant(agent, contexts, scorer, system.settings.context.order)
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
        scored, shown = participant.score(question, item)
        if not np.isfinite(scored.scores).all():
            raise DataError(f"{participant.scorer.way}: a sentence's score is no finite number")
        values = item.values(scored.scores, participant.scorer.decimals)
        trace = shown.search.trace if shown.search else None
        return Outcome(
            topic=id,
            query=question.query,
            system=system,
            values={"": values, question.kind: values},
            hits=found_hits(shown.search),
            exposures=(),
            steps=tuple(map(step_record, trace.steps)) if trace else (),
            stopped=trace.stopped if trace else "",
            **took(shown.usage + scored.usage),
            oracle=bool(trace and trace.oracle and participant.agent and participant.agent.settings.sees_groups),
            seconds=perf_counter() - started,
            failed=None,
            answer=AnswerRecord(
                preferred(item, scored), PREFERRED, removed_ids(shown.filtered), DebiasRecord.of(shown.debiased)
            ),
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
