"""A trial of preferences: a model scores every item's sentences after what each system retrieves for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fairagent.extend import (
    AnswerRecord,
    Contexts,
    DataError,
    Debiased,
    Document,
    FairAgent,
    Filtered,
    Opened,
    Order,
    Outcome,
    SearchResult,
    Site,
    System,
    Topic,
    Usage,
    arrange,
    build_contexts,
    build_systems,
    filter_alarms,
    questions_of,
    site_of,
)
from fairagent.papers.stereotypes.items import Example, Item
from fairagent.papers.stereotypes.scorers import BETWEEN, ChoiceScorer, Scored, Scorer

PREFERRED = "preference"
"""Who grades an answer that is a preferred sentence."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a model scored an item's sentences: what the numbers of all items together are made of.

    `kind` is its bias type; `part` intrasentence or intersentence, or of a pair stereo or antistereo; `target` its
    target term, "" for a pair; `decimals` to how many places the scores of a pair are rounded. `by_chance` is as in
    `Scored`.
    """

    kind: str
    part: str
    target: str
    scores: tuple[float, ...]
    decimals: int | None = None
    by_chance: bool = False

    @classmethod
    def of(cls, item: Item, scored: Scored, decimals: int | None) -> Choice:
        """That of an item."""
        scores = tuple(float(score) for score in scored.scores)
        if isinstance(item, Example):
            return cls(item.kind, item.part, item.target, scores, decimals, scored.by_chance)
        return cls(item.kind, "stereo" if item.stereo else "antistereo", "", scores, decimals, scored.by_chance)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Choice:
        """That of an outcome's record."""
        return cls(**{**record, "scores": tuple(record["scores"])})


@dataclass(frozen=True, slots=True)
class ItemContext:
    """What an item's sentences were scored after, how it came about, and what all of it took."""

    documents: Sequence[Document]
    usage: Usage = field(default_factory=Usage)
    search: SearchResult | None = None
    filtered: Filtered | None = None
    debiased: Debiased | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """What finds a system's documents (None where it searches nothing), and what makes a context of them.

    Without a search the context is what `contexts.debiasing` makes, if there is one, else empty.
    """

    agent: FairAgent | None
    contexts: Contexts

    @classmethod
    def open(cls, site: Site, searching: System | None) -> Reader:
        """That of one system."""
        return cls(searching.agent if searching else None, build_contexts(site))

    def read(self, topic: Topic) -> ItemContext:
        """The context of one item."""
        if self.agent:
            found = self.agent.search(topic)
            made = self.contexts.make(found, self.agent.retriever)
            usage = found.trace.usage + made.usage
            return ItemContext(made.documents, usage, found, made.filtered, made.debiased)
        if self.contexts.debiasing:
            debiased = self.contexts.debiasing.apply(topic.query, ())
            return ItemContext(debiased.documents, debiased.usage, debiased=debiased)
        return ItemContext(())

    def oracle(self, context: ItemContext) -> bool:
        """Whether it looked at the judgments."""
        return bool(context.search and context.search.trace.oracle and self.agent and self.agent.settings.sees_groups)


@dataclass(frozen=True, slots=True)
class Participant:
    """One system: what it reads before an item's sentences, and what scores them."""

    reader: Reader
    scorer: Scorer
    order: Order

    def score(self, item: Item) -> tuple[Scored, ItemContext]:
        """The scores of the item's sentences, and what they were scored after."""
        context = self.reader.read(Topic(item.id, item.query))
        order = arrange(len(context.documents), self.order)
        texts = (context.documents[number - 1].text for number in order)
        return self.scorer.score(item, BETWEEN.join(text for text in texts if text)), context


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceTrial:
    """Lets models choose under every system; threads may share it."""

    items: Mapping[str, Item]
    participants: Mapping[str, Participant]

    @classmethod
    def open(cls, opened: Opened, likelihoods: Scorer | None) -> ChoiceTrial:
        """The trial of an experiment; without `likelihoods` each system's own model is asked to choose."""
        searching = build_systems(opened)
        participants = {}
        for name, system in opened.plan.systems.items():
            found = searching.get(name)
            site = found.site if found else site_of(system, opened.collection, opened.models)
            scorer = likelihoods or ChoiceScorer(site.model, site.prompts, opened.plan.experiment.seed)
            participants[name] = Participant(Reader.open(site, found), scorer, system.settings.context.order)
        return cls(questions_of(opened.subject), participants)

    def outcome(self, system: str, id: str) -> Outcome:
        """See `Trial.outcome`."""
        item, participant = self.items[id], self.participants[system]
        scored, context = participant.score(item)
        if not np.isfinite(scored.scores).all():
            raise DataError(f"{participant.scorer.way}: a sentence's score is no finite number")
        decimals = participant.scorer.decimals
        values = item.values(scored.scores, decimals)
        preferred = item.sentences[int(np.argmax(scored.scores))]
        return Outcome.of(
            Topic(id, item.query),
            system,
            {"": values, item.kind: values},
            context.usage + scored.usage,
            search=context.search,
            oracle=participant.reader.oracle(context),
            answer=AnswerRecord.of(preferred, PREFERRED, context.filtered, context.debiased),
            record=asdict(Choice.of(item, scored, decimals)),
            alarms=filter_alarms(context.filtered.verdicts) if context.filtered else (),
        )
