"""Fair RAG on LaMP: each question has items of its own, and labels say which of them help which generator."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from fairagent.collection import Collection
from fairagent.collection.faults import listed
from fairagent.collection.lamp import Lamp, LampQuestion, LampTask, load_lamp, parse_task
from fairagent.errors import FairAgentError, SettingsError, UsageError
from fairagent.evaluate.engine.fingerprint import file_hash, of_model
from fairagent.evaluate.engine.kind import Checking, Chosen, Opened, Record, Subject, Systems
from fairagent.evaluate.engine.plan import Plan, SystemPlan
from fairagent.evaluate.kinds.fair_rag.drawn import DrawnKind, generator
from fairagent.evaluate.kinds.fair_rag.labeling import Labeling
from fairagent.evaluate.kinds.fair_rag.labels import FEWEST, Labels
from fairagent.evaluate.kinds.fair_rag.lamp_asking import TOKENS
from fairagent.evaluate.kinds.fair_rag.lamp_trial import LampTrial
from fairagent.evaluate.kinds.fair_rag.section import LampFiles
from fairagent.files import file_name
from fairagent.llm.models import Models
from fairagent.prompts import Prompts
from fairagent.prompts.calls import Calls, Case
from fairagent.retrieve.encoder import BUNDLED, open_encoder
from fairagent.retrieve.splade import SpladeConfig
from fairagent.retrieve.splade_encoder import SpladeEncoder
from fairagent.retrieve.vectors import DenseConfig
from fairagent.settings import Part
from fairagent.types import Topic

TOO_FEW = f"fewer than {FEWEST} useful items"
SCORERS = ("okapi", "dense", "splade")
"""Engines that can score a question's own items."""


@dataclass(frozen=True, slots=True)
class LampQuestions:
    """LaMP's questions; the files may be large, and are read once."""

    lamp: Lamp

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The questions as something to search for."""
        return {question.id: Topic(question.id, question.query) for question in self.lamp.questions}

    @property
    def questions(self) -> Mapping[str, LampQuestion]:
        """The questions by their ids."""
        return {question.id: question for question in self.lamp.questions}


@dataclass(frozen=True, slots=True)
class Generator:
    """One generator of an experiment: a system that has it, what its labels are made from, and their file."""

    system: SystemPlan
    labeling: Labeling
    path: Path


class LampKind(DrawnKind):
    """Rankings are drawn from the items of LaMP's questions, and answers are compared with the right ones."""

    kind: Literal["lamp"] = "lamp"
    lamp: LampFiles
    """LaMP's files, and the labels of their items."""

    engines: ClassVar[tuple[str, ...]] = ("okapi",)
    searches: ClassVar[bool] = False

    @property
    def _task(self) -> LampTask:
        return parse_task(self.lamp.task)

    def open(self, collection: Collection) -> LampQuestions:
        """The questions of the files."""
        return LampQuestions(load_lamp(self.lamp.task, self.lamp.questions, self.lamp.outputs))

    def subject_name(self, collection: Collection) -> str:
        """The task."""
        return self.lamp.task

    def templates(self, system: SystemPlan) -> tuple[str, ...]:
        """Those of the task and of attribution."""
        return (self._task.prompt, *system.settings.attribute.templates)

    def check(self, checking: Checking) -> None:
        """Add what is wrong with the section, and systems that cannot score items or attribute answers."""
        super().check(checking)
        problems = checking.problems
        problems.attempt("lamp.task", lambda: (self._task.label_utility, self._task.utility))
        if self.collection:
            problems.add(
                SettingsError, "collection: does not go with `kind: lamp`, whose questions have their own items"
            )
        for name, system in checking.systems.items():
            engine = system.settings.engine.kind
            if engine not in SCORERS:
                message = f"systems.{name}.engine: LaMP's items are scored by {listed(SCORERS)}, not by {engine!r}"
                problems.add(SettingsError, message)
            if system.settings.attribute.kind == "citations":
                message = "LaMP's answers cite nothing; set attribute to nli, judge, embeddings or none"
                problems.add(UsageError, f"systems.{name}: {message}")
            if checking.labeled:
                problems.attempt(f"systems.{name}.engine", _check_scorer, system.settings.engine)

    def keep(self, chosen: Chosen, checking: Checking, models: Models) -> Chosen:
        """The questions with enough items that help every generator, if everything else is right."""
        if checking.subject is None or not checking.labeled or checking.problems.found:
            return chosen
        labels = []
        for one in self.generators(checking.systems, checking.subject, checking.environ).values():
            try:
                labels.append(one.labeling.read(one.path))
            except FairAgentError as error:
                missing = f"{error}\n`fairagent labels FILE` makes those that are missing"
                checking.problems.add(type(error), missing)
        counted = [id for id in chosen.topics if all(id in set(of_generator.kept) for of_generator in labels)]
        return Chosen(tuple(counted), {id: TOO_FEW for id in chosen.topics if id not in set(counted)})

    def generators(
        self, systems: Systems, subject: Subject, environ: Mapping[str, str] = os.environ
    ) -> dict[str, Generator]:
        """What tells each generator of the experiment from another -> the generator, in the order of the systems."""
        assert isinstance(subject, LampQuestions)  # `open` made it
        found: dict[str, Generator] = {}
        for system in systems.values():
            key = generator(system)
            if key not in found:
                model, prompts = system.settings.model, Prompts(system.settings.prompts)
                same = sum(other.system.settings.model.name == model.name for other in found.values())
                name = f"{file_name(model.name)}{f'_{same + 1}' if same else ''}.jsonl"
                labeling = Labeling(subject.lamp, prompts, of_model(model, environ))
                found[key] = Generator(system, labeling, Path(self.lamp.labels) / name)
        return found

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> Record:
        """The section, the files, and the labels by the hash of each of theirs."""
        assert isinstance(subject, LampQuestions)
        files = sorted(Path(self.lamp.labels).glob("*.jsonl"))
        labels = {path.name: file_hash(path) for path in files}
        lamp = {"task": self.lamp.task, "files": subject.lamp.sha256, "labels": labels}
        return {**super().fingerprint(plan, subject, environ), "lamp": lamp}

    def calls_before(self, plan: Plan, subject: Subject) -> Iterator[tuple[str, Calls]]:
        """For each generator whose utility labels are not all there: the calls for the missing."""
        for one in self.generators(plan.systems, subject).values():
            model = one.system.settings.model
            calls = one.labeling.estimate(one.path, model)
            if calls.calls:
                yield f"labels for {model.name}", calls

    def worst_case(self, row: str, plan: Plan, subject: Subject) -> Iterator[Calls]:
        """An answer for each ranking that can be drawn, and its attribution; prompts are cut to 512 tokens."""
        assert isinstance(subject, LampQuestions)
        section, system = self.fair_rag, plan.systems[row]
        case = Case(system.settings, Prompts(system.settings.prompts), ())
        items = max((len(question.items) for question in subject.lamp.questions), default=1)
        drawn = 1
        if system.row["alpha"] is not None:
            drawn = min(section.samples, math.perm(max(items, section.k), section.k))
        for id in self.templates(system):
            calls = len(plan.topics) * drawn
            yield case.counted(id, calls, calls * TOKENS)

    def trial(self, opened: Opened) -> LampTrial:
        """The trial; DataError where labels are missing."""
        assert isinstance(opened.subject, LampQuestions)
        generators = self.generators(opened.plan.systems, opened.subject)
        labels: dict[str, Labels] = {key: one.labeling.read(one.path) for key, one in generators.items()}
        useful = {key: {id: of.useful(id) for id in of.gains} for key, of in labels.items()}
        return LampTrial.open(opened, self.fair_rag, opened.subject.questions, useful)


def _check_scorer(engine: Part) -> None:
    """Raise BackendUnavailable where the model that scores the items is not on this machine."""
    if isinstance(engine, DenseConfig):
        open_encoder(engine.encoder or BUNDLED)
    elif isinstance(engine, SpladeConfig):
        SpladeEncoder(engine.model)
