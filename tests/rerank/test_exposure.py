"""The exposure-aware re-ranker: a case by hand, edges, and a slow reference that writes the objective out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scripted import by_letter, collection

from fairagent.collection.exposure import ExposureMeter
from fairagent.measures import LOG2_MAX2, Discount, Geometric, Log2Plus1, StepDiscount, Uniform
from fairagent.search.rerank.base import Pool, pool_of
from fairagent.search.rerank.exposure import STRICT, ExposureReranker
from fairagent.search.rerank.relevance import ChainReranker, OriginalReranker
from fairagent.settings import Settings
from fairagent.types import Exposure, FloatArray, Query, Ranking

F, M, U = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)
"""Membership rows: unknown, female, male."""


def pool(
    rows: Sequence[Sequence[float]], n: int, scores: Sequence[float] | None = None, target: Sequence[float] = (0.5, 0.5)
) -> Pool:
    """Documents d0, d1 ... of one dimension; scores n, n - 1 ... 1 unless given."""
    values = range(len(rows), 0, -1) if scores is None else scores
    ranking = Ranking(tuple(f"d{i}" for i in range(len(rows))), np.array(list(values), dtype=np.float64))
    memberships = np.array(rows, dtype=np.float64).reshape(len(rows), 1 + len(target))
    return Pool(Query("q"), ranking, (memberships,), (np.array(target, dtype=np.float64),), n)


def order(found: Ranking) -> list[int]:
    return [int(id[1:]) for id in found.ids]


# --- by hand ----------------------------------------------------------------------------------------------------

# Three documents, two ranks of weight 1 each (W = 2), target (f, m) = (1/2, 1/2), relevance 1, 1/2, 0:
#     d0 m, d1 m, d2 f
# Rank 1, one rank still open (R = 1). With m the exposure would be ((0, 1) + (1/2, 1/2)) / 2 = (1/4, 3/4), with f the
# mirror image: the same divergence for all, so relevance decides: d0.
# Rank 2, R = 0, E = (0, 1):
#     d1: (0, 2) / 2 = (0, 1), middle (1/4, 3/4).
#         JSD = ln(4/3) / 2 + (ln 2 + ln(2/3)) / 4 = .143841 + .071921 = .215762; value (1/2) / 2 - fairness .215762
#     d2: (1, 1) / 2 is the target, JSD = 0; value 0
# d2 is taken as soon as fairness > .25 / .215762 = 1.15869.
HAND = [M, M, F]
TURN = 0.25 / (math.log(4 / 3) / 2 + (math.log(2) + math.log(2 / 3)) / 4)


def test_by_hand() -> None:
    assert pytest.approx(1.15869, abs=1e-5) == TURN
    assert order(ExposureReranker(fairness=TURN - 0.001).rerank(pool(HAND, 2))) == [0, 1]
    assert order(ExposureReranker(fairness=TURN + 0.001).rerank(pool(HAND, 2))) == [0, 2]


# The same with d1 unlabeled: at rank 2 it leaves the exposure at (0, 1) as a male document does, and its relevance is
# 1/2 - unlabeled. d2 is taken as soon as (1/2 - unlabeled) / 2 - fairness .215762 < 0.
def test_a_document_without_a_label_by_hand() -> None:
    for unlabeled, fairness, expected in [(0.0, 0.5, 1), (0.2, 0.5, 1), (0.3, 0.5, 2), (0.49, 0, 1), (0.51, 0, 2)]:
        reranker = ExposureReranker(fairness=fairness, unlabeled=unlabeled)
        assert order(reranker.rerank(pool([M, U, F], 2))) == [0, expected], (unlabeled, fairness)


def test_the_last_rank_counts_an_exposure_of_nothing_as_ln_2() -> None:
    # d0 has no label; nothing is open after rank 3, so with a third one without a label nothing was exposed at all.
    # Weights 1, 1, .63093 must leave exactly 0, not a rounding error of either sign.
    # Rank 3: d2 (no label, relevance 1/3) or d3 (male, relevance 0): .63093 / 3 / 2.63093 = .0799 more relevance,
    # but ln 2 - .2158 = .4774 more divergence.
    found = ExposureReranker(fairness=0.5, unlabeled=0.0).rerank(pool([U, U, U, M], 3))
    assert order(found)[2] == 3
    assert order(ExposureReranker(fairness=0.1, unlabeled=0.0).rerank(pool([U, U, U, M], 3))) == [0, 1, 2]


# --- importance and unit ----------------------------------------------------------------------------------------


def two(importance: tuple[float, ...] = (), n: int = 2) -> Pool:
    """d2 brings women, d3 brings the region that is missing: d0 m east, d1 m east, d2 f east, d3 m west."""
    ranking = Ranking(("d0", "d1", "d2", "d3"), np.array([4.0, 3.0, 2.0, 2.0]))
    memberships = (np.array([M, M, F, M]), np.array([M, M, M, F]))
    return Pool(Query("q"), ranking, memberships, (np.array([0.5, 0.5]), np.array([0.5, 0.5])), n, importance)


@pytest.mark.parametrize(
    ("importance", "second"),
    [((), 2), ((1, 1), 2), ((1, 0), 2), ((0, 1), 3), ((0.2, 0.4), 3), ((0.4, 0.2), 2), ((0, 0), 1), ((0, 0.1), 1)],
)
def test_a_dimension_counts_by_its_importance(importance: tuple[float, ...], second: int) -> None:
    # As in HAND: d1 has (1/2) / 2 more relevance than d2 and d3, which are tied, and each of these closes one gap of
    # .215762. With fairness 4 that is enough from an importance of TURN / 4 = .29 on. A sum below 1 stays what it is.
    assert order(ExposureReranker(fairness=4).rerank(two(importance))) == [0, second]


# --- documents without a label ------------------------------------------------------------------------------------

EVERY = ["f_", "m_", "n_"]
"""Somebody of each group, so that the collection has all three."""


def measured(letters: Sequence[str], n: int, target: Sequence[float], **more: Any) -> tuple[ExposureMeter, Ranking]:
    """A meter of documents with these groups (u: no label), the first the most relevant, and their ranking."""
    ids = tuple(f"{letter}{place}" for place, letter in enumerate(letters))
    groups = by_letter([*EVERY, *ids], labels=("female", "male", "nonbinary"))
    shares = dict(zip(("female", "male", "nonbinary"), target, strict=True))
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
    served = ExposureReranker(fairness).rerank(pool_of(Query("q"), found, meter, 20))
    (before,), (after,) = meter.measure(found), meter.measure(served)
    assert after.unknown_target == before.unknown
    assert after.unknown == pytest.approx(before.unknown, abs=0.05)
    due = np.minimum(known(before), (1 - before.unknown) * before.target)
    assert (known(after) >= due - 0.02).all()


def test_the_unlabeled_get_a_share_of_ones_own() -> None:
    letters = "mumumu" * 5 + "ffffff"
    for unknown, least, most in ((0.2, 0.15, 0.25), (0.0, 0.0, 0.05), (1.0, 0.95, 1.0)):
        meter, found = measured(letters, 10, (0.5, 0.5, 0.0), unknown=unknown)
        (after,) = meter.measure(ExposureReranker(10.0).rerank(pool_of(Query("q"), found, meter, 10)))
        assert least <= after.unknown <= most


# --- settings ---------------------------------------------------------------------------------------------------


def test_a_stricter_one_gives_exposure_more_weight() -> None:
    made = ExposureReranker(fairness=0.5, unlabeled=0.2, discount=Uniform())
    assert made.stricter() == replace(made, fairness=STRICT)
    assert ExposureReranker(fairness=0.5).stricter().fairness == STRICT == 4
    assert ExposureReranker(fairness=9.0).stricter().fairness == 9
    plain = OriginalReranker(None)  # type: ignore[arg-type]
    assert ChainReranker((plain, made)).stricter() == ChainReranker((plain, made.stricter()))
    # Only the last one decides what is served.
    assert ChainReranker((made, plain)).stricter() is None


# --- edges ------------------------------------------------------------------------------------------------------


def test_ranks_without_weight_go_to_the_better_placed() -> None:
    # From rank 3 on nothing is at stake, not even a label; and kinds run out before the ranks do.
    assert order(ExposureReranker(discount=StepDiscount(2)).rerank(pool([M, F, U, M, F], 5))) == [0, 1, 2, 3, 4]
    assert order(ExposureReranker(discount=Geometric(1e-200)).rerank(pool([M, F, U, M, F], 5)))[2:] == [2, 3, 4]


# --- the objective written out ----------------------------------------------------------------------------------


def jsd(exposure: Sequence[float], target: Sequence[float]) -> float:
    """JSD in nats of the normalized exposure from the target; ln 2 where there is none."""
    total = sum(exposure)
    if total <= 0:
        return math.log(2)
    divergence = 0.0
    for share, aim in zip((value / total for value in exposure), target, strict=True):
        middle = (share + aim) / 2
        divergence += share * math.log(share / middle) / 2 if share else 0.0
        divergence += aim * math.log(aim / middle) / 2 if aim else 0.0
    return divergence


def objectives(made: Pool, reranker: ExposureReranker, chosen: Sequence[int]) -> dict[int, float]:
    """The value of every candidate left for the rank after `chosen`: the formula of the docstring, word by word."""
    scores = made.ranking.scores.tolist()
    low, high = min(scores), max(scores)
    n = min(made.n, len(scores))
    weights = reranker.discount(n).tolist()
    rank = len(chosen)
    values = {}
    for d in set(range(len(scores))) - set(chosen):
        relevance = (scores[d] - low) / (high - low) if high > low else 1.0
        if made.unit:
            relevance = scores[d] / made.unit
        penalty = 0.0
        # Without importance every dimension counts as a whole.
        for dimension, (membership, target) in enumerate(zip(made.memberships, made.targets, strict=True)):
            rows = membership[:, 1:].tolist()
            relevance -= reranker.unlabeled * (sum(rows[d]) == 0)
            ranked = zip(weights, [*chosen, d], strict=False)
            so_far = [(weight, rows[document]) for weight, document in ranked]
            left = sum(weights[rank + 1 :])
            exposure = [
                sum(weight * row[g] for weight, row in so_far) + left * aim for g, aim in enumerate(target.tolist())
            ]
            share = made.importance[dimension] / max(1.0, sum(made.importance)) if made.importance else 1.0
            penalty += share * jsd(exposure, target.tolist())
        values[d] = weights[rank] * relevance / sum(weights) - reranker.fairness * penalty
    return values


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    size = draw(st.integers(0, 9))
    scores = sorted(draw(st.lists(st.integers(0, 4), min_size=size, max_size=size)), reverse=True)
    memberships, targets = [], []
    for _ in range(draw(st.integers(1, 3))):
        groups = draw(st.integers(1, 4))
        # 0 is unknown; otherwise one group, or two of them half and half.
        kinds = draw(st.lists(st.tuples(st.integers(0, groups), st.integers(1, groups)), min_size=size, max_size=size))
        rows = np.zeros((size, 1 + groups))
        for row, (first, second) in zip(rows, kinds, strict=True):
            row[first] += 0.5
            row[second if first else 0] += 0.5
        shares = draw(st.lists(st.integers(0, 3), min_size=groups, max_size=groups).filter(any))
        memberships.append(rows)
        targets.append(np.array(shares) / sum(shares))
    ranking = Ranking(tuple(f"d{i}" for i in range(size)), np.array(scores, dtype=np.float64))
    shares = st.lists(st.sampled_from([0.0, 0.4, 1.0]), min_size=len(targets), max_size=len(targets))
    importance = tuple(draw(st.one_of(st.just([]), shares)))
    unit = draw(st.sampled_from([0.0, 0.0, 3.0]))
    n = draw(st.integers(1, 10))
    return Pool(Query("q"), ranking, tuple(memberships), tuple(targets), n, importance, unit)


rerankers = st.builds(
    ExposureReranker,
    fairness=st.sampled_from([0.0, 0.1, 0.5, 2.0, 50.0]),
    unlabeled=st.sampled_from([0.0, 0.3, 1.0]),
    discount=st.sampled_from([LOG2_MAX2, Log2Plus1(), Uniform(), Geometric(0.5), StepDiscount(3)]),
)


@settings(max_examples=250)
@given(pools(), rerankers)
@example(pool([U, U, U, M], 3), ExposureReranker(fairness=0.5, unlabeled=0.0))
def test_every_choice_is_the_best_by_the_objective(made: Pool, reranker: ExposureReranker) -> None:
    found = reranker.rerank(made)
    chosen = order(found)
    assert len(chosen) == len(set(chosen)) == min(made.n, len(made.ranking))
    for rank, document in enumerate(chosen):
        values = objectives(made, reranker, chosen[:rank])
        assert values[document] >= max(values.values()) - 1e-9


@given(pools(), rerankers)
def test_within_the_same_groups_the_order_of_the_candidates_stays(made: Pool, reranker: ExposureReranker) -> None:
    rows = np.hstack(made.memberships)
    chosen = order(reranker.rerank(made))
    for kind in {tuple(row) for row in rows.tolist()}:
        of_kind = [document for document in chosen if tuple(rows[document].tolist()) == kind]
        assert of_kind == sorted(of_kind)


@given(pools(), rerankers)
def test_scores_are_fit_for_a_run_file(made: Pool, reranker: ExposureReranker) -> None:
    found = reranker.rerank(made)
    assert found.scores.shape == (len(found),)
    assert all(before > after for before, after in pairwise([*found.scores.tolist(), 0.0]))


@given(pools(), st.sampled_from([LOG2_MAX2, Uniform(), Log2Plus1()]))
def test_without_fairness_and_penalty_nothing_changes(made: Pool, discount: Discount) -> None:
    found = ExposureReranker(fairness=0, unlabeled=0, discount=discount).rerank(made)
    assert found.ids == made.ranking.ids[: made.n]
