"""Measuring inside the loop: the meter, the gap over dimensions, and which group is helped."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from scripted import by_letter, collection, ranking

from fairagent.collection.exposure import ExposureMeter, dimensions_of, most_underexposed, total_gap, worse_dimensions
from fairagent.collection.table import JoinedGroups
from fairagent.errors import DataError, UsageError
from fairagent.measures import jensen_shannon
from fairagent.settings import Settings
from fairagent.types import Exposure, Group, Ranking

EMPTY = Ranking((), np.zeros(0))


def meter(groups: Any, *, population: Any = None, topic: str = "", first: Ranking = EMPTY, **settings: Any) -> Any:
    chosen = Settings(**({"target": "uniform", "discount": "uniform"} | settings))
    return ExposureMeter.make(collection(groups, population), topic, chosen, first)


def exposed(shares: list[float], target: list[float], dimension: str = "d") -> Exposure:
    labels = tuple("abcdefgh"[: len(shares)])
    return Exposure(dimension, labels, np.array(shares), np.array(target), 0.0, 0.0)


def test_three_documents_by_hand() -> None:
    # Discount 1/log2(max(rank, 2)): 1, 1, 1/log2(3) = .63093. Unlabeled: 1 of 2.63093 = .38009.
    # Of the known 1.63093, female (rank 1) has 1: .61315.
    (exposure,) = meter(by_letter(["f1", "m1"]), discount="log2-max2").measure(ranking(["f1", "u1", "m1"]))
    assert exposure.shares == pytest.approx([0.613147, 0.386853], abs=1e-6)
    assert exposure.unknown == pytest.approx(0.380093, abs=1e-6)
    assert exposure.target.tolist() == [0.5, 0.5]
    assert exposure.labels == ("female", "male")
    p, q = np.array([0.613147, 0.386853]), np.array([0.5, 0.5])
    assert exposure.divergence == pytest.approx(jensen_shannon(p, q), abs=1e-5)


def test_documents_without_a_label_are_one_more_group_by_hand() -> None:
    """Four ranks that weigh the same: the engine has u u m m, so the unlabeled are due a half.

    The groups that are known share alike in both lists; in the second they have all.
    """
    made = meter(by_letter(["f1", "f2", "m1", "m2"]), first=ranking(["u1", "u2", "m1", "m2", "f1", "f2"]), n=4)
    for found, unlabeled in (("u1 u2 m1 f1", 0.5), ("m1 m2 f1 f2", 0.0)):
        (exposure,) = made.measure(ranking(found.split()))
        assert exposure.unknown_target == 0.5
        expected = jensen_shannon(np.array([unlabeled, 1 - unlabeled]), np.array([0.5, 0.5]))
        assert exposure.divergence == pytest.approx(expected, abs=1e-4)


def test_a_list_without_unlabeled_documents_needs_none_and_only_the_first_n_count() -> None:
    made = meter(by_letter(["f1", "m1"]), first=ranking(["m1", "f1"]), n=2)
    (exposure,) = made.measure(ranking(["m1", "f1", "f2", "f3"]))
    assert exposure.shares.tolist() == [0.5, 0.5]
    assert exposure.divergence == pytest.approx(0, abs=1e-9)
    assert 0.3 < made.measure(ranking(["u1", "m1"]))[0].divergence < math.inf


def test_an_empty_ranking_and_one_without_labels_are_as_far_as_can_be() -> None:
    made = meter(by_letter(["f1", "m1"]))
    for found, unknown in ((EMPTY, 0.0), (ranking(["u1", "u2"]), 1.0)):
        (exposure,) = made.measure(found)
        assert (exposure.shares.tolist(), exposure.unknown, exposure.divergence) == ([0.0, 0.0], unknown, math.log(2))
        assert total_gap([exposure]) == math.log(2)


@pytest.mark.parametrize(
    ("name", "expected"), [("kl", 0.130812), ("kl-reverse", 0.143841), ("js", 0.033822), ("tv", 0.25)]
)
def test_the_divergence_that_is_asked_for(name: str, expected: float) -> None:
    # shares (1/4, 3/4), target (1/2, 1/2); the smoothing of 1e-6 moves these by less than 1e-5
    ids = ["m1", "f1", "m2", "m3"]
    (exposure,) = meter(by_letter(ids), divergence=name).measure(ranking(ids))
    assert exposure.divergence == pytest.approx(expected, abs=1e-5)


def test_one_target_a_dimension_and_each_may_be_of_another_kind() -> None:
    groups = by_letter(["fa1", "ma2", "me3", "me4"], region="1")
    made = meter(groups, target={"gender": "corpus", "region": {"a": 0.9, "e": 0.1}})
    assert [target.shares.tolist() for target in made.targets] == [[0.25, 0.75], [0.9, 0.1]]
    assert [target.source for target in made.targets] == ["corpus", "given"]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"dimensions": ("age",)}, UsageError, "no dimension 'age'; there are: gender"),
        ({"target": {"region": "uniform"}}, UsageError, "no dimension 'region'"),
        ({"target": {"gender": {"female": 0.5, "male": 0.4}}}, DataError, "add up to 0.9, expected 1"),
        ({"target": "population"}, DataError, "no population for 'gender'"),
        ({"target": "qrels"}, DataError, "no relevant document has a label"),
    ],
)
def test_what_cannot_be_measured(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        meter(by_letter(["f1", "m1"]), **settings)


def test_dimensions_are_all_or_those_chosen() -> None:
    made = collection(by_letter(["fa1"], region="1"))
    assert dimensions_of(made, Settings()) == ("gender", "region")
    assert dimensions_of(made, Settings(dimensions=("region",))) == ("region",)
    with pytest.raises(UsageError, match="'made' has no groups, so there is nothing to be fair to"):
        dimensions_of(collection(JoinedGroups([])), Settings())


@pytest.mark.parametrize(
    ("given", "group"),
    [
        # Ties go to the larger target, then to the first.
        ([([0.1, 0.3, 0.6], [0.2, 0.4, 0.4])], Group("d0", "b")),
        ([([0.2, 0.2, 0.6], [0.3, 0.3, 0.4])], Group("d0", "a")),
        ([([0.4, 0.6], [0.5, 0.5]), ([0.6, 0.4], [0.5, 0.5])], Group("d0", "a")),
        # Nobody lacks anything; what lies below the 12th decimal is rounding.
        ([([0.3, 0.7], [0.3, 0.7])], None),
        ([([1.0], [1.0])], None),
        ([([0.1 + 0.2, 0.7], [0.3, 0.7 + 1e-16])], None),
        ([([0.3 - 1e-9, 0.7 + 1e-9], [0.3, 0.7])], Group("d0", "a")),
    ],
)
def test_the_most_underexposed_group(given: Any, group: Group | None) -> None:
    exposures = [exposed(shares, target, f"d{place}") for place, (shares, target) in enumerate(given)]
    assert most_underexposed(exposures) == group


@drawn(st.lists(st.sampled_from("fmu"), max_size=12), st.integers(1, 6))
def test_shares_add_up_to_one_or_nothing_is_labeled(letters: list[str], n: int) -> None:
    ids = [f"{letter}{place}" for place, letter in enumerate(letters)]
    (exposure,) = meter(by_letter(["f", "m", *ids]), n=n, discount="log2-plus1").measure(ranking(ids))
    labeled = any(id[0] != "u" for id in ids[:n])
    assert exposure.shares.sum() == pytest.approx(1.0 if labeled else 0.0)
    assert 0 <= exposure.divergence <= math.log(2)
    assert labeled or exposure.divergence == math.log(2)
    assert 0 <= exposure.unknown <= 1


def test_the_dimensions_that_got_worse() -> None:
    given = (("x", 0.2, 0.2), ("y", 0.1, 0.4))
    half = np.array([0.5, 0.5])
    before = [Exposure(name, ("f", "m"), np.array([f, 1 - f]), half, 0.0, gap) for name, gap, f in given]
    x, y = before
    moved = np.array([0.39, 0.61])
    after = [dataclasses.replace(x, divergence=0.05, shares=half)]
    after.append(dataclasses.replace(y, divergence=0.101, shares=moved))
    assert worse_dimensions(before, after) == ("y",)
    assert worse_dimensions(after, before) == ("x",)
    assert worse_dimensions(before, before) == ()
    # One that does not apply to the query is not named; one that shows no labeled document is as bad as can be.
    assert worse_dimensions(before, [x, dataclasses.replace(after[1], importance=0.0)]) == ()
    assert worse_dimensions(before, [x, dataclasses.replace(y, divergence=math.inf, shares=np.zeros(2))]) == ("y",)
