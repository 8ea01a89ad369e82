"""Embedding by several processes on a CPU: each opens the model, and embeds a chunk of texts at a time.

A chunk is embedded as a whole by one process, so its batches are the same however many there are. Sums of 32-bit floats
may be rounded in another order, since the threads of the machine are shared out among the processes: the numbers of a
vector of length 1 differ by less than 1e-6, and one stored number in a thousand by the last of its 16 bits.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from typing import Any

from fairagent.errors import BackendUnavailable, UsageError
from fairagent.retrieve.dense_index import Encode
from fairagent.retrieve.encoder import Embeddings, open_encoder

PATIENCE = 10.0
"""Seconds that a process is given to end by itself."""


@contextmanager
def crew(model: str, workers: int, device: str = "cpu") -> Iterator[Encode]:
    """What embeds chunks of documents with so many processes, in the order of the chunks.

    It raises BackendUnavailable where a process ends before its time, and what opening the model raises. The processes
    end with the block, and with the process that has it. Raises UsageError for a device other than the CPU.
    """
    if device != "cpu":
        raise UsageError(f"--workers is for embedding on a CPU; {device} embeds alone, in larger batches than it")
    context, free = get_context("spawn"), SimpleQueue[Connection]()
    processes: list[tuple[SpawnProcess, Connection]] = []
    threads = max(1, import_module("torch").get_num_threads() // workers)
    try:
        for _ in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, model, threads), daemon=True)
            process.start()
            theirs.close()
            processes.append((process, ours))
            free.put(ours)
        with ThreadPoolExecutor(workers) as waiting:
            try:
                yield partial(_in_order, waiting, free, 2 * workers)
            except BaseException:
                # Nobody waits for the chunks that are under way.
                for process, _ in processes:
                    process.terminate()
                raise
    finally:
        for _, ours in processes:
            ours.close()
        for process, _ in processes:
            process.join(PATIENCE)
            process.terminate()


def _in_order(
    waiting: ThreadPoolExecutor, free: SimpleQueue[Connection], ahead: int, chunks: Iterable[Sequence[str]]
) -> Iterator[Embeddings]:
    """The embeddings of each chunk, with a few of the next ones under way."""
    asked: deque[Future[Embeddings]] = deque()
    for chunk in chunks:
        asked.append(waiting.submit(_ask, free, chunk))
        if len(asked) > ahead:
            yield asked.popleft().result()
    while asked:
        yield asked.popleft().result()


def _ask(free: SimpleQueue[Connection], chunk: Sequence[str]) -> Embeddings:
    """The embeddings of a chunk, by whichever process is free."""
    process = free.get()
    try:
        process.send(list(chunk))
        found = process.recv()
    except (EOFError, OSError):
        raise BackendUnavailable(
            "a process that embeds has ended before its time, maybe for want of memory; the same command goes on from "
            "where it stopped, with fewer --workers if need be"
        ) from None
    finally:
        free.put(process)
    if isinstance(found, Exception):
        raise found
    embeddings: Embeddings = found
    return embeddings


def _work(ours: Connection, model: str, threads: int) -> None:
    """Embed what comes, until nobody is there to send it."""
    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import_module("torch").set_num_threads(threads)
    encoder: Any = None
    while True:
        try:
            chunk = ours.recv()
        except EOFError:
            return
        try:
            encoder = encoder or open_encoder(model)
            ours.send(encoder.documents(chunk))
        except Exception as error:
            ours.send(error)
