from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.collection import Collection, GroupTable, load_collection, make_target
from fairagent.collection.table import LabelColumn
from fairagent.errors import DataError, UsageError
from fairagent.types import Ranking, Topic

from .conftest import FILES


def ranking(*pairs: tuple[str, float]) -> Ranking:
    return Ranking(tuple(id for id, _ in pairs), np.array([score for _, score in pairs], float))


@pytest.fixture
def collection(write):
    return load_collection(write())


# region: d1 half Asia, half Europe; d2 Europe; d3 unknown; d4 Africa. T1: d1 and d2 are relevant, T2: d3.
# labels Africa, Asia, Europe; population .25 .5 .25
@pytest.mark.parametrize(
    ("kind", "topic", "shares", "oracle"),
    [
        ("population", "T1", [0.25, 0.5, 0.25], False),
        ("uniform", "T1", [1 / 3, 1 / 3, 1 / 3], False),
        ("corpus", "T1", [1 / 3, 0.5 / 3, 1.5 / 3], False),
        ("qrels", "T1", [0, 0.25, 0.75], True),
        ("trec", "T1", [0.125, 0.375, 0.5], True),
        ("trec", "T2", [0.25, 0.5, 0.25], True),
        ({"Africa": 0.1, "Europe": 0.9}, "T1", [0.1, 0, 0.9], False),
    ],
)
def test_each_kind_by_hand(collection, kind, topic, shares, oracle):
    target = make_target(kind, "region", collection, topic)
    assert target.dimension == "region"
    assert target.labels == ("Africa", "Asia", "Europe")
    np.testing.assert_allclose(target.shares, shares, rtol=1e-12)
    assert target.oracle is oracle
    assert target.source.split(" ")[0] == (kind if isinstance(kind, str) else "given")


@pytest.mark.parametrize(
    ("hits", "shares", "source"),
    [
        # weights 1, 2/3, 1/3, 0: Europe 1 + 2/3 * 1/2, Asia 2/3 * 1/2; d3 is unknown, d4 has no weight
        ([("d2", 9), ("d1", 7), ("d3", 5), ("d4", 3)], [0.125, 0.1875, 0.6875], "estimated"),
        # negative scores: weights 1, 1/2, 0
        ([("d4", -1), ("d2", -2), ("d1", -3)], [1 / 2, 1 / 12, 5 / 12], "estimated"),
        # equal scores: weights 1
        ([("d4", 2), ("d2", 2)], [0.5, 0, 0.5], "estimated"),
        # nothing labeled, nothing labeled with weight, nothing at all: the corpus
        ([("d3", 2), ("d9", 1)], [1 / 3, 0.5 / 3, 1.5 / 3], "estimated (nothing labeled was ranked: corpus)"),
        ([("d3", 2), ("d4", 1)], [1, 0, 0], "estimated"),
        ([], [1 / 3, 0.5 / 3, 1.5 / 3], "estimated (nothing labeled was ranked: corpus)"),
    ],
)
def test_estimated_by_hand(collection, hits, shares, source):
    target = make_target("estimated", "region", collection, "T1", ranking(*hits))
    np.testing.assert_allclose(target.shares, shares, rtol=1e-12)
    assert (target.source, target.oracle) == (source, False)


def test_trec_estimated_is_half_estimated_half_population(collection):
    hits = ranking(("d2", 9), ("d1", 7), ("d3", 5), ("d4", 3))
    target = make_target("trec-estimated", "region", collection, "T1", hits)
    np.testing.assert_allclose(target.shares, [0.1875, 0.34375, 0.46875], rtol=1e-12)
    assert (target.source, target.oracle) == ("trec-estimated", False)
    fallen_back = make_target("trec-estimated", "region", collection, "T1", ranking())
    np.testing.assert_allclose(fallen_back.shares, [3.5 / 12, 4 / 12, 4.5 / 12], rtol=1e-12)
    assert fallen_back.source == "trec-estimated (nothing labeled was ranked: corpus)"


# d3 has no label: a quarter of the corpus, all of T2's relevant documents, .5 of the 2.5 that the scores weigh.
@pytest.mark.parametrize(
    ("kind", "topic", "known"),
    [
        ("population", "T2", None),
        ("uniform", "T2", None),
        ({"Africa": 0.1, "Europe": 0.9}, "T2", None),
        ("corpus", "T2", [1 / 4, 0.5 / 4, 1.5 / 4]),
        ("qrels", "T1", None),
        ("trec", "T1", None),
        ("trec", "T2", [0.125, 0.25, 0.125]),
        ("estimated", "T1", [0.1, 0.15, 0.55]),
        ("trec-estimated", "T1", [0.175, 0.325, 0.4]),
    ],
)
def test_what_is_known_of_a_target_whatever_the_missing_labels_are(collection, kind, topic, known):
    target = make_target(kind, "region", collection, topic, ranking(("d2", 9), ("d1", 7), ("d3", 5), ("d4", 3)))
    if known is None:
        assert target.known is None
    else:
        np.testing.assert_allclose(target.known, known, rtol=1e-12)


COUNTED = ("corpus", "qrels", "trec", "estimated", "trec-estimated")


TYPED = np.arange(11) < 8
"""d0 to d7 can have a label; d8 and d9, and documents that are not there, cannot."""


def labeled(codes: list[int], of_type: bool, predicted: bool = False) -> Collection:
    """d0 to d7 with the groups of `codes` (0: no label), d8 and d9 without; d9 is relevant, too."""
    column = LabelColumn(
        ("a", "b", "c"), np.array([*codes, 0, 0, 0], np.uint8), of_type=TYPED if of_type else None, predicted=predicted
    )
    groups = GroupTable(np.array([f"d{n}" for n in range(10)], "S8"), {"g": column})
    judged = {"T": {f"d{n}": 1 for n in (0, 1, 2, 3, 9)}}
    world = {"g": {"a": 0.5, "b": 0.25, "c": 0.25}}
    return Collection("made", {"T": Topic("T", "words")}, judged, groups, world, (), None)


SHOWN = ranking(("d8", 9), ("d0", 8), ("d7", 7), ("d4", 5), ("d1", 3), ("d6", 2))


@hypothesis.settings(max_examples=20)
@given(st.lists(st.integers(1, 3), min_size=8, max_size=8), st.sets(st.integers(0, 7), max_size=7))
@pytest.mark.parametrize("of_type", [False, True])
@pytest.mark.parametrize("kind", COUNTED)
def test_the_true_target_has_the_known_part(kind, of_type, codes, hidden):
    """Labels are deleted: what is known is below the target without them and below that with them."""
    left = labeled([0 if n in hidden else code for n, code in enumerate(codes)], of_type)
    try:
        target = make_target(kind, "g", left, "T", SHOWN)
    except DataError:
        assert hidden >= {0, 1, 2, 3}
        return
    truth = make_target(kind, "g", labeled(codes, of_type), "T", SHOWN)
    known = target.shares if target.known is None else target.known
    assert (known <= target.shares + 1e-12).all()
    assert (known <= truth.shares + 1e-12).all()
    if of_type and not hidden:
        assert target.known is None


@pytest.mark.parametrize(("kind", "part"), [(kind, 0.5 if kind.startswith("trec") else 0.0) for kind in COUNTED])
def test_nothing_is_known_of_predicted_labels(kind, part):
    collection = labeled([1, 2, 3, 1, 1, 2, 2, 2], True, predicted=True)
    target = make_target(kind, "g", collection, "T", SHOWN)
    np.testing.assert_allclose(target.known, part * np.array([0.5, 0.25, 0.25]), rtol=1e-12)


def test_a_group_only_in_the_target_is_kept(write):
    world = FILES["world.json"].replace('"male": 0.5', '"male": 0.49, "NB": 0.01')
    collection = load_collection(write({"world.json": world}))
    assert make_target("population", "gender", collection, "T1").shares.tolist() == [0.01, 0.5, 0.49]
    assert make_target({"NB": 1.0}, "gender", collection, "T1").shares.tolist() == [1, 0, 0]
    assert make_target("trec", "gender", collection, "T1").shares.tolist() == [0.005, 0.5, 0.495]
    assert make_target("qrels", "gender", collection, "T1").shares.tolist() == [0, 0.5, 0.5]


def test_labels_from_the_judgments_make_an_oracle(write, settings):
    text = settings(("format: trec", "header: true, dimensions: {stance: {}}"))
    qrels = "topic\tit\tdoc\tgrade\tstance\nT1\t0\td1\t1\tpro\nT2\t0\td3\t1\tcon\n"
    world = '{"stance": {"pro": 0.5, "con": 0.5}}'
    collection = load_collection(write({"collection.yaml": text, "qrels.tsv": qrels, "world.json": world}))
    hits = ranking(("d1", 2.0), ("d2", 1.0))
    expected = {"population": False, "uniform": False, "corpus": True, "estimated": True, "qrels": True}
    for kind, oracle in expected.items():
        assert make_target(kind, "stance", collection, "T1", hits).oracle is oracle, kind
    assert make_target("estimated", "stance", collection, "T1", hits).shares.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("kind", "dimension", "error", "message"),
    [
        ("trecc", "region", UsageError, "no target of kind 'trecc'; did you mean 'trec'?"),
        ("uniform", "sex", UsageError, "no dimension 'sex'; there are: gender, region"),
        ("qrels", "region", DataError, "topic 'T2': no relevant document has a label of 'region'"),
        ({"Asia": 0.9}, "region", DataError, "the shares add up to 0.9, expected 1"),
        ({"Atlantis": 0.5, "Asia": 0.5}, "region", DataError, "no group 'Atlantis'; there are: Afr"),
    ],
)
def test_bad_targets(collection, kind, dimension, error, message):
    with pytest.raises(error) as raised:
        make_target(kind, dimension, collection, "T2")
    assert message in str(raised.value)


@pytest.mark.parametrize(("mixed", "alone"), [("trec", "qrels"), ("trec-estimated", "estimated")])
def test_without_a_population_the_mixed_targets_are_the_relevant_share_alone(write, mixed, alone):
    collection = load_collection(write({"world.json": '{"region": {"Asia": 1.0}}'}))
    made = [make_target(kind, "gender", collection, "T1", ranking(("d1", 1.0))).shares for kind in (mixed, alone)]
    assert made[0].tolist() == made[1].tolist()
