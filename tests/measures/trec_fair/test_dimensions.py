from __future__ import annotations

import math

import pytest

from fairagent.errors import UsageError
from fairagent.measures.trec_fair import DIMENSIONS_2021, DIMENSIONS_2022, SUBSETS_2022, Dimension
from fairagent.types import UNKNOWN


def test_the_dimensions_of_2022_have_the_track_s_sizes_and_order() -> None:
    sizes = {dimension.name: len(dimension.labels) for dimension in DIMENSIONS_2022}
    assert sizes == {
        "sub-geo": 21, "src-geo": 21, "gender": 4, "occ": 33, "alpha": 4, "age": 4, "pop": 4, "langs": 3,
    }  # fmt: skip
    assert math.prod(sizes.values()) == 11_176_704
    assert [dimension.name for dimension in DIMENSIONS_2022 if dimension.averaged] == ["sub-geo", "src-geo", "gender"]
    assert {name for names in SUBSETS_2022.values() for name in names} == set(sizes)
    for dimension in DIMENSIONS_2022:
        if dimension.name != "gender":  # whose order is fixed
            assert list(dimension.labels) == sorted(dimension.labels)


def test_the_world_s_shares() -> None:
    world = dict(zip(DIMENSIONS_2022[0].labels[1:], DIMENSIONS_2022[0].background or (), strict=True))
    assert math.fsum(world.values()) == pytest.approx(1.0, abs=1e-15)
    assert world["Southern Asia"] == pytest.approx(0.244208, abs=5e-7)
    assert world["Antarctica"] == pytest.approx(1.544e-7, rel=1e-3)
    assert math.fsum(DIMENSIONS_2021[0].background or ()) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("labels", "background", "message"),
    [
        (("a", "a"), None, "expected one or more distinct labels"),
        (("a", "b"), (0.5, 0.5), "needs @UNKNOWN first"),
        ((UNKNOWN, "a", "b"), (0.5, 0.3, 0.2), "needs @UNKNOWN first"),
        ((UNKNOWN, "a", "b"), (0.5, 0.4), "add up to 0.9"),
    ],
)
def test_a_wrong_dimension_is_refused(
    labels: tuple[str, ...], background: tuple[float, ...] | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Dimension("odd", labels, background)
    assert "'odd'" in str(caught.value)
