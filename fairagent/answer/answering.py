"""Answering from a ranking: filter, debiasing, context, generator, attribution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from time import perf_counter
from typing import Protocol

import numpy as np

from fairagent.answer.aim import AS_SET, Aim
from fairagent.answer.attribution import Attributor, attribute_with, with_exposures
from fairagent.answer.citations import OnText
from fairagent.answer.citing import OnCited, support_of, telling
from fairagent.answer.context import affordable, fit
from fairagent.answer.filtering import Filter, filter_with
from fairagent.answer.generators import Generator, answer_with
from fairagent.answer.removals import filter_alarms, removed_by
from fairagent.collection.exposure import ExposureMeter
from fairagent.measures import min_max
from fairagent.retrieve.base import Retriever, texts_for
from fairagent.settings.seam import PartCall
from fairagent.settings.tree import CitationSettings
from fairagent.storage.threads import progress
from fairagent.types import (
    Answer,
    AnswerResult,
    ContextExposures,
    Debiased,
    Document,
    Filtered,
    FloatArray,
    Hit,
    Query,
    SearchResult,
    Usage,
    common,
)

NOTHING = "the query retrieves nothing, so there is no context"
"""The note of an answer without a document."""


@dataclass(frozen=True, slots=True)
class Context:
    """The context of an answer: the `first` documents of a ranking, those `chosen` of them, cut to `documents`.

    `filtered` and `debiased` record what became of the others, `notes` what was cut.
    """

    first: tuple[Document, ...]
    chosen: tuple[Document, ...]
    documents: tuple[Document, ...]
    notes: tuple[str, ...]
    filtered: Filtered | None
    debiased: Debiased | None

    @property
    def usage(self) -> Usage:
        """What the calls of models took."""
        return sum((part.usage for part in (self.filtered, self.debiased) if part), Usage())


class Debiaser(Protocol):
    """Chooses a context from a query's documents, and from contexts that it makes."""

    def apply(self, query: str, documents: Sequence[Document]) -> Debiased:
        """The context, and what became of the documents."""


def debias_with(debiaser: Debiaser, query: Query, documents: Sequence[Document]) -> Debiased:
    """What debiasing makes of the documents; PartError where that is no context."""
    with PartCall("debias", debiaser, query) as call:
        debiased = debiaser.apply(query.text, tuple(documents))
    chosen = call.one_of(debiased, Debiased)
    call.documents(chosen.documents, [call.one_of(one, Document).id for one in call.one_of(chosen.documents, tuple)])
    if not all(isinstance(one, Real) and math.isfinite(one) for one in call.one_of(chosen.scores, tuple)):
        raise call.fault("a score that is no finite number")
    return chosen


@dataclass(frozen=True, slots=True)
class Contexts:
    """Makes contexts of the first `documents` of a ranking: what the filter leaves of them, cut to `tokens` together.

    With `debiasing`, the context is what that chooses of them and of contexts that it makes. Where it is `balanced`,
    the documents are chosen from the whole ranking and put into an order of which every beginning is near the target
    (`Aim.order`); where `tokens` do not suffice for all of them, the last are left out. Threads may share it.
    """

    filter: Filter | None = None
    debiasing: Debiaser | None = None
    documents: int = 10
    tokens: int = 3000
    balanced: bool = False

    def make(self, search: SearchResult, retriever: Retriever, meter: ExposureMeter | None = None) -> Context:
        """The context for the query of `search`; `retriever` has the texts, `meter` the target of a balanced one.

        Raises UsageError where the engine keeps no texts, and what filter and debiasing raise.
        """
        ids = self._ordered(search.ranking.ids, search, meter)
        if not ids:
            return Context((), (), (), (NOTHING,), None, None)
        first = tuple(texts_for(search.query, ids, retriever))
        filtered = filter_with(self.filter, search.query, first) if self.filter else None
        passed = filtered.documents if filtered else first
        if filtered and self.balanced:
            by_id = {one.id: one for one in passed}
            passed = tuple(by_id[id] for id in self._ordered(tuple(by_id), search, meter))
        debiased = debias_with(self.debiasing, search.query, passed) if self.debiasing else None
        chosen = debiased.documents if debiased else passed
        notes: tuple[str, ...] = ()
        if self.balanced and (fitting := affordable(chosen, self.tokens)) < len(chosen):
            left_out = f"{len(chosen) - fitting} of {len(chosen)} documents do not fit {self.tokens:,} tokens"
            notes, chosen = (f"{left_out}; the first {fitting} are as balanced as they can be",), chosen[:fitting]
        documents, cut = fit(chosen, self.tokens)
        notes += cut
        if not chosen:
            if passed:
                why = f"debiasing left none of {len(passed)} documents"
            else:
                why = f"the filter left none of {len(first)} documents"
            notes = (f"{why}, so there is no context", *notes)
        return Context(first, chosen, documents, notes, filtered, debiased)

    def _ordered(self, ids: tuple[str, ...], search: SearchResult, meter: ExposureMeter | None) -> tuple[str, ...]:
        """The `documents` of these, which stand in rank order, that the context is made of."""
        aim = Aim.of(meter, ids) if self.balanced and meter else None
        if aim is None:
            return ids[: self.documents]
        return tuple(ids[number - 1] for number in aim.order(_relevance(ids, search), self.documents))


def _relevance(ids: Sequence[str], search: SearchResult) -> FloatArray:
    """How relevant these documents are, (n,) in [0, 1]: their scores in the last list that the search accepted.

    Scores of a re-ranker may say no more than a rank. What that list does not have is as relevant as its last one.
    """
    accepted = [step for step in search.trace.steps if step.accepted] or search.trace.steps[:1]
    ranking = accepted[-1].ranking
    scores = dict(zip(ranking.ids, min_max(ranking.scores).tolist(), strict=True))
    return np.array([scores.get(id, 0.0) for id in ids])


@dataclass(frozen=True, slots=True)
class Answerer:
    """Answers from a ranking's context, without an attribution where there is no attributor. Threads may share it."""

    generator: Generator
    contexts: Contexts = Contexts()
    attributor: Attributor | None = None
    citations: CitationSettings = AS_SET

    def answer(
        self,
        search: SearchResult,
        meter: ExposureMeter,
        retriever: Retriever,
        on_text: OnText | None = None,
        on_cited: OnCited | None = None,
    ) -> AnswerResult:
        """An answer to the query of `search`, whose exposures `meter` measures; `retriever` has the texts.

        The meter's target is that of the ranking, the context and the citations; `on_cited` hears what these give the
        groups whenever the text that is being written cites one more document.
        Where the search has no document there is no answer, and no model is asked; where none survives the filter the
        generator gets none; the notes say so. Raises what `Contexts.make`, generator and attributor raise.
        """
        started = perf_counter()
        with progress("choosing what to answer from"):
            context = self.contexts.make(search, retriever, meter)
        # The user's query with the topic's words, where the engine added any; not those for a group.
        topic = [step.query for step in search.trace.steps if step.aim is None][-1]
        made = frozenset(context.debiased.made) if context.debiased else frozenset()
        ids = [document.id for document in context.documents]
        meter = replace(meter, synthetic_ids=made)
        aim = Aim.of(meter, ids, self.citations)
        with progress("writing the answer"):
            hearing = telling(on_text, on_cited, aim, len(ids))
            goal = aim if self.citations.aim else None
            answer = Answer("")
            if context.first:
                answer = answer_with(self.generator, topic, context.documents, hearing, goal)
        attribution = None
        if self.attributor and context.first:
            with progress("looking what the answer rests on"):
                attribution = attribute_with(self.attributor, search.query, answer, context.documents)
            attribution = with_exposures(attribution, ids, meter)
        verdicts = context.filtered.verdicts if context.filtered else ()
        removed = removed_by(verdicts, meter) if context.filtered else ()
        usage = sum((part.usage for part in (answer, context, attribution) if part), Usage())
        return AnswerResult(
            query=search.query,
            answer=answer,
            context=_hits(context.chosen, search, meter),
            search=search,
            notes=(*context.notes, *_made_citations(answer, context.chosen, made)),
            filtered=context.filtered,
            removed=removed,
            attribution=attribution,
            seconds=search.trace.seconds + perf_counter() - started,
            debiased=context.debiased,
            exposures=ContextExposures(aim.exposures(range(1, len(ids) + 1)), aim.exposures(answer.cited))
            if aim
            else ContextExposures(),
            support=support_of(answer, context.documents),
            alarms=(*search.trace.alarms, *filter_alarms(verdicts, removed), *common.of_usage(usage)),
        )


def _hits(chosen: Sequence[Document], search: SearchResult, meter: ExposureMeter) -> tuple[Hit, ...]:
    """The lines of the documents that were chosen; one that was made has rank 0, and its groups are unknown."""
    hits = {hit.id: hit for hit in search.hits}
    unknown: dict[str, dict[str, float]] = {target.dimension: {} for target in meter.targets}
    return tuple(hits.get(one.id) or Hit(0, one.id, 0.0, one.title, unknown, one.snippet) for one in chosen)


def _made_citations(answer: Answer, chosen: Sequence[Document], made: frozenset[str]) -> tuple[str, ...]:
    """A note where the answer cites what is no document of the collection."""
    numbers = ", ".join(f"[{number}]" for number in sorted(answer.cited) if chosen[number - 1].id in made)
    return (f"{numbers}: synthesized for fairness, not from the collection; a source of nothing",) if numbers else ()
