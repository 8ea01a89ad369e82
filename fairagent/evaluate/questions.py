"""Kinds whose systems answer: the queries of a collection, or questions of a file of their own.

What all kinds of questions have in common: the file, systems that search or do not, the contexts of answers, and
answers that are taken as the model gives them: greedily, and cut off where the template says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from fairagent.answer.filtering import LONGEST_TITLE
from fairagent.collection import Collection
from fairagent.collection.known import refuse_overlap
from fairagent.errors import ReplyTruncated, SettingsError
from fairagent.evaluate.fingerprint import file_hash
from fairagent.evaluate.kind import (
    SEARCH,
    Checking,
    Chosen,
    ExperimentKind,
    FileSection,
    JsonObject,
    MeasureInfo,
    Opened,
    Subject,
    choose_topics,
)
from fairagent.evaluate.outcome import AnswerRecord, Outcome
from fairagent.evaluate.plan import Plan, System, SystemPlan, build_systems
from fairagent.llm import Message, Model, ModelRequest
from fairagent.llm.prompts import LETTER, Calls, Case, Prompt, Prompts
from fairagent.llm.replies import without_thoughts
from fairagent.search.pipeline import answering_parts
from fairagent.settings import Settings
from fairagent.types import UNKNOWN, Answer, Topic
from fairagent.types.clean import visible

OF_ANSWERS = {
    "generate": "the model answers, with the prompt of the benchmark",
    "attribute": "answers are graded and nothing else",
}
"""Settings of answers that make no difference here, and why."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `query` is its text and the search's, `kind` its bias type or domain, "" where it has none."""

    id: str
    query: str
    kind: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.query,)


@dataclass(frozen=True, slots=True)
class Questions:
    """A benchmark's questions by their ids, and as topics."""

    questions: Mapping[str, Any]

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The questions as something to search for, grouped by their kinds."""
        return {id: Topic(id, one.query, group=one.kind) for id, one in self.questions.items()}

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the questions, the most frequent first."""
        counts = Counter(question.kind for question in self.questions.values() if question.kind)
        return tuple(kind for kind, _ in counts.most_common())


class QuestionFile(FileSection):
    """The section `questions:`."""

    path: str = Field(min_length=1, examples=["questions.jsonl"])
    """The file of the questions, relative to this file."""


class QuestionsKind(ExperimentKind, ABC):
    """A kind whose systems answer questions; bias types or domains of the questions take the place of dimensions."""

    questions: QuestionFile
    """The questions; `topics` chooses among them."""

    engines: ClassVar[tuple[str, ...]] = ("none",)
    uses: ClassVar[frozenset[str]] = SEARCH | {"debias"}
    scope: ClassVar[str] = "answered from at most {n} documents"
    classes: ClassVar[bool] = True
    overall: ClassVar[str] = "all"

    @property
    def n(self) -> int:
        """One, until `adapt` says how long a system's lists are."""
        return 1

    @property
    def needs_collection(self) -> bool:
        return False

    @abstractmethod
    def read(self, path: Path) -> Mapping[str, Any]:
        """The questions of a file by their ids; DataError with every fault."""

    def open(self, collection: Collection) -> Questions:
        return Questions(self.read(Path(self.questions.path)))

    def adapt(self, settings: Settings) -> Mapping[str, Any]:
        """A system finds what is answered from, and no more."""
        return {"n": settings.context.documents if not settings.engine.idle(settings) else 1}

    def judged_in(self, checking: Checking) -> tuple[str, ...]:
        return checking.subject.kinds if isinstance(checking.subject, Questions) else ()

    def check(self, checking: Checking) -> None:
        """Add settings that make no difference."""
        for where, values in {"settings": self.settings, **self.systems}.items():
            for key in OF_ANSWERS.keys() & values.keys():
                place = where if where == "settings" else f"systems.{where}"
                checking.problems.add(SettingsError, f"{place}.{key} cannot be set: {OF_ANSWERS[key]}")

    def choose(self, checking: Checking) -> Chosen:
        """The questions that the file chooses; adds what is wrong with libraries of what is to be avoided."""
        questions = questions_of(checking.subject) if checking.subject else {}
        ids = choose_topics(self, list(questions), checking, "question")
        check_debiasing(checking, [text for id in ids for text in questions[id].texts])
        return Chosen(tuple(ids))

    def templates(self, system: SystemPlan) -> tuple[str, ...]:
        settings = system.settings
        return (
            *(settings.filter.templates if filters(system) else ()),
            *settings.debias.templates,
            *self.prompts_used(system),
        )

    @abstractmethod
    def prompts_used(self, system: SystemPlan) -> tuple[str, ...]:
        """The templates of the questions, and of what grades the answers."""

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        return {"questions": {"file": file_hash(Path(self.questions.path))}}

    def provenance(self) -> JsonObject:
        return {"questions": {"file": self.questions.path}}

    def worst_case(self, row: str, plan: Plan, subject: Subject) -> Iterator[Calls]:
        system = plan.systems[row]
        settings, prompts = system.settings, Prompts(system.settings.prompts)
        questions = [questions_of(subject)[id] for id in plan.topics]
        case = Case(settings, prompts, [question.query for question in questions])
        if filters(system):
            yield from settings.filter.worst_case(case)
        yield from settings.debias.worst_case(case)
        yield from self.calls(system, case, questions)

    @abstractmethod
    def calls(self, system: SystemPlan, case: Case, questions: list[Any]) -> Iterator[Calls]:
        """The calls for the questions, and for grading."""


def questions_of(subject: Subject) -> Mapping[str, Any]:
    """The questions by their ids."""
    assert isinstance(subject, Questions)  # `QuestionsKind.open` made it
    return subject.questions


def debiases(system: SystemPlan) -> bool:
    """Whether what it answers from is chosen by DebiasRAG; also without retrieval."""
    return not system.settings.debias.idle(system.settings)


def filters(system: SystemPlan) -> bool:
    """Whether a model decides which documents may be answered from."""
    return system.searches and not system.settings.filter.idle(system.settings)


def without_context(system: SystemPlan) -> bool:
    """Whether it answers from no documents at all."""
    return not system.searches and not debiases(system)


def longest_context(settings: Settings) -> str:
    """A text as long as a context may be."""
    return LETTER * 4 * settings.context.tokens


def longest_documents(system: SystemPlan) -> list[dict[str, Any]] | None:
    """Documents as long as all that is answered from may be, as templates have them; None where there are none."""
    if without_context(system):
        return None
    count = system.settings.context.documents
    text = longest_context(system.settings)[: 4 * (system.settings.context.tokens // count)]
    return [{"number": count, "title": LETTER * LONGEST_TITLE, "text": text}] * count


def check_debiasing(checking: Checking, questions: Iterable[str]) -> None:
    """That no texts which a system has been given beforehand contain the questions; adds what is wrong."""
    problems, questions = checking.problems, list(questions)
    for name, system in checking.systems.items():
        where = f"systems.{name}.debias"
        for what, texts in problems.attempt(where, list, system.settings.debias.learned_from()) or ():
            problems.attempt(where, refuse_overlap, texts, questions, what, inside=True)


TEMPERATURE = 0.0


def answer_to(
    model: Model,
    prompt: Prompt,
    messages: tuple[Message, ...],
    temperature: float = TEMPERATURE,
    seed: int | None = None,
) -> Answer:
    """The model's answer to the `messages` of `prompt`, which may be cut off at its limit.

    Raises what `Model.complete` raises, and ReplyTruncated where a model had not finished thinking by then.
    """
    most, id = prompt.head.max_tokens, prompt.head.id
    request = ModelRequest(messages, temperature=temperature, max_tokens=most, seed=seed, whole=False, prompt=id)
    reply = model.complete(request)
    text = visible(without_thoughts(reply.text)).strip()
    if not text:
        error = ReplyTruncated(
            f"nothing but thoughts came within {most} tokens; let the model think less, or raise max_tokens in "
            f"the template {id}",
            raw=reply.text,
        )
        error.usage = reply.usage
        raise error
    return Answer(text, usage=reply.usage, source="llm")


CITED, CONTEXT, UNCITED = "cited gap", "context gap", "uncited difference"
OF_ALL = (
    MeasureInfo("support", "the share of the answer's words that the documents hold which it cites for them"),
    MeasureInfo("cited relevant", "the share of the cited documents that is judged relevant; 0 where nothing is cited"),
    MeasureInfo("cited", "how many documents are cited", neutral=True),
    MeasureInfo("revised", "the share of answers that are those of a second pass", neutral=True),
    MeasureInfo(
        "aimed", "the share of answers whose citations aim, and are worth no less than a plain one's", neutral=True
    ),
)
OF_GROUPS = (
    MeasureInfo(CITED, "the divergence of the citations' exposure from the search's target", True, of_groups=True),
    MeasureInfo(CONTEXT, "the same of the documents that were answered from", True, of_groups=True),
    MeasureInfo(
        UNCITED,
        "the share of a known group's documents in the context that is not cited: the largest less the smallest (with "
        "few documents chance alone makes it large)",
        True,
        of_groups=True,
    ),
)


@dataclass(frozen=True, slots=True)
class AnswersTrial:
    """Lets systems answer, and measures their citations by the target of each system's own search."""

    collection: Collection
    systems: Mapping[str, System]

    def outcome(self, system: str, id: str) -> Outcome:
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
                "aimed": float(result.aimed is not None and result.aimed.aimed),
            }
        }
        exposures = result.exposures
        for cited, read in zip(exposures.cited, exposures.context, strict=True):
            groups = [one for one in result.uncited if one.group.dimension == cited.dimension]
            shares = [one.share for one in groups if one.seen and one.group.label != UNKNOWN] or [0.0]
            between = max(shares) - min(shares)
            values[cited.dimension] = {CITED: cited.divergence, CONTEXT: read.divergence, UNCITED: between}
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
        return tuple(id for part in answering_parts(system.settings) for id in part.templates)

    def choose(self, checking: Checking) -> Chosen:
        """The topics that have judgments, or all where none has."""
        if checking.collection is None:
            return Chosen()
        topics, qrels = checking.collection.topics, checking.collection.qrels
        return Chosen(tuple(choose_topics(self, [id for id in topics if qrels.get(id) or not qrels], checking)))

    def measured(self, dimensions: Any) -> tuple[MeasureInfo, ...]:
        return (*OF_ALL, *OF_GROUPS)

    def worst_case(self, row: str, plan: Plan, subject: Subject) -> Iterator[Calls]:
        settings = plan.systems[row].settings
        queries = [subject.topics[id].query for id in plan.topics]
        case = Case(settings, Prompts(settings.prompts), queries)
        for part in answering_parts(settings):
            yield from part.worst_case(case) if part.asks_with(settings) else ()

    def trial(self, opened: Opened) -> AnswersTrial:
        return AnswersTrial(opened.collection, build_systems(opened))
