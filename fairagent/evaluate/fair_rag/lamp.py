"""LaMP's questions as an experiment: what stands in the collection's place, and the labels of each generator."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairagent.collection import Collection
from fairagent.collection.groups import JoinedGroups
from fairagent.collection.lamp import Lamp, load_lamp
from fairagent.errors import FairAgentError
from fairagent.evaluate.fair_rag.labeling import Labeling
from fairagent.evaluate.fair_rag.labels import FEWEST, Labels
from fairagent.evaluate.fair_rag.rows import generator
from fairagent.evaluate.fair_rag.section import LampFiles
from fairagent.evaluate.fingerprint import of_model
from fairagent.evaluate.plan import SystemPlan
from fairagent.evaluate.problems import Problems
from fairagent.files import file_name
from fairagent.prompts import Prompts
from fairagent.types import Document, Topic

TOO_FEW = f"fewer than {FEWEST} useful items"


@dataclass(frozen=True, slots=True)
class LampItems:
    """The items of all questions as the documents of a collection."""

    lamp: Lamp

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing: whatever is odd in the files is a fault."""
        return ()

    def __iter__(self) -> Iterator[Document]:
        for question in self.lamp.questions:
            for item in question.items:
                yield Document(f"{question.id}/{item.id}", item.text)

    def count(self) -> int:
        """How many items there are."""
        return sum(len(question.items) for question in self.lamp.questions)

    def fingerprint(self) -> str:
        """SHA-256 (hex) of the files."""
        return self.lamp.sha256


def read_lamp(files: LampFiles) -> Lamp:
    """The questions of the files, whose paths are absolute; DataError with every fault."""
    return load_lamp(files.task, files.questions, files.outputs)


def lamp_collection(lamp: Lamp) -> Collection:
    """The questions as topics, with nobody's groups; what is useful differs from generator to generator."""
    topics = {question.id: Topic(question.id, question.query) for question in lamp.questions}
    return Collection(lamp.task.name, topics, {id: {} for id in topics}, JoinedGroups([]), {}, (), LampItems(lamp))


def lamp_of(collection: Collection) -> Lamp:
    """The questions that `lamp_collection` was made of; the files may be large, and are read once."""
    assert isinstance(collection.source, LampItems)
    return collection.source.lamp


def absolute(files: LampFiles, folder: Path) -> LampFiles:
    """`files` with paths from anywhere, which are relative to `folder` (the experiment file's)."""
    paths = {name: str((folder / getattr(files, name)).absolute()) for name in ("questions", "outputs", "labels")}
    return files.model_copy(update=paths)


@dataclass(frozen=True, slots=True)
class Generator:
    """One generator of an experiment: a system that has it, what its labels are made from, and their file."""

    system: SystemPlan
    labeling: Labeling
    path: Path


def generators(
    systems: Mapping[str, SystemPlan], lamp: Lamp, files: LampFiles, environ: Mapping[str, str] = os.environ
) -> dict[str, Generator]:
    """What tells each generator of the experiment from another -> the generator, in the order of the systems."""
    found: dict[str, Generator] = {}
    for system in systems.values():
        key = generator(system)
        if key not in found:
            model, prompts = system.settings.model, Prompts(system.settings.prompts)
            same = sum(other.system.settings.model.name == model.name for other in found.values())
            name = f"{file_name(model.name)}{f'_{same + 1}' if same else ''}.jsonl"
            found[key] = Generator(system, Labeling(lamp, prompts, of_model(model, environ)), Path(files.labels) / name)
    return found


def read_labels(of: Mapping[str, Generator], problems: Problems | None = None) -> dict[str, Labels]:
    """Generator -> its labels; what is wrong with them is a problem, or where there are no `problems` raised."""
    found = {}
    for key, one in of.items():
        if problems is None:
            found[key] = one.labeling.read(one.path)
            continue
        try:
            found[key] = one.labeling.read(one.path)
        except FairAgentError as error:
            problems.add(type(error), f"{error}\n`fairagent labels FILE` makes those that are missing")
    return found


def kept_by_all(questions: Sequence[str], labels: Mapping[str, Labels]) -> tuple[list[str], dict[str, str]]:
    """The questions with enough useful items for every generator, and why the others are left out."""
    kept = [set(of_generator.kept) for of_generator in labels.values()]
    counted = [id for id in questions if all(id in ids for ids in kept)]
    return counted, {id: TOO_FEW for id in questions if id not in set(counted)}
