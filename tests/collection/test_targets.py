"""Targets by hand, what is known of them, and who chooses them."""

from collections.abc import Mapping
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import by_letter, collection, ranking

from fairagent import Collection, FairAgent, load_collection
from fairagent.collection import GroupTable, make_target
from fairagent.collection.exposure import ExposureMeter
from fairagent.collection.table import LabelColumn
from fairagent.collection.targets import ESTIMATE_FROM, GivenTarget, UniformTarget, estimate_weights, target_choice
from fairagent.errors import DataError, UsageError
from fairagent.search.hits import groups_alone
from fairagent.settings import Settings
from fairagent.types import Ranking, Topic


def scored(*pairs: tuple[str, float]) -> Ranking:
    return Ranking(tuple(id for id, _ in pairs), np.array([score for _, score in pairs], float))


@pytest.fixture
def small(write):
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
def test_each_kind_by_hand(small, kind, topic, shares, oracle):
    target = make_target(kind, "region", small, topic)
    assert (target.dimension, target.labels, target.oracle) == ("region", ("Africa", "Asia", "Europe"), oracle)
    np.testing.assert_allclose(target.shares, shares, rtol=1e-12)
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
def test_estimated_by_hand(small, hits, shares, source):
    target = make_target("estimated", "region", small, "T1", scored(*hits))
    np.testing.assert_allclose(target.shares, shares, rtol=1e-12)
    assert (target.source, target.oracle) == (source, False)


@pytest.mark.parametrize(
    ("hits", "shares", "source"),
    [
        ([("d2", 9), ("d1", 7), ("d3", 5), ("d4", 3)], [0.1875, 0.34375, 0.46875], "trec-estimated"),
        ([], [3.5 / 12, 4 / 12, 4.5 / 12], "trec-estimated (nothing labeled was ranked: corpus)"),
    ],
)
def test_trec_estimated_is_half_estimated_half_population(small, hits, shares, source):
    target = make_target("trec-estimated", "region", small, "T1", scored(*hits))
    np.testing.assert_allclose(target.shares, shares, rtol=1e-12)
    assert (target.source, target.oracle) == (source, False)


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
def test_what_is_known_of_a_target_whatever_the_missing_labels_are(small, kind, topic, known):
    target = make_target(kind, "region", small, topic, scored(("d2", 9), ("d1", 7), ("d3", 5), ("d4", 3)))
    if known is None:
        assert target.known is None
    else:
        np.testing.assert_allclose(target.known, known, rtol=1e-12)


COUNTED = ("corpus", "qrels", "trec", "estimated", "trec-estimated")


TYPED = np.arange(11) < 8
"""d0 to d7 can have a label; d8 and d9, and documents that are not there, cannot."""


def labeled(codes: list[int], of_type: bool, predicted: bool = False) -> Collection:
    """d0 to d7 with the groups of `codes` (0: no label), d8 and d9 without; d9 is relevant, too."""
    types = TYPED if of_type else None
    column = LabelColumn(("a", "b", "c"), np.array([*codes, 0, 0, 0], np.uint8), of_type=types, predicted=predicted)
    groups = GroupTable(np.array([f"d{n}" for n in range(10)], "S8"), {"g": column})
    judged = {"T": {f"d{n}": 1 for n in (0, 1, 2, 3, 9)}}
    world = {"g": {"a": 0.5, "b": 0.25, "c": 0.25}}
    return Collection("made", {"T": Topic("T", "words")}, judged, groups, world, (), None)


SHOWN = scored(("d8", 9), ("d0", 8), ("d7", 7), ("d4", 5), ("d1", 3), ("d6", 2))


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


def test_labels_from_the_judgments_make_an_oracle(write, settings):
    text = settings(("format: trec", "header: true, dimensions: {stance: {}}"))
    qrels = "topic\tit\tdoc\tgrade\tstance\nT1\t0\td1\t1\tpro\nT2\t0\td3\t1\tcon\n"
    world = '{"stance": {"pro": 0.5, "con": 0.5}}'
    collection = load_collection(write({"collection.yaml": text, "qrels.tsv": qrels, "world.json": world}))
    hits = scored(("d1", 2.0), ("d2", 1.0))
    for kind, oracle in {"population": False, "uniform": False, "corpus": True, "estimated": True}.items():
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
def test_bad_targets(small, kind, dimension, error, message):
    with pytest.raises(error) as raised:
        make_target(kind, dimension, small, "T2")
    assert message in str(raised.value)


def test_without_a_population_the_mixed_targets_are_the_relevant_share_alone(write):
    collection = load_collection(write({"world.json": '{"region": {"Asia": 1.0}}'}))
    made = [
        make_target(kind, "gender", collection, "T1", scored(("d1", 1.0))).shares.tolist()
        for kind in ("trec", "qrels", "trec-estimated", "estimated")
    ]
    assert (made[0], made[2]) == (made[1], made[3])


IDS = ["f1", "m1", "m2", "m3"]
EVEN = {"gender": {"female": 0.5, "male": 0.5}}
ROWS = [{"id": id, "text": f"law {id}", "gender": {"f": "female", "m": "male"}[id[0]]} for id in IDS]


def source(chosen: Any, whole: Collection) -> str:
    return ExposureMeter.make(whole, "", Settings(target=chosen), ranking(IDS)).targets[0].source


@pytest.mark.parametrize(
    ("called", "own", "population", "expected"),
    [
        ("uniform", "corpus", EVEN, "uniform"),
        ({"gender": "uniform"}, "corpus", EVEN, "uniform"),
        (None, {"gender": "corpus"}, EVEN, "corpus"),
        (None, {"region": "corpus"}, EVEN, "trec-estimated"),
        (None, None, EVEN, "trec-estimated"),
        (EVEN, "corpus", {}, "given"),
    ],
)
def test_the_call_beats_the_collection_and_this_its_population(
    called: Any, own: Any, population: Mapping[str, Mapping[str, float]], expected: str
) -> None:
    whole = collection(by_letter(IDS), population, target=Settings(target=own).target)
    assert source(called, whole) == expected


def test_nobody_chose_one() -> None:
    whole = collection(by_letter(IDS))
    assert target_choice(None, "gender", whole) is None
    with pytest.raises(UsageError) as raised:
        source(None, whole)
    # Of the estimate's weights 4/4 to 1/4 the woman has the first.
    assert [line.split() for line in str(raised.value).splitlines()[1:4]] == [
        ["uniform", "gender:", "female", "50.0%,", "male", "50.0%"],
        ["corpus", "gender:", "male", "75.0%,", "female", "25.0%"],
        ["estimated", "gender:", "male", "60.0%,", "female", "40.0%"],
    ]


def test_shares_of_a_call_are_the_target_as_they_are() -> None:
    world = {"gender": {"female": 0.9, "male": 0.1}}
    agent = FairAgent.from_records(ROWS, groups="gender", population=world, engine="bm25", n=2)
    assert agent.search("law").trace.exposures[0].target.tolist() == [0.9, 0.1]
    assert source(None, agent.collection) == source(None, groups_alone(by_letter(IDS), EVEN)) == "given"


def test_the_file_names_its_target(write, settings) -> None:  # type: ignore[no-untyped-def]
    text = settings(("target: trec-estimated", "target: {gender: {female: 0.4, male: 0.6}, region: uniform}"))
    loaded = load_collection(write({"collection.yaml": text}))
    assert loaded.target == {"gender": GivenTarget(shares={"female": 0.4, "male": 0.6}), "region": UniformTarget()}


@pytest.mark.parametrize(
    ("scores", "weights"),
    [([4.0, 3.0, 1.0], [1, 3.5 / 4.5, 1.5 / 4.5]), ([2.0], [1]), ([2.0, 2.0], [1, 1]), ([], [])],
)
def test_the_last_document_of_a_short_list_counts(scores: list[float], weights: list[float]) -> None:
    assert estimate_weights(np.array(scores)).tolist() == pytest.approx(weights)
    full = np.arange(ESTIMATE_FROM, dtype=np.float64)[::-1]
    assert estimate_weights(full).tolist() == (full / full[0]).tolist()


def test_an_estimated_target_is_said_to_follow_the_engine() -> None:
    rows = [*ROWS, *({"id": f"g{n}", "text": "sea", "gender": "female"} for n in range(4))]
    for target in ("estimated", "corpus"):
        agent = FairAgent.from_records(rows, groups="gender", engine="bm25", n=2, target=target, profile="engine")
        trace, told = agent.search("law m1 m2 m3").trace, target == "estimated"
        assert any("gender (estimated) follows the engine's own list" in note for note in trace.notes) is told
        alarms = [one.detail for one in trace.alarms if one.what == "a target that follows the engine"]
        assert [("female" in one, "of all documents 62.5%" in one) for one in alarms] == [(True, True)] * told
