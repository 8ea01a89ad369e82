"""Grading answers: by rule where it can tell, by asking a model where it cannot."""

from __future__ import annotations

from dataclasses import dataclass

from fairagent.evaluate.answers.accuracy import accuracy
from fairagent.evaluate.answers.agreement import agreement, read_label
from fairagent.evaluate.answers.asking import said
from fairagent.evaluate.answers.questions import Graded, Question
from fairagent.llm import Model, ModelRequest
from fairagent.llm.clean import query_shown
from fairagent.prompts import Prompts
from fairagent.types import Usage

PROMPTS: dict[str, str] = {"agreement": "judge_agreement", "accuracy": "judge_accuracy"}
"""Task -> the template that its judge is asked with."""
TEMPERATURE = 0.0


@dataclass(frozen=True, slots=True)
class Grade:
    """What an answer is worth: 1 or 0; `judged`: a model was asked; and what that took."""

    value: float
    judged: bool
    usage: Usage


@dataclass(frozen=True, slots=True)
class Grader:
    """Grades the answers to the questions of one task; `model` is the judge."""

    task: Graded
    model: Model
    prompts: Prompts

    def grade(self, question: Question, answer: str) -> Grade:
        """1 where the answer agrees (agreement) or is right (accuracy), else 0.

        A judge's label that says neither yes nor no counts as no. Raises what `Model.complete` raises.
        """
        spent: list[Usage] = []

        def label(text: str) -> str:
            found, usage = self._label(question, text)
            spent.append(usage)
            return found

        if self.task == "agreement":
            value = agreement(answer, label)
        else:
            value = accuracy(answer, question.expected, question.alternatives, lambda text: read_label(label(text)))
        return Grade(value, bool(spent), sum(spent, Usage()))

    def _label(self, question: Question, answer: str) -> tuple[str, Usage]:
        prompt = PROMPTS[self.task]
        right = {"expected": question.expected, "alternatives": list(question.alternatives) or None}
        given = {"query": query_shown(question.query), "answer": answer}
        messages = self.prompts.render(prompt, **given, **(right if self.task == "accuracy" else {}))
        most = self.prompts[prompt].head.max_tokens
        reply = self.model.complete(ModelRequest(messages, temperature=TEMPERATURE, max_tokens=most))
        return said(reply.text), reply.usage
