"""Answering from a ranking: filter, debiasing, context, generator, attribution."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol

from fairagent.answer.attribution import Attributor, with_exposures
from fairagent.answer.context import fit
from fairagent.answer.filtering import Filter
from fairagent.answer.generators import Generator, OnText
from fairagent.answer.removals import filter_alarms, removed_by
from fairagent.collection.exposure import ExposureMeter
from fairagent.retrieve.base import Retriever, texts_for
from fairagent.storage.threads import progress
from fairagent.types import (
    Answer,
    AnswerResult,
    Attribution,
    Debiased,
    Document,
    Filtered,
    Hit,
    Query,
    SearchResult,
    Usage,
    common,
)


@dataclass(frozen=True, slots=True)
class Context:
    """The context of an answer: the `first` documents of a ranking, those `chosen` of them, cut to `documents`.

    `filtered` and `debiased` say what became of the others, where a filter or a debiasing was asked; `notes` what is to
    be known about the texts.
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
        ...


@dataclass(frozen=True, slots=True)
class Contexts:
    """Makes contexts of the first `documents` of a ranking: what the filter leaves of them, cut to `tokens` together.

    Without a filter all of them stay. With `debiasing`, the context is what that chooses of them and of contexts that
    it makes. Threads may share it.
    """

    filter: Filter | None = None
    debiasing: Debiaser | None = None
    documents: int = 10
    tokens: int = 3000

    def make(self, found: SearchResult, retriever: Retriever) -> Context:
        """The context for the query of `found`; `retriever` keeps the texts.

        Raises UsageError where the engine keeps no texts, and what filter and debiasing raise.
        """
        query = found.query.text
        first = tuple(texts_for(found.query, found.ranking.top(self.documents).ids, retriever))
        filtered = self.filter.filter(query, first) if self.filter else None
        kept = filtered.documents if filtered else first
        debiased = self.debiasing.apply(query, kept) if self.debiasing else None
        chosen = debiased.documents if debiased else kept
        documents, notes = fit(chosen, self.tokens)
        return Context(first, chosen, documents, (*_emptiness(first, kept, chosen), *notes), filtered, debiased)


@dataclass(frozen=True, slots=True)
class Answerer:
    """Answers from a ranking's context. Without an attributor the result has no attribution.

    Threads may share it.
    """

    generator: Generator
    contexts: Contexts = Contexts()
    attributor: Attributor | None = None

    def answer(
        self, found: SearchResult, meter: ExposureMeter, retriever: Retriever, on_text: OnText | None = None
    ) -> AnswerResult:
        """An answer to the query of `found`; `meter` is that of its search, `retriever` keeps the texts.

        Where no document was found, or none survives the filter, the generator is asked without any, and the notes say
        so. Raises what `Contexts.make`, generator and attributor raise.
        """
        started = perf_counter()
        with progress("choosing what to answer from"):
            context = self.contexts.make(found, retriever)
        with progress("writing the answer"):
            answer = self.generator.answer(_topic(found), context.documents, on_text)
        attribution = None
        if self.attributor:
            with progress("looking what the answer rests on"):
                attribution = self.attributor.attribute(found.query.text, answer, context.documents)
        verdicts = context.filtered.verdicts if context.filtered else ()
        removed = removed_by(verdicts, meter) if context.filtered else ()
        made = frozenset(context.debiased.made) if context.debiased else frozenset()
        asked = (answer, context, attribution)
        usage = sum((part.usage for part in asked if part), Usage())
        return AnswerResult(
            query=found.query,
            answer=answer,
            context=_hits(context.chosen, found, meter),
            search=found,
            notes=(*context.notes, *_made(answer, context.chosen, made)),
            filtered=context.filtered,
            removed=removed,
            attribution=_measured(attribution, context.documents, replace(meter, synthetic_ids=made)),
            seconds=found.trace.seconds + perf_counter() - started,
            debiased=context.debiased,
            alarms=(*found.trace.alarms, *filter_alarms(verdicts, removed), *common.of_usage(usage)),
        )


def _topic(found: SearchResult) -> Query:
    """The user's query with the topic's words, where the engine told any; not those for a group."""
    return [step.query for step in found.trace.steps if step.aim is None][-1]


def _hits(chosen: Sequence[Document], found: SearchResult, meter: ExposureMeter) -> tuple[Hit, ...]:
    """The lines of the documents that were chosen; one that was made has rank 0, and nobody knows its groups."""
    hits = {hit.id: hit for hit in found.hits}
    unknown: dict[str, dict[str, float]] = {target.dimension: {} for target in meter.targets}
    return tuple(hits.get(one.id) or Hit(0, one.id, 0.0, one.title, unknown, one.snippet) for one in chosen)


def _made(answer: Answer, chosen: Sequence[Document], made: frozenset[str]) -> tuple[str, ...]:
    """That the answer cites what is no document of the collection."""
    cited = [number for number in sorted(answer.cited) if chosen[number - 1].id in made]
    if not cited:
        return ()
    numbers = ", ".join(f"[{number}]" for number in cited)
    return (f"{numbers}: synthesized for fairness, not from the collection; a source of nothing",)


def _emptiness(first: Sequence[Document], kept: Sequence[Document], chosen: Sequence[Document]) -> tuple[str, ...]:
    if chosen:
        return ()
    if kept:
        return (f"debiasing left none of {len(kept)} documents, so there is no context",)
    if not first:
        return ("the query retrieves nothing, so there is no context",)
    return (f"the filter left none of {len(first)} documents, so there is no context",)


def _measured(
    attribution: Attribution | None, documents: tuple[Document, ...], meter: ExposureMeter
) -> Attribution | None:
    return with_exposures(attribution, [one.id for one in documents], meter) if attribution else None
