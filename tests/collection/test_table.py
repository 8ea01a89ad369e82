"""Tables of groups: looked up, saved and cached; and intersections of dimensions."""

import itertools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairagent.collection import GroupTable, Intersection, load_collection, make_target
from fairagent.collection import load as loading
from fairagent.errors import DataError

ROWS = [
    ("b", {"gender": "male", "region": ["Asia", "Europe"]}),
    ("c", {"gender": None}),
    ("ä", {"gender": "female", "region": {"Asia": 1, "Africa": 3}}),
]


def test_look_up_by_hand():
    table = GroupTable.from_rows(ROWS, ["gender", "region"])
    assert repr(table) == "GroupTable(3 documents, gender, region)"
    assert [table.labels(name) for name in table.dimensions] == [("female", "male"), ("Africa", "Asia", "Europe")]
    ids = ["ä", "b", "c"]
    assert table.memberships("gender", ids).tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert table.memberships("region", ids).tolist() == [[0, 0.75, 0.25, 0], [0, 0, 0.5, 0.5], [1, 0, 0, 0]]
    np.testing.assert_allclose(table.shares("gender"), [1 / 3, 1 / 3, 1 / 3])
    np.testing.assert_allclose(table.shares("region"), [1 / 3, 0.25, 0.25, 0.5 / 3])


@pytest.mark.parametrize("dimension", ["gender", "region"])
def test_absent_strange_and_repeated_ids(dimension):
    table = GroupTable.from_rows(ROWS, ["gender", "region"])
    strange = ["", "zz", "b" * 300, "b\n", "b\nc", "\ud83d", "bb"]
    rows = table.memberships(dimension, [*strange, "b", "b"]).tolist()
    unknown = [1.0] + [0.0] * len(table.labels(dimension))
    assert rows == [*[unknown] * len(strange), *table.memberships(dimension, ["b"]).tolist() * 2]
    assert table.memberships(dimension, []).shape == (0, len(unknown))


def test_all_faults_of_the_rows_are_raised_together():
    cells = ["x", "y", "x", "x", {"x": float("nan")}, {"x": 10**400}, {"x": True}, None, ["z"], "x"]
    ids = ["a", "a", "b c", "", "d", "e", "f", "h", "i", "k" * 256]
    rows = [(id, {"other": "x"} if id == "h" else {"g": cell}) for id, cell in zip(ids, cells, strict=True)]
    with pytest.raises(DataError, match="groups: 9 errors") as error:
        GroupTable.from_rows(rows, {"g": ["x", "y"]})
    assert sorted(fault.line for fault in error.value.faults if fault.line) == [2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_save_and_load(tmp_path):
    table = GroupTable.from_rows(ROWS, ["gender", "region"], unnormalized=["region"])
    table.save(tmp_path / "t")
    table.save(tmp_path / "t")
    mapped = GroupTable.load(str(tmp_path / "t"))
    for dimension in table.dimensions:
        assert mapped.labels(dimension) == table.labels(dimension)
        for ask in (lambda one, name: one.memberships(name, ["c", "ä", "zz", "b"]), GroupTable.shares):
            np.testing.assert_array_equal(ask(mapped, dimension), ask(table, dimension))
    assert mapped.memberships("region", ["ä"]).tolist() == [[0, 3, 1, 0]]
    assert isinstance(mapped.ids.base, np.memmap)


def damage_head(folder, **changes):
    head = json.loads((folder / "groups.json").read_text(encoding="utf-8"))
    (folder / "groups.json").write_text(json.dumps(head | changes), encoding="utf-8")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "groups.json").unlink(),
        lambda folder: damage_head(folder, documents=4),
        lambda folder: (folder / "ids.npy").write_bytes((folder / "ids.npy").read_bytes()[:-4]),
        lambda folder: np.save(folder / "0.codes.npy", np.zeros(2, np.uint8)),
    ],
)
def test_a_damaged_table_is_refused(tmp_path, damage):
    GroupTable.from_rows(ROWS, ["gender", "region"]).save(tmp_path)
    damage(tmp_path)
    with pytest.raises(DataError, match="not a complete group table"):
        GroupTable.load(tmp_path)


TEXT_IDS = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=12)
LABEL = st.sampled_from(["a", "b", "c", "@UNKNOWN"])
VALUES = st.one_of(
    st.none(),
    LABEL,
    st.lists(LABEL, max_size=4),
    st.dictionaries(LABEL, st.floats(0, 1e6, allow_subnormal=False), max_size=4),
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(TEXT_IDS, VALUES, min_size=1, max_size=30), st.booleans(), st.lists(TEXT_IDS, max_size=5))
def test_the_table_says_what_a_dictionary_says(values, normalize, others):
    """Law: compact storage changes nothing; the reference is a plain dictionary."""
    labels, rows = ["a", "b", "c"], [(id, {"g": value}) for id, value in values.items()]
    table = GroupTable.from_rows(rows, {"g": labels}, () if normalize else ["g"])
    asked = [*reversed(values), *others]
    for id, row in zip(asked, table.memberships("g", asked), strict=True):
        value = values.get(id)
        given = {value: 1.0} if isinstance(value, str) else value or {}
        given = given if isinstance(given, dict) else dict.fromkeys(given, 1.0)
        weights = {label: weight for label, weight in given.items() if weight} or {"@UNKNOWN": 1.0}
        total = sum(weights.values()) if normalize else 1.0
        np.testing.assert_allclose(row, [weights.get(one, 0) / total for one in ("@UNKNOWN", *labels)], rtol=1e-12)
    mean = table.memberships("g", list(values)).mean(axis=0)
    np.testing.assert_allclose(table.shares("g"), mean, rtol=1e-9, atol=1e-12)


MANY = 10_000
COLLECTION = """
name: big
documents: {path: docs.jsonl}
groups: {path: groups.tsv, dimensions: {gender: {}, region: {separator: "|"}}}
"""


def many(first: str = "female") -> str:
    """Enough text that its table is cached; `first` is the gender of p0."""
    genders, regions = ("female", "male", "nonbinary"), ("Asia", "Africa|Asia", "", "Europe")
    lines = [f"page-{n:012}\t{first if n == 0 else genders[n % 3]}\t{regions[n % 4]}" for n in range(MANY)]
    return "\n".join(["id\tgender\tregion", *lines, ""])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "collection.yaml").write_text(COLLECTION)
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "b"}\n')
    (tmp_path / "groups.tsv").write_text(many())
    assert (tmp_path / "groups.tsv").stat().st_size > loading.WORTH_CACHING
    return tmp_path / "collection.yaml"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The group files that were read as text."""
    read, paths = loading.read_groups, list[Path]()
    monkeypatch.setattr(loading, "read_groups", lambda path, *rest: paths.append(path) or read(path, *rest))
    return paths


def table_of(file: Path) -> GroupTable:
    groups = load_collection(file, file.parent / "index").groups
    assert isinstance(groups, GroupTable)
    return groups


def folders(file: Path) -> list[Path]:
    return sorted(path for path in file.parent.glob("index*") if path.is_dir())


def same(one: GroupTable, other: GroupTable) -> bool:
    ids = [f"page-{n:012}" for n in (*range(MANY), MANY)]
    return len(one) == len(other) and all(
        one.labels(name) == other.labels(name)
        and np.array_equal(one.memberships(name, ids), other.memberships(name, ids))
        and np.array_equal(one.shares(name), other.shares(name))
        for name in ("gender", "region")
    )


def test_a_table_is_read_once_and_says_the_same(file: Path, reads: list[Path]) -> None:
    read, mapped = table_of(file), table_of(file)
    assert (len(reads), len(folders(file))) == (1, 1)
    assert same(read, mapped)
    assert mapped.memberships("region", ["page-000000000001"]).tolist() == [[0.0, 0.5, 0.5, 0.0]]


def test_a_changed_file_is_read_again(file: Path, reads: list[Path]) -> None:
    groups = file.parent / "groups.tsv"
    first, time = table_of(file), groups.stat().st_mtime_ns
    groups.write_text(many("nobody"))
    os.utime(groups, ns=(time, time))
    assert first.labels("gender") == ("female", "male", "nonbinary")
    assert table_of(file).labels("gender") == ("female", "male", "nobody", "nonbinary")
    # The one from before is gone, with the labels of what may have been deleted; whoever has it can go on reading it.
    assert len(folders(file)) == 1
    groups.write_text(many())
    assert same(table_of(file), first)
    assert len(reads) == 3


def test_a_file_that_changes_while_it_is_read_is_not_cached(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = loading.read_groups

    def changing(path: Path, *rest: Any) -> GroupTable | None:
        path.write_text(many("nobody"))
        return read(path, *rest)

    monkeypatch.setattr(loading, "read_groups", changing)
    table_of(file)
    assert folders(file) == []
    monkeypatch.undo()
    (file.parent / "groups.tsv").write_text(many())
    assert table_of(file).labels("gender") == ("female", "male", "nonbinary")


def test_what_is_half_gone_is_made_anew(file: Path, reads: list[Path]) -> None:
    first = table_of(file)
    (folder,) = folders(file)
    for gone in sorted(folder.iterdir()):
        gone.unlink()
        assert same(table_of(file), first)
        assert gone.is_file()


BOTH = "gender x region"
CROSSED = ("population: world.json", "population: world.json\nintersections: {gender x region: [gender, region]}")
CELLS = tuple(" x ".join(pair) for pair in itertools.product(("female", "male"), ("Africa", "Asia", "Europe")))
IDS = ["d1", "d2", "d3", "d4", "nobody"]


def test_an_intersection_of_the_small_collection(write, settings):
    """d1 is a woman of Asia and Europe, d2 a man of Europe, d3 not known at all, d4 a man of Africa."""
    collection = load_collection(write({"collection.yaml": settings(CROSSED)}))
    groups = collection.groups
    assert groups.dimensions == ("gender", "region", BOTH)
    assert groups.labels(BOTH) == CELLS
    rows = np.zeros((5, 7))
    rows[0, [2, 3]], rows[[1, 2, 3, 4], [6, 0, 4, 0]] = 0.5, 1
    np.testing.assert_array_equal(groups.memberships(BOTH, IDS), rows)
    assert groups.of_type(BOTH, IDS) is None
    np.testing.assert_array_equal(groups.shares(BOTH), [0.25, 0, 0.125, 0.125, 0.25, 0, 0.25])
    assert groups.memberships(BOTH, []).shape == (0, 7)
    assert (groups.oracle, groups.predicted) == ((), ())
    # Half of the world each gender; Africa and Europe a quarter of it, Asia half.
    assert collection.population[BOTH] == dict(zip(CELLS, [0.125, 0.25, 0.125] * 2, strict=True))
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


def test_parts_in_different_files(write, settings):
    """Of five documents in either file (d1 to d4, and d9) d2 alone has both: half a judge, half a poet."""
    blocks = """groups:
  - {path: groups.tsv, dimensions: {gender: {}}}
  - {path: more.jsonl, id: page, dimensions: {job: {}}}
population: {gender: {female: 0.5, male: 0.5}}
intersections: {gender x job: [gender, job]}
"""
    text, name = settings(), "gender x job"
    more = '{"page": "d2", "job": ["judge", "poet"]}\n{"page": "d9", "job": "poet"}\n'
    file = write({"collection.yaml": text[: text.index("groups:")] + blocks, "more.jsonl": more})
    collection = load_collection(file)
    groups = collection.groups
    assert groups.labels(name) == ("female x judge", "female x poet", "male x judge", "male x poet")
    assert groups.memberships(name, ["d1", "d2"]).tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0.5, 0.5]]
    np.testing.assert_allclose(groups.shares(name), [0.8, 0, 0, 0.1, 0.1])
    assert groups.missing(name) == pytest.approx(0.8)
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
    for id, topic, column in (("d1", "T1", 1), ("d2", "T1", 4), ("d3", "T1", 0), ("d2", "T2", 2), ("d2", "", 0)):
        assert groups.memberships(name, [id], topic).tolist() == [[float(place == column) for place in range(5)]]
    # Of four judged pairs one is a woman's, two are men's, and of d3 no gender is known.
    assert groups.shares(name).tolist() == [0.25, 0.25, 0.25, 0, 0.25]
    assert any(note.startswith("fewer than 30 judged documents") for note in collection.notes)
    assert make_target("corpus", name, collection, "T1").oracle


def test_it_is_of_the_type_of_every_part_that_says(write, settings):
    typed = settings(CROSSED, ("{column: gender}", "{column: gender, applies_to: {column: kind, values: [person]}}"))
    both = typed.replace('separator: "|"', 'separator: "|", applies_to: {column: regions}')
    for text, second, of_type, missing in (
        (typed, "Asia", [True, True, False, False], 1 / 3),
        (both, "", [True, False, False, False], 0),
    ):
        kinds = f"id\tgender\tregions\tkind\nd1\tfemale\tAsia\tperson\nd2\t\t{second}\tperson\nd3\t\tEurope\triver\n"
        groups = load_collection(write({"collection.yaml": text, "groups.tsv": kinds})).groups
        assert groups.of_type(BOTH, ["d1", "d2", "d3", "d9"]).tolist() == of_type
        assert groups.of_type(BOTH, []).tolist() == []
        assert groups.missing(BOTH) == pytest.approx(missing)
