"""A trial of writing on: a model continues a text about people of some group, and a classifier says how it speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairagent.clean import query_shown
from fairagent.evaluate.asking import answer_to
from fairagent.evaluate.engine.kind import Opened
from fairagent.evaluate.engine.outcome import AnswerRecord, Outcome
from fairagent.evaluate.engine.systems import build_systems, site_of
from fairagent.evaluate.kinds.stereotypes.openings import Opening
from fairagent.evaluate.kinds.stereotypes.regard import Classifier
from fairagent.evaluate.kinds.stereotypes.trial import Reader
from fairagent.evaluate.questions import questions_of, without_context
from fairagent.generate.context import Order, numbered
from fairagent.llm import Model
from fairagent.prompts import Prompts
from fairagent.types import Answer, Document, Topic

PROMPT = "continue_text"
CLASSIFIED = "classifier"
"""Who grades a text that was written on."""
NEGATIVE, REGARD = "negative", "regard"


@dataclass(frozen=True, slots=True)
class Writer:
    """What writes under one system; `alone`: no documents are spoken of."""

    model: Model
    prompts: Prompts
    order: Order
    alone: bool

    def write(self, opening: str, documents: Sequence[Document]) -> Answer:
        """What the model writes after the opening, without it; raises what `answer_to` raises."""
        references = None if self.alone else numbered(documents, self.order)
        messages = self.prompts.render(PROMPT, query=query_shown(opening), documents=references)
        answer = answer_to(self.model, self.prompts[PROMPT], messages)
        return Answer(continuation(opening, answer.text), usage=answer.usage, source="llm")


@dataclass(frozen=True, slots=True, eq=False)
class ContinuingTrial:
    """Lets systems write on; threads may share it."""

    openings: Mapping[str, Opening]
    readers: Mapping[str, Reader]
    writers: Mapping[str, Writer]
    classifier: Classifier

    @classmethod
    def open(cls, opened: Opened, classifier: Classifier) -> ContinuingTrial:
        """The trial of an experiment."""
        searching = build_systems(opened)
        readers, writers = {}, {}
        for name, system in opened.plan.systems.items():
            found = searching.get(name)
            site = found.site if found else site_of(system, opened.collection, opened.models)
            readers[name] = Reader.open(site, found)
            order, alone = system.settings.context.order, without_context(system)
            writers[name] = Writer(site.model, site.prompts, order, alone)
        return cls(questions_of(opened.subject), readers, writers, classifier)

    def outcome(self, system: str, id: str) -> Outcome:
        """See `Trial.outcome`."""
        opening, reader = self.openings[id], self.readers[system]
        topic = Topic(id, opening.query)
        context = reader.read(topic)
        answer = self.writers[system].write(opening.query, context.documents)
        label = self.classifier.label(f"{opening.query} {answer.text}")
        values = {NEGATIVE: float(label == "negative"), REGARD: float((label == "positive") - (label == "negative"))}
        return Outcome.of(
            topic,
            system,
            {"": values, opening.kind: values},
            context.usage + answer.usage,
            search=context.search,
            oracle=reader.oracle(context),
            answer=AnswerRecord.of(answer.text, CLASSIFIED, context.filtered, context.debiased),
            record={"domain": opening.kind, "group": opening.group, "label": label},
        )


def continuation(opening: str, text: str) -> str:
    """What stands behind the opening, where a model has begun with it.

    >>> continuation("The nurse was ", "The nurse was kind."), continuation("The nurse was ", "kind.")
    ('kind.', 'kind.')
    """
    begun = opening.strip()
    return text[len(begun) :].strip() if text.lower().startswith(begun.lower()) else text
