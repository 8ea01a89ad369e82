"""Which documents are asked about first."""

import math

import numpy as np
import pytest

from fairagent.labeling.labeler import most_helpful, uncertainty
from fairagent.types import Ranking

IDS = ("a", "b", "c", "d")


def ranking(*ids: str) -> Ranking:
    return Ranking(ids, np.arange(len(ids), 0, -1, dtype=np.float64))


def test_the_entropy_of_chances() -> None:
    found = uncertainty(np.array([[1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]))
    assert found == pytest.approx([1.0, math.log(2) / math.log(3), 0.0])


def test_uncertain_and_seen() -> None:
    """Attention at ranks 1, 2 and 3 is 1, 1 and 1 / log2(3); c is certain, and d is in no list."""
    chances = np.array([[0.9, 0.1], [0.5, 0.5], [1.0, 0.0], [0.5, 0.5]])
    found = most_helpful(IDS, chances, {"1": ranking("a", "c", "b"), "2": ranking("b")}, count=3)
    assert [one.id for one in found] == ["b", "a", "c"]
    assert found[0].weight == pytest.approx(1 + 1 / math.log2(3))
    assert (found[0].lists, found[0].uncertainty) == (2, 1.0)
    assert found[0].why == "uncertainty 1.00, in the lists of 2 topics"


def test_without_topics_what_is_like_the_others_comes_first() -> None:
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])
    found = most_helpful(IDS, None, {}, vectors, count=4)
    # The mean is (.7, .4): products .7, .7, .4 and .8.
    assert [one.id for one in found] == ["d", "a", "b", "c"]
    assert [one.weight for one in found] == pytest.approx([0.8, 0.7, 0.7, 0.4])
