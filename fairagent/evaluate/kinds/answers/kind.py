"""Systems answer a benchmark's questions, and the answers are graded."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from fairagent.evaluate.engine.fingerprint import of_model, price_of
from fairagent.evaluate.engine.kind import Checking, Chosen, Measured, Opened, Record, Subject
from fairagent.evaluate.engine.plan import Plan, SystemPlan
from fairagent.evaluate.kinds.answers.asker import PROMPT
from fairagent.evaluate.kinds.answers.exam import Exam
from fairagent.evaluate.kinds.answers.task import GradedQuestion, Task, read_questions
from fairagent.evaluate.questions import QuestionFile, QuestionsKind, longest_context, without_context
from fairagent.filter.pages import LONGEST_TITLE
from fairagent.llm.models import Models
from fairagent.llm.request import estimate_tokens
from fairagent.prompts.calls import LETTER, Calls, Case
from fairagent.settings import ModelSettings


class GradedQuestions(QuestionFile):
    """The section `questions:` where answers are graded."""

    judge: ModelSettings | None = None
    """The model that judges answers which no rule can read; none: each system's own."""


class GradedKind(QuestionsKind, ABC):
    """A kind whose answers are graded."""

    questions: GradedQuestions
    """What is asked; `topics` chooses among them."""
    task: ClassVar[Task]
    definition: ClassVar[str]
    lower_is_better: ClassVar[bool] = False

    def read(self, path: Path) -> Mapping[str, GradedQuestion]:
        """The questions of a file by their ids; DataError with every fault."""
        return read_questions(self.task, path)

    def keep(self, chosen: Chosen, checking: Checking, models: Models) -> Chosen:
        """`chosen`; adds what keeps the judge from being opened."""
        if self.questions.judge:
            checking.problems.attempt("questions.judge", models.open, self.questions.judge)
        return chosen

    def measured(self, dimensions: Sequence[str]) -> tuple[Measured, ...]:
        """The share of answers with the grade 1."""
        return (Measured(self.task.name, self.definition, self.lower_is_better),)

    @property
    def other_models(self) -> tuple[str, ...]:
        """The judge's."""
        return (self.questions.judge.name,) if self.questions.judge else ()

    def asked_with(self, system: SystemPlan) -> tuple[str, ...]:
        """The question's template and the judge's."""
        return (PROMPT, self.task.judge)

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> Record:
        """The file's content, and the judge."""
        judge = self.questions.judge
        asked = {"judge": of_model(judge, environ) | {"price": price_of(judge, plan)} if judge else {}}
        return {"questions": {**super().fingerprint(plan, subject, environ)["questions"], **asked}}

    def provenance(self) -> Record:
        """The place of the file, and who judges."""
        judge = self.questions.judge.name if self.questions.judge else "each system's own model"
        return {"questions": {**super().provenance()["questions"], "judge": judge}}

    def calls(self, system: SystemPlan, case: Case, asked: list[GradedQuestion]) -> Iterator[Calls]:
        """A call for each question, with documents as long as may be, and one for judging each answer."""
        settings = system.settings
        yield _calls(case, PROMPT, settings.model, documents=_documents(system), brief=self.task.brief)
        longest = LETTER * 4 * case.prompts[PROMPT].longest_reply(settings.model.max_tokens)
        hardest = max(asked, key=lambda question: estimate_tokens(question.expected))
        right: dict[str, object] = {**self.task.shown(hardest)}
        judge = self.questions.judge or settings.model
        yield _calls(case, self.task.judge, judge, answer=longest, **right)

    def trial(self, opened: Opened) -> Exam:
        """The exam."""
        return Exam.open(self.task, self.questions.judge, opened)


def _documents(system: SystemPlan) -> list[dict[str, object]] | None:
    if without_context(system):
        return None
    context = system.settings.context
    text = longest_context(system.settings)[: 4 * (context.tokens // context.documents)]
    return [{"number": context.documents, "title": LETTER * LONGEST_TITLE, "text": text}] * context.documents


def _calls(case: Case, prompt: str, model: ModelSettings, **variables: object) -> Calls:
    """One call of `model` for each question."""
    counted = case.calls(prompt, 1, **variables)
    longest = case.prompts[prompt].longest_reply(model.max_tokens)
    return Calls(model, counted.calls, counted.input_tokens, counted.calls * longest)
