"""An exam: every system answers every question, and the answers are graded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import cast

from fairagent.agent import FairAgent
from fairagent.answer import Answerer
from fairagent.assemble import make_debiasing, make_filter
from fairagent.debias.stage import DebiasRAG
from fairagent.errors import BudgetExceeded, ModelError
from fairagent.evaluate.answers.asking import Asker
from fairagent.evaluate.answers.grading import Grade, Grader
from fairagent.evaluate.answers.questions import Graded, Question, read_questions
from fairagent.evaluate.judge import step_record
from fairagent.evaluate.outcome import AnswerRecord, DebiasRecord, HitRecord, Outcome, took
from fairagent.evaluate.plan import Plan, QuestionsPlan, SystemPlan
from fairagent.evaluate.systems import System
from fairagent.llm.models import Models
from fairagent.prompts import Prompts
from fairagent.types import Answer, AnswerResult, Debiased, Document, Topic, Usage


@dataclass(frozen=True, slots=True)
class Examinee:
    """One system: the agent that finds its documents and answers, None where it searches nothing.

    With `debiasing` it answers from what that makes then, else without any document.
    """

    agent: FairAgent | None
    asker: Asker
    grader: Grader
    sees_groups: bool = False
    debiasing: DebiasRAG | None = None

    def answer(self, question: Question) -> tuple[Answer, Usage, AnswerResult | None, Debiased | None]:
        """The answer to a question, what all of it took, and what it came from."""
        if self.agent is None:
            return answered_alone(question.query, self.debiasing, lambda made: self.asker.ask(question.query, made))
        found = self.agent.answer(Topic(question.id, question.query))
        return found.answer, found.usage, found, found.debiased


@dataclass(frozen=True, slots=True, eq=False)
class Exam:
    """Lets systems answer questions; threads may share it."""

    questions: Mapping[str, Question]
    systems: Mapping[str, Examinee]

    @classmethod
    def open(cls, plan: Plan, asked: QuestionsPlan, systems: Mapping[str, System], models: Models) -> Exam:
        """The exam of an experiment; a system that is not among `systems` does not search."""
        examinees = {name: _examinee(system, asked, systems.get(name), models) for name, system in plan.systems.items()}
        return cls(read_questions(asked.task, Path(asked.path)), examinees)

    def topic(self, id: str) -> Topic:
        """The question as something to search for."""
        return Topic(id, self.questions[id].query)

    def outcome(self, system: str, id: str) -> Outcome:
        """What one question comes to under one system; raises what asking and judging models raises."""
        started = perf_counter()
        question, examinee = self.questions[id], self.systems[system]
        answer, usage, found, debiased = examinee.answer(question)
        try:
            grade = examinee.grader.grade(question, answer.text)
        except (ModelError, BudgetExceeded) as error:
            error.usage = usage + error.usage
            raise
        value: dict[str, float] = {examinee.grader.task: grade.value}
        trace = found.search.trace if found else None
        return Outcome(
            topic=id,
            query=question.query,
            system=system,
            values={"": value, question.kind: value} if question.kind else {"": value},
            hits=found_hits(found),
            exposures=(),
            steps=tuple(map(step_record, trace.steps)) if trace else (),
            stopped=trace.stopped if trace and examinee.agent and examinee.agent.settings.iterations else "",
            **took(usage + grade.usage),
            oracle=bool(trace and trace.oracle and examinee.sees_groups),
            seconds=perf_counter() - started,
            failed=None,
            answer=_record(answer, grade, found, debiased),
        )


def _examinee(system: SystemPlan, asked: QuestionsPlan, searching: System | None, models: Models) -> Examinee:
    settings, prompts = system.settings, Prompts(system.settings.prompts)
    model = models.open(settings.model)
    asker = Asker(model, prompts, asked.task == "accuracy", settings.context.order)
    grader = Grader(cast(Graded, asked.task), models.open(asked.judge or settings.model), prompts)
    debiasing = make_debiasing(settings, lambda: model, prompts)
    if searching is None:
        return Examinee(None, asker, grader, debiasing=debiasing)
    filter = make_filter(settings, lambda: model, prompts)
    answerer = Answerer(asker, filter, None, settings.context.documents, settings.context.tokens, debiasing)
    return Examinee(replace(searching.agent, answerer=lambda: answerer), asker, grader, searching.sees_groups)


def answered_alone(
    query: str, debiasing: DebiasRAG | None, answer: Callable[[Sequence[Document] | None], Answer]
) -> tuple[Answer, Usage, None, Debiased | None]:
    """What `answer` says without a search: from the contexts that `debiasing` makes, or where there is none, from None.

    And what both took, no result of a search, and how the contexts came about.
    """
    made = debiasing.apply(query, ()) if debiasing else None
    spent = made.usage if made else Usage()
    try:
        answered = answer(made.documents if made else None)
    except (ModelError, BudgetExceeded) as error:
        error.usage = spent + error.usage
        raise
    return answered, spent + answered.usage, None, made


def found_hits(found: AnswerResult | None) -> tuple[HitRecord, ...]:
    """The documents that were retrieved; nobody has judged what is relevant."""
    hits = found.search.hits if found else ()
    return tuple(HitRecord(hit.id, hit.title, hit.score, False, hit.groups) for hit in hits)


def _record(answer: Answer, grade: Grade, found: AnswerResult | None, debiased: Debiased | None) -> AnswerRecord:
    grader = "model" if grade.judged else "rule"
    return AnswerRecord(answer.text, grader, removed_ids(found), DebiasRecord.of(debiased))


def removed_ids(found: AnswerResult | None) -> tuple[str, ...]:
    """The ids of the documents that the filter took out."""
    verdicts = found.filtered.verdicts if found and found.filtered else ()
    return tuple(verdict.id for verdict in verdicts if not verdict.kept)
