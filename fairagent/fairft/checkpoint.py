"""Training checkpoints, written atomically."""

import importlib
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.errors import DataError, UsageError
from fairagent.files import whole_file
from fairagent.intake.arrays import read_array
from fairagent.retrieve.encoder import Embeddings

CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True, slots=True)
class TrainingState:
    """Where a training is: `step` steps into `round` (both from 0), with all that what follows depends on.

    `model`, `optimizer` and `best` are torch's state dictionaries, `held` the documents (h, k) on which the held-out KL
    is measured, `measured` that KL before each round so far. There is no state of a random generator: the order of each
    epoch derives from the seed and its number, and nothing else is random.
    """

    task: str
    round: int
    step: int
    done: bool
    held: list[list[int]]
    measured: list[float]
    model: dict[str, Any]
    optimizer: dict[str, Any]
    best: dict[str, Any]


def save_state(state: TrainingState, folder: Path) -> None:
    """Write the checkpoint beside the old one, force it to the disk, and put it in the old one's place."""
    torch = importlib.import_module("torch")
    fields = {name: getattr(state, name) for name in TrainingState.__dataclass_fields__}
    with whole_file(folder / CHECKPOINT) as file:
        torch.save(fields, file)


def read_state(folder: Path, task: str) -> TrainingState | None:
    """The checkpoint in `folder`; None where there is none.

    Raises UsageError where it is that of another `task` (a hash of everything that the result depends on), DataError
    where it cannot be read.
    """
    torch = importlib.import_module("torch")
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    try:
        # Tensors, numbers and texts alone: a file that someone else put there cannot run code.
        state = TrainingState(**torch.load(path, map_location="cpu", weights_only=True))
    except (pickle.UnpicklingError, RuntimeError, OSError, TypeError, EOFError, ValueError, KeyError) as error:
        raise DataError(f"{path} cannot be read ({str(error).splitlines()[0]}); start over with --new") from None
    if state.task != task:
        raise UsageError(
            f"{folder} holds the training of other settings, questions, documents or models; name another folder, or "
            "start over with --new"
        )
    return state


def save_vectors(vectors: Embeddings, folder: Path, round: int) -> None:
    """Write the documents' embeddings of a round: those of its middle cannot be had from the weights any more."""
    with whole_file(_vectors(folder, round)) as file:
        np.save(file, vectors)


def read_vectors(folder: Path, round: int) -> Embeddings:
    """What `save_vectors` wrote; DataError where it is not there."""
    try:
        vectors: Embeddings = read_array(_vectors(folder, round))
    except (OSError, ValueError) as error:
        raise DataError(f"{_vectors(folder, round)} cannot be read ({error}); start over with --new") from None
    return vectors


def forget_vectors(folder: Path, but: int | None = None) -> None:
    """Remove the embeddings of all rounds `but` one."""
    for path in folder.glob("vectors-*.npy"):
        if but is None or path != _vectors(folder, but):
            path.unlink(missing_ok=True)


def _vectors(folder: Path, round: int) -> Path:
    return folder / f"vectors-{round}.npy"
