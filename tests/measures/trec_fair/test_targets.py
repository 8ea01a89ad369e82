from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.measures import LOG2_MAX2, blend
from fairagent.measures.expected_exposure import class_exposure
from fairagent.measures.trec_fair import Amounts, Dimension, Space, Targets, averaged_with_world

from ..laws import law
from .worlds import G, H, J, X, made_up

SETS = [(G,), (X,), (J,), (G, X), (G, H), (J, X), (G, H, J, X)]


def targets_of(seed: int, dimensions: tuple[Dimension, ...]) -> Targets:
    world = made_up(seed, dimensions)
    pages, space = world.pages(), Space.of(dimensions)
    ids = pages.ids.tolist()
    pairs = [
        (topic, ids.index(page))
        for topic, relevant in enumerate(world.qrels.values())
        for page in relevant
        if page in ids
    ]
    topics, rows = np.array(pairs, np.int64).reshape(-1, 2).T
    alignment = space.amounts(pages, rows, topics, np.ones(len(pairs)))
    return averaged_with_world(space, alignment, len(world.qrels))


@law
@given(st.integers(0, 10_000), st.sets(st.sampled_from("ghox"), min_size=1))
def test_over_fewer_dimensions_they_are_the_sums(seed: int, names: set[str]) -> None:
    ours = targets_of(seed, (G, H, J, X))
    dimensions = ours.space.dimensions
    left_out = tuple(axis for axis, dimension in enumerate(dimensions) if dimension.name not in names)
    fewer = ours.over(names)
    for topic, total in enumerate(ours.total.tolist()):
        cells = ours.dense(topic).reshape([len(dimension.labels) for dimension in dimensions])
        summed = cells.sum(axis=left_out)
        assert total == pytest.approx(cells.sum(), rel=1e-12, abs=1e-12)
        assert fewer.dense(topic) == pytest.approx(summed.ravel(), rel=1e-12, abs=1e-12)
        assert fewer.total[topic] == pytest.approx(summed.sum(), rel=1e-12, abs=1e-12)
        for one, square in ((fewer.squares, summed), (ours.squares, cells)):
            assert one[topic] == pytest.approx((square**2).sum(), rel=1e-12, abs=1e-12)
        assert ours.scaled(np.array([2.0, 3.0, 4.0])).squares[topic] == pytest.approx(
            ((2.0 + topic) ** 2) * (cells**2).sum(), rel=1e-12, abs=1e-12
        )


@law
@given(st.integers(0, 10_000), st.sampled_from(SETS))
def test_the_mass_of_every_block_stays(seed: int, dimensions: tuple[Dimension, ...]) -> None:
    ours = targets_of(seed, dimensions)
    world = made_up(seed, dimensions)
    names = [dimension.name for dimension in dimensions]
    averaged = [axis for axis, dimension in enumerate(dimensions) if dimension.averaged]
    for topic, relevant in enumerate(world.qrels.values()):
        before = sum((world.joint(page, names) for page in relevant), np.zeros([len(dim.labels) for dim in dimensions]))
        after = ours.dense(topic).reshape(before.shape)
        for mask in range(2 ** len(averaged)):
            block = [slice(None)] * len(dimensions)
            for bit, axis in enumerate(averaged):
                block[axis] = slice(1, None) if mask >> bit & 1 else slice(0, 1)
            assert after[tuple(block)].sum() == pytest.approx(before[tuple(block)].sum(), rel=1e-12, abs=1e-12)
        if not before.any():
            assert not after.any()


def test_one_dimension_is_the_blend() -> None:
    summed = np.array([1.0, 1.0, 2.0])
    ours = averaged_with_world(Space.of([G]), Amounts(np.arange(3), summed), 1).dense(0)
    assert ours / ours.sum() == pytest.approx(blend(summed, np.array([0.5, 0.5])))


def test_a_dimension_summed_out_has_not_the_target_it_has_alone() -> None:
    """The track's third worked example: .305556 for label a of x, and .333333 alone."""
    alignment = Amounts(np.array([1, 2, 3]), np.full(3, 1 / 3))  # unknown b, f a, f b
    ours = averaged_with_world(Space.of([G, X]), alignment, 1)
    assert ours.over(["x"]).dense(0) == pytest.approx([0.305556, 0.694444], abs=5e-7)
    assert ours.over(["g"]).dense(0) == pytest.approx([1 / 3, 0.5, 1 / 6])


def test_work_needed_of_the_second_worked_example() -> None:
    assert class_exposure(np.array([[2, 0, 1, 0, 0, 1]]), LOG2_MAX2)[0] == pytest.approx(
        [1, 0, 0.63093, 0, 0, 0.5], abs=5e-6
    )
    assert not class_exposure(np.zeros((1, 6), np.int64), LOG2_MAX2).any()


@law
@given(st.lists(st.integers(0, 50), min_size=6, max_size=6))
def test_work_needed_shares_out_the_attention_and_more_work_never_gets_less(counts: list[int]) -> None:
    exposure = class_exposure(np.array([counts]), LOG2_MAX2)[0]
    assert exposure @ np.array(counts) == pytest.approx(LOG2_MAX2(sum(counts)).sum(), abs=1e-12)
    present = exposure[np.array(counts) > 0]
    assert (np.diff(present) <= 1e-12).all()
