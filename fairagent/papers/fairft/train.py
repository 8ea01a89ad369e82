"""FairFT's training loop: the retriever learns to rank as a frozen language model values the documents.

Training checkpoints, written atomically.
"""

import importlib
import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.extend import DataError, Document, Embeddings, UsageError, full_text, read_array, whole_file
from fairagent.papers.fairft.evaluate import Tower, held_out_kl, top
from fairagent.papers.fairft.loss import log_target, torch_loss
from fairagent.papers.fairft.settings import TrainingExample, TrainingSection
from fairagent.papers.fairft.signals import Signals

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


Progress = Callable[[int, int, float], None]
"""progress(steps done, steps at most, the best held-out KL so far)."""


@dataclass(frozen=True, slots=True)
class TrainingTask:
    """What a training is about; `key` is a hash of all of it, so that no other goes on with its checkpoint."""

    key: str
    documents: Sequence[Document]
    training: Sequence[TrainingExample]
    held_out: Sequence[TrainingExample]
    signals: Signals
    settings: TrainingSection
    towers: str = "both"


@dataclass(frozen=True, slots=True)
class History:
    """The held-out KL (nats) before each round, the first one before any training; `best` is the round of the least.

    The documents it is measured on are those that the untrained retriever ranks first, so that nothing but the
    retriever's own distribution changes.
    """

    measured: tuple[float, ...]

    @property
    def best(self) -> int:
        """The first round with the least held-out KL."""
        return min(range(len(self.measured)), key=self.measured.__getitem__)


def train(
    task: TrainingTask,
    tower: Tower,
    folder: Path,
    progress: Progress = lambda done, all, best: None,
    resume: bool = True,
) -> History:
    """Train `tower` in place, to the weights with the least held-out KL; with checkpoints in `folder`.

    Whatever ends the process, a call with the same arguments goes on from the last checkpoint and comes to the same
    weights (on a CPU that does nothing else bit by bit; a busy one rounds sums otherwise).
    """
    return _Training(task, tower, folder, progress).run(resume)


class _Training:
    def __init__(self, task: TrainingTask, tower: Tower, folder: Path, progress: Progress) -> None:
        torch = importlib.import_module("torch")
        self._task = task
        self._tower = tower
        self._folder = folder
        self._progress = progress
        self._texts = list(map(full_text, task.documents))
        self._optimizer = torch.optim.Adam(tower.model.parameters(), lr=task.settings.rate)
        epoch = np.array_split(np.arange(len(task.training)), task.settings.refreshes)
        self._steps = [math.ceil(len(part) / task.settings.batch) for part in epoch]
        self._rounds = task.settings.epochs * task.settings.refreshes

    def run(self, resume: bool) -> History:
        state = read_state(self._folder, self._task.key) if resume else None
        if state is None:
            state = self._beginning()
        else:
            self._tower.model.load_state_dict(state.model)
            self._optimizer.load_state_dict(state.optimizer)
        while not state.done:
            state, vectors = self._refreshed(state)
            if not state.done:
                state = self._trained(state, vectors)
        self._tower.model.load_state_dict(state.best)
        return History(tuple(state.measured))

    def _beginning(self) -> TrainingState:
        forget_vectors(self._folder)
        weights = self._weights()
        return TrainingState(self._task.key, 0, 0, False, [], [], weights, self._optimizer.state_dict(), weights)

    def _refreshed(self, state: TrainingState) -> tuple[TrainingState, Embeddings]:
        """At the beginning of a round: new embeddings of all documents, and the held-out KL of the weights so far."""
        if state.step:
            return state, read_vectors(self._folder, state.round)
        vectors = self._tower.encode("document", self._texts)
        queries = self._tower.encode("query", [example.query for example in self._task.held_out])
        held = state.held or top(queries, vectors, self._count).tolist()
        places = np.array(held)
        likelihoods = self._task.signals.table(self._task.held_out, self._task.documents, places)
        measured = [*state.measured, held_out_kl(queries, vectors, places, likelihoods, self._task.settings)]
        best = History(tuple(measured)).best
        over = state.round == self._rounds or state.round - best >= self._task.settings.patience
        state = replace(
            state, held=held, measured=measured, done=over, best=self._weights() if best == state.round else state.best
        )
        if over:
            save_state(state, self._folder)
            forget_vectors(self._folder)
        else:
            save_vectors(vectors, self._folder, state.round)
        return state, vectors

    def _trained(self, state: TrainingState, vectors: Embeddings) -> TrainingState:
        """The state after the rest of the round."""
        settings = self._task.settings
        batches = self._batches(state.round)
        for step, batch in enumerate(batches[state.step :], start=state.step + 1):
            self._step([self._task.training[place] for place in batch], vectors)
            state = replace(state, step=step)
            self._progress(self._done(state), self._all, min(state.measured))
            if step % settings.checkpoint == 0 and step < len(batches):
                save_state(self._with_weights(state), self._folder)
        state = self._with_weights(replace(state, round=state.round + 1, step=0))
        save_state(state, self._folder)
        forget_vectors(self._folder)
        return state

    def _step(self, batch: Sequence[TrainingExample], vectors: Embeddings) -> None:
        torch = importlib.import_module("torch")
        settings, tower = self._task.settings, self._tower
        queries = tower.vectors("query", [example.query for example in batch])
        found = top(queries.detach().cpu().numpy(), vectors, self._count)
        target = log_target(self._task.signals.table(batch, self._task.documents, found), settings.beta)
        log_q = torch.tensor(target, dtype=torch.float32, device=queries.device)
        if self._task.towers == "both":
            # Many questions find the same documents: each is embedded once.
            distinct, places = np.unique(found, return_inverse=True)
            embedded = tower.vectors("document", [self._texts[place] for place in distinct])
            documents = embedded[torch.from_numpy(places.reshape(found.shape)).to(queries.device)]
        else:
            documents = torch.from_numpy(vectors[found]).to(queries.device)
        scores = (queries[:, None] * documents).sum(dim=-1)
        loss: Any = torch_loss(scores, log_q, settings.gamma, settings.direction, settings.reduction)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()

    def _batches(self, round: int) -> list[list[int]]:
        """The examples of each step of a round, by their places."""
        settings = self._task.settings
        epoch, part = divmod(round, settings.refreshes)
        order = np.random.default_rng([settings.seed, epoch]).permutation(len(self._task.training))
        chosen = np.array_split(order, settings.refreshes)[part].tolist()
        return [chosen[start : start + settings.batch] for start in range(0, len(chosen), settings.batch)]

    def _with_weights(self, state: TrainingState) -> TrainingState:
        return replace(state, model=self._weights(), optimizer=self._optimizer.state_dict())

    def _weights(self) -> dict[str, Any]:
        """A copy: the weights themselves go on changing."""
        return {name: value.detach().cpu().clone() for name, value in self._tower.model.state_dict().items()}

    @property
    def _count(self) -> int:
        return min(self._task.settings.documents, len(self._texts))

    @property
    def _all(self) -> int:
        return self._task.settings.epochs * sum(self._steps)

    def _done(self, state: TrainingState) -> int:
        epoch, part = divmod(state.round, self._task.settings.refreshes)
        return epoch * sum(self._steps) + sum(self._steps[:part]) + state.step
