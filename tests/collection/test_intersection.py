"""Intersections of dimensions: their groups, memberships, shares, types, targets, and what is refused."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.collection import GroupTable, Intersection, load_collection, make_target
from fairagent.errors import DataError
from fairagent.measures import joint_memberships

BOTH = "gender x region"
CROSSED = ("population: world.json", "population: world.json\nintersections: {gender x region: [gender, region]}")
LABELS = tuple(" x ".join(pair) for pair in itertools.product(("female", "male"), ("Africa", "Asia", "Europe")))
IDS = ["d1", "d2", "d3", "d4", "nobody"]


def faults_of(file: Path) -> list[tuple[str, int | None, str]]:
    with pytest.raises(DataError) as error:
        load_collection(file)
    return [(fault.path.name, fault.line, fault.message) for fault in error.value.faults]


def test_the_small_collection(write, settings):
    """d1 is a woman of Asia and Europe, d2 a man of Europe, d3 not known at all, d4 a man of Africa."""
    collection = load_collection(write({"collection.yaml": settings(CROSSED)}))
    groups = collection.groups
    assert groups.dimensions == ("gender", "region", BOTH)
    assert groups.labels(BOTH) == LABELS
    rows = np.zeros((5, 7))
    rows[0, [2, 3]], rows[[1, 2, 3, 4], [6, 0, 4, 0]] = 0.5, 1
    np.testing.assert_array_equal(groups.memberships(BOTH, IDS), rows)
    assert groups.of_type(BOTH, IDS) is None
    np.testing.assert_array_equal(groups.shares(BOTH), [0.25, 0, 0.125, 0.125, 0.25, 0, 0.25])
    assert groups.memberships(BOTH, []).shape == (0, 7)
    assert (groups.oracle, groups.predicted) == ((), ())
    # Half of the world each gender; Africa and Europe a quarter of it, Asia half.
    assert collection.population[BOTH] == dict(zip(LABELS, [0.125, 0.25, 0.125] * 2, strict=True))
    few, none = collection.notes
    assert few.endswith("female x Asia (1), female x Europe (1), male x Africa (1), male x Europe (1)")
    assert none.endswith("though they have a world share: female x Africa, male x Asia")


def test_weights_as_given_are_multiplied_as_given():
    """A page about a woman and a man (each 1) of Asia and Europe (half each): 1 + 1 = 2 in all."""
    rows = [("a", {"gender": ["f", "m"], "region": ["Asia", "Europe"]}), ("b", {"gender": ["f", "m"], "region": None})]
    table = GroupTable.from_rows(rows, ["gender", "region"], unnormalized=["gender"])
    both = Intersection(BOTH, {"gender": table, "region": table})
    np.testing.assert_array_equal(both.memberships(BOTH, ["a", "b"]), [[0, 0.5, 0.5, 0.5, 0.5], [2, 0, 0, 0, 0]])
    np.testing.assert_array_equal(both.shares(BOTH), [1, 0.25, 0.25, 0.25, 0.25])
    assert both.counts.tolist() == [1, 1, 1, 1]


weights = st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any)


@given(st.lists(st.tuples(weights, weights), min_size=1, max_size=6))
def test_it_is_the_joint_with_all_that_is_unknown_in_column_0(documents):
    names = ("@UNKNOWN", "a", "b")
    rows = [
        (f"d{n}", {"g": dict(zip(names, g, strict=True)), "h": dict(zip(names, h, strict=True))})
        for n, (g, h) in enumerate(documents)
    ]
    table = GroupTable.from_rows(rows, {"g": ["a", "b"], "h": ["a", "b"]})
    ids = [id for id, _ in rows]
    both = Intersection("g x h", {"g": table, "h": table}).memberships("g x h", ids)
    joint = joint_memberships([table.memberships("g", ids), table.memberships("h", ids)]).reshape(-1, 3, 3)
    np.testing.assert_allclose(both[:, 1:], joint[:, 1:, 1:].reshape(-1, 4), atol=1e-15)
    np.testing.assert_allclose(both.sum(axis=1), 1, atol=1e-15)


def test_parts_in_different_files(write, settings):
    """Of five documents in either file (d1 to d4, and d9) d2 alone has both: half a judge, half a poet."""
    blocks = """groups:
  - {path: groups.tsv, dimensions: {gender: {}}}
  - {path: more.jsonl, id: page, dimensions: {job: {}}}
population: {gender: {female: 0.5, male: 0.5}}
intersections: {gender x job: [gender, job]}
"""
    text = settings()
    more = '{"page": "d2", "job": ["judge", "poet"]}\n{"page": "d9", "job": "poet"}\n'
    file = write({"collection.yaml": text[: text.index("groups:")] + blocks, "more.jsonl": more})
    collection = load_collection(file)
    name = "gender x job"
    assert collection.groups.labels(name) == ("female x judge", "female x poet", "male x judge", "male x poet")
    np.testing.assert_array_equal(
        collection.groups.memberships(name, ["d1", "d2", "d9"]), [[1, 0, 0, 0, 0], [0, 0, 0, 0.5, 0.5], [1, 0, 0, 0, 0]]
    )
    np.testing.assert_allclose(collection.groups.shares(name), [0.8, 0, 0, 0.1, 0.1])
    assert collection.groups.missing(name) == pytest.approx(0.8)
    # There are no world shares for jobs, so there are none for the combinations.
    assert name not in collection.population


def test_labels_of_the_judgments_make_it_an_oracle(write, settings):
    text = settings(
        ("relevant: 1", "header: true, dimensions: {stance: {labels: [pro, con]}}"),
        ("population: world.json", "intersections: {stance x gender: [stance, gender]}"),
    )
    judged = "t\t0\td\tr\tstance\nT1\t0\td1\t1\tpro\nT1\t0\td2\t1\tcon\nT2\t0\td2\t1\tpro\nT2\t0\td3\t1\tpro\n"
    collection = load_collection(write({"collection.yaml": text, "qrels.tsv": judged}))
    groups, name = collection.groups, "stance x gender"
    assert groups.oracle == ("stance", name)
    assert groups.labels(name) == ("pro x female", "pro x male", "con x female", "con x male")
    np.testing.assert_array_equal(
        groups.memberships(name, ["d1", "d2", "d3"], "T1"), [[0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]
    )
    np.testing.assert_array_equal(groups.memberships(name, ["d2"], "T2"), [[0, 0, 1, 0, 0]])
    np.testing.assert_array_equal(groups.memberships(name, ["d2"]), [[1, 0, 0, 0, 0]])
    # Of four judged pairs one is a woman's, two are men's, and of d3 no gender is known.
    np.testing.assert_array_equal(groups.shares(name), [0.25, 0.25, 0.25, 0, 0.25])
    assert any(note.startswith("fewer than 30 judged documents") for note in collection.notes)
    assert make_target("corpus", name, collection, "T1").oracle


def test_it_is_of_the_type_of_every_part_that_says(write, settings):
    typed = settings(CROSSED, ("{column: gender}", "{column: gender, applies_to: {column: kind, values: [person]}}"))
    kinds = "id\tgender\tregions\tkind\nd1\tfemale\tAsia\tperson\nd2\t\tAsia\tperson\nd3\t\tEurope\triver\n"
    groups = load_collection(write({"collection.yaml": typed, "groups.tsv": kinds})).groups
    assert groups.of_type(BOTH, ["d1", "d2", "d3", "d9"]).tolist() == [True, True, False, False]
    assert groups.of_type(BOTH, []).tolist() == []
    assert groups.missing(BOTH) == pytest.approx(1 / 3)
    both = typed.replace('separator: "|"', 'separator: "|", applies_to: {column: regions}')
    kinds = kinds.replace("d2\t\tAsia", "d2\t\t")
    groups = load_collection(write({"collection.yaml": both, "groups.tsv": kinds})).groups
    assert groups.of_type("region", ["d1", "d2", "d3", "d9"]).tolist() == [True, False, True, False]
    assert groups.of_type(BOTH, ["d1", "d2", "d3", "d9"]).tolist() == [True, False, False, False]
    assert groups.missing(BOTH) == 0


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("{b: [gender, age]}", "'b': no dimension 'age'; there are: gender, region"),
        ("{b: [gender]}", "'b': expected two or more different dimensions, got gender"),
        ("{gender: [gender, region]}", "'gender': this is the name of a dimension; choose another"),
        ("{b: [gender, region], c: [b, region]}", "'c': no dimension 'b'; there are: gender, region (an intersection"),
    ],
)
def test_intersections_that_cannot_be(write, settings, wanted, message):
    text = settings(("population: world.json", f"population: world.json\nintersections: {wanted}"))
    ((name, line, found),) = faults_of(write({"collection.yaml": text}))
    assert (name, line) == ("collection.yaml", None)
    assert message in found
