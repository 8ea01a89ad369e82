"""Ids of rows that have none of their own: which row gets which, and that it depends on no other row but its like."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.collection.collection import Documents
from fairagent.collection.config import CONTENT, DocumentsFile, RecordsFile
from fairagent.collection.forms import mended, records, whole_ids, with_ids
from fairagent.collection.records import Faults
from fairagent.errors import SettingsError
from fairagent.settings import validate

CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["", "a", " a", "a ", "b c", "b_c", "x" * 300])
)


def digest(row: dict[str, Any]) -> str:
    text = json.dumps(row, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def ids_of(rows: list[dict[str, Any]]) -> list[str]:
    numbered = list(enumerate(rows, start=1))
    return [row["id"] for _, row in mended(numbered, "id", Faults(), whole_ids(numbered, "id"))]


def test_ids_are_mended_by_the_content_of_their_rows(tmp_path: Path) -> None:
    """The first with an id of its own keeps it, though one that is mended comes before it."""
    cells = [" a", "a", "", "a", "b c", "b_c", "d e", None, 7, 8.0, True]
    rows = [{"id": id, "n": n} for n, id in enumerate(cells)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    faults, fields = Faults(), RecordsFile(ids="mend")
    read = [record for _, record in records(path, fields, faults)]
    marks = [digest(row) for row in rows]
    own = [f"a-{marks[0]}", "a", f"row-{marks[2]}", f"a-{marks[3]}", f"b_c-{marks[4]}", "b_c", "d_e"]
    own += [f"row-{marks[7]}", "7", "8", f"row-{marks[10]}"]
    assert [str(row["id"]) for row in read] == own
    assert [row["n"] for row in read] == list(range(11))
    assert [int(note[5:].partition(":")[0]) for note in faults.mended] == [1, 3, 4, 5, 7, 8, 10, 11]
    source = Documents("made", (path,), DocumentsFile(path=("rows.jsonl",), text=("n",), ids="mend"))
    assert [one.id for one in source] == own
    assert "8 ids of rows.jsonl mended" in source.notes[0]


@given(st.lists(st.fixed_dictionaries({"id": CELLS, "n": st.integers(0, 2)}), max_size=12), st.data())
def test_a_row_that_goes_changes_no_other_but_its_like(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    ids = ids_of(rows)
    assert len(set(ids)) == len(ids)
    if rows:
        gone = data.draw(st.integers(0, len(rows) - 1))
        others = rows[:gone] + rows[gone + 1 :]
        before, after = (
            {(digest(row), id) for row, id in zip(some, ids_of(some), strict=True)} for some in (rows, others)
        )
        assert len(after - before) <= 1  # one row at most, which had to make way for the one that is gone


def test_the_content_is_the_id_where_there_is_no_other() -> None:
    rows = [{"text": "one"}, {"text": "two"}, {"text": "one"}]
    ids = [row[CONTENT] for _, row in with_ids(enumerate(rows, start=1), CONTENT)]
    assert ids == [f"row-{digest(rows[0])}", f"row-{digest(rows[1])}", f"row-{digest(rows[0])}-2"]


def test_a_template_is_not_mended() -> None:
    with pytest.raises(SettingsError, match="the ids of one column"):
        validate(RecordsFile, {"id": "{a}-{b}", "ids": "mend"}, "x")
