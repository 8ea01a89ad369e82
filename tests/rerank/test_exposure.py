"""The exposure-aware re-ranker: cases by hand and its dials; tests/laws/test_frontier.py has its laws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import by_letter, collection

from fairagent.collection.exposure import ExposureMeter
from fairagent.errors import UsageError
from fairagent.measures import UNIFORM, Discount
from fairagent.search.rerank.base import Pool, dialed, pool_of, with_dial
from fairagent.search.rerank.exposure import ExposureConfig, ExposureReranker
from fairagent.search.rerank.relevance import ChainReranker, OriginalReranker
from fairagent.settings import Settings
from fairagent.types import Dial, Exposure, FloatArray, Query, Ranking

from .greedy_pools import pool


def order(found: Ranking) -> list[int]:
    return [int(id[1:]) for id in found.ids]


# Three documents, two ranks of weight 1 each, target (f, m) = (1/2, 1/2), relevance 1, 1/2, 0:
#     d0 m, d1 m, d2 f
# d0, d1: R = 3/4, exposure (0, 1), middle (1/4, 3/4): G = ln(4/3) / 2 + (ln 2 + ln(2/3)) / 4 = .215762
# d0, d2: R = 1/2, exposure (1/2, 1/2) is the target: G = 0
# The second has the larger J = R - fairness G as soon as fairness > .25 / .215762 = 1.15869.
HAND = "mmf"
TURN = 0.25 / (math.log(4 / 3) / 2 + (math.log(2) + math.log(2 / 3)) / 4)


def served(made: Pool, **dial: float) -> list[int]:
    return order(ExposureReranker(Dial(**dial)).rerank(made))


def test_by_hand() -> None:
    assert pytest.approx(1.15869, abs=1e-5) == TURN
    for fairness, expected in ((0.0, [0, 1]), (TURN - 0.001, [0, 1]), (TURN + 0.001, [0, 2]), (1e9, [0, 2])):
        assert served(pool(HAND, 2), fairness=fairness) == expected
    # What is left of the relevance is 2/3, and the first gap is .2158.
    for keep, expected in ((0.0, [0, 2]), (0.66, [0, 2]), (0.67, [0, 1]), (1.0, [0, 1])):
        assert served(pool(HAND, 2), keep=keep) == expected
    for gap, expected in ((0.0, [0, 2]), (0.215, [0, 2]), (0.216, [0, 1])):
        assert served(pool(HAND, 2), gap=gap) == expected
    # The relevance of d1, 1/2, is below that of d2, 0, where more is taken from it.
    for unlabeled, expected in ((0.0, 1), (0.49, 1), (0.51, 2)):
        reranker = ExposureReranker(Dial(fairness=0), unlabeled=unlabeled)
        made = pool("muf", 2)
        assert reranker.relevance(made).tolist() == [1, 0.5 - unlabeled, 0]
        assert order(reranker.rerank(made)) == [0, expected]


@pytest.mark.parametrize(
    ("importance", "second"),
    [((), 2), ((1, 1), 2), ((1, 0), 2), ((0, 1), 3), ((0.2, 0.7), 3), ((0.7, 0.2), 2), ((0, 0), 1), ((0, 0.1), 1)],
)
def test_a_dimension_counts_by_its_importance(importance: tuple[float, ...], second: int) -> None:
    """d2 brings women, d3 brings the region that is missing: d0 m east, d1 m east, d2 f east, d3 m west.

    As in HAND d1 has 1/4 more R than d2 and d3, each of which closes a gap of .2158: with fairness 2 that is enough
    from an importance of TURN / 2 = .58 on.
    """
    made = replace(pool("mmfm", 2, second="mmmf", scores=[4, 3, 2, 2]), importance=importance)
    assert served(made, fairness=2) == [0, second]


# --- documents without a label ------------------------------------------------------------------------------------


def measured(letters: Sequence[str], n: int, target: Sequence[float], **more: Any) -> tuple[ExposureMeter, Ranking]:
    """A meter of documents with these groups (u: no label), the first the most relevant, and their ranking."""
    ids, labels = tuple(f"{letter}{place}" for place, letter in enumerate(letters)), ("female", "male", "nonbinary")
    # There is somebody of each group, so that the collection has all three.
    groups, shares = by_letter(["f_", "m_", "n_", *ids], labels), dict(zip(labels, target, strict=True))
    found = Ranking(ids, np.linspace(1, 0, len(ids)))
    return ExposureMeter.make(collection(groups), "", Settings(n=n, target={"gender": shares}, **more), found), found


def known(exposure: Exposure) -> FloatArray:
    """The shares of the known groups of all exposure."""
    return (1 - exposure.unknown) * exposure.shares


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from("fmnuu"), min_size=20, max_size=60),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.sampled_from([0.1, 0.5, 2.0, 10.0, 100.0]),
)
def test_the_unlabeled_keep_their_share_and_no_group_that_lacks_falls(
    letters: list[str], shares: list[int], fairness: float
) -> None:
    meter, found = measured(letters, 20, (np.array(shares) / sum(shares)).tolist())
    shown = ExposureReranker(Dial(fairness=fairness)).rerank(pool_of(Query("q"), found, meter, 20))
    (before,), (after,) = meter.measure(found), meter.measure(shown)
    assert after.unknown_target == before.unknown
    assert after.unknown == pytest.approx(before.unknown, abs=0.05)
    due = np.minimum(known(before), (1 - before.unknown) * before.target)
    assert (known(after) >= due - 0.02).all()


def test_the_unlabeled_get_a_share_of_ones_own() -> None:
    letters = "mumumu" * 5 + "ffffff"
    for unknown, least, most in ((0.2, 0.15, 0.25), (0.0, 0.0, 0.05), (0.8, 0.75, 0.85)):
        meter, found = measured(letters, 10, (0.5, 0.5, 0.0), unknown=unknown)
        (after,) = meter.measure(ExposureReranker(Dial(fairness=10)).rerank(pool_of(Query("q"), found, meter, 10)))
        assert least <= after.unknown <= most


def test_of_a_chain_the_last_one_has_the_dial() -> None:
    assert (ExposureConfig(keep=0.9).dial, ExposureConfig().dial.price) == (Dial(keep=0.9), 1)
    plain, made = OriginalReranker(None), ExposureReranker(unlabeled=0.2, discount=UNIFORM)  # type: ignore[arg-type]
    other = replace(made, dial=Dial(keep=0.5))
    assert with_dial(made, other.dial) == other
    assert with_dial(ChainReranker((plain, made)), other.dial) == ChainReranker((plain, other))
    for without in (None, plain, ChainReranker(()), ChainReranker((made, plain))):
        assert dialed(without) is None
        with pytest.raises(UsageError, match="rerank: \\[graph, exposure\\]"):
            with_dial(without, other.dial)


def test_a_pool_has_one_frontier_and_ranks_without_weight_go_to_the_better_placed() -> None:
    made = pool(HAND, 2)
    assert ExposureReranker().frontier(made) is ExposureReranker(Dial(keep=0.5)).frontier(made)
    # The list of another pool may be better than all that were made.
    other = made.ranking.top(2)
    assert len(ExposureReranker().frontier(made, [other]).gap) == 2
    # From rank 3 on nothing is at stake, not even a label; and kinds run out before the ranks do.
    assert order(ExposureReranker(discount=Discount("step", (2,))).rerank(pool("mfumf", 5))) == [0, 1, 2, 3, 4]
    assert order(ExposureReranker(discount=Discount("geometric", (1e-200,))).rerank(pool("mfumf", 5)))[2:] == [2, 3, 4]
