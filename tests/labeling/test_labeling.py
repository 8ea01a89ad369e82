"""Examples, the classifier, the file of made labels, and which documents are asked about first."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent import Collection
from fairagent.collection.known import KnownIds
from fairagent.collection.labels import LabelErrors, read_label_errors
from fairagent.errors import DataError, SettingsError
from fairagent.labeling.examples import Examples, examples_of, read_examples
from fairagent.labeling.labeler import WordLists, log_loss, most_helpful, read_word_lists, tempered, uncertainty
from fairagent.types import Document, Ranking


def rows(red: int = 10, blue: int = 10, bare: int = 5) -> list[dict[str, str]]:
    made = [{"id": f"r{n}", "text": "poppy rose", "color": "red"} for n in range(red)]
    made += [{"id": f"b{n}", "text": "sea sky", "color": "blue"} for n in range(blue)]
    return made + [{"id": f"n{n}", "text": "poppy rose", "color": ""} for n in range(bare)]


def found(some: list[dict[str, str]], file: Path | None = None) -> Examples:
    collection = Collection.from_records(some, groups="color", name="colors")
    known = KnownIds.of("the collection", [row["id"] for row in some])
    return examples_of(collection, "color", known, file)


def test_examples_of_a_column_and_of_a_file(tmp_path: Path) -> None:
    examples = found(rows(7, 5, 3))
    assert (examples.labels, examples.counts, examples.ids[0]) == (("blue", "red"), (5, 7), "b0")
    assert examples.given == {*(f"r{n}" for n in range(7)), *(f"b{n}" for n in range(5))}
    file = tmp_path / "more.jsonl"
    file.write_text('{"id": "n0", "color": "red"}\n{"id": "n1", "label": "blue"}\n{"id": "n2", "color": ""}\n')
    examples = found(rows(), file)
    assert (examples.counts, examples.of_file) == ((11, 11), {"n0": "red", "n1": "blue"})
    # A group of too few examples is never made.
    examples = found([*rows(), {"id": "g", "text": "leaf", "color": "green"}])
    assert examples.labels == ("blue", "red")
    assert examples.notes == ("fewer than 3 examples, so never made, of: green",)
    assert "g" in examples.given


@pytest.mark.parametrize(
    ("some", "content", "says"),
    [
        (rows(5, 4), "", "9 labeled examples"),
        (rows(12, 0), "", "one group alone"),
        (rows(12, 2), "", "one group alone"),
        (rows(), "n0,red\nn0,blue\n", r"more\.csv:3: 'n0' is 'blue' here and 'red' above"),
        (rows(), "r0,blue\n", "'r0' is 'blue' there, and 'red' in the collection"),
        (rows(), "x,red\ny,blue\n", "none of the 2 examples"),
    ],
    ids=["few", "one group", "one group and two of another", "twice", "of the collection", "unknown"],
)
def test_examples_that_cannot_be_learned_from(
    tmp_path: Path, some: list[dict[str, str]], content: str, says: str
) -> None:
    file = tmp_path / "more.csv"
    file.write_text(f"id,color\n{content}")
    with pytest.raises(DataError, match=says):
        found(some, file if content else None)
    file.write_text("id,color\nn0,red\nx,blue\n")
    assert "1 of 2 examples in more.csv are not in the collection" in found(rows(), file).notes[0]


def task(id: object, *choices: list[str], question: str = "color", skipped: bool = False) -> dict[str, Any]:
    """A task as Label Studio's JSON export has it, with an annotation of each."""
    about = {"id": "Dx_aB91ISN", "from_name": question, "to_name": "text", "type": "choices", "origin": "manual"}
    annotations = [
        {"id": number, "completed_by": 1, "was_cancelled": skipped, "result": [about | {"value": {"choices": chosen}}]}
        for number, chosen in enumerate(choices, start=1001)
    ]
    data = {"id": id, "title": "", "text": "poppy rose"}
    return {"id": 7, "data": data, "annotations": annotations, "predictions": [], "meta": {}, "project": 3}


def argilla(id: str, *values: str, question: str = "color") -> dict[str, Any]:
    """A record as Argilla's `records.to_json` has it, with a response of each."""
    responses = {question: [{"value": value, "user_id": "a3f0"} for value in values]} if values else {}
    about = {"fields": {"text": "poppy rose"}, "metadata": {}, "suggestions": {}, "vectors": {}, "_server_id": "b1"}
    return {"id": id, **about, "responses": responses}


@pytest.mark.parametrize(
    "records",
    [
        [task("a", ["red"]), task(2, ["blue"], ["blue"]), task("c", ["red"], skipped=True), task("d")],
        [argilla("a", "red"), argilla("2", "blue", "blue"), argilla("d")],
        [argilla("a", "red", question="label"), argilla("2", "blue")],
    ],
    ids=["label studio", "argilla", "argilla, label"],
)
def test_exports_of_label_studio_and_argilla(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    file = tmp_path / "export.json"
    for text in (json.dumps(records), json.dumps(records, indent=2), "\n".join(map(json.dumps, records))):
        file.write_text(text)
        assert read_examples(file, "color") == {"a": "red", "2": "blue"}


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (task("b", ["red"], ["blue"]), "'b' is 'blue' here and 'red' above"),
        (task("b", ["red"], question="mood"), "'color' or 'label'; there are: mood"),
        (argilla("b", "red", "blue"), "'b' is 'blue' here and 'red' above"),
        ({**argilla("b"), "responses": ["red"]}, "no record of Argilla"),
    ],
)
def test_exports_that_cannot_be_read_are_told_with_their_place(tmp_path: Path, record: Any, says: str) -> None:
    file = tmp_path / "export.json"
    file.write_text(json.dumps([task("a", ["red"]), record]))
    with pytest.raises(DataError, match=f"export.json:2: .*{re.escape(says)}"):
        read_examples(file, "color")
    file.write_text("[{]")
    with pytest.raises(DataError, match="no list of records"):
        read_examples(file, "color")


class Spelled:
    """Evidence that says what the ids begin with, and nothing of ids that begin with q."""

    source = "spelled"

    def rows(self, ids: list[str]) -> tuple[np.ndarray, np.ndarray]:
        values = np.array([[float(id[0] == "r"), float(id[0] == "b")] for id in ids]).reshape(-1, 2)
        return values, np.array([id[0] != "q" for id in ids], np.bool_)


def test_labels_are_made_and_given_ones_stay(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    from fairagent.collection import load_collection
    from fairagent.labeling.labeler import make_labels, unlabeled_ids, write_labels

    new = ["r-new", "b-new", "q-new"]
    some = [*rows(20, 20, 0), *({"id": id, "text": "rose", "color": ""} for id in new)]
    collection, examples = Collection.from_records(some, groups="color", name="colors"), found(some)
    assert unlabeled_ids(collection, "color", examples.given) == new
    made = make_labels(examples, Spelled(), new)
    assert made.labeled.tolist() == [True, True, False]
    assert made.chances.argmax(axis=1)[:2].tolist() == [1, 0]
    assert (made.errors.accuracy, made.errors.right) == (1.0, (1.0, 1.0))

    write_labels(tmp_path / "labels.jsonl", collection, made)
    made.errors.write(tmp_path / "labels.errors.json")
    records = {one["id"]: one for one in map(json.loads, (tmp_path / "labels.jsonl").read_text().splitlines())}
    assert records["r0"] == {"id": "r0", "color": "red", "source": "given"}
    assert records["r-new"]["source"] == "spelled"
    assert sum(records["r-new"]["color"].values()) == pytest.approx(1.0)
    assert records["q-new"] == {"id": "q-new", "color": None, "source": "spelled: abstained"}

    (tmp_path / "docs.jsonl").write_text("".join(json.dumps({"id": r["id"], "text": r["text"]}) + "\n" for r in some))
    (tmp_path / "collection.yaml").write_text(
        "name: colors\ndocuments: {path: docs.jsonl}\n"
        "groups: {path: labels.jsonl, dimensions: {color: {predicted: true, errors: labels.errors.json}}}\n"
    )
    again = load_collection(tmp_path / "collection.yaml")
    assert again.label_errors["color"] == made.errors
    assert again.groups.memberships("color", ["r0", "q-new"]).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_label_errors_are_read_as_they_were_written_or_refused(tmp_path: Path) -> None:
    path, about = tmp_path / "some.errors.json", {"source": "spelled", "accuracy": 0.9, "calibration": 0.1}
    errors = LabelErrors(dimension="color", labels=("blue", "red"), examples=(9, 7), right=(0.9, 0.8), **about)
    errors.write(path)
    assert read_label_errors(path) == errors
    path.write_text(path.read_text().replace("0.8", "0.8, 0.7"))
    with pytest.raises(SettingsError, match=r"(?s)some\.errors\.json.*2 examples and 2 shares"):
        read_label_errors(path)
    with pytest.raises(DataError, match="no file of label errors"):
        read_label_errors(tmp_path / "missing.json")


def test_words_are_counted_by_label() -> None:
    lists = WordLists({"female": ["she", "her", "Ms"], "male": ["he", "his", "Ms"]}, {})
    # "Ms" is of both: half for each.
    assert lists.counts("She said that he and her aunt met Ms Hale.").tolist() == [2.5, 1.5]
    assert WordLists({"a": ["New York"], "b": ["York"]}, {}).counts("new york, York").tolist() == [1, 2]
    # A document without any word says nothing.
    texts = {"d": Document("d", "she and she", "Her"), "e": Document("e", "a tree", "")}
    numbers, told = WordLists({"female": ["she", "her"], "male": ["he"]}, texts).rows(["d", "e"])
    assert told.tolist() == [True, False]
    assert numbers.tolist() == [[math.log(4), 0], [0, 0]]


@pytest.mark.parametrize(
    ("text", "says"),
    [("a: [x]\n", "1 label with words"), ("a: [x]\nb: []\n", "'b' has"), ("a: [x]\nb: y\n", "'b' has")],
)
def test_wrong_word_lists(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "words.yaml"
    file.write_text(text)
    with pytest.raises(DataError, match=says):
        read_word_lists(file)
    file.write_text("a: [x, y z]\nb: [w]\n")
    assert read_word_lists(file) == {"a": ["x", "y z"], "b": ["w"]}


def test_the_entropy_of_chances() -> None:
    assert log_loss(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 0])) == pytest.approx(math.log(2) / 2)
    assert tempered(np.array([[0.8, 0.2]]), 2.0) == pytest.approx(np.array([[2 / 3, 1 / 3]]))
    entropies = uncertainty(np.array([[1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]))
    assert entropies == pytest.approx([1.0, math.log(2) / math.log(3), 0.0])


def test_what_is_asked_first_is_uncertain_and_seen_or_like_the_others() -> None:
    """Attention at ranks 1, 2 and 3 is 1, 1 and 1 / log2(3); c is certain, and d is in no list."""
    chances = np.array([[0.9, 0.1], [0.5, 0.5], [1.0, 0.0], [0.5, 0.5]])
    lists = {"1": Ranking(("a", "c", "b"), np.array([3.0, 2, 1])), "2": Ranking(("b",), np.array([1.0]))}
    helpful = most_helpful(tuple("abcd"), chances, lists, count=3)
    assert [one.id for one in helpful] == ["b", "a", "c"]
    assert helpful[0].weight == pytest.approx(1 + 1 / math.log2(3))
    assert (helpful[0].lists, helpful[0].uncertainty) == (2, 1.0)
    assert helpful[0].why == "uncertainty 1.00, in the lists of 2 topics"
    # Without topics: the mean of the vectors is (.7, .4), the products .7, .7, .4 and .8.
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])
    helpful = most_helpful(tuple("abcd"), None, {}, vectors, count=4)
    assert [one.id for one in helpful] == ["d", "a", "b", "c"]
    assert [one.weight for one in helpful] == pytest.approx([0.8, 0.7, 0.7, 0.4])
