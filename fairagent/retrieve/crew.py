"""Embedding documents by sentence-transformers, in several processes on a CPU, each with one thread.

Threads of one process wait for one another wherever a core has other work to do: two of them then encode half as many
texts by second of a processor as one does. Processes do not. Texts are sorted by length and cut into pieces, each of
which one process embeds as a whole, so what comes is the same however many there are.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module

import numpy as np

from fairagent.errors import UsageError
from fairagent.processes import Crew, cores
from fairagent.retrieve.encoder import FLOAT32, Embeddings
from fairagent.retrieve.sentence_encoder import SentenceEncoder, open_sentence_encoder

PIECE = 32
"""Texts that a process embeds at once."""
SHARE = 500
"""A process is started for so many documents: it takes five seconds of a core, and 600 MB, before it embeds any."""
MOST = 16
"""Processes where nobody says how many."""


@contextmanager
def embedding(name: str, workers: int = 0, device: str = "cpu", dtype: str = FLOAT32) -> Iterator[Embedding]:
    """What embeds documents by `workers` processes, 0: one a core; they end with the block, whatever ends it.

    Raises UsageError for several processes on a device other than the CPU.
    """
    if device != "cpu" and workers > 1:
        raise UsageError(f"--workers is for embedding on a CPU; {device} embeds alone, in larger batches than it")
    made = Embedding(name, workers or (min(cores(), MOST) if device == "cpu" else 1), device, dtype)
    try:
        yield made
    except BaseException:
        # Nobody waits for what is under way.
        made.abandon()
        raise
    finally:
        made.close()


class Embedding:
    """Embeds documents with an encoder of this name, whose numbers are of this type; see `embedding`."""

    def __init__(self, name: str, workers: int, device: str = "cpu", dtype: str = FLOAT32) -> None:
        self._name, self._device, self.dtype = name, device, dtype
        self.workers = workers
        self._processes: Crew | None = None
        self._here: SentenceEncoder | None = None

    def ready(self, documents: int) -> None:
        """Open the model for so many documents: here for few, else in as many processes as these are worth.

        Raises BackendUnavailable where it cannot be opened.
        """
        count = min(self.workers, documents // SHARE)
        if count <= 1:
            self._here = self._here or open_sentence_encoder(self._name, self._device, self.dtype)
            return
        self._processes = Crew(count, here=False)
        for opened in [self._processes.submit(_open, self._name, self.dtype) for _ in range(count)]:
            opened.result()

    def __call__(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d) of documents. Raises BackendUnavailable where a process ends before its time."""
        if self._processes is None:
            if self._here is None:
                self.ready(len(texts))
                return self(texts)
            return self._here.documents(texts)
        # The longest first: at the end no process waits long for another.
        order = np.argsort([-len(text) for text in texts], kind="stable")
        pieces = [order[start : start + PIECE] for start in range(0, len(order), PIECE)]
        jobs = [
            self._processes.submit(_embed, self._name, self.dtype, [texts[number] for number in piece])
            for piece in pieces
        ]
        rows = np.concatenate([job.result() for job in jobs])
        vectors = np.empty_like(rows)
        vectors[order] = rows
        return vectors

    def abandon(self) -> None:
        """End the processes at once."""
        if self._processes:
            self._processes.abandon()

    def close(self) -> None:
        """End the processes."""
        if self._processes:
            self._processes.shutdown(cancel_futures=True)
            self._processes = None


def _open(name: str, dtype: str) -> None:
    _encoder(name, dtype)


def _embed(name: str, dtype: str, texts: Sequence[str]) -> Embeddings:
    return _encoder(name, dtype).documents(texts)


@cache
def _encoder(name: str, dtype: str) -> SentenceEncoder:
    """The model of this process."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import_module("torch").set_num_threads(1)
    # Its own lock is one between processes, which one that is ended leaves behind.
    import_module("tqdm").tqdm.set_lock(threading.RLock())
    return open_sentence_encoder(name, "cpu", dtype)
