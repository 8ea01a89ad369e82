"""Documents are embedded in blocks that are as large as time allows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fairagent.retrieve.encoded import FIRST, Work, build_dense_index, read_done
from fairagent.retrieve.encoders import Embeddings
from fairagent.types import Document

from .test_dense import Made, Words

MANY = Made([Document(f"d{number:05}", f"judge {number} of the court") for number in range(3000)])


@dataclass
class Slow:
    """An encoder that takes so many seconds a text, by a clock of its own, and as many again to get ready."""

    seconds: float = 0.05
    stop_after: float = sys.maxsize
    now: float = 1000.0
    blocks: list[int] = field(default_factory=list)
    encoder: Words = field(default_factory=Words)
    told: list[object] = field(default_factory=list)

    def encode(self, texts: Sequence[str]) -> Embeddings:
        self.now += self.seconds * len(texts)
        if self.now - 1000 > self.stop_after:
            raise KeyboardInterrupt
        self.blocks.append(len(texts))
        return self.encoder.documents(texts)

    def ready(self, documents: int) -> None:
        self.told.append(f"ready for {documents}")
        self.now += 8

    def work(self) -> Work[Embeddings]:
        def clock() -> float:
            return self.now

        return Work(self.encode, self.ready, self.told.append, clock=clock)


def build(folder: Path, slow: Slow) -> None:
    build_dense_index(MANY, folder, slow.encoder, work=slow.work())


@pytest.mark.parametrize(("seconds", "usual"), [(0.05, 128), (0.0001, 1024)])
def test_blocks_take_five_to_ten_seconds(tmp_path: Path, seconds: float, usual: int) -> None:
    slow = Slow(seconds)
    build(tmp_path / "index", slow)
    assert slow.blocks[0] == FIRST
    assert sum(slow.blocks) == 3000
    # The last one is what is left.
    assert slow.blocks[-2] == usual
    assert all(later <= 2 * earlier for earlier, later in zip(slow.blocks, slow.blocks[1:], strict=False))


def test_a_minute_is_kept_by_who_stops_after_it_and_goes_on_in_other_blocks(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    build(whole, Slow())
    index, slow = tmp_path / "index", Slow(stop_after=68)
    with pytest.raises(KeyboardInterrupt):
        build(index, slow)
    done = read_done(tmp_path / "index.partial" / "new")
    # 8 of 68 seconds went by before anything was embedded; the block under way is all that is lost.
    assert 1000 <= done < 1200
    faster = Slow(0.01)
    build(index, faster)
    assert faster.told[0] == f"ready for {3000 - done}"
    assert len(faster.encoder.encoded) == 3000 - done + 1
    for name in ("vectors.npy", "ids.npy", "done.txt"):
        assert (index / name).read_bytes() == (whole / name).read_bytes()
