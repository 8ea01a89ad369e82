"""Experiments in which questions are answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairagent.collection import Collection
from fairagent.evaluate.answers.check import check_debiasing, check_questions, measured
from fairagent.evaluate.answers.questions import kinds
from fairagent.evaluate.design import Chosen, Design, Systems
from fairagent.evaluate.experiment_file import Questions
from fairagent.evaluate.plan import QuestionsPlan
from fairagent.evaluate.stereotypes.section import OF_ALL
from fairagent.llm.models import Models


class QuestionsDesign(Design):
    """Questions take the place of topics, and their kinds that of dimensions; systems search what they answer from."""

    @property
    def asked(self) -> Questions:
        """The section of the file."""
        assert self.described.questions
        return self.described.questions

    def choose(self, collection: Collection | None, dimensions: tuple[str, ...], systems: Systems) -> Chosen:
        """The questions that the file chooses."""
        questions = check_questions(self.described, self.asked, self.folder, self.problems)
        topics = self.ids(list(questions), "there is no question")
        check_debiasing(systems, [questions[id] for id in topics], self.problems)
        return Chosen(tuple(topics), {}, kinds(questions.values()), {}, questions)

    def opened(self, chosen: Chosen, systems: Systems, models: Models, environ: Mapping[str, str]) -> Chosen:
        """As `Design`; the judge can be opened."""
        if self.asked.judge:
            self.problems.attempt("questions.judge", models.open, self.asked.judge)
        return chosen

    def measures(self, dimensions: Sequence[str]) -> tuple[str, ...]:
        """What each question is measured by."""
        return measured(self.asked.task)

    @property
    def of_all(self) -> tuple[str, ...]:
        """What a whole benchmark is measured by."""
        return tuple(OF_ALL.get(self.asked.task, ()))

    @property
    def other_models(self) -> tuple[str, ...]:
        """The judge's."""
        return (self.asked.judge.name,) if self.asked.judge else ()

    def parts(self) -> dict[str, Any]:
        """The questions, wherever the process works."""
        asked = self.asked
        path = str((self.folder / asked.path).absolute())
        return {"questions": QuestionsPlan(task=asked.task, path=path, judge=asked.judge, local=asked.local)}

    def _length(self) -> int:
        return 1
