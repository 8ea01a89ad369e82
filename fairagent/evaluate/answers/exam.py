"""An exam: every system answers every question, and the answers are graded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import cast

from fairagent.agent import FairAgent
from fairagent.answer import Answerer
from fairagent.collection import Collection
from fairagent.debias.stage import DebiasRAG
from fairagent.evaluate.answers.asking import Asker
from fairagent.evaluate.answers.grading import Grade, Grader
from fairagent.evaluate.answers.questions import Graded, Question, read_questions
from fairagent.evaluate.judge import step_record
from fairagent.evaluate.outcome import AnswerRecord, DebiasRecord, HitRecord, Outcome, took
from fairagent.evaluate.plan import Plan, QuestionsPlan
from fairagent.evaluate.systems import System, site_of
from fairagent.llm.models import Models
from fairagent.pipeline import build_contexts
from fairagent.site import Site
from fairagent.types import Answer, AnswerResult, Debiased, Filtered, SearchResult, Topic, Usage


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
            made = self.debiasing.apply(question.query, ()) if self.debiasing else None
            answer = self.asker.ask(question.query, made.documents if made else None)
            return answer, answer.usage + (made.usage if made else Usage()), None, made
        found = self.agent.answer(Topic(question.id, question.query))
        return found.answer, found.usage, found, found.debiased


@dataclass(frozen=True, slots=True, eq=False)
class Exam:
    """Lets systems answer questions; threads may share it."""

    questions: Mapping[str, Question]
    systems: Mapping[str, Examinee]

    @classmethod
    def open(
        cls,
        plan: Plan,
        asked: QuestionsPlan,
        collection: Collection,
        systems: Mapping[str, System],
        models: Models,
    ) -> Exam:
        """The exam of an experiment; a system that is not among `systems` does not search."""
        examinees = {
            name: _examinee(site_of(system, collection, models), asked, systems.get(name))
            for name, system in plan.systems.items()
        }
        return cls(read_questions(asked.task, Path(asked.path)), examinees)

    def topic(self, id: str) -> Topic:
        """The question as something to search for."""
        return Topic(id, self.questions[id].query)

    def outcome(self, system: str, id: str) -> Outcome:
        """What one question comes to under one system; raises what asking and judging models raises."""
        started = perf_counter()
        question, examinee = self.questions[id], self.systems[system]
        answer, usage, found, debiased = examinee.answer(question)
        grade = examinee.grader.grade(question, answer.text)
        value: dict[str, float] = {examinee.grader.task: grade.value}
        trace = found.search.trace if found else None
        return Outcome(
            topic=id,
            query=question.query,
            system=system,
            values={"": value, question.kind: value} if question.kind else {"": value},
            hits=found_hits(found.search if found else None),
            exposures=(),
            steps=tuple(map(step_record, trace.steps)) if trace else (),
            stopped=trace.stopped if trace else "",
            **took(usage + grade.usage),
            oracle=bool(trace and trace.oracle and examinee.sees_groups),
            seconds=perf_counter() - started,
            failed=None,
            answer=_record(answer, grade, found, debiased),
        )


def _examinee(site: Site, asked: QuestionsPlan, searching: System | None) -> Examinee:
    settings, model = site.settings, site.model
    asker = Asker(model, site.prompts, asked.task == "accuracy", settings.context.order)
    grader = Grader(cast(Graded, asked.task), site.models.open(asked.judge or settings.model), site.prompts)
    if searching is None:
        return Examinee(None, asker, grader, debiasing=settings.debias.build(site))
    answerer = Answerer(asker, build_contexts(replace(searching.site, engine=searching.agent.retriever)))
    return Examinee(replace(searching.agent, answerer=lambda: answerer), asker, grader, searching.sees_groups)


def found_hits(found: SearchResult | None) -> tuple[HitRecord, ...]:
    """The documents that were retrieved; nobody has judged what is relevant."""
    hits = found.hits if found else ()
    return tuple(HitRecord(hit.id, hit.title, hit.score, False, hit.groups) for hit in hits)


def _record(answer: Answer, grade: Grade, found: AnswerResult | None, debiased: Debiased | None) -> AnswerRecord:
    grader = "model" if grade.judged else "rule"
    return AnswerRecord(answer.text, grader, removed_ids(found.filtered if found else None), DebiasRecord.of(debiased))


def removed_ids(filtered: Filtered | None) -> tuple[str, ...]:
    """The ids of the documents that the filter took out."""
    verdicts = filtered.verdicts if filtered else ()
    return tuple(verdict.id for verdict in verdicts if not verdict.kept)
