"""What a table of answers needs before it: the trainings that its experiment files name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairagent.errors import UsageError
from fairagent.papers.fairft.run import MODEL, CheckedTraining, check, place, run_folder
from fairagent.settings import read_yaml

KEY = "trainings"


@dataclass(frozen=True, slots=True)
class Chain:
    """The `trainings` that experiment files name, each once and checked, and what the files say `untrained`.

    That is the values of each file, as YAML has them, with every retriever as it is before training: what can be
    checked before.
    """

    trainings: tuple[CheckedTraining, ...]
    untrained: Mapping[Path, Mapping[str, Any]]


def read_chain(files: Sequence[Path]) -> Chain:
    """What these experiment files name.

    Raises UsageError where a file names no training, or two trainings would have one folder; what `check` raises.
    """
    trainings: dict[Path, CheckedTraining] = {}
    folders: dict[Path, Path] = {}
    experiments = {}
    for file in files:
        values = read_yaml(file)
        named = values.pop(KEY, None)
        if not isinstance(named, list) or not named or not all(isinstance(one, str) for one in named):
            raise UsageError(
                f"{file}: `{KEY}` lists no settings files of FairFT; `fairagent evaluate` runs such a file"
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
        experiments[file] = _renamed(values, models)
    return Chain(tuple(trainings.values()), experiments)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """`value` with some of the texts in it replaced."""
    if isinstance(value, dict):
        return {key: _renamed(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [_renamed(part, names) for part in value]
    return names.get(value, value) if isinstance(value, str) else value
