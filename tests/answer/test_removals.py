"""What a filter takes from each group, for one query and for a run, and when that is worth a warning."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.answer.filtering import removal_warnings, removals
from fairagent.types import UNKNOWN, Group, Removal, Verdict

LABELS = {"gender": ("female", "male"), "region": ("Africa",)}


def verdicts(kept: str) -> list[Verdict]:
    return [Verdict(f"d{place}", sign == "k", sign == "k", None) for place, sign in enumerate(kept)]


def removal(label: str, seen: float, removed: float, dimension: str = "gender") -> Removal:
    return Removal(Group(dimension, label), seen, removed)


def test_by_hand():
    gender = np.array([[0, 1, 0], [0, 0.5, 0.5], [0, 0, 1], [1, 0, 0]])
    region = np.array([[0, 1], [1, 0], [1, 0], [0, 1]])
    found = removals(LABELS, {"gender": gender, "region": region}, verdicts("krrk"))
    assert found == (
        removal(UNKNOWN, 1, 0),
        removal("female", 1.5, 0.5),
        removal("male", 1.5, 1.5),
        removal(UNKNOWN, 2, 2, "region"),
        removal("Africa", 2, 0, "region"),
    )
    assert [entry.share for entry in found] == [0, pytest.approx(1 / 3), 1, 1, 0]


def test_a_group_that_loses_more_than_chance_explains_is_named():
    run = [removal(UNKNOWN, 40, 8), removal("female", 100, 45), removal("male", 200, 40)]
    (warning,) = removal_warnings(run)
    assert warning == (
        "the filter removed 45% of the documents of female (gender), 45 of 100, but 20% of all others, 48 of 240 "
        "(p < 0.001)"
    )


@pytest.mark.parametrize(
    "run",
    [
        [removal("female", 100, 20), removal("male", 200, 40)],
        [removal("female", 5, 3), removal("male", 5, 1)],
        [removal(UNKNOWN, 100, 90), removal("female", 100, 10), removal("male", 100, 10)],
    ],
    ids=["alike", "one query", "unknown is no group"],
)
def test_nothing_is_said_without_reason(run: list[Removal]):
    assert removal_warnings(run) == ()


def test_more_groups_need_more_evidence():
    # Fisher's p is .0253: below .05, but not below .05 / 4.
    pair = [removal("a", 20, 10), removal("b", 60, 13)]
    assert len(removal_warnings(pair)) == 1
    assert removal_warnings([*pair, removal("c", 1, 0), removal("d", 1, 0), removal("e", 1, 0)]) == ()


def test_a_fair_filter_is_seldom_warned_about():
    rng = np.random.default_rng(0)
    warned = 0
    for _ in range(200):
        gone = rng.binomial([80, 120, 40], 0.3)
        run = [removal(label, seen, lost) for label, seen, lost in zip("abc", [80, 120, 40], gone, strict=True)]
        warned += bool(removal_warnings(run))
    assert warned <= 10
