"""What indexing or encoding a collection will take, by its first block; and how many documents a block has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairagent.llm.request import estimate_tokens

FIRST, FEWEST = 64, 16
"""Documents of the first block, and of the smallest."""
SHORT, LONG = 5.0, 10.0
"""Seconds between which a block should take: so much is lost at most where the work is broken off."""
READING, JOINING = 0.3, 0.6
"""For each second that one process takes for blocks: what cannot be shared out, and joining them."""
GROWTH = 0.6
"""The power of the text with which its vocabulary grows (Heaps' law)."""
OF_TERM, OF_DOCUMENT, OF_BYTES = 250, 60, 1.2
"""Bytes of memory for a term and a document; bytes of an index for each of its blocks."""
LIGHT_SAMPLE, LIGHT_SECONDS, LIGHT_MEMORY = 50_000, 25.0, 1_600_000_000
"""Of light vectors: documents of which they are learned, and what that takes; of fewer, in proportion."""
LIGHT_EACH, LIGHT_BYTES, LIGHT_HELD = 0.0008, 820, 400
"""With their ANN index and graph: seconds, bytes on the disk, bytes of memory of a document."""


@dataclass(frozen=True, slots=True)
class FirstBlock:
    """The first block of a BM25 index: its documents and terms, the seconds it took one process, bytes on the disk."""

    documents: int
    terms: int
    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """What it takes to index so many `documents`, or to encode them with `model`, as the first of them have shown.

    `seconds` are those of all of them, `bytes` the room on the disk, `peak` that until all is done, `memory` that in
    memory (0: unknown), `tokens` about how many they have, one for every four bytes. Where a server is `paid` for them,
    `dollars` is the price, None where it is not known.

    >>> print(Forecast("endpoint:small", 37_554, 250.0, 38_455_296, 5_633_100, 0.1127, paid=True))
    37,554 documents with endpoint:small, about 4 min, 38.5 MB on the disk; about 5,633,100 tokens, $0.11
    """

    model: str
    documents: int
    seconds: float
    bytes: int
    tokens: int
    dollars: float | None = None
    paid: bool = False
    memory: int = 0
    peak: int = 0

    def __str__(self) -> str:
        costs = ""
        if self.paid:
            price = "price unknown" if self.dollars is None else f"${self.dollars:,.2f}"
            costs = f"; about {self.tokens:,} tokens, {price}"
        room = f", {_size(self.bytes)} on the disk" if self.bytes else ""
        room += f" ({_size(self.peak)} until it is done)" if self.peak else ""
        room += f", {_size(self.memory)} of memory" if self.memory else ""
        return f"{self.documents:,} documents with {self.model}, about {in_words(self.seconds)}{room}{costs}"


def forecast_of(model: str, documents: int, block: Sequence[str], seconds: float, bytes: int) -> Forecast:
    """The forecast for so many documents, where this `block` of them took so many seconds.

    >>> print(forecast_of("m", 6_400, ["two words"] * 64, 0.5, 4_915_200))
    6,400 documents with m, about 50 s, 4.9 MB on the disk
    """
    share = documents / len(block)
    return Forecast(model, documents, share * seconds, bytes, round(share * estimate_tokens(*block)))


def forecast_of_index(documents: int, first: FirstBlock, workers: int, memory: int) -> Forecast:
    """The forecast for a BM25 index of so many documents, which `workers` processes make with about so much `memory`.

    What comes at the end, and what the vocabulary takes, is reckoned by what was measured on made-up articles
    (evaluations/trec_fair/README.md).
    """
    share = documents / first.documents
    seconds = share * first.seconds * (max(1 / workers, READING) + JOINING)
    needed = memory + documents * OF_DOCUMENT + first.terms * share**GROWTH * OF_TERM
    size, peak = (round(share * first.bytes * each) for each in (OF_BYTES, 1 + OF_BYTES))
    return Forecast("BM25", documents, seconds, size, 0, memory=round(needed), peak=peak)


def forecast_of_light(documents: int) -> Forecast:
    """The forecast for light vectors of so many documents, with what is made of them (an ANN index, the graph).

    >>> print(forecast_of_light(6_475_537))
    6,475,537 documents with light vectors, about 87 min, 5,309.9 MB on the disk, 2,590.2 MB of memory
    """
    part = min(1.0, documents / LIGHT_SAMPLE)
    seconds = part * LIGHT_SECONDS + LIGHT_EACH * documents
    needed = max(round(part * LIGHT_MEMORY), LIGHT_HELD * documents)
    return Forecast("light vectors", documents, seconds, LIGHT_BYTES * documents, 0, memory=needed)


def next_size(size: int, seconds: float, most: int) -> int:
    """Documents of the block after one of this `size` that took so many seconds: twice as many, as many, or half.

    >>> next_size(64, 1.2, 1024), next_size(512, 7.0, 1024), next_size(512, 12.0, 1024), next_size(16, 60.0, 1024)
    (128, 512, 256, 16)
    """
    if seconds < SHORT:
        return min(2 * size, most)
    return max(min(size, FEWEST), size // 2) if seconds > LONG else size


def _size(bytes: int) -> str:
    return f"{bytes / 1e6:,.1f} MB" if bytes < 10e9 else f"{bytes / 1e9:,.1f} GB"


def in_words(seconds: float) -> str:
    """A time to be waited, to two digits.

    >>> in_words(0.04), in_words(75), in_words(5400), in_words(180_000)
    ('1 s', '75 s', '90 min', '50 h')
    """
    for unit, length, most in (("s", 1, 120), ("min", 60, 7200)):
        if seconds <= most:
            return f"{max(1, round(seconds / length))} {unit}"
    return f"{round(seconds / 3600):,} h"
