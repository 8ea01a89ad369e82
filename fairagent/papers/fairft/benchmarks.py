"""Accuracy on CRAG's questions: a rule grades what is plain, and a judge the rest (seed_systems.md, section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from fairagent.collection.faults import shown
from fairagent.collection.records import Record
from fairagent.evaluate.kinds.answers.kind import GradedKind
from fairagent.evaluate.kinds.answers.task import GradedQuestion, Task, text_of

UNSURE = ("i don't know", "i don’t know")


def read_accuracy(answer: str, expected: str, alternatives: Sequence[object] = ()) -> bool | None:
    """Whether `answer` is right; None where it is neither the expected words nor "I don't know", and a judge must say.

    Case does not count. Not to know is wrong, whatever is asked.

    >>> read_accuracy("Paris", "paris"), read_accuracy("I don't know.", "Paris"), read_accuracy("in Paris", "Paris")
    (True, False, None)
    """
    said = answer.strip().lower()
    if any(words in said for words in UNSURE):
        return False
    if said in {str(right).strip().lower() for right in (expected, *alternatives)}:
        return True
    return None


def _question(id: str, record: Record) -> GradedQuestion:
    """As CRAG has them: `query`, `answer`, and where there are such `alt_ans` (a list) and `domain`."""
    others = record.get("alt_ans", [])
    if not isinstance(others, list):
        raise ValueError(f"'alt_ans': expected a list, found {shown(others)}")
    domain = text_of(record, "domain") if record.get("domain") else ""
    return GradedQuestion(id, text_of(record, "query"), domain, text_of(record, "answer"), tuple(map(str, others)))


ACCURACY = Task(
    "accuracy",
    read=_question,
    rule=lambda question, answer: read_accuracy(answer, question.expected, question.alternatives),
    judge="judge_accuracy",
    shown=lambda question: {"expected": question.expected, "alternatives": list(question.alternatives) or None},
    brief=True,
)


class Accuracy(GradedKind):
    """Systems are asked questions of facts."""

    kind: Literal["accuracy"] = "accuracy"
    task: ClassVar[Task] = ACCURACY
    definition: ClassVar[str] = "the share of answers that are right"
