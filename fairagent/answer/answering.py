"""Answering from a ranking: filter, debiasing, context, generator, attribution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from time import perf_counter
from typing import Protocol

from fairagent.answer.attribution import Attributor, attribute_with, with_exposures
from fairagent.answer.context import fit
from fairagent.answer.filtering import Filter, filter_with
from fairagent.answer.generators import Generator, OnText, answer_with
from fairagent.answer.removals import filter_alarms, removed_by
from fairagent.collection.exposure import ExposureMeter
from fairagent.retrieve.base import Retriever, texts_for
from fairagent.settings.seam import PartCall
from fairagent.storage.threads import progress
from fairagent.types import (
    Answer,
    AnswerResult,
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
        found = debiaser.apply(query.text, tuple(documents))
    chosen = call.one_of(found, Debiased)
    call.documents(chosen.documents, [call.one_of(one, Document).id for one in call.one_of(chosen.documents, tuple)])
    if not all(isinstance(one, Real) and math.isfinite(one) for one in call.one_of(chosen.scores, tuple)):
        raise call.fault("a score that is no finite number")
    return chosen


@dataclass(frozen=True, slots=True)
class Contexts:
    """Makes contexts of the first `documents` of a ranking: what the filter leaves of them, cut to `tokens` together.

    With `debiasing`, the context is what that chooses of them and of contexts that it makes. Threads may share it.
    """

    filter: Filter | None = None
    debiasing: Debiaser | None = None
    documents: int = 10
    tokens: int = 3000

    def make(self, search: SearchResult, retriever: Retriever) -> Context:
        """The context for the query of `search`; `retriever` has the texts.

        Raises UsageError where the engine keeps no texts, and what filter and debiasing raise.
        """
        first = tuple(texts_for(search.query, search.ranking.top(self.documents).ids, retriever))
        filtered = filter_with(self.filter, search.query, first) if self.filter else None
        passed = filtered.documents if filtered else first
        debiased = debias_with(self.debiasing, search.query, passed) if self.debiasing else None
        chosen = debiased.documents if debiased else passed
        documents, notes = fit(chosen, self.tokens)
        if not chosen:
            if passed:
                why = f"debiasing left none of {len(passed)} documents"
            else:
                why = f"the filter left none of {len(first)} documents" if first else "the query retrieves nothing"
            notes = (f"{why}, so there is no context", *notes)
        return Context(first, chosen, documents, notes, filtered, debiased)


@dataclass(frozen=True, slots=True)
class Answerer:
    """Answers from a ranking's context, without an attribution where there is no attributor. Threads may share it."""

    generator: Generator
    contexts: Contexts = Contexts()
    attributor: Attributor | None = None

    def answer(
        self, search: SearchResult, meter: ExposureMeter, retriever: Retriever, on_text: OnText | None = None
    ) -> AnswerResult:
        """An answer to the query of `search`, whose exposures `meter` measures; `retriever` has the texts.

        Without any document, or where none survives the filter, the generator gets none, and the notes say so. Raises
        what `Contexts.make`, generator and attributor raise.
        """
        started = perf_counter()
        with progress("choosing what to answer from"):
            context = self.contexts.make(search, retriever)
        # The user's query with the topic's words, where the engine added any; not those for a group.
        topic = [step.query for step in search.trace.steps if step.aim is None][-1]
        with progress("writing the answer"):
            answer = answer_with(self.generator, topic, context.documents, on_text)
        made = frozenset(context.debiased.made) if context.debiased else frozenset()
        attribution = None
        if self.attributor:
            with progress("looking what the answer rests on"):
                attribution = attribute_with(self.attributor, search.query, answer, context.documents)
            ids = [document.id for document in context.documents]
            attribution = with_exposures(attribution, ids, replace(meter, synthetic_ids=made))
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
