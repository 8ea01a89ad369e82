"""Systems answer the queries of a collection, and what their answers cite is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from fairagent.collection import Collection
from fairagent.evaluate.kind import (
    SEARCH,
    Checking,
    Chosen,
    ExperimentKind,
    MeasureInfo,
    Opened,
    Subject,
    choose_topics,
)
from fairagent.evaluate.outcome import AnswerRecord, Outcome
from fairagent.evaluate.plan import Plan, System, SystemPlan, build_systems
from fairagent.llm.prompts import Prompts
from fairagent.llm.prompts.calls import Calls, Case
from fairagent.search.pipeline import answering_parts

CITED, CONTEXT = "cited gap", "context gap"
OF_ALL = (
    MeasureInfo("support", "the share of the answer's words that the documents hold which it cites for them"),
    MeasureInfo("cited relevant", "the share of the cited documents that is judged relevant; 0 where nothing is cited"),
    MeasureInfo("cited", "how many documents are cited", neutral=True),
    MeasureInfo("revised", "the share of answers that are those of a second pass", neutral=True),
)
OF_GROUPS = (
    MeasureInfo(CITED, "the divergence of the citations' exposure from the search's target", True, of_groups=True),
    MeasureInfo(CONTEXT, "the same of the documents that were answered from", True, of_groups=True),
)


@dataclass(frozen=True, slots=True)
class AnswersTrial:
    """Lets systems answer, and measures their citations by the target of each system's own search."""

    collection: Collection
    systems: Mapping[str, System]

    def outcome(self, system: str, id: str) -> Outcome:
        """See `Trial.outcome`."""
        used, topic = self.systems[system], self.collection.topics[id]
        result = used.agent.answer(topic)
        grades = self.collection.qrels.get(id, {})
        relevant = sum(grades.get(hit.id, 0) > 0 for hit in result.cited) / max(1, len(result.cited))
        values = {
            "": {
                "support": result.support,
                "cited relevant": relevant,
                "cited": float(len(result.cited)),
                "revised": float(result.revised),
            }
        }
        exposures = result.exposures
        for cited, read in zip(exposures.cited, exposures.context, strict=True):
            values[cited.dimension] = {CITED: cited.divergence, CONTEXT: read.divergence}
        return Outcome.of(
            topic,
            system,
            values,
            result.usage,
            search=result.search,
            cited=exposures.cited,
            oracle=result.search.trace.oracle and used.sees_groups,
            answer=AnswerRecord.of(result.answer.text, "rule", result.filtered, result.debiased),
            alarms=result.alarms,
            removals=result.removed,
            seconds=result.seconds,
        )


class AnswersKind(ExperimentKind):
    """Systems answer the queries of a collection, and what their answers cite is measured."""

    uses: ClassVar[frozenset[str]] = SEARCH | {"debias", "attribute"}
    scope: ClassVar[str] = "answers from rankings of {n}"

    kind: Literal["answers"] = "answers"

    @property
    def n(self) -> int:
        """How many documents are ranked; settings may choose fewer to answer from."""
        return 20

    def targets(self, dimensions: Any) -> None:
        """Each system is measured by the target of its own search."""

    def templates(self, system: SystemPlan) -> tuple[str, ...]:
        """Those of the parts that answer."""
        return tuple(id for part in answering_parts(system.settings) for id in part.templates)

    def choose(self, checking: Checking) -> Chosen:
        """The topics that have judgments, or all where none has."""
        if checking.collection is None:
            return Chosen()
        topics, qrels = checking.collection.topics, checking.collection.qrels
        return Chosen(tuple(choose_topics(self, [id for id in topics if qrels.get(id) or not qrels], checking)))

    def measured(self, dimensions: Any) -> tuple[MeasureInfo, ...]:
        """Support and relevance of what is cited, and its gap in each dimension."""
        return (*OF_ALL, *OF_GROUPS)

    def worst_case(self, row: str, plan: Plan, subject: Subject) -> Iterator[Calls]:
        """The calls of the parts that answer."""
        settings = plan.systems[row].settings
        queries = [subject.topics[id].query for id in plan.topics]
        case = Case(settings, Prompts(settings.prompts), queries)
        for part in answering_parts(settings):
            yield from part.worst_case(case) if part.asks_with(settings) else ()

    def trial(self, opened: Opened) -> AnswersTrial:
        """The trial."""
        return AnswersTrial(opened.collection, build_systems(opened))
