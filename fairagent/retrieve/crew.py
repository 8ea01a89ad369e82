"""Embedding by several processes on a CPU: each opens the model, and embeds a chunk of texts at a time.

A chunk is embedded as a whole by one process, so its batches are the same however many there are. Sums of 32-bit floats
may be rounded in another order, since the threads of the machine are shared out among the processes: the numbers of a
vector of length 1 differ by less than 1e-6, and one stored number in a thousand by the last of its 16 bits.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module

from fairagent.errors import UsageError
from fairagent.processes import Crew
from fairagent.retrieve.dense_index import Encode
from fairagent.retrieve.encoder import Embeddings, Encoder, open_encoder


@contextmanager
def crew(model: str, workers: int, device: str = "cpu") -> Iterator[Encode]:
    """What embeds chunks of documents with so many processes, in the order of the chunks.

    It raises BackendUnavailable where a process ends before its time, and what opening the model raises. The processes
    end with the block, and with the process that has it. Raises UsageError for a device other than the CPU.
    """
    if device != "cpu":
        raise UsageError(f"--workers is for embedding on a CPU; {device} embeds alone, in larger batches than it")
    threads = max(1, import_module("torch").get_num_threads() // workers)
    processes = Crew(workers, here=False)
    try:
        yield partial(_in_order, processes, 2 * workers, model, threads)
    except BaseException:
        # Nobody waits for the chunks that are under way.
        processes.abandon()
        raise
    finally:
        processes.shutdown(cancel_futures=True)


def _in_order(
    processes: Crew, ahead: int, model: str, threads: int, chunks: Iterable[Sequence[str]]
) -> Iterator[Embeddings]:
    """The embeddings of each chunk, with a few of the next ones under way."""
    asked: deque[Future[Embeddings]] = deque()
    for chunk in chunks:
        asked.append(processes.submit(_embed, model, threads, list(chunk)))
        if len(asked) > ahead:
            yield asked.popleft().result()
    while asked:
        yield asked.popleft().result()


def _embed(model: str, threads: int, chunk: Sequence[str]) -> Embeddings:
    return _encoder(model, threads).documents(chunk)


@cache
def _encoder(model: str, threads: int) -> Encoder:
    """The model of this process."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import_module("torch").set_num_threads(threads)
    return open_encoder(model)
