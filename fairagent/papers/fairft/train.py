"""FairFT's training loop: the retriever learns to rank as a frozen language model values the documents.

Checkpoints are written atomically, so that a training goes on after whatever ended it.
"""

from __future__ import annotations

import importlib
import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.errors import DataError, UsageError
from fairagent.papers.fairft.evaluate import Tower, held_out_kl, top
from fairagent.papers.fairft.loss import kl_loss, log_target
from fairagent.papers.fairft.settings import TrainingExample, TrainingSection
from fairagent.papers.fairft.signals import Signals
from fairagent.retrieve.base import full_text
from fairagent.retrieve.encoders import Embeddings
from fairagent.storage.arrays import read_array
from fairagent.storage.files import whole_file
from fairagent.types import Document

CHECKPOINT = "checkpoint.pt"

Progress = Callable[[int, int, float], None]
"""progress(steps done, steps at most, the best held-out KL so far)."""


@dataclass(frozen=True, slots=True)
class TrainingState:
    """Where a training is: `step` steps into `round` (both from 0), with all that what follows depends on.

    `task` is the key of the training, `model`, `optimizer` and `best` are torch's state dictionaries, `held` the
    documents (h, k) on which the held-out KL is measured, `measured` that KL before each round so far. There is no
    state of a random generator: the order of each epoch derives from the seed and its number, and nothing else is
    random.
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


@dataclass(frozen=True)
class Training:
    """A training of `tower` in place, with checkpoints in `folder`.

    `key` is a hash of everything that the result depends on, so that no other training goes on with its checkpoint.
    """

    key: str
    documents: Sequence[Document]
    training: Sequence[TrainingExample]
    held_out: Sequence[TrainingExample]
    signals: Signals
    settings: TrainingSection
    towers: str
    tower: Tower
    folder: Path
    progress: Progress

    def run(self) -> History:
        """Train to the weights with the least held-out KL, or go on from the last checkpoint.

        Whatever ends the process, the same training goes on and comes to the same weights (on a CPU that does nothing
        else bit by bit; a busy one rounds sums otherwise).
        """
        state = read_state(self.folder, self.key)
        if state is None:
            forget_vectors(self.folder)
            weights = self._weights()
            state = TrainingState(self.key, 0, 0, False, [], [], weights, self._optimizer.state_dict(), weights)
        else:
            self.tower.model.load_state_dict(state.model)
            self._optimizer.load_state_dict(state.optimizer)
        while not state.done:
            state, vectors = self._refreshed(state)
            if not state.done:
                state = self._trained(state, vectors)
        self.tower.model.load_state_dict(state.best)
        return History(tuple(state.measured))

    @cached_property
    def _optimizer(self) -> Any:
        return importlib.import_module("torch").optim.Adam(self.tower.model.parameters(), lr=self.settings.rate)

    @cached_property
    def _texts(self) -> list[str]:
        return list(map(full_text, self.documents))

    def _refreshed(self, state: TrainingState) -> tuple[TrainingState, Embeddings]:
        """At the beginning of a round: new embeddings of all documents, and the held-out KL of the weights so far."""
        file = _vectors(self.folder, state.round)
        if state.step:
            try:
                return state, read_array(file)
            except (OSError, ValueError) as error:
                raise DataError(f"{file} cannot be read ({error}); start over with --new") from None
        vectors = self.tower.encode("document", self._texts)
        queries = self.tower.encode("query", [example.query for example in self.held_out])
        held = state.held or top(queries, vectors, self._count).tolist()
        places = np.array(held)
        likelihoods = self.signals.table(self.held_out, self.documents, places)
        measured = [*state.measured, held_out_kl(queries, vectors, places, likelihoods, self.settings)]
        best = History(tuple(measured)).best
        over = (
            state.round == self.settings.epochs * self.settings.refreshes
            or state.round - best >= self.settings.patience
        )
        weights = self._weights() if best == state.round else state.best
        state = replace(state, held=held, measured=measured, done=over, best=weights)
        if over:
            save_state(state, self.folder)
            forget_vectors(self.folder)
        else:
            # Those of the middle of a round cannot be had from the weights any more.
            with whole_file(file) as stream:
                np.save(stream, vectors)
        return state, vectors

    def _trained(self, state: TrainingState, vectors: Embeddings) -> TrainingState:
        """The state after the rest of the round."""
        settings = self.settings
        epoch, part = divmod(state.round, settings.refreshes)
        order = np.random.default_rng([settings.seed, epoch]).permutation(len(self.training))
        parts = np.array_split(order, settings.refreshes)
        steps = [math.ceil(len(one) / settings.batch) for one in parts]
        before = epoch * sum(steps) + sum(steps[:part])
        for step in range(state.step + 1, steps[part] + 1):
            batch = parts[part][(step - 1) * settings.batch : step * settings.batch]
            self._step([self.training[place] for place in batch], vectors)
            state = replace(state, step=step)
            self.progress(before + step, settings.epochs * sum(steps), min(state.measured))
            if step % settings.checkpoint == 0 and step < steps[part]:
                save_state(self._with_weights(state), self.folder)
        state = self._with_weights(replace(state, round=state.round + 1, step=0))
        save_state(state, self.folder)
        forget_vectors(self.folder)
        return state

    def _step(self, batch: Sequence[TrainingExample], vectors: Embeddings) -> None:
        torch = importlib.import_module("torch")
        settings, tower = self.settings, self.tower
        queries = tower.vectors("query", [example.query for example in batch])
        ranked = top(queries.detach().cpu().numpy(), vectors, self._count)
        target = log_target(self.signals.table(batch, self.documents, ranked), settings.beta)
        log_q = torch.tensor(target, dtype=torch.float32, device=queries.device)
        if self.towers == "both":
            # Many questions find the same documents: each is embedded once.
            distinct, places = np.unique(ranked, return_inverse=True)
            embedded = tower.vectors("document", [self._texts[place] for place in distinct])
            documents = embedded[torch.from_numpy(places.reshape(ranked.shape)).to(queries.device)]
        else:
            documents = torch.from_numpy(vectors[ranked]).to(queries.device)
        scores = (queries[:, None] * documents).sum(dim=-1)
        loss: Any = kl_loss(scores, log_q, settings.gamma, settings.direction, settings.reduction)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()

    def _with_weights(self, state: TrainingState) -> TrainingState:
        return replace(state, model=self._weights(), optimizer=self._optimizer.state_dict())

    def _weights(self) -> dict[str, Any]:
        """A copy: the weights themselves go on changing."""
        return {name: value.detach().cpu().clone() for name, value in self.tower.model.state_dict().items()}

    @property
    def _count(self) -> int:
        return min(self.settings.documents, len(self._texts))


def save_state(state: TrainingState, folder: Path) -> None:
    """Write the checkpoint, force it to the disk, and put it in the old one's place."""
    fields = {name: getattr(state, name) for name in TrainingState.__dataclass_fields__}
    with whole_file(folder / CHECKPOINT) as file:
        importlib.import_module("torch").save(fields, file)


def read_state(folder: Path, task: str) -> TrainingState | None:
    """The checkpoint in `folder`; None where there is none.

    Raises UsageError where it is that of another `task`, DataError where it cannot be read.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    try:
        # Tensors, numbers and texts alone: a file that someone else put there cannot run code.
        state = TrainingState(**importlib.import_module("torch").load(path, map_location="cpu", weights_only=True))
    except (pickle.UnpicklingError, RuntimeError, OSError, TypeError, EOFError, ValueError, KeyError) as error:
        raise DataError(f"{path} cannot be read ({str(error).splitlines()[0]}); start over with --new") from None
    if state.task != task:
        raise UsageError(
            f"{folder} holds the training of other settings, questions, documents or models; name another folder, or "
            "start over with --new"
        )
    return state


def forget_vectors(folder: Path) -> None:
    """Remove the embeddings of all rounds."""
    for path in folder.glob("vectors-*.npy"):
        path.unlink(missing_ok=True)


def _vectors(folder: Path, round: int) -> Path:
    return folder / f"vectors-{round}.npy"
