"""Answering from a ranking: context, generator, attribution, and what the citations give the groups."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter

from fairagent.answer.aim import AS_SET, Aim
from fairagent.answer.attribution import Attributor, attribute_with, with_exposures
from fairagent.answer.citations import CitationReader, OnText, support_of
from fairagent.answer.context import Contexts
from fairagent.answer.filtering import filter_alarms, removed_by
from fairagent.answer.generators import Generator, answer_with
from fairagent.collection.exposure import ExposureMeter
from fairagent.retrieve.base import Retriever
from fairagent.settings.tree import CitationSettings
from fairagent.storage.threads import progress
from fairagent.types import Answer, AnswerResult, ContextExposures, Exposure, Hit, SearchResult, Usage, common


@dataclass(frozen=True, slots=True, eq=False)
class CitedSoFar:
    """The documents that an unfinished answer cites, by their numbers, what they give the groups, and the gap."""

    cited: tuple[int, ...]
    exposures: tuple[Exposure, ...]
    gap: float


OnCited = Callable[[CitedSoFar], None]
"""Called whenever an answer that is being written cites one more document."""


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
        with progress("choosing what to answer from"):
            context = self.contexts.make(search, retriever, meter)
        # The user's query with the topic words that the engine added, but without those for a group.
        topic = [step.query for step in search.trace.steps if step.aim is None][-1]
        made = frozenset(context.debiased.made) if context.debiased else frozenset()
        ids = [document.id for document in context.documents]
        meter = replace(meter, synthetic_ids=made)
        aim = Aim.of(meter, ids, self.citations)
        with progress("writing the answer"):
            answer = Answer("")
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
                answer = answer_with(self.generator, topic, context.documents, on_piece if on_cited else on_text, goal)
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
        )
