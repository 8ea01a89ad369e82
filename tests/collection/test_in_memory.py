"""`Collection.from_records`: the same collection from every form of rows, and what is wrong with them by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import pytest

from fairagent.collection import Collection
from fairagent.errors import DataError

ROWS: list[dict[str, Any]] = [
    {"id": 1, "text": "one", "gender": "female", "year": 1901},
    {"id": 2, "text": "two", "gender": "male", "year": None},
    {"id": 3, "text": "three", "gender": None, "year": 1903},
]


class Row(NamedTuple):
    id: int
    text: str
    gender: str | None
    year: int | None


@dataclass
class Record:
    id: int
    text: str
    gender: str | None
    year: int | None


class Polars:
    """The one method of a polars frame that is called."""

    def iter_rows(self, named: bool) -> Iterator[dict[str, Any]]:
        assert named
        return iter(ROWS)


def pandas() -> Any:
    import pandas

    return pandas.DataFrame(ROWS)


def pyarrow() -> Any:
    import pyarrow

    return pyarrow.Table.from_pylist(ROWS)


def dataset() -> Any:
    from datasets import Dataset

    return Dataset.from_list(ROWS)


FORMS: dict[str, Callable[[], Any]] = {
    "dicts": lambda: ROWS,
    "a generator": lambda: (row for row in ROWS),
    "named tuples": lambda: [Row(**row) for row in ROWS],
    "dataclasses": lambda: [Record(**row) for row in ROWS],
    "numpy": lambda: [row | {"id": np.int64(row["id"])} for row in ROWS],
    "pandas": pandas,
    "pyarrow": pyarrow,
    "polars": Polars,
    "datasets": dataset,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_collection_is_the_same_from_all_rows(form: str) -> None:
    collection = Collection.from_records(FORMS[form](), groups="gender")
    documents = list(collection.documents())
    assert [(one.id, one.text) for one in documents] == [("1", "one"), ("2", "two"), ("3", "three")]
    # pandas makes fractions of whole numbers beside an empty cell: that is undone.
    assert [repr(one.extra["year"]) for one in documents] == ["1901", "None", "1903"]
    assert collection.groups.labels("gender") == ("female", "male")
    assert collection.groups.memberships("gender", ["1", "2", "3"]).tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert collection.fingerprint() == Collection.from_records(ROWS, groups="gender").fingerprint()
    assert collection.source.count() == 3


def test_all_that_can_be_said_of_columns() -> None:
    sure = {"left": 0.7, "right": 0.3}
    rows = [
        {"key": "a", "head": "A", "body": "x", "more": "y", "who": ["female", "male"], "sure": sure},
        {"key": "b", "head": "B", "body": "z", "more": "", "who": ("male",), "sure": None, "on": date(2024, 5, 1)},
    ]
    collection = Collection.from_records(
        rows,
        text=["body", "more"],
        id="key",
        title="head",
        groups={"gender": "who", "leaning": {"column": "sure", "predicted": True}},
        population={"gender": {"female": 0.5, "male": 0.4, "nonbinary": 0.1}},
        name="mine",
    )
    first, second = collection.documents()
    assert (first.id, first.title, first.text, second.text) == ("a", "A", "x y", "z")
    assert second.extra["on"] == "2024-05-01"
    assert collection.groups.labels("gender") == ("female", "male", "nonbinary")  # the population's own among them
    assert collection.groups.memberships("gender", ["a"]).tolist() == [[0, 0.5, 0.5, 0]]
    assert collection.groups.memberships("leaning", ["a"]).tolist() == [[0, 0.7, 0.3]]
    assert collection.groups.predicted == ("leaning",)
    assert collection.name == "mine"
    assert "no document is in these groups of 'gender': nonbinary" in collection.notes


FOURTH = {"id": 4, "text": "x"}
WRONG = [
    ([{"id": "a", "body": "x"}] * 3, {}, "records:1: no field 'text'; there are: id, body (and so in 2 more)"),
    (ROWS, {"id": "key"}, "records:1: no field 'key'; there are: id, text, gender"),
    (ROWS, {"groups": "gendr"}, "records:1: dimension 'gendr': no column 'gendr'; did you mean 'gender'?"),
    ([*ROWS, FOURTH | {"id": 1}], {}, "records:4: the document id '1' is that of 1 already"),
    *(
        ([*ROWS, FOURTH | {"text": cell}], {}, "records:4: field 'text' is ")
        for cell in (2.5, b"\xff", ["law"], {"law": 1}, object())
    ),
    ([*ROWS, FOURTH | {"gender": 0.5}], {"groups": "gender"}, "records:4: gender: 0.5 is no label; expected"),
    ([], {}, "there are no rows"),
    (ROWS, {"groups": "gender", "population": {"gender": {"female": 0.5}}}, "add up to 0.5"),
]


@pytest.mark.parametrize(("rows", "columns", "message"), WRONG)
def test_errors_name_their_row(rows: Any, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as raised:
        Collection.from_records(rows, **columns)
    assert message in str(raised.value)
