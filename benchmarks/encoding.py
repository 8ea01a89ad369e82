"""The packaged encoder: ours against the other way, in one run; a ratio above 1 says that ours is faster.

    python benchmarks/encoding.py [--texts 512] [--processes 2]

A query of 16 tokens with the error function as a polynomial, against math.erf number by number; 16-bit floats made
32-bit floats by moving bits, against numpy's own conversion and torch's; documents of 5 to 400 words with one thread,
against as many as there are cores; with bfloat16, against float32, where the processor has it; in several processes of
one thread, against one process with as many threads. Documents are counted by second of a processor (of all threads and
processes together) and by second of the clock. On a machine with other work the former says more.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from timing import milliseconds

from fairagent.guests.dense import minilm as one_text
from fairagent.guests.dense.encoders import SentenceEncoder, embedding, quickest_dtype
from fairagent.guests.dense.minilm import OneTextEncoder
from fairagent.retrieve.dense import BLOCK
from fairagent.retrieve.encoded import floats
from fairagent.retrieve.encoders import BUNDLED, FLOAT32, Embeddings
from fairagent.storage.processes import cores

QUERY = "lawyers who argued cases of civil rights before the high courts of Africa"
ROWS, SIZE = BLOCK, 384
Rate = tuple[float, float]
"""Texts by second of a processor, and by second of the clock."""


def row(what: str, other: float, ours: float, unit: str, faster: float) -> None:
    print(f"  {what:58}{other:9.2f}{ours:9.2f} {unit:14}{faster:7.2f}", flush=True)


def times(what: str, other: Callable[[], object], ours: Callable[[], object], seconds: float = 2.0) -> None:
    """Both in turns, so that other work on the machine meets both."""
    other(), ours()
    pairs = [(milliseconds(other, seconds / 5), milliseconds(ours, seconds / 5)) for _ in range(5)]
    first, second = np.median(pairs, axis=0).tolist()
    row(what, first, second, "ms", first / second)


def compare_query() -> None:
    encoder, polynomial = OneTextEncoder(), one_text.error_function
    by_number = np.frompyfunc(math.erf, 1, 1)

    def with_function(function: Callable[[Embeddings], Embeddings]) -> Embeddings:
        one_text.error_function = function
        return encoder.queries([QUERY])

    def slow(x: Embeddings) -> Embeddings:
        return np.asarray(by_number(x), dtype=np.float32)

    off = float(np.abs(with_function(slow) - with_function(polynomial)).max())
    tokens = len(encoder._tokenizer.encode(QUERY).ids)
    times(f"a query of {tokens} tokens (largest difference {off:.0e})", lambda: with_function(slow),
          lambda: with_function(polynomial))  # fmt: skip


def compare_halves() -> None:
    stored = np.random.default_rng(1).standard_normal((ROWS, SIZE)).astype(np.float16)
    torch.set_num_threads(1)
    what = f"{ROWS} x {SIZE} halves as floats"
    times(f"{what}, numpy's astype", lambda: stored.astype(np.float32), lambda: floats(stored))
    times(f"{what}, torch's float", lambda: torch.from_numpy(stored).float().numpy(), lambda: floats(stored))


def some_texts(count: int) -> list[str]:
    """Texts of 5 to 400 words, half of them shorter than 60."""
    chance = np.random.default_rng(3)
    words = np.array(["court", "judge", "river", "boat", "law", "bank", "field", "tree", "woman", "doctor", "city"])
    lengths = np.clip(chance.lognormal(np.log(60), 0.7, count), 5, 400).astype(int)
    return [" ".join(chance.choice(words, length)) for length in lengths]


def used() -> float:
    """Seconds of processors that this process took and those that it has started; Linux only."""
    tick = os.sysconf("SC_CLK_TCK")
    found = time.process_time()
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        found += (int(fields[11]) + int(fields[12])) / tick
    return found


def rate(embed: Callable[[Sequence[str]], object], texts: Sequence[str]) -> Rate:
    processor, clock = used(), time.perf_counter()
    embed(texts)
    return len(texts) / (used() - processor), len(texts) / (time.perf_counter() - clock)


def in_threads(count: int, dtype: str, texts: Sequence[str]) -> Rate:
    encoder = SentenceEncoder(dtype=dtype)
    torch.set_num_threads(count)
    encoder.documents(texts[:64])
    return rate(encoder.documents, texts)


def in_processes(count: int, dtype: str, texts: Sequence[str]) -> Rate:
    """Without what it takes to start them."""
    with embedding(BUNDLED, count, dtype=dtype) as work:
        work.ready(1_000_000)
        work.encode(texts[: 64 * count])
        return rate(work.encode, texts)


def compare(what: str, other: Rate, ours: Rate) -> None:
    row(f"{what}, by processor", other[0], ours[0], "texts a second", ours[0] / other[0])
    row(f"{what}, by clock", other[1], ours[1], "texts a second", ours[1] / other[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=512)
    parser.add_argument("--processes", type=int, default=cores())
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    print(f"  {BUNDLED:58}{'other':>9}{'ours':>9} {'':14}{'ratio':>7}")
    compare_query()
    compare_halves()
    texts, count, dtype = some_texts(options.texts), options.processes, quickest_dtype(BUNDLED)
    one = in_threads(1, FLOAT32, texts)
    compare(f"float32, {cores()} threads against 1", in_threads(cores(), FLOAT32, texts), one)
    if dtype != FLOAT32:
        compare(f"1 thread, float32 against {dtype}", one, in_threads(1, dtype, texts))
    together = in_processes(count, dtype, texts)
    compare(f"{dtype}, {count} threads against {count} processes", in_threads(count, dtype, texts), together)
    compare("as before (float32, threads) against all of it", in_threads(cores(), FLOAT32, texts), together)


if __name__ == "__main__":
    main()
