"""An exam: every system answers every question, and the answers are graded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fairagent.agent import FairAgent
from fairagent.answer import Answerer
from fairagent.debias.stage import DebiasRAG
from fairagent.evaluate.engine.kind import Opened
from fairagent.evaluate.engine.outcome import AnswerRecord, Outcome
from fairagent.evaluate.engine.systems import System, build_systems, site_of
from fairagent.evaluate.kinds.answers.asker import Asker
from fairagent.evaluate.kinds.answers.grading import Grader
from fairagent.evaluate.kinds.answers.task import GradedQuestion, Task
from fairagent.evaluate.questions import questions_of
from fairagent.pipeline import build_contexts
from fairagent.settings import ModelSettings
from fairagent.site import Site
from fairagent.types import Answer, AnswerResult, Debiased, Topic, Usage


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

    def answer(self, topic: Topic) -> tuple[Answer, Usage, AnswerResult | None, Debiased | None]:
        """The answer to a question, what all of it took, and what it came from."""
        if self.agent is None:
            made = self.debiasing.apply(topic.query, ()) if self.debiasing else None
            answer = self.asker.ask(topic.query, made.documents if made else None)
            return answer, answer.usage + (made.usage if made else Usage()), None, made
        found = self.agent.answer(topic)
        return found.answer, found.usage, found, found.debiased


@dataclass(frozen=True, slots=True, eq=False)
class Exam:
    """Lets systems answer questions; threads may share it."""

    questions: Mapping[str, GradedQuestion]
    systems: Mapping[str, Examinee]

    @classmethod
    def open(cls, task: Task, judge: ModelSettings | None, opened: Opened) -> Exam:
        """The exam of an experiment."""
        searching = build_systems(opened)
        examinees = {
            name: _examinee(site_of(system, opened.collection, opened.models), task, judge, searching.get(name))
            for name, system in opened.plan.systems.items()
        }
        return cls(questions_of(opened.subject), examinees)

    def outcome(self, system: str, id: str) -> Outcome:
        """See `Trial.outcome`."""
        question, examinee = self.questions[id], self.systems[system]
        topic = Topic(id, question.query)
        answer, usage, found, debiased = examinee.answer(topic)
        grade = examinee.grader.grade(question, answer.text)
        value = {examinee.grader.task.name: grade.value}
        search = found.search if found else None
        grader, filtered = "model" if grade.judged else "rule", found.filtered if found else None
        return Outcome.of(
            topic,
            system,
            {"": value, question.kind: value} if question.kind else {"": value},
            usage + grade.usage,
            search=search,
            oracle=bool(search and search.trace.oracle and examinee.sees_groups),
            answer=AnswerRecord.of(answer.text, grader, filtered, debiased),
            alarms=found.alarms if found else (),
            removals=found.removed if found else (),
        )


def _examinee(site: Site, task: Task, judge: ModelSettings | None, searching: System | None) -> Examinee:
    settings, model = site.settings, site.model
    asker = Asker(model, site.prompts, task.brief, settings.context.order)
    grader = Grader(task, site.models.open(judge or settings.model), site.prompts)
    if searching is None:
        return Examinee(None, asker, grader, debiasing=settings.debias.build(site))
    answerer = Answerer(asker, build_contexts(replace(searching.site, engine=searching.agent.retriever)))
    return Examinee(replace(searching.agent, answerer=lambda: answerer), asker, grader, searching.sees_groups)
