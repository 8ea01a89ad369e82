"""The association test: laws, ties, and input for which it is not defined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError
from fairagent.papers.debias_rag.benchmarks.measures import association_test, associations, one_sided_p

rng = np.random.default_rng(3)
VECTORS = [rng.normal(size=(n, 6)) for n in (4, 4, 3, 5)]


def test_by_hand() -> None:
    x, y = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 1.0]])
    found = association_test(x, y, np.array([[3.0, 0.0]]), np.array([[0.0, 0.5]]))
    # s: 1, 1 and -1, 0; their mean is 1/4 and their sum of squares 3, so that the variance is (3 - 1/4) / 3.
    assert found.effect == pytest.approx(1.5 / np.sqrt(2.75 / 3))
    # Only the two first reach 2.
    assert (found.p, found.exact) == (pytest.approx(1 / 6), True)


def test_the_other_way_round() -> None:
    x, y, a, b = VECTORS
    one, other = association_test(x, y, a, b), association_test(y, x, a, b)
    assert one.effect == pytest.approx(-other.effect)
    # Without ties but the observed one, which counts for both.
    assert one.p + other.p == pytest.approx(1 + 1 / 70)
    assert association_test(x, y, b, a).effect == pytest.approx(-one.effect)


@given(st.floats(0.01, 100))
def test_length_makes_no_difference(factor: float) -> None:
    x, y, a, b = VECTORS
    assert association_test(x * factor, y, a, b).effect == pytest.approx(association_test(x, y, a, b).effect)


def test_identical_target_sets_have_no_effect_and_are_tied() -> None:
    x, _, a, b = VECTORS
    found = association_test(x, x.copy(), a, b)
    assert found.effect == 0
    assert 0.5 < found.p < 1
    # In tenths, which floats add up differently in another order: of 6 halves one is less than the observed .3.
    tenths = np.array([0.1, 0.2])
    assert one_sided_p(tenths, tenths[::-1]) == (5 / 6, True)


def test_samples_are_repeatable_and_count_the_observed_one() -> None:
    x, y = np.linspace(1, 2, 20), np.linspace(-2, -1, 20)
    assert one_sided_p(x, y, 1000, np.random.default_rng(1)) == (1 / 1000, False)
    assert one_sided_p(y, x, 1000) == (1.0, False)
    middle = [one_sided_p(x[::2], x[1::2], 500, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert middle[0] == middle[1] != middle[2]


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda x, y, a, b: association_test(x[:0], y, a, b), "a set of targets is empty"),
        (lambda x, y, a, b: association_test(x[:3], y, a, b), "two sets of targets of one size, not of 3 and 4"),
        (lambda x, y, a, b: association_test(x * 0, y, a, b), "zero or not finite"),
        (lambda x, y, a, b: association_test(x, y, a, a), "all targets are associated alike"),
    ],
)
def test_what_is_not_defined(work, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match=message):
        work(*VECTORS)


def test_associations_are_means_of_cosines() -> None:
    x, _, a, b = VECTORS

    def cosine(one: np.ndarray, other: np.ndarray) -> float:
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    expected = [np.mean([cosine(w, c) for c in a]) - np.mean([cosine(w, c) for c in b]) for w in x]
    np.testing.assert_allclose(associations(x, a, b), expected, rtol=1e-12)
