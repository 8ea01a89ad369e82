"""xQuAD, PM-2, DetGreedy and its kin, and what is made after abstracts: by hand, slow versions, laws of all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import by_letter, collection

from fairagent.errors import UsageError
from fairagent.measures import Uniform, kl, min_max, ndkl
from fairagent.papers.rivals.aspects import aspects, combinations
from fairagent.papers.rivals.balanced import BalancedReranker
from fairagent.papers.rivals.det_greedy import DetGreedyReranker, Rule, det_greedy
from fairagent.papers.rivals.faro import FAROReranker
from fairagent.papers.rivals.fgr import FGRReranker, nearest_prefixes
from fairagent.papers.rivals.pm2 import PM2Reranker, pm2
from fairagent.papers.rivals.xquad import XQuADReranker, xquad
from fairagent.retrieve.site import Site
from fairagent.search.rerank.base import Pool, Reranker
from fairagent.settings import Settings
from fairagent.settings.parts import read_part
from fairagent.types import Query, Ranking

from .greedy_pools import pool, pools

RULES: tuple[Rule, ...] = ("greedy", "cons", "relaxed")
RIVALS: dict[str, Reranker] = {
    "xquad": XQuADReranker(),
    "xquad, diversity alone": XQuADReranker(1),
    "pm2": PM2Reranker(),
    "pm2, one aspect": PM2Reranker(1),
    **{rule: DetGreedyReranker(rule) for rule in RULES},
    "fgr": FGRReranker(),
    "faro": FAROReranker(),
    "faro, dear": FAROReranker(100),
    "balanced": BalancedReranker(),
}


def ids(reranker: Reranker, made: Pool) -> str:
    return " ".join(reranker.rerank(made).ids)


# --- aspects ----------------------------------------------------------------------------------------------------


def test_aspects_of_two_dimensions_stand_side_by_side() -> None:
    # Of the first two, one has no label of the first dimension; b is half of each group.
    found = aspects(pool("mub", 2, (0.25, 0.75), "ffm"))
    assert found.rows.tolist() == [[0, 0, 1, 0, 1, 0], [1, 0, 0, 0, 1, 0], [0, 0.5, 0.5, 0, 0, 1]]
    assert found.due.tolist() == [0.5, 0.125, 0.375, 0, 0.5, 0.5]
    assert found.dimensions == 2


def test_combinations_are_on_target_in_each_dimension() -> None:
    # ff, fm and mm are there; 1/2 each in both dimensions leaves nothing for fm: 1/2, 0, 1/2.
    found = combinations(pool("ffm", 3, second="fmm"))
    assert found.rows.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert found.due == pytest.approx([0.5, 0, 0.5], abs=0.01)  # iterative fitting comes near a zero slowly
    # A group that nobody has leaves its share to the other.
    assert combinations(pool("mm")).due.tolist() == [1.0]


# --- xQuAD by hand ----------------------------------------------------------------------------------------------

# Scores 1, 3/4, 1/2, 1/4, 0; half of each group. Diversity alone: m0 has 1/2 and covers m for good; then f3 has 1/8,
# all others nothing: as they stand. At .8 the second rank is a tie: m1 .2 * 3/4 = .15, f3 .2 * 1/4 + .8 / 8 = .15.


def test_xquad_by_hand() -> None:
    made = pool("mmmff")
    assert ids(XQuADReranker(1), made) == "m0 f3 m1 m2 f4"
    assert ids(XQuADReranker(0.8), made) == "m0 m1 f3 m2 f4"
    assert ids(XQuADReranker(0.81), made) == "m0 f3 m1 m2 f4"
    assert ids(XQuADReranker(0), made) == "m0 m1 m2 f3 f4"
    assert XQuADReranker().rerank(made).scores.tolist() == pytest.approx([1, 0.8, 0.6, 0.4, 0.2])


def test_xquad_gives_each_dimension_an_equal_part() -> None:
    # Diversity alone: ff0 covers f and f. Then mf1 (2/3) has 1/4 * 2/3 of m, fm2 (1/3) 1/4 * 1/3 of m: mf1 first.
    assert ids(XQuADReranker(1), pool("fmfm", second="ffmm", scores=[3, 2, 1, 0])) == "f0 m1 f2 m3"


@given(pools(), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
@settings(deadline=None)
def test_xquad_is_its_definition(made: Pool, weight: float) -> None:
    of = aspects(made)
    relevance = np.linspace(1, 0, len(made.ranking)) ** 2
    coverage, due = relevance[:, None] * of.rows, of.due / 2
    picked: list[int] = []
    for _ in range(min(made.n, len(relevance))):
        values = {
            d: (1 - weight) * relevance[d]
            + weight
            * sum(due[a] * coverage[d, a] * np.prod([1 - coverage[s, a] for s in picked]) for a in range(len(due)))
            for d in range(len(relevance))
            if d not in picked
        }
        picked.append(max(values, key=lambda d: (round(float(values[d]), 12), -d)))
    assert xquad(relevance, coverage, due, weight, made.n) == picked


# --- PM-2 by hand -----------------------------------------------------------------------------------------------

# The same scores, half each. One aspect alone, ties to the first group: f3 (1/2, 1/2), m0 (1/6, 1/2), f4 (1/6, 1/6; all
# relevance is 0 to f, and it is f's own), m1, m2.
# Focus 1/2: f's turn, f3 1/16, m0 1/4: m0. f's turn (1/2, 1/6): f3 1/16, m1 1/2 * 1/6 * 3/4 = 1/16, to f's own: f3.
# f's turn (1/6, 1/6): f4 0, m1 1/16: m1. f's (1/6, 1/10): f4 0, m2 1/40: m2. f4.


def test_pm2_by_hand() -> None:
    made = pool("mmmff")
    assert ids(PM2Reranker(1), made) == "f3 m0 f4 m1 m2"
    assert ids(PM2Reranker(), made) == "m0 f3 m1 m2 f4"


def test_pm2_shares_the_seat_of_a_document_of_both_groups() -> None:
    # b0 takes half a seat each (quotients 1/4), so f and m are even again: m1 has relevance, f2 none.
    assert ids(PM2Reranker(), pool("bmf")) == "b0 m1 f2"
    # One aspect alone: f's turn is b0's (f comes first), then f's again: f2, and m1.
    assert ids(PM2Reranker(1), pool("bmf")) == "b0 f2 m1"


def test_pm2_without_votes_and_without_labels() -> None:
    # m has no votes: f2 although its relevance is 0; then nobody with votes is left.
    assert ids(PM2Reranker(), pool("mmf", target=(1, 0))) == "f2 m0 m1"
    # Of the first two one has no label: votes 1/2, 1/4, 1/4. u0, then 1/6 to 1/4: f2.
    assert ids(PM2Reranker(1), pool("umf", 2)) == "u0 f2"


def test_pm2_gives_out_seats_as_sainte_lague_does() -> None:
    # Votes 53, 24, 23 of 100: divisors 1, 3, 5 ... give 4, 2 and 1 of 7 seats, in this order (53, 24, 23, 17.7, 10.6, 8
    # to 7.7 ...): a b c a a b a.
    rows = np.repeat(np.eye(3), 7, axis=0)
    order = pm2(rows, rows, np.array([0.53, 0.24, 0.23]), 1, 7)
    assert [place // 7 for place in order] == [0, 1, 2, 0, 0, 1, 2]
    assert order[:4] == [0, 7, 14, 1]


# --- DetGreedy, DetCons, DetRelaxed by hand ---------------------------------------------------------------------

# 1/4 f, 3/4 m, f0 f1 m2 m3. Greedy: rank 1 is free (1/4, 3/4), the best: f0. Rank 2 (1/2, 3/2): m must: m2. Rank 3
# (3/4, 9/4): m must have 2: m3. Rank 4: f has its one of 1, m would need 3: f1 is left.
# Cons: rank 1, due at 1 / (1/4) = 4 and 1 / (3/4) = 4/3: m2. Rank 2: 4 and 2 / (3/4) = 8/3: m3. Then f0, f1.


def test_det_greedy_by_hand() -> None:
    made = pool("ffmm", target=(0.25, 0.75))
    assert ids(DetGreedyReranker(), made) == "f0 m2 m3 f1"
    assert ids(DetGreedyReranker("cons"), made) == "m2 m3 f0 f1"
    assert ids(DetGreedyReranker("relaxed"), made) == "m2 m3 f0 f1"


def test_relaxed_takes_the_best_of_those_due_at_the_same_rank() -> None:
    # Due at 2.5, 2.22 and 6.67, rounded up 3, 3, 7.
    rows, due = np.eye(3), np.array([0.4, 0.45, 0.15])
    assert [det_greedy(rows, due, 1, rule) for rule in RULES] == [[0], [1], [0]]


def test_det_greedy_of_three_values() -> None:
    # Shares 1/2, 1/3, 1/6, all of the first value first. Wanted after rank k: 1/2 1/3 1/6: free, a; 1 2/3 1/3: a is
    # there, free among b and c (a has its 1): b; 3/2 1 1/2: free: a; 2 4/3 2/3: a and b have theirs: free (b, c): b;
    # 5/2 5/3 5/6: free (a, c; b has 2 of 5/3): a; 3 2 1: c must.
    rows = np.repeat(np.eye(3), 6, axis=0)
    order = det_greedy(rows, np.array([1 / 2, 1 / 3, 1 / 6]), 6)
    assert [place // 6 for place in order] == [0, 1, 0, 1, 0, 2]


@pytest.mark.parametrize(
    ("letters", "weights", "greedy", "relaxed"),
    [
        ("000001000110010111", [1, 3], [0, 5, 9, 10, 1, 13, 15, 16, 2], [5, 9, 0, 10, 13, 15, 1, 16, 17]),
        ("011011001110001011", [9, 11], [0, 1, 2, 3, 4, 5, 6, 7, 8], [1, 0, 2, 3, 4, 6, 5, 7, 8]),
        ("100202000211122222", [2, 3, 5], [0, 3, 1, 5, 9, 2], [3, 0, 5, 1, 9, 10]),
        ("011110211101211222", [1, 1, 1], [0, 1, 6, 2, 5, 12], [0, 1, 6, 2, 5, 12]),
        ("011010210020221222", [8, 9, 3], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 6]),
    ],
)
def test_orders_of_another_implementation(
    letters: str, weights: list[int], greedy: list[int], relaxed: list[int]
) -> None:
    """The orders of the package reranking 0.3.6 (on 2,000 random lists in which no value runs out all are ours)."""
    rows, due = np.eye(len(weights))[[int(letter) for letter in letters]], np.array(weights) / sum(weights)
    assert det_greedy(rows, due, len(greedy)) == greedy
    assert det_greedy(rows, due, len(relaxed), "relaxed") == relaxed


def test_det_greedy_with_documents_of_both_groups_and_without_a_label() -> None:
    # b is half of each: after it both have 1/2 of 1/2. Rank 2 wants 1 each: m1 (the best of either). Rank 3 (3/2 each):
    # f lacks, 1/2 to 1: f2.
    assert ids(DetGreedyReranker(), pool("bmf")) == "b0 m1 f2"
    # Of the first two one has no label: 1/2, 1/4, 1/4. u0; rank 2: 1 1/2 1/2: u has its 1, m1; 3/2 3/4 3/4: u1? No:
    # u has 1 of 3/2, f 0 of 3/4, free: the best of them is f2.
    assert ids(DetGreedyReranker(), pool("umf", 2)) == "u0 m1"
    assert ids(DetGreedyReranker(), pool("mmf", target=(1, 0))) == "f2 m0 m1"


@given(st.text("fm", max_size=12), st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.7]), st.integers(1, 14))
@settings(deadline=None)
def test_every_prefix_has_what_the_targets_ask_as_long_as_there_is_any(letters: str, share: float, n: int) -> None:
    both = set(letters) == {"f", "m"}
    due = {"f": share if both else 1, "m": 1 - share if both else 1}
    for rule in RULES:
        order = DetGreedyReranker(rule).rerank(pool(letters, n, (share, 1 - share))).ids
        for k in range(1, len(order) + 1):
            for group in set(letters):
                asked = min(int(np.floor(round(k * due[group], 9))), letters.count(group))
                assert sum(one.startswith(group) for one in order[:k]) >= asked


# --- after FGR's, FARO's and FAIR-RAG's abstracts ---------------------------------------------------------------


def test_fgr_by_hand() -> None:
    # Half each: any first, m0; then f balances: f3; (1, 2) of 3 either way: m1; f4 balances; m2.
    assert ids(FGRReranker(), pool("mmmff")) == "m0 f3 m1 f4 m2"
    # f alone is wanted: m costs ln(1 / 1e-6), so all of f come first.
    assert ids(FGRReranker(), pool("mmff", target=(1, 0))) == "f2 f3 m0 m1"
    # Two dimensions: ff0, then mm balances both; then fm and mf are alike.
    assert ids(FGRReranker(), pool("ffmm", second="fmfm")) == "f0 m3 f1 m2"


@given(pools())
@settings(deadline=None)
def test_fgr_takes_the_document_with_the_smallest_divergence(made: Pool) -> None:
    of = aspects(made)
    order = nearest_prefixes(of.rows[:, :3], np.maximum(of.due[:3], 1e-3) / np.maximum(of.due[:3], 1e-3).sum(), made.n)
    due = np.maximum(of.due[:3], 1e-3) / np.maximum(of.due[:3], 1e-3).sum()
    for k in range(len(order)):
        others = [d for d in range(len(of.rows)) if d not in order[:k]]
        values = {d: kl(of.rows[[*order[:k], d], :3].sum(axis=0) / (k + 1), due, 0) for d in others}
        assert values[order[k]] == pytest.approx(min(values.values()), abs=1e-9)


def test_faro_by_hand() -> None:
    # Two even ranks of m0 (1), m1 (1/2), f2 (0), half each: m0 m1 is worth 3/4 - 1/2 of its price, m0 f2 1/2.
    made = pool("mmf", 2)
    assert ids(FAROReranker(0.49, Uniform()), made) == "m0 m1"
    assert set(FAROReranker(0.51, Uniform()).rerank(made).ids) == {"m0", "f2"}
    assert ids(FAROReranker(0), pool("mmmff")) == "m0 m1 m2 f3 f4"


def value_of(order: Sequence[int], made: Pool, price: float) -> float:
    of, weights = aspects(made), Uniform()(len(order)) / max(len(order), 1)
    relevance = min_max(made.ranking.scores)
    shown = weights @ of.rows[list(order)]
    return float(weights @ relevance[list(order)] - price * ((shown - of.due) ** 2).sum())


@given(pools(), st.sampled_from([0.1, 1.0, 10.0]))
@settings(deadline=None, max_examples=60)
def test_faro_is_worth_no_less_than_the_engine_s_order_and_no_more_than_the_best(made: Pool, price: float) -> None:
    made = made.of(made.ranking.top(6))
    found = [made.ranking.ids.index(one) for one in FAROReranker(price, Uniform()).rerank(made).ids]
    value = value_of(found, made, price)
    assert value >= value_of(range(len(found)), made, price) - 1e-9
    every = (value_of(order, made, price) for order in permutations(range(len(made.ranking)), len(found)))
    assert value <= max(every) + 1e-9


def test_balanced_by_hand() -> None:
    assert ids(BalancedReranker(), pool("mmmff", target=(0.1, 0.9))) == "m0 f3 m1 f4 m2"
    # Who has no label takes no turn; b is half of each, so m and f are even after it.
    assert ids(BalancedReranker(), pool("uxmmf")) == "m2 f4 m3 u0 x1"
    assert ids(BalancedReranker(), pool("bmmf")) == "b0 m1 f3 m2"


# --- all of them ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RIVALS)
@given(pools())
@settings(deadline=None, max_examples=40)
def test_an_order_is_of_the_pool_and_cut_at_n(name: str, made: Pool) -> None:
    found = RIVALS[name].rerank(made)
    assert len(found) == min(made.n, len(made.ranking)) == len(set(found.ids))
    assert set(found.ids) <= set(made.ranking.ids)
    assert (np.diff(found.scores) < 0).all()
    # A longer list begins with the shorter one, but for FARO, which looks at all ranks at once; and where the share of
    # documents without a label is that of the first n.
    everybody = all(not rows[:, 0].any() and rows.any(axis=1).all() for rows in made.memberships)
    if everybody and not name.startswith("faro"):
        whole = Pool(made.query, made.ranking, made.memberships, made.targets, 20)
        assert RIVALS[name].rerank(whole).ids[: made.n] == found.ids


@pytest.mark.parametrize("name", RIVALS)
def test_without_dimensions_and_with_one_group_the_order_stays(name: str) -> None:
    ranking = Ranking(("a", "b", "c"), np.array([3.0, 2.0, 1.0]))
    assert RIVALS[name].rerank(Pool(Query("q"), ranking, (), (), 2)).ids == ("a", "b")
    assert ids(RIVALS[name], pool("mmm")) == "m0 m1 m2"
    assert RIVALS[name].rerank(pool("")).ids == ()


@pytest.mark.parametrize("name", [name for name in RIVALS if name != "xquad"])
def test_where_half_of_each_group_is_due_the_prefixes_are_fairer_than_the_engine_s(name: str) -> None:
    made = pool("mmmmmmmmmfffff", 10)
    rows = {one: made.memberships[0][place] for place, one in enumerate(made.ranking.ids)}
    due = np.array([0.0, 0.5, 0.5])

    def unfairness(order: Sequence[str]) -> float:
        return ndkl(np.array([rows[one] for one in order]), due, 10)

    assert unfairness(RIVALS[name].rerank(made).ids) <= unfairness(made.ranking.ids[:10]) + 1e-12


@pytest.mark.parametrize(
    ("part", "made"),
    [
        ("xquad", XQuADReranker(0.5)),
        ({"kind": "xquad", "diversity": 0.25}, XQuADReranker(0.25)),
        ("pm2", PM2Reranker(0.5)),
        ({"kind": "pm2", "focus": 1}, PM2Reranker(1)),
        ("det-greedy", DetGreedyReranker("greedy")),
        ({"kind": "det-greedy", "rule": "cons"}, DetGreedyReranker("cons")),
        ("fgr", FGRReranker()),
        ({"kind": "faro", "fairness": 2}, FAROReranker(2)),
        ("balanced", BalancedReranker()),
    ],
)
def test_settings_name_them(part: Any, made: Reranker) -> None:
    models: Any = None
    site = Site(collection(by_letter(["f1", "m1"])), Settings(rerank=part), Path("index"), models)
    assert site.settings.rerank.build(site) == made
    assert site.settings.rerank.sees_groups


@pytest.mark.parametrize(
    "make",
    [
        lambda: XQuADReranker(1.1),
        lambda: XQuADReranker(-0.1),
        lambda: PM2Reranker(2),
        lambda: PM2Reranker(float("nan")),
        lambda: FAROReranker(-1),
    ],
)
def test_numbers_out_of_range(make: Any) -> None:
    with pytest.raises(UsageError, match=r"xQuAD|PM-2|FARO"):
        make()


@pytest.mark.parametrize(
    "part",
    [
        {"kind": "xquad", "diversity": 2},
        {"kind": "pm2", "focus": -1},
        {"kind": "det-greedy", "rule": "sorted"},
        {"kind": "faro", "fairness": -1},
        {"kind": "fgr", "lambda": 1},
    ],
)
def test_settings_that_make_no_sense(part: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_part("rerank", part)
