"""Both kinds of Fair RAG: on LaMP each question has items of its own, and labels say which of them help a generator.

On a collection its documents are the items, and those that were judged relevant the useful ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from fairagent.answer.filtering import LONGEST_TITLE
from fairagent.collection import Collection
from fairagent.collection.records import listed
from fairagent.errors import FairAgentError, SettingsError, UsageError
from fairagent.evaluate.findings import query_group_files, query_group_tables
from fairagent.evaluate.fingerprint import file_hash, of_model
from fairagent.evaluate.judging import JudgedKind
from fairagent.evaluate.kind import Checking, Chosen, JsonObject, MeasureInfo, Opened, Subject, Systems
from fairagent.evaluate.plan import Plan, SystemPlan
from fairagent.evaluate.run import Results
from fairagent.evaluate.tables import Table
from fairagent.llm.models import Models
from fairagent.llm.prompts import LETTER, Calls, Case, Prompts
from fairagent.llm.request import estimate_tokens
from fairagent.papers.fair_rag.drawn import DrawnKind, generator
from fairagent.papers.fair_rag.draws import CollectionDrawing, LampFiles
from fairagent.papers.fair_rag.labels import FEWEST, Labeling, Labels
from fairagent.papers.fair_rag.lamp import TOKENS, Lamp, LampQuestion, LampTask, load_lamp, parse_task
from fairagent.papers.fair_rag.trial import FairRagTrial, LampTrial
from fairagent.retrieve.encoders import EncoderPart, open_encoder
from fairagent.settings import Part
from fairagent.storage.files import file_name
from fairagent.storage.threads import Memo
from fairagent.types import Topic

TOO_FEW = f"fewer than {FEWEST} useful items"
SCORERS = ("okapi", "dense", "splade")
"""Engines that can score a question's own items."""


@dataclass(frozen=True, slots=True)
class LampQuestions:
    """LaMP's questions; the files may be large, and are read once."""

    lamp: Lamp
    name: str

    @property
    def topics(self) -> Mapping[str, Topic]:
        return {question.id: Topic(question.id, question.query) for question in self.lamp.questions}

    @property
    def questions(self) -> Mapping[str, LampQuestion]:
        """The questions by their ids."""
        return {question.id: question for question in self.lamp.questions}


@dataclass(frozen=True, slots=True)
class LabeledGenerator:
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
    uses: ClassVar[frozenset[str]] = frozenset({"sampling", "attribute"})

    @property
    def _task(self) -> LampTask:
        return parse_task(self.lamp.task)

    def open(self, collection: Collection) -> LampQuestions:
        """The questions of the files."""
        return LampQuestions(load_lamp(self.lamp.task, self.lamp.questions, self.lamp.outputs), self.lamp.task)

    def templates(self, system: SystemPlan) -> tuple[str, ...]:
        return (self._task.prompt, *system.settings.attribute.templates)

    def check(self, checking: Checking) -> None:
        super().check(checking)
        problems = checking.problems
        problems.attempt("lamp.task", lambda: (self._task.label_utility, self._task.utility))
        if self.collection:
            problems.add(
                SettingsError, "collection: does not go with `kind: lamp`, whose questions have their own items"
            )
        for name, system in checking.systems.items():
            engine = system.settings.engine
            if not getattr(engine, "scores_items", False):
                message = f"LaMP's items are scored by {listed(SCORERS)}, not by {engine.kind!r}"
                problems.add(SettingsError, f"systems.{name}.engine: {message}")
            if getattr(system.settings.attribute, "reads_citations", False):
                message = "LaMP's answers cite nothing; set attribute to nli, judge or none"
                problems.add(UsageError, f"systems.{name}: {message}")
            if checking.labeled:
                problems.attempt(f"systems.{name}.engine", _check_scorer, system.settings.engine)

    def keep(self, chosen: Chosen, checking: Checking, models: Models) -> Chosen:
        if checking.subject is None or not checking.labeled or checking.problems.errors:
            return chosen
        labels = []
        for one in self.generators(checking.systems, checking.subject, checking.environ).values():
            try:
                labels.append(one.labeling.read(one.path))
            except FairAgentError as error:
                missing = f"{error}\n`fairagent labels FILE` makes those that are missing"
                checking.problems.add(type(error), missing)
        sets = [set(of_generator.counted) for of_generator in labels]
        counted = [id for id in chosen.topics if all(id in of_generator for of_generator in sets)]
        return Chosen(tuple(counted), {id: TOO_FEW for id in chosen.topics if id not in set(counted)})

    def generators(
        self, systems: Systems, subject: Subject, environ: Mapping[str, str] | None = None
    ) -> dict[str, LabeledGenerator]:
        """What tells each generator of the experiment from another -> the generator, in the order of the systems."""
        assert isinstance(subject, LampQuestions)  # `open` made it
        generators: dict[str, LabeledGenerator] = {}
        for system in systems.values():
            key = generator(system)
            if key not in generators:
                model, prompts = system.settings.model, Prompts(system.settings.prompts)
                same = sum(other.system.settings.model.name == model.name for other in generators.values())
                name = f"{file_name(model.name)}{f'_{same + 1}' if same else ''}.jsonl"
                labeling = Labeling(subject.lamp, prompts, of_model(model, environ))
                generators[key] = LabeledGenerator(system, labeling, Path(self.lamp.labels) / name)
        return generators

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        assert isinstance(subject, LampQuestions)
        files = sorted(Path(self.lamp.labels).glob("*.jsonl"))
        labels = {path.name: file_hash(path) for path in files}
        lamp = {"task": self.lamp.task, "files": subject.lamp.sha256, "labels": labels}
        return {**super().fingerprint(plan, subject, environ), "lamp": lamp}

    def calls_before(self, plan: Plan, subject: Subject) -> Iterator[tuple[str, Calls]]:
        for one in self.generators(plan.systems, subject).values():
            model = one.system.settings.model
            if (calls := one.labeling.estimate(one.path, model)).calls:
                yield f"labels for {model.name}", calls

    def worst_case(self, row: str, plan: Plan, subject: Subject) -> Iterator[Calls]:
        assert isinstance(subject, LampQuestions)
        section, system = self.fair_rag, plan.systems[row]
        case = Case(system.settings, Prompts(system.settings.prompts), ())
        items = max((len(question.items) for question in subject.lamp.questions), default=1)
        drawn = 1
        if system.row["alpha"] is not None:
            drawn = min(section.samples, math.perm(max(items, section.k), section.k))
        calls = len(plan.topics) * drawn
        yield from (case.counted(id, calls, calls * TOKENS) for id in self.templates(system))

    def trial(self, opened: Opened) -> LampTrial:
        assert isinstance(opened.subject, LampQuestions)
        generators = self.generators(opened.plan.systems, opened.subject)
        labels: dict[str, Labels] = {key: one.labeling.read(one.path) for key, one in generators.items()}
        useful = {key: {id: of.useful(id) for id in of.gains} for key, of in labels.items()}
        return LampTrial.open(opened, self.fair_rag, opened.subject.questions, useful)


def _check_scorer(engine: Part) -> None:
    """Raise BackendUnavailable where the model that scores the items is not on this machine."""
    if named := getattr(engine, "text_encoder", ""):
        open_encoder(named)
    elif isinstance(engine, EncoderPart):
        engine.open_encoder(Memo())


OF_GROUPS = (
    MeasureInfo(
        "gap re-ranked",
        "1 - AWRF of the expected exposure in the k items that are drawn; lower is fairer",
        True,
        of_groups=True,
    ),
    MeasureInfo(
        "gap retrieved",
        "1 - AWRF of the k items that the user's own query finds, all places alike; lower is fairer",
        True,
        of_groups=True,
    ),
    MeasureInfo("gap cited", "1 - AWRF of what the answers rest on; lower is fairer", True, of_groups=True),
)
"""What a row is measured by in every dimension, its end result first."""


class FairRagKind(DrawnKind, JudgedKind):
    """Rankings are drawn from a collection's documents, and answers are extracts of them or a model's."""

    kind: Literal["fair-rag"] = "fair-rag"
    fair_rag: CollectionDrawing = CollectionDrawing()
    """What rankings are drawn and how they are measured."""

    def templates(self, system: SystemPlan) -> tuple[str, ...]:
        settings = system.settings
        return (*settings.filter.templates, *settings.generate.templates, *settings.attribute.templates)

    def check(self, checking: Checking) -> None:
        super().check(checking)
        section, problems = self.fair_rag, checking.problems
        if section.pool < section.k:
            problems.add(SettingsError, f"fair_rag.pool: {section.pool} candidates are fewer than k = {section.k}")
        for name, system in checking.systems.items():
            if system.settings.attribute.idle(system.settings):
                message = f"systems.{name}: attribute is none, and EAR and EAE-D are about what answers rest on"
                problems.add(UsageError, message)

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        return (*super().measured(dimensions), *(OF_GROUPS if dimensions else ()))

    def worst_case(self, row: str, plan: Plan, subject: Subject) -> Iterator[Calls]:
        section, system = self.fair_rag, plan.systems[row]
        settings = system.settings
        case = Case(settings, Prompts(settings.prompts), ())
        most = math.perm(max(section.pool, section.k), section.k)
        drawn = 1 if system.row["alpha"] is None else min(section.samples, most)
        read = settings.context.tokens + section.k * estimate_tokens(LETTER * LONGEST_TITLE)
        for id in self.templates(system):
            # A filter looks at each document alone; everything else reads the whole context.
            calls = len(plan.topics) * drawn * (section.k if id in settings.filter.templates else 1)
            yield case.counted(id, calls, calls * read)

    def trial(self, opened: Opened) -> FairRagTrial:
        return FairRagTrial.open(opened, self.fair_rag)

    def tables(self, run: Results) -> list[Table]:
        return [*super().tables(run), *query_group_tables(run)]

    def files(self, run: Results) -> Mapping[str, Table]:
        return {**super().files(run), **query_group_files(run)}
