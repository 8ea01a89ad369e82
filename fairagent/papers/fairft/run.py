"""A FairFT run: checks and opens everything that its settings file names, and works in the run's folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairagent.collection import load_collection
from fairagent.collection.known import refuse_overlap
from fairagent.collection.records import Faults, json_records, read_text
from fairagent.errors import BackendUnavailable, UsageError
from fairagent.llm.budget import Budget
from fairagent.llm.cache import ReplyCache
from fairagent.llm.likelihood import EndpointModel, open_local
from fairagent.llm.prompts import Prompts, source_relative_to
from fairagent.papers.fairft.settings import OPENING, FairFTFile, read_examples, split
from fairagent.papers.fairft.train import (
    CHECKPOINT,
    CheckedTraining,
    History,
    Progress,
    Signals,
    Training,
    TrainingEffect,
    compare,
    forget_vectors,
    place,
    plain_hash,
)
from fairagent.settings import read_yaml, validate
from fairagent.storage.files import LOCK, locked, remove_folder, write_whole
from fairagent.storage.folders import expect_replaceable
from fairagent.storage.packages import expect_installed
from fairagent.storage.readers import file_text, parse_json

MODEL = "model"
"""The trained retriever's folder in that of the run."""
RECORD = "fairft.json"
"""What came out, in the run's folder."""
SIGNALS = "signals.jsonl"
NOT_DECIDING = ("about", "test", "budget", "cache")
"""Keys of a settings file that the trained retriever does not depend on."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished training: where the model is, the held-out KL by round, and what changed."""

    model: Path
    history: History
    change: TrainingEffect


def read_file(path: Path) -> FairFTFile:
    """The settings file of a training; SettingsError."""
    return validate(FairFTFile, read_yaml(path), str(path))


def run_folder(file: FairFTFile) -> Path:
    """The folder of a training's run, where none is named."""
    return Path("runs") / file.name


def trained_model(path: Path) -> Path:
    """The folder of the retriever that the settings file `path` has trained.

    Raises BackendUnavailable where the training is not finished, UsageError where its folder holds that of other
    settings.
    """
    file = read_file(path)
    folder = run_folder(file)
    record = _read_record(folder)
    if record is None:
        raise BackendUnavailable(
            f"{path} is not trained: there is no finished training at {folder}; `fairagent fairft run`, with the "
            "experiment's file, trains it"
        )
    if not _same_settings(record, file):
        raise UsageError(
            f"{folder} holds a training of other settings than {path} has; train that with "
            f"`fairagent fairft train {path} --new`"
        )
    return folder / MODEL


def is_finished(checked: CheckedTraining, folder: Path) -> bool:
    """Whether `folder` holds this training, of these questions and documents, finished."""
    record = _read_record(folder)
    return record is not None and record.get("data") == checked.data and _same_settings(record, checked.file)


def _same_settings(record: dict[str, Any], file: FairFTFile) -> bool:
    settings = file.model_dump(mode="json", exclude=set(NOT_DECIDING))
    return {key: value for key, value in record["settings"].items() if key not in NOT_DECIDING} == settings


def _read_record(folder: Path) -> dict[str, Any] | None:
    """What came out of a training; None where it is not finished, or its record cannot be read."""
    try:
        record = parse_json(file_text(folder / RECORD, 1 << 24))
    except (OSError, ValueError):
        return None
    whole = isinstance(record, dict) and isinstance(record.get("settings"), dict) and (folder / MODEL).is_dir()
    return record if whole else None


def check(path: Path, seed: int | None = None) -> CheckedTraining:
    """Read the settings file and the data that it names; `seed` beats its own.

    Raises BackendUnavailable without the extra `dense`, DataError with every fault of a file, and where a text of the
    test questions is trained on.
    """
    expect_installed("sentence-transformers", "FairFT")
    file = read_file(path)
    if seed is not None:
        file = file.model_copy(update={"training": file.training.model_copy(update={"seed": seed})})
    folder = path.parent
    examples = read_examples(folder / file.examples.path, file.examples.format)[: file.examples.first]
    training, held_out = split(examples, file.examples.held_out, file.training.seed)
    trained_on = [text for example in training for text in example.texts]
    for test in file.test:
        faults, texts = Faults(), list[str]()
        for number, record in json_records(folder / test.path, faults):
            try:
                texts += [read_text(record, name).removeprefix(OPENING) for name in test.fields]
            except ValueError as error:
                faults.add(folder / test.path, number, str(error))
        faults.check("texts of the test")
        refuse_overlap(trained_on, texts, test_name=test.path)
    collection = load_collection(folder / file.collection)
    documents = tuple(collection.documents())
    if len(documents) < 2:
        raise UsageError(f"collection {collection.name!r} has one document: there is nothing to rank")
    return CheckedTraining(file, folder, collection.fingerprint(), documents, training, held_out)


def run_training(
    checked: CheckedTraining, folder: Path, progress: Progress = lambda done, all, best: None, new: bool = False
) -> Trained:
    """Train the retriever, or go on where a training in `folder` was broken off; the model is in `folder`/model.

    With `new` what is there is deleted first. Raises UsageError where the folder holds something else.
    """
    names = {path.name for path in folder.iterdir()} - {LOCK} if folder.is_dir() else set()
    ours = (CHECKPOINT, RECORD, SIGNALS, "vectors-", ".")
    if names and not any(name.startswith(ours) for name in names):
        raise UsageError(f"{folder} is there and holds no training; name a new or an empty folder")
    expect_replaceable(folder / MODEL)
    with locked(folder), open_signals(checked, folder) as signals:
        if new:
            # All but the signals, which are right for any training.
            for name in (CHECKPOINT, RECORD):
                (folder / name).unlink(missing_ok=True)
            forget_vectors(folder)
            remove_folder(folder / MODEL)
        file, tower = checked.file, checked.tower()
        probe = tower.encode("query", ["A fair ranking shows every group its share."])[0]
        depends_on = [
            checked.data,
            file.training.model_dump(exclude={"checkpoint"}),
            file.retriever.model_dump(exclude={"batch", "device", "model"}),
            signals.manifest,
            [round(float(number), 3) for number in probe],
        ]
        history = Training(plain_hash(depends_on), checked, signals, tower, folder, progress).run()
        tower.save(folder / MODEL)
        change = compare(checked, checked.tower(), tower, signals)
        record = {
            "settings": file.model_dump(mode="json"),
            "data": checked.data,
            "training": len(checked.training),
            "held_out": len(checked.held_out),
            "documents": len(checked.documents),
            "measured": list(history.measured),
            "best": history.best,
            "change": asdict(change),
            "signal": signals.model.name,
            "versions": {name: version(name) for name in ("torch", "sentence_transformers")},
        }
        write_whole(folder / RECORD, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return Trained(folder / MODEL, history, change)


def run_evaluation(checked: CheckedTraining, model: Path, folder: Path) -> TrainingEffect:
    """The settings' retriever against the one in the folder `model`, on the held-out questions, by these signals."""
    if not model.is_dir():
        raise BackendUnavailable(f"there is no trained retriever at {model}; `fairagent fairft train` makes one")
    with open_signals(checked, folder) as signals:
        return compare(checked, checked.tower(), checked.tower(str(model)), signals)


@contextmanager
def open_signals(checked: CheckedTraining, folder: Path) -> Iterator[Signals]:
    """The signals of the language model that the settings name, in their file or in the run's `folder`."""
    chosen, file = checked.file.signal, checked.file
    path = checked.folder / chosen.path if chosen.path else folder / SIGNALS
    prompts = Prompts(source_relative_to(chosen.prompts, checked.folder))
    if chosen.endpoint is None:
        name = place(checked.folder, chosen.model)
        local = open_local("causal", name, chosen.device, chosen.dtype, chosen.batch, chosen.chat)
        yield Signals(local, prompts, path, chosen.tokens)
        return
    with ExitStack() as stack:
        cache = ReplyCache(file.cache) if file.cache else None
        if cache:
            stack.callback(cache.close)
        model = EndpointModel(chosen.endpoint, cache, Budget(file.budget), chosen.chat)
        stack.callback(model.close)
        yield Signals(model, prompts, path, chosen.tokens)


def read_chain(files: Sequence[Path]) -> tuple[list[CheckedTraining], dict[Path, Mapping[str, Any]]]:
    """The `trainings` that these experiment files name, each once and checked, and the files' values before training.

    These are with every retriever as it is before: what can be checked beforehand. Raises UsageError where a file names
    no training, or two trainings would have one folder; what `check` raises.
    """

    def renamed(value: Any, names: Mapping[str, str]) -> Any:
        if isinstance(value, dict):
            return {key: renamed(part, names) for key, part in value.items()}
        if isinstance(value, list):
            return [renamed(part, names) for part in value]
        return names.get(value, value) if isinstance(value, str) else value

    trainings: dict[Path, CheckedTraining] = {}
    folders: dict[Path, Path] = {}
    experiments = {}
    for file in files:
        values = read_yaml(file)
        named = values.pop("trainings", None)
        if not isinstance(named, list) or not named or not all(isinstance(one, str) for one in named):
            raise UsageError(
                f"{file}: `trainings` lists no settings files of FairFT; `fairagent evaluate` runs such a file"
            )
        models = {}
        for path in ((file.parent / one).resolve() for one in named):
            if path not in trainings:
                trainings[path] = check(path)
            checked = trainings[path]
            folder = run_folder(checked.file)
            if folders.setdefault(folder, path) != path:
                raise UsageError(f"{path} and {folders[folder]} would both be trained in {folder}; rename one of them")
            models[str(folder / MODEL)] = place(checked.folder, checked.file.retriever.model)
        experiments[file] = renamed(values, models)
    return list(trainings.values()), experiments
