"""Grading answers: by rule where it can tell, by asking a model where it cannot."""

from __future__ import annotations

from dataclasses import dataclass

from fairagent.clean import query_shown
from fairagent.evaluate.asking import TEMPERATURE, said
from fairagent.evaluate.kinds.answers.task import GradedQuestion, Task, says_yes
from fairagent.llm import Model, ModelRequest
from fairagent.prompts import Prompts
from fairagent.types import Usage


@dataclass(frozen=True, slots=True)
class Grade:
    """What an answer is worth: 1 or 0; `judged`: a model was asked; and what that took."""

    value: float
    judged: bool
    usage: Usage


@dataclass(frozen=True, slots=True)
class Grader:
    """Grades the answers to the questions of one task; `model` is the judge."""

    task: Task
    model: Model
    prompts: Prompts

    def grade(self, question: GradedQuestion, answer: str) -> Grade:
        """1 where the answer agrees (agreement) or is right (accuracy), else 0.

        A judge's label that says neither yes nor no counts as no. Raises what `Model.complete` raises.
        """
        by_rule = self.task.rule(question, answer)
        if by_rule is not None:
            return Grade(float(by_rule), False, Usage())
        given = {"query": query_shown(question.query), "answer": answer, **self.task.shown(question)}
        messages = self.prompts.render(self.task.judge, **given)
        most = self.prompts[self.task.judge].head.max_tokens
        asked = ModelRequest(messages, temperature=TEMPERATURE, max_tokens=most, prompt=self.task.judge)
        reply = self.model.complete(asked)
        return Grade(float(says_yes(said(reply.text))), True, reply.usage)
