"""Rankings drawn group first: chances by hand, targets met in expectation in every prefix, and what any draw keeps."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairagent.papers.rivals.representative import RepresentativeReranker, draw_order, raked
from fairagent.retrieve.stochastic import sampler_log_scores
from fairagent.search.rerank.base import Pool
from fairagent.types import Query

from .greedy_pools import pool

FIXED = 1e8
"""An alpha that leaves nothing to chance within a group."""

DRAWS = 2000

WITHIN = 0.045
"""Four standard errors of a chance, at most .5 / sqrt(DRAWS) = .0112 each."""


def draws(made: Pool, alpha: float = FIXED) -> list[tuple[str, ...]]:
    rng = np.random.default_rng(11)
    return [tuple(made.ranking.ids[i] for i in draw_order(made, alpha, rng)) for _ in range(DRAWS)]


def chances(made: Pool, alpha: float = FIXED) -> dict[tuple[str, ...], float]:
    return {found: count / DRAWS for found, count in Counter(draws(made, alpha)).items()}


# m0 m1 f2, two ranks, 1/2 each. Rank 1: f2 or m0, 1/2 each. After f2 there are none but m: m0 follows. After m0 f2 or
# m1, 1/2 each.
def test_chances_by_hand() -> None:
    found = chances(pool("mmf", 2))
    expected = {("f2", "m0"): 0.5, ("m0", "f2"): 0.25, ("m0", "m1"): 0.25}
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, abs=WITHIN)


# f0 f1 m2 m3, one rank, target 1/4, 3/4, alpha 1. The scores of each group are 2 and 1 on [1, 2], so its better one has
# e^2 / (e^2 + e) = e / (e + 1) = .731059; that the scores of f are above those of m does not matter.
def test_within_a_group_it_is_plackett_luce_over_its_own_scores() -> None:
    better = np.e / (np.e + 1)
    assert np.exp(sampler_log_scores(np.array([4.0, 3.0]), 1)).tolist() == [2, 1]
    expected = {("f0",): better / 4, ("f1",): (1 - better) / 4, ("m2",): 3 * better / 4, ("m3",): 3 * (1 - better) / 4}
    assert chances(pool("ffmm", 1, target=(0.25, 0.75)), alpha=1) == pytest.approx(expected, abs=WITHIN)


# u0 m1 | f2 u3: of the first two one has no label, so u has 1/2 of each rank, f and m 1/4; of four it is 1/2 as well,
# of the first three 1/3.
def test_documents_without_a_label_keep_their_share_of_the_first() -> None:
    for n, unknown in ((2, 1 / 2), (3, 1 / 3)):
        first = Counter(ids[0] for ids in draws(pool("umfu", n)))
        shares = {id: count / DRAWS for id, count in first.items()}
        known = (1 - unknown) / 2
        assert shares == pytest.approx({"u0": unknown, "m1": known, "f2": known}, abs=WITHIN), n


def test_two_dimensions_are_on_target_in_each() -> None:
    # Three combinations: fa (1/4 by the second target), mb (1/2 by the first), so fb has 1/4.
    drawn = draws(pool("ffm" * 3, 3, second="fmm" * 3, other=(0.25, 0.75)))
    for rank in range(3):
        kinds = Counter(int(found[rank][1]) % 3 for found in drawn)
        shares = [kinds[kind] / DRAWS for kind in range(3)]
        assert shares == pytest.approx([0.25, 0.25, 0.5], abs=WITHIN), rank


def test_raking_by_hand() -> None:
    # Four combinations of the same size: the product of the targets.
    full = np.array(list(product((0, 1), (0, 1))))
    targets = [np.array([0.5, 0.5]), np.array([0.25, 0.75])]
    assert raked(np.ones(4), full, targets) == pytest.approx([0.125, 0.375, 0.125, 0.375])
    # Of one dimension: the target, whatever the sizes; what label 1 should get goes to the groups, not to the unknown.
    one = np.array([[0], [2], [3]])
    assert raked(np.array([9.0, 1.0, 5.0]), one, [np.array([0.2, 0.4, 0.3, 0.1])]) == pytest.approx([0.2, 0.6, 0.2])
    # Without documents of unknown groups their share goes to the groups.
    assert raked(np.ones(2), one[1:], [np.array([0.2, 0.4, 0.3, 0.1])]) == pytest.approx([0.75, 0.25])
    # Two kinds of one label share its target by their sizes.
    assert raked(np.array([1.0, 3.0, 7.0]), np.array([[0], [0], [1]]), [np.array([0.8, 0.2])]) == pytest.approx(
        [0.2, 0.6, 0.2]
    )
    # Nothing is left by the two together, or by one alone: the sizes decide.
    cross = np.array([[0, 0], [1, 1]])
    assert raked(np.array([1.0, 3.0]), cross, [np.array([1.0, 0.0]), np.array([0.0, 1.0])]).tolist() == [0.25, 0.75]
    assert raked(np.array([1.0, 3.0]), np.array([[0], [1]]), [np.array([0.0, 0.0, 1.0])]).tolist() == [0.25, 0.75]
    # Against each other: the last dimension's at the end.
    found = raked(np.ones(2), cross, [np.array([0.9, 0.1]), np.array([0.2, 0.8])])
    assert found == pytest.approx([0.2, 0.8])
    # No dimension: the sizes.
    assert raked(np.array([4.0]), np.zeros((1, 0), dtype=np.intp), []).tolist() == [1.0]


@pytest.mark.parametrize("alpha", [0.0, 8.0])
@pytest.mark.parametrize("target", [(0.5, 0.5), (0.9, 0.1)])
def test_each_prefix_is_on_target_in_expectation(alpha: float, target: tuple[float, float]) -> None:
    # All that the engine found first is male, and still: as long as no group runs out, every rank has the target.
    made = pool("m" * 6 + "f" * 6, 6, target=target)
    female = np.array([[id[0] == "f" for id in found] for found in draws(made, alpha)])
    assert female.mean(axis=0) == pytest.approx([target[0]] * 6, abs=WITHIN)


@given(
    st.text("fmubx", max_size=12),
    st.integers(1, 14),
    st.sampled_from([0.0, 0.25, 1 / 3, 1.0]),
    st.sampled_from([0.0, 1.0, FIXED]),
    st.integers(0, 5),
)
@settings(deadline=None)
def test_laws(letters: str, n: int, share: float, alpha: float, seed: int) -> None:
    made = pool(letters, n, target=(share, 1 - share))
    found = RepresentativeReranker(alpha, seed).rerank(made)
    assert len(set(found.ids)) == len(found) == min(n, len(letters))
    assert set(found.ids) <= set(made.ranking.ids)
    assert (np.diff(found.scores) < 0).all()
    assert RepresentativeReranker(alpha, seed).rerank(made).ids == found.ids
    if alpha == FIXED:
        # In-group order: those of one group, and of one only, in the engine's.
        for letter in "fmu":
            inside = [id for id in found.ids if id[0] == letter]
            assert inside == sorted(inside, key=made.ranking.ids.index)


def test_the_draw_of_a_topic_is_pinned() -> None:
    def drawn(topic: str, text: str = "q", seed: int = 0) -> tuple[str, ...]:
        return RepresentativeReranker(1, seed).rerank(pool("mmmfu" * 20, 8, query=Query(text, topic))).ids

    # Results of published runs depend on it.
    pinned = ("m62", "f53", "f18", "f83", "f23", "m35", "f8", "m16")
    assert drawn("1", "other words") == pinned
    assert pinned not in (drawn("2"), drawn("1", seed=6))
    assert drawn("", "x") != drawn("", "y")
