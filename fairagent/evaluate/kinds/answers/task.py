"""What tells one benchmark of graded answers from another: its questions, its rule, and what its judge is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairagent.collection.faults import Faults, shown
from fairagent.collection.records import Record, json_records
from fairagent.evaluate.questions import Question


@dataclass(frozen=True, slots=True)
class GradedQuestion(Question):
    """A question whose answers are graded; `expected` and `alternatives` are right ones, where there are such."""

    expected: str = ""
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A benchmark of graded answers.

    `read` makes a question of an id and a record of the file (ValueError says what is wrong with it). `rule` grades a
    question's answer, None where a judge must; `judge` is the judge's template, `shown` what that says of the question
    besides its words. `brief` asks for few words.
    """

    name: str
    read: Callable[[str, Record], GradedQuestion]
    rule: Callable[[GradedQuestion, str], bool | None]
    judge: str
    shown: Callable[[GradedQuestion], Mapping[str, object]]
    brief: bool = False


def read_questions(task: Task, path: Path) -> dict[str, GradedQuestion]:
    """Id (q and the line) -> question, in the order of the file (JSON lines); DataError with every fault."""
    faults = Faults()
    questions: dict[str, GradedQuestion] = {}
    for number, record in json_records(path, faults):
        try:
            question = task.read(f"q{number}", record)
        except ValueError as error:
            faults.add(path, number, str(error))
            continue
        questions[question.id] = question
    if not questions and not faults:
        faults.add(path, None, "holds no question")
    faults.check(f"questions for {task.name}")
    return questions


def text_of(record: Record, name: str) -> str:
    """A field that has to be there; numbers, which some of CRAG's answers are, as texts."""
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise ValueError(f"{name!r}: expected a text, found {shown(value)}")
    return str(value)


def says_yes(label: str) -> bool:
    """Whether a judge's label means yes: it says so, and does not say no.

    >>> says_yes("Yes."), says_yes("no."), says_yes("yes and no")
    (True, False, False)
    """
    said = label.lower()
    return "yes" in said and "no" not in said
