"""GFR: NTCIREVAL's toy example, numbers that its documentation prints, and the parts by hand in fractions.

The toy example (README.groupfair of NTCIREVAL 230128) has no printed scores: TOY has what its arithmetic, compiled from
C (GFlabel, GFRcompute with -g 1:3), gives for it, to the four digits that it prints.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError, UsageError
from fairagent.measures import GFR, JudgedRanking, group_fairness, parse_measure, stopping
from fairagent.measures.gfr import err, irbu
from fairagent.types import FloatArray

from .laws import law, rankings

GRADES = {"doc01": 2, "doc03": 1, "doc04": 1, "doc05": 1, "doc06": 1, "doc08": 2, "doc10": 2, "doc11": 1, "doc12": 1}
GRADES |= {"doc13": 2, "doc14": 1}
RUNS = {
    ("toyrun1", "P001"): "doc01 unj01 doc02 doc04 unj02",
    ("toyrun1", "P002"): "unj03 doc07 doc05 unj04 doc06",
    ("toyrun1", "P003"): "doc11 doc08 unj05 unj06 doc10",
    ("toyrun1", "P004"): "unj07 unj08 doc14 unj09 doc13",
    ("toyrun2", "P001"): "unj01 doc01 doc02 doc04 unj02",
    ("toyrun2", "P002"): "doc07 unj03 doc05 unj04 doc06",
    ("toyrun2", "P003"): "doc08 doc11 unj05 unj06 doc10",
    ("toyrun2", "P004"): "unj08 unj07 doc14 unj09 doc13",
}
LEVELS = [0.25] * 4
ORIGINS = [0.244725738, 0.111814346, 0.008438819, 0.154008439, 0.099156118, 0.200421941, 0.080168776, 0.101265823]
SETS: dict[tuple[str, str], tuple[list[float], dict[str, list[float]]]] = {
    ("P001", "HINDEX"): (LEVELS, {"doc01": [1, 0, 0, 0], "doc03": [1, 0, 0, 0], "doc04": [0, 0, 0, 1]}),
    ("P001", "GENDER"): ([1 / 3] * 3, {"doc01": [1, 0, 0], "doc03": [0, 1, 0], "doc04": [0, 0, 1]}),
    ("P002", "RATINGS"): (LEVELS, {"doc05": [1, 0, 0, 0], "doc06": [0, 0, 1, 0]}),
    ("P002", "ORIGIN"): (ORIGINS, {"doc05": [0.5, 0.5, *[0] * 6], "doc06": [0, 0, 0, 1, 0, 0, 0, 0]}),
    (
        "P003",
        "FOLLOWERS",
    ): (LEVELS, {"doc08": [1, 0, 0, 0], "doc10": [0, 1, 0, 0], "doc11": [0, 0, 1, 0], "doc12": [0, 0, 0, 1]}),
    ("P004", "SUBSCS"): (LEVELS, {"doc13": [0, 1, 0, 0], "doc14": [0, 0, 1, 0]}),
}
"""Topic and attribute set -> target and memberships; all other documents are spread evenly."""
TOY = {  # ERR, iRBU, GF-JSD, GF-NMD, GF-RNOD
    ("toyrun1", "P001", "HINDEX"): (0.7656, 0.8025, 0.3979, 0.4323, 0.3561),
    ("toyrun1", "P001", "GENDER"): (0.7656, 0.8025, 0.4664, 0.4323, 0.3837),
    ("toyrun1", "P002", "RATINGS"): (0.1208, 0.4209, 0.4196, 0.3833, 0.3637),
    ("toyrun1", "P002", "ORIGIN"): (0.1208, 0.4209, 0.4068, 0.3990, 0.3834),
    ("toyrun1", "P003", "FOLLOWERS"): (0.5594, 0.9325, 0.6368, 0.7620, 0.6247),
    ("toyrun1", "P004", "SUBSCS"): (0.1958, 0.7775, 0.7833, 0.7472, 0.6965),
    ("toyrun2", "P001", "HINDEX"): (0.3906, 0.7951, 0.7301, 0.6198, 0.5792),
    ("toyrun2", "P001", "GENDER"): (0.3906, 0.7951, 0.7495, 0.6198, 0.5941),
    ("toyrun2", "P002", "RATINGS"): (0.1208, 0.4209, 0.4196, 0.3833, 0.3637),
    ("toyrun2", "P002", "ORIGIN"): (0.1208, 0.4209, 0.4068, 0.3990, 0.3834),
    ("toyrun2", "P003", "FOLLOWERS"): (0.8094, 0.9375, 0.5180, 0.5536, 0.4699),
    ("toyrun2", "P004", "SUBSCS"): (0.1958, 0.7775, 0.7833, 0.7472, 0.6965),
}


@pytest.mark.parametrize(("run", "topic", "attribute"), TOY)
def test_the_toy_example_of_their_tool(run: str, topic: str, attribute: str) -> None:
    ids, (target, of) = RUNS[run, topic].split(), SETS[topic, attribute]
    stop = stopping([GRADES.get(id, 0) for id in ids], highest=2)
    rows = np.array([[0.0, *of[id]] if id in of else [1.0, *[0.0] * len(target)] for id in ids])
    parts = [group_fairness(rows, np.array([0.0, *target]), stop, name, "uniform") for name in ("jsd", "nmd", "rnod")]
    assert [err(stop), irbu(stop), *parts] == pytest.approx(TOY[run, topic, attribute], abs=5.01e-5)


def test_a_ranking_of_the_pilot() -> None:
    """FairWeb-1's pilot: the first 20 of BM25 for researchers (P001), levels and h-index groups of each document.

    The values are from the same arithmetic as TOY's.
    """
    even = "1 1 1 1"
    documents = [
        *("1 0 0 0 1", "1 0 0 0 1", "2 0 0 1 4", f"0 {even}", "1 0 0 0 1", "2 0 0 3 2", "1 0 0 1 1", "2 1 2 1 0"),
        *("1 1 0 0 3", "2 1 1 0 1", f"0 {even}", f"0 {even}", "2 2 1 2 0", "1 1 0 0 0", "2 2 1 1 0", "2 0 0 1 0"),
        *(f"0 {even}", f"0 {even}", f"0 {even}", "1 1 0 0 0"),
    ]
    cells = np.array([line.split() for line in documents], dtype=np.float64)
    stop, groups = stopping(cells[:, 0], highest=2), cells[:, 1:] / cells[:, 1:].sum(axis=1, keepdims=True)
    rows, target = np.hstack([np.zeros((20, 1)), groups]), np.array([0.0, *LEVELS])
    parts = [group_fairness(rows, target, stop, name, "uniform") for name in ("jsd", "nmd", "rnod")]
    assert [err(stop), irbu(stop), *parts] == pytest.approx([0.5079, 0.9728, 0.5438, 0.5285, 0.4542], abs=5.01e-5)


def test_relevance_as_their_documentation_prints_it() -> None:
    """NTCIREVAL's README: L0, L3, unjudged, L2 with the gains 1:2:3 has ERR .4062 and iRBU .8551."""
    stop = [0.0, 3 / 4, 0.0, (1 - 3 / 4) * 2 / 4]
    assert err(stop) == float(Fraction(3, 8) + Fraction(1, 32))
    assert f"{err(stop):.4f}" == "0.4062"
    assert f"{irbu(stop):.4f}" == "0.8551"


def test_by_hand_in_fractions() -> None:
    """P001, HINDEX, toyrun1: relevant are ranks 1 (grade 2) and 4 (grade 1), the others are spread evenly.

    Readers stop there with 3/4 and 1/4 * 1/4 = 1/16. Shown by then: (1, 0, 0, 0) and (3, 1, 1, 3) / 8.
    NMD is 1/2, and (1/8 + 0 + 1/8) / 3 = 1/12. RNOD is the root of 17/48, and of 5/64 / 3.
    """
    stop = stopping([2, 0, 0, 1, 0], highest=2)
    assert stop.tolist() == [0.75, 0.0, 0.0, 0.0625, 0.0]
    even = [0.25] * 4
    rows = np.array([[0, 1, 0, 0, 0], [0, *even], [0, *even], [0, 0, 0, 0, 1], [0, *even]])
    target = np.array([0, *even])
    nmd = Fraction(3, 4) * Fraction(1, 2) + Fraction(1, 16) * Fraction(11, 12)
    assert group_fairness(rows, target, stop, "nmd") == pytest.approx(float(nmd), abs=1e-15)
    rnod = 0.75 * (1 - math.sqrt(17 / 48)) + (1 - math.sqrt(5 / 192)) / 16
    assert group_fairness(rows, target, stop, "rnod") == pytest.approx(rnod, abs=1e-15)
    # m is (5, 1, 1, 1) / 8, and (5, 3, 3, 5) / 16.
    first = (math.log2(8 / 5) + math.log2(2 / 5) / 4 + 3 / 4) / 2
    second = (6 * math.log2(6 / 5) / 8 + 2 * math.log2(2 / 3) / 8 + math.log2(4 / 5) / 2 + math.log2(4 / 3) / 2) / 2
    expected = 0.75 * (1 - first) + (1 - second) / 16
    assert group_fairness(rows, target, stop, "jsd") == pytest.approx(expected, abs=1e-15)


def test_the_unknown_are_left_out_of_both_sides() -> None:
    """Ranks: unknown, first, half unknown and half last; known by rank 2: (1, 0), by rank 3: (2, 1) / 3."""
    rows = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    target = np.array([0.5, 0.25, 0.25])
    stop = stopping([1, 1, 1])
    assert stop.tolist() == [0.5, 0.25, 0.125]
    # At rank 1 there is nothing to see; NMD of two groups is the total variation: 1/2, then 2/3 - 1/2 = 1/6.
    assert group_fairness(rows, target, stop, "nmd") == pytest.approx(0.25 * 1 / 2 + 0.125 * 5 / 6)
    # Spread evenly: (1/2, 1/2), (3/4, 1/4), (7/12, 5/12).
    expected = 0.5 + 0.25 * 3 / 4 + 0.125 * 11 / 12
    assert group_fairness(rows, target, stop, "nmd", "uniform") == pytest.approx(expected)


def judged(**changes: object) -> JudgedRanking:
    values: dict[str, object] = {
        "relevant": np.array([True, False, True]),
        "n_relevant": 2,
        "memberships": np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
        "target": np.array([0.2, 0.4, 0.4]),
        **changes,
    }
    return JudgedRanking(**values)  # type: ignore[arg-type]


def test_the_measure_is_the_mean_of_both_parts() -> None:
    """Stops 1/2 and 1/4; total variation 1/2 at rank 1, then 0: GF = 1/4 + 1/4, ERR = 1/2 + 1/12."""
    assert GFR(20, "nmd", "none")(judged()) == pytest.approx(1 / 2)
    assert GFR(20, "nmd")(judged()) == pytest.approx((1 / 2 + 7 / 12) / 2)
    assert GFR(20, "nmd", "irbu")(judged()) == pytest.approx((1 / 2 + 0.99 / 2 + 0.99**3 / 4) / 2)
    assert GFR(2, "nmd", "none")(judged()) == pytest.approx(1 / 4)
    # (3/4, 1/4) were (1, 1/2, 0) / 2 shown evenly: by rank 3 it is half and half again.
    assert GFR(20, "nmd", "none", "uniform")(judged()) == pytest.approx(1 / 2)


def test_grades_stop_more_readers_the_higher_they_are() -> None:
    """Grades 2, unjudged and -1: a stop with 3/4 alone. ERR = 3/4, and GF = 3/4 * 1/2."""
    graded = judged(grades=np.array([2.0, np.nan, -1.0]))
    assert GFR(20, "nmd", highest=2)(graded) == pytest.approx((3 / 4 + 3 / 8) / 2)
    with pytest.raises(DataError, match=r"GFR\(.*highest=2\)@20 needs grades"):
        GFR(20, highest=2)(judged())
    with pytest.raises(DataError, match="the highest grade is 2, but a document has 3"):
        GFR(20, highest=2)(judged(grades=np.array([3.0, 0.0, 0.0])))


def test_documents_without_a_record_are_of_no_known_group() -> None:
    nonsense = judged(
        memberships=np.array([[0.0, 1.0, 0.0], [np.nan, 0.0, 9.0], [0.0, 0.0, 1.0]]),
        known=np.array([True, False, True]),
    )
    assert GFR(20, "jsd")(nonsense) == GFR(20, "jsd")(judged())


@law
@given(rankings(), st.lists(st.integers(0, 3), min_size=12, max_size=12), st.sampled_from(["jsd", "nmd", "rnod"]))
def test_laws(ranking: tuple[FloatArray, FloatArray], grades: list[int], name: str) -> None:
    rows, target = ranking
    rows, target = np.hstack([np.zeros((len(rows), 1)), rows]), np.concatenate(([0.0], target))
    stop = stopping(grades[: len(rows)], highest=3)
    value = group_fairness(rows, target, stop, name)
    assert 0.0 <= stop.sum() < 1.0
    assert -1e-12 <= value <= stop.sum() + 1e-12
    perfect = np.tile(target, (len(rows), 1))
    assert group_fairness(perfect, target, stop, name) == pytest.approx(float(stop.sum()), abs=1e-6)
    assert irbu(stop, patience=1.0) == pytest.approx(float(stop.sum()))
    assert err(stop) <= stop.sum() + 1e-12
    # Nobody is unknown: how the unknown count makes no difference.
    assert group_fairness(rows, target, stop, name, "uniform") == value


def test_names_and_options() -> None:
    assert parse_measure("GFR@10") == GFR(10)
    assert parse_measure("GFR(divergence=rnod, relevance=none, unknown=uniform)@5") == GFR(5, "rnod", "none", "uniform")
    assert parse_measure(str(GFR(7, "nmd", "irbu"))) == GFR(7, "nmd", "irbu")
    assert parse_measure("nDCG@20*GFR(divergence=nmd)@20").of_groups
    assert parse_measure(str(GFR(7, highest=2))) == GFR(7, highest=2) != GFR(7)
    assert (GFR(7).of_groups, GFR(7).of_relevance, GFR(7).label) == (True, True, "GFR@7")
    for highest in ("0", "two", "-1", "1.5"):
        with pytest.raises(UsageError, match="GFR: highest is"):
            parse_measure(f"GFR(highest={highest})@7")
    with pytest.raises(UsageError, match=r"GFR: divergence is 'emd', expected one of: jsd, nmd, rnod"):
        parse_measure("GFR(divergence=emd)@10")
    with pytest.raises(UsageError, match="relevance is 'ndcg'"):
        GFR(10, relevance="ndcg")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unknown is 'group'"):
        parse_measure("GFR(unknown=group)@10")


def test_bad_input() -> None:
    rows, target, stop = np.array([[0.0, 1.0, 0.0]]), np.array([0.0, 0.5, 0.5]), stopping([1])
    with pytest.raises(UsageError, match="divergence is 'kl'"):
        group_fairness(rows, target, stop, "kl")
    with pytest.raises(UsageError, match="unknown is 'drop'"):
        group_fairness(rows, target, stop, "jsd", "drop")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"memberships have shape \(1, 3\), expected \(2, 3\)"):
        group_fairness(rows, target, stopping([1, 0]))
    with pytest.raises(DataError, match="no mass on any known group"):
        group_fairness(rows, np.array([1.0, 0.0, 0.0]), stop)
    with pytest.raises(DataError, match="an order needs two groups"):
        group_fairness(rows[:, :2], np.array([0.0, 1.0]), stop, "nmd")
    with pytest.raises(DataError, match="the highest grade is 1, but a document has 2"):
        stopping([2, 0])
    with pytest.raises(DataError, match=r"grades\[0\] is -1"):
        stopping([-1])
    with pytest.raises(DataError, match="needs memberships and a target"):
        GFR(20)(judged(memberships=None))
    with pytest.raises(DataError, match="not defined with 0 relevant documents"):
        GFR(20)(judged(n_relevant=0, relevant=np.zeros(3, dtype=bool)))


def test_an_empty_ranking_is_worth_nothing() -> None:
    empty = judged(relevant=np.zeros(0, dtype=bool), memberships=np.zeros((0, 3)))
    assert GFR(20)(empty) == 0.0
