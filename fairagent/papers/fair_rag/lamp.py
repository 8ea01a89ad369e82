"""Reading LaMP's files: questions with profiles, and expected outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairagent.collection.faults import Faults, listed, shown
from fairagent.collection.lamp.tasks import LampTask, parse_task
from fairagent.collection.records import Record, checked_id, read_text
from fairagent.errors import UsageError
from fairagent.intake.json_text import parse_json
from fairagent.intake.malformed import Malformed
from fairagent.intake.text import as_text, file_bytes

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

LARGEST = 1 << 31
"""Bytes of a file."""
LIMIT = 1000
"""So many questions of a file, the first ones, as the paper says; its code takes one more."""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a profile: the `text` that is searched, and the `fields` that a prompt shows, by their names."""

    id: str
    text: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LampQuestion:
    """One question: the whole `input` for a generator, its part that is the `query`, the profile, the output wanted."""

    id: str
    task: LampTask
    input: str
    query: str
    items: tuple[Item, ...]
    gold: str


@dataclass(frozen=True, slots=True)
class Lamp:
    """The first questions of a task, of `total` in the file; `sha256` is that of both files."""

    task: LampTask
    questions: tuple[LampQuestion, ...]
    total: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.task}: {len(self.questions):,} of {self.total:,} questions"


def load_lamp(task: str | LampTask, questions: Path | str, outputs: Path | str, limit: int | None = LIMIT) -> Lamp:
    """The first `limit` (None: all) questions of a task, in the order of the file, which may be gzipped.

    `questions` is LaMP's [{"id", "input", "profile": [{"id", ...}]}], `outputs` its {"task", "golds": [{"id",
    "output"}]}; other keys are ignored. A profile may be empty. Raises DataError with every fault of both files, each
    with the ids of the question and of the profile's entry; UsageError for an unknown task or a limit below 1.
    """
    task = parse_task(task) if isinstance(task, str) else task
    if limit is not None and limit < 1:
        raise UsageError(f"limit is the number of questions to read and must be at least 1, not {limit}")
    asked, wanted = Path(questions), Path(outputs)
    faults, digest = Faults(), sha256()
    golds = _read_golds(task, wanted, digest, faults)
    records = _read_list(asked, digest, faults)
    found: dict[str, LampQuestion] = {}
    for number, record in enumerate(records[:limit], start=1):
        try:
            id = _id(record, "question")
        except ValueError as error:
            faults.add(asked, None, f"question number {number}: {error}")
            continue
        if id in found:
            faults.add(asked, None, f"question {shown(id)} is there twice")
        if golds is not None and id not in golds:
            faults.add(wanted, None, f"no gold for question {shown(id)}")
        found[id] = _question(task, id, record, (golds or {}).get(id, ""), _Place(asked, f"question {id!r}", faults))
    faults.check(str(task))
    return Lamp(task, tuple(found.values()), len(records), digest.hexdigest())


@dataclass(frozen=True, slots=True)
class _Place:
    """Where something is read, and where its faults go."""

    path: Path
    name: str
    faults: Faults

    def add(self, fault: object) -> None:
        self.faults.add(self.path, None, f"{self.name}: {fault}")

    def text(self, record: Record, name: str) -> str:
        """A field that has to be there; "" where it cannot be read."""
        try:
            text = read_text(record, name)
            text.encode()
        except UnicodeEncodeError:
            self.add(f"field {name!r} holds half of a surrogate pair (\\ud...), which is no Unicode text")
        except ValueError as error:
            self.add(error)
        else:
            return text
        return ""


def _question(task: LampTask, id: str, record: Record, gold: str, place: _Place) -> LampQuestion:
    input = place.text(record, "input")
    query = ""
    try:
        query = task.find_query(input) if input else ""
    except ValueError as error:
        place.add(f"{error}; is it one of {task}? It begins {shown(input)}")
    profile = record.get("profile")
    if not isinstance(profile, list):
        place.add(f"expected a list in 'profile', found {shown(profile)}")
    items: dict[str, Item] = {}
    for number, entry in enumerate(profile if isinstance(profile, list) else (), start=1):
        try:
            item = _id(entry, "item")
        except ValueError as error:
            place.add(f"item number {number}: {error}")
            continue
        if item in items:
            place.add(f"item {shown(item)} is there twice")
        inner = _Place(place.path, f"{place.name}, item {item!r}", place.faults)
        fields = {name: inner.text(entry, name) for name in task.fields}
        searched = " ".join(fields[name] for name in task.searched)
        items[item] = Item(item, searched, {name: fields[name] for name in task.shown})
    return LampQuestion(id, task, input, query, tuple(items.values()), gold)


def _read_golds(task: LampTask, path: Path, digest: Hash, faults: Faults) -> dict[str, str] | None:
    """Question id -> output; None where the file as a whole cannot be used."""
    record = _read_json(path, digest, faults)
    if record is None:
        return None
    golds = record.get("golds") if isinstance(record, dict) else None
    if not isinstance(golds, list):
        faults.add(path, None, f'expected {{"task": ..., "golds": [...]}}, found {shown(record)}')
        return None
    said = record.get("task")
    if not isinstance(said, str) or said.replace("_", "-") != task.name:
        faults.add(path, None, f"the task is {shown(said)}, expected {task.name.replace('-', '_')!r}")
        return None
    found: dict[str, str] = {}
    for number, gold in enumerate(golds, start=1):
        try:
            id = _id(gold, "question")
        except ValueError as error:
            faults.add(path, None, f"gold number {number}: {error}")
            continue
        place = _Place(path, f"gold of question {id!r}", faults)
        if id in found:
            place.add("it is there twice")
        output = place.text(gold, "output")
        if task.labels and output.strip() not in task.labels:
            place.add(f"{shown(output)} is none of {listed(task.labels)}")
        elif not output.replace(".", "").strip():
            place.add(f"the output {shown(output)} has no words")
        found[id] = output
    return found


def _read_list(path: Path, digest: Hash, faults: Faults) -> list[Any]:
    records = _read_json(path, digest, faults)
    if isinstance(records, list) and records:
        return records
    if isinstance(records, list):
        faults.add(path, None, "there are no questions")
    elif records is not None:
        faults.add(path, None, f"expected a list of questions, found {shown(records)}")
    return []


def _read_json(path: Path, digest: Hash, faults: Faults) -> Any:
    """What the file holds, which `digest` is told; None where it cannot be read."""
    try:
        content = file_bytes(path, LARGEST, unzipped=True)
        digest.update(content)
        value = parse_json(as_text(content))
    except FileNotFoundError:
        faults.add(path, None, "no such file")
    except OSError as error:
        faults.add(path, None, f"cannot be read ({error.strerror or error})")
    except Malformed as error:
        faults.add(path, error.line, f"not JSON ({error})")
    else:
        if value is None:
            faults.add(path, None, "holds null and nothing else")
        return value
    return None


def _id(record: object, what: str) -> str:
    if not isinstance(record, dict):
        raise ValueError(f"expected an object, found {shown(record)}")
    return checked_id(read_text(record, "id"), what)
