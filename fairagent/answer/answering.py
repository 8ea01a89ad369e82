"""Answering from a ranking: context, generator, attribution, and what the citations give the groups.

Attribution says how far an answer rests on each document of its context: by the answer's own citations, or by a
language model that judges each document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from time import perf_counter
from typing import ClassVar, Literal, Protocol

import numpy as np

from fairagent.answer.aim import AS_SET, Aim, relevance_to
from fairagent.answer.citations import CitationReader, OnText, support_of, without_citations
from fairagent.answer.context import Context, Contexts
from fairagent.answer.filtering import (
    Page,
    ask_verdicts,
    batches,
    filter_alarms,
    left_out,
    longest_calls,
    page_of,
    removed_by,
)
from fairagent.answer.generators import Generator, answer_with
from fairagent.collection.exposure import ExposureMeter
from fairagent.errors import BudgetExceeded, ModelError, UsageError
from fairagent.llm import Model
from fairagent.llm.budget import in_threads, ledger
from fairagent.llm.exchange import unless_failing
from fairagent.llm.prompts import LETTER, Calls, Case, Prompts
from fairagent.measures import UNIFORM, Discount
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.site import Site
from fairagent.settings import Part
from fairagent.settings.seam import PartCall
from fairagent.settings.tree import CitationSettings
from fairagent.storage.threads import progress
from fairagent.types import (
    AimedOrPlain,
    Answer,
    AnswerResult,
    Attribution,
    ContextExposures,
    Document,
    Exposure,
    Hit,
    Query,
    SearchResult,
    Usage,
    common,
)
from fairagent.types.clean import query_shown, visible


class Attributor(Protocol):
    """Weighs the documents of an answer's context: any object with this method will do."""

    def attribute(self, query: str, answer: Answer, documents: Sequence[Document]) -> Attribution:
        """How far `answer` to `query` rests on each of `documents`, the context in rank order.

        An empty answer rests on nothing. Raises ModelError where a model was asked and gave no usable reply.
        """


def attribute_with(attributor: Attributor, query: Query, answer: Answer, documents: Sequence[Document]) -> Attribution:
    """The attributor's weights of the documents; PartError where one is not from 0 to 1."""
    with PartCall("attribute", attributor, query) as call:
        attribution = attributor.attribute(query.text, answer, tuple(documents))
    attribution = call.one_of(attribution, Attribution)
    weights = call.numbers(attribution.weights, len(documents))
    if len(weights) and not 0 <= weights.min() <= weights.max() <= 1:
        raise call.fault(f"weights from {weights.min():.6g} to {weights.max():.6g}, expected 0 to 1")
    return replace(attribution, weights=weights)


def no_attribution(kind: str, called: str, claim: object, documents: Sequence[Document]) -> Attribution | None:
    """The attribution where the answer is empty or has no context; None where one is to be made."""
    if claim and documents:
        return None
    return Attribution(kind, np.zeros(len(documents)), () if claim else ("the answer is empty",), called=called)


def statement(answer: Answer) -> str:
    """What the answer says, without its citations and hidden characters: what is compared with a document.

    >>> statement(Answer("She was a judge [1], then a senator [2, 4-5]."))
    'She was a judge, then a senator.'
    """
    return without_citations(visible(answer.text)).strip()


def with_exposures(
    attribution: Attribution, ids: Sequence[str], meter: ExposureMeter, discount: Discount | None = None
) -> Attribution:
    """`attribution` with the exposures of its documents `ids` (the context in rank order), measured by `meter`.

    `retrieved` counts every document of the context, `exposures` each by how far the answer rests on it. All places
    weigh the same, since a model reads the whole context; a `discount` weighs both by rank.
    """
    places = (discount or UNIFORM)(len(ids))
    used = np.flatnonzero(attribution.weights).tolist()
    exposures = meter.weigh([ids[place] for place in used], (places * attribution.weights)[used])
    return replace(attribution, exposures=exposures, retrieved=meter.weigh(ids, places))


@dataclass(frozen=True, slots=True)
class CitationAttributor:
    """An answer rests on the documents that it cites: weight 1, all others 0."""

    def attribute(self, query: str, answer: Answer, documents: Sequence[Document]) -> Attribution:
        """See `Attributor.attribute`. Raises UsageError where a citation is no document's number.

        >>> context = [Document("d7", "A court."), Document("d3", "A judge.")]
        >>> CitationAttributor().attribute("law", Answer("A judge [2].", cited=(2,)), context).weights.tolist()
        [0.0, 1.0]
        """
        weights = np.zeros(len(documents))
        for number in answer.cited:
            if not 1 <= number <= len(documents):
                raise UsageError(f"the answer cites document {number}, but its context has {len(documents)}")
            weights[number - 1] = 1.0
        notes = () if answer.cited else ("the answer cites nothing",)
        return Attribution("citations", weights, notes, called="cited")


class CitationConfig(Part):
    """By the answer's citations."""

    reads_citations: ClassVar[bool] = True
    kind: Literal["citations"] = "citations"

    def build(self, site: Site) -> CitationAttributor:
        return CitationAttributor()


PROMPT = "attribute"
LONGEST_ANSWER = 4000
"""Characters of the answer that the model sees."""


@dataclass(frozen=True, slots=True)
class JudgeAttributor:
    """Asks `model` with the template `attribute`; a document weighs 1 if the model passes it, else 0.

    The model sees the answer without its citations, `batch` documents in one call, `workers` calls at a time. Where one
    gives no usable reply, the answer's own citations count ("fallback"), or the error is raised ("fail").
    """

    model: Model
    prompts: Prompts
    batch: int = 1
    workers: int = 8
    on_error: Literal["fallback", "fail"] = "fallback"

    def attribute(self, query: str, answer: Answer, documents: Sequence[Document]) -> Attribution:
        """See `Attributor.attribute`; `notes` says what the model did not see, and where citations count instead."""
        claim = statement(answer)
        if nothing := no_attribution("judge", "judged", claim, documents):
            return nothing
        pages = [page_of(document) for document in documents]
        notes = [f"document {number}: {page.note}" for number, page in enumerate(pages, start=1) if page.note]
        if len(claim) > LONGEST_ANSWER:
            notes.append(f"answer cut to {LONGEST_ANSWER:,} of {len(claim):,} characters")
        texts = {"query": query_shown(query), "answer": claim[:LONGEST_ANSWER]}

        def judge(batch: Sequence[Page]) -> list[bool]:
            verdicts, _ = ask_verdicts(self.model, self.prompts, PROMPT, batch, **texts)
            return [verdict.passed for verdict in verdicts]

        def judged() -> Attribution:
            passed = chain.from_iterable(in_threads(judge, batches(pages, self.batch), self.workers, "attribute"))
            return Attribution("judge", np.array(list(passed), dtype=np.float64), tuple(notes), called="judged")

        def cited(error: ModelError | BudgetExceeded) -> Attribution:
            by_citation = CitationAttributor().attribute(query, answer, documents)
            note = f"the judge gave no usable verdict, so citations count: {error}"
            return replace(by_citation, notes=(note, *by_citation.notes))

        with ledger() as book:
            attribution = unless_failing(judged, self.on_error, cited)
        return replace(attribution, usage=book.usage)


class JudgeConfig(Part):
    """The language model judges each document."""

    template: ClassVar[str] = PROMPT
    kind: Literal["judge"] = "judge"
    on_error: Literal["fallback", "fail"] = "fallback"
    """What is done where a verdict is missing. fallback: the answer's citations count."""

    def worst_case(self, case: Case) -> Iterator[Calls]:
        yield from longest_calls(case, PROMPT, case.settings.context.documents, 1, answer=LETTER * LONGEST_ANSWER)

    def build(self, site: Site) -> JudgeAttributor:
        return JudgeAttributor(site.model, site.prompts, on_error=self.on_error)


@dataclass(frozen=True, slots=True, eq=False)
class CitedSoFar:
    """The documents that an unfinished answer cites, by their numbers, what they give the groups, and the gap."""

    cited: tuple[int, ...]
    exposures: tuple[Exposure, ...]
    gap: float


OnCited = Callable[[CitedSoFar], None]
"""Called whenever an answer that is being written cites one more document."""


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    """An answer with its context; `meter` knows which documents of that were made."""

    context: Context
    meter: ExposureMeter
    aim: Aim | None
    answer: Answer

    def worth(self, search: SearchResult) -> tuple[float, float]:
        """J of what it cites, by the price of the search, and its gap."""
        assert self.aim
        relevance = relevance_to(search, [one.id for one in self.context.documents])
        cited = self.answer.cited
        return self.aim.objective(cited, relevance, search.trace.fairness), self.aim.gap(cited)

    def spending(self, usage: Usage, *notes: str) -> _Draft:
        """With what else was spent on it."""
        answer = replace(self.answer, usage=self.answer.usage + usage, notes=(*self.answer.notes, *notes))
        return replace(self, answer=answer)


@dataclass(frozen=True, slots=True)
class Answerer:
    """Answers from a ranking's context, without an attribution where there is no attributor. Threads may share it."""

    generator: Generator
    contexts: Contexts = field(default_factory=Contexts)
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

        `on_cited` hears what the citations give the groups whenever one more document is cited. Where the search has no
        document no model is asked; where none survives the filter the generator gets none; the notes say so. Raises
        what `Contexts.make`, generator and attributor raise.
        """
        started = perf_counter()
        draft, aimed = self._draft(search, meter, retriever, on_text, on_cited), None
        if self.citations.aim and draft.aim:
            draft, aimed = self._better(draft, search, meter, retriever)
        context, answer, aim, meter = draft.context, draft.answer, draft.aim, draft.meter
        ids = [document.id for document in context.documents]
        attribution = None
        if self.attributor and context.first:
            with progress("looking what the answer rests on"):
                attribution = attribute_with(self.attributor, search.query, answer, context.documents)
            attribution = with_exposures(attribution, ids, meter)
        verdicts = context.filtered.verdicts if context.filtered else ()
        removed = removed_by(verdicts, meter) if context.filtered else ()
        usage = sum((part.usage for part in (answer, context, attribution) if part), Usage())
        # A document that was made has rank 0 and no known groups, and a note tells where it is cited.
        hits = {hit.id: hit for hit in search.hits}
        unknown: dict[str, dict[str, float]] = {target.dimension: {} for target in meter.targets}
        made = meter.synthetic_ids
        cited = [f"[{number}]" for number in sorted(answer.cited) if context.chosen[number - 1].id in made]
        note = f"{', '.join(cited)}: synthesized for fairness, not from the collection; a source of nothing"
        return AnswerResult(
            query=search.query,
            answer=answer,
            context=tuple(
                hits.get(one.id) or Hit(0, one.id, 0.0, one.title, unknown, one.snippet) for one in context.chosen
            ),
            search=search,
            notes=(*context.notes, note) if cited else context.notes,
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
            uncited=left_out(ids, [number not in answer.cited for number in range(1, len(ids) + 1)], meter),
            aimed=aimed,
        )

    def _draft(
        self,
        search: SearchResult,
        meter: ExposureMeter,
        retriever: Retriever,
        on_text: OnText | None = None,
        on_cited: OnCited | None = None,
        context: Context | None = None,
    ) -> _Draft:
        """An answer, from this `context` or from one that is made."""
        if context is None:
            with progress("choosing what to answer from"):
                context = self.contexts.make(search, retriever, meter)
        # The user's query with the topic words that the engine added, but without those for a group.
        topic = [step.query for step in search.trace.steps if step.aim is None][-1]
        ids = [document.id for document in context.documents]
        meter = replace(meter, synthetic_ids=frozenset(context.debiased.made if context.debiased else ()))
        aim, answer = Aim.of(meter, ids, self.citations), Answer("")
        if context.first:
            reader = CitationReader(len(ids))

            def on_piece(piece: str) -> None:
                if on_text:
                    on_text(piece)
                before = len(reader.cited)
                reader.read(piece)
                if on_cited and len(reader.cited) > before:
                    exposures, gap = (aim.exposures(reader.cited), aim.gap(reader.cited)) if aim else ((), 0.0)
                    on_cited(CitedSoFar(tuple(reader.cited), exposures, gap))

            goal = aim if self.citations.aim else None
            with progress("writing the answer"):
                answer = answer_with(self.generator, topic, context.documents, on_piece if on_cited else on_text, goal)
        return _Draft(context, meter, aim, answer)

    def _better(
        self, aimed: _Draft, search: SearchResult, meter: ExposureMeter, retriever: Retriever
    ) -> tuple[_Draft, AimedOrPlain | None]:
        """The aimed answer, or the plain one where what that cites has a larger J; and which it is.

        The plain one is written without the aim from the first documents, or where a filter or debiasing chose the
        context, from the same. None: it was not written, and a note says why. The usage is that of both.
        """
        plainly = replace(self, contexts=replace(self.contexts, balanced=False), citations=AS_SET)
        chosen = aimed.context if self.contexts.filter or self.contexts.debiasing else None
        try:
            plain = plainly._draft(search, meter, retriever, context=chosen)
        except (ModelError, BudgetExceeded) as error:
            note = f"the plain answer, to compare it with, came to nothing: {error}"
            return aimed.spending(error.usage, note), None
        (value, gap), (of_plain, gap_then) = aimed.worth(search), plain.worth(search)
        better, other = (aimed, plain) if value >= of_plain else (plain, aimed)
        return better.spending(other.answer.usage), AimedOrPlain(better is aimed, (value, of_plain), (gap, gap_then))
