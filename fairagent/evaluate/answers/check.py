"""Checking what an experiment says about its questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fairagent.collection.leakage import refuse_overlap
from fairagent.debias.avoid import read_avoid
from fairagent.debias.lexicon import load_lexicon
from fairagent.debias.stage import DebiasRAGConfig
from fairagent.errors import SettingsError
from fairagent.evaluate.answers.questions import Question, Task, read_questions
from fairagent.evaluate.experiment_file import ExperimentFile, Questions
from fairagent.evaluate.plan import SystemPlan
from fairagent.evaluate.problems import Problems
from fairagent.evaluate.stereotypes.check import check_local
from fairagent.evaluate.stereotypes.section import MEASURES as CHOICES

OF_RANKINGS = ("measures", "dimensions", "per_group")
"""Keys of the file by which rankings are judged."""
OF_ANSWERS = {
    "generate": "the model answers, with the prompt of the benchmark",
    "attribute": "answers are graded and nothing else",
}
"""Settings of answers that make no difference here, and why."""


def check_questions(
    described: ExperimentFile, asked: Questions, folder: Path, problems: Problems
) -> Mapping[str, Question]:
    """The questions by their ids; adds what is wrong with them, and what does not go with them."""
    for key in OF_RANKINGS:
        if key in described.model_fields_set:
            problems.add(SettingsError, f"{key}: does not go with `questions`, whose task says what is judged")
    for where, values in {"settings": described.settings, **described.systems}.items():
        for key in OF_ANSWERS.keys() & values.keys():
            place = where if where == "settings" else f"systems.{where}"
            problems.add(SettingsError, f"{place}.{key} cannot be set: {OF_ANSWERS[key]}")
    questions = problems.attempt("", read_questions, asked.task, folder / asked.path) or {}
    if asked.task in CHOICES:
        if asked.judge:
            problems.add(SettingsError, f"questions.judge: there is nothing to judge where the task is {asked.task}")
        if asked.local:
            problems.attempt("questions.local", check_local, asked.local, questions)
    elif asked.local:
        message = f"questions.local: its likelihoods choose between sentences, and the task is {asked.task}"
        problems.add(SettingsError, f"{message}; a system's own model answers")
    return questions


def measured(task: Task) -> tuple[str, ...]:
    """What each question is measured by."""
    return CHOICES.get(task, (task,))


def check_debiasing(systems: Mapping[str, SystemPlan], questions: Sequence[Question], problems: Problems) -> None:
    """That libraries and lexicons can be read, and that no library holds what is asked; adds what is wrong."""
    asked = [text for one in questions for text in (one.query, *(one.item.sentences if one.item else ()))]
    for name, system in systems.items():
        chosen = system.settings.debias
        if not system.debiases or not isinstance(chosen, DebiasRAGConfig):
            continue
        where = f"systems.{name}.debias"
        if not chosen.library:
            problems.add(SettingsError, f"{where}: `library` is missing: name the file of passages to avoid")
            continue
        problems.attempt(where, load_lexicon, chosen.lexicon)
        passages = problems.attempt(where, read_avoid, chosen.library) or ()
        texts, library = [passage.text for passage in passages], f"the avoid library {Path(chosen.library).name}"
        problems.attempt(where, refuse_overlap, texts, asked, library, inside=True)
