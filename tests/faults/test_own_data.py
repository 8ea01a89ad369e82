"""Cases 135 to 144 and 190 to 192 of docs/reliability.md: data of one's own that will not do, said where it is."""

from __future__ import annotations

import gc
import random
from pathlib import Path
from typing import Any

import pytest

from fairagent import (
    Collection,
    DataError,
    FairAgent,
    SettingsError,
    UsageError,
    fair_rerank,
    load_collection,
    open_agent,
)
from fairagent.collection.look import look_at
from fairagent.errors import FairAgentError

pytestmark = pytest.mark.usefixtures("no_variables")

ROWS: list[dict[str, Any]] = [
    {"id": f"d{place}", "text": f"the law of town {place}", "gender": "female" if place % 3 else "male"}
    for place in range(9)
]


def csv(folder: Path, text: str) -> Path:
    """A collection whose documents and groups are one CSV file."""
    (folder / "rows.csv").write_text(text, encoding="utf-8")
    file = folder / "collection.yaml"
    groups = "groups: {path: rows.csv, dimensions: {gender: {}}}"
    file.write_text(f"name: own\ndocuments: {{path: rows.csv}}\n{groups}\n", encoding="utf-8")
    return file


def test_135_ragged_rows_are_all_named_with_their_lines(tmp_path: Path) -> None:
    file = csv(tmp_path, "id,text,gender\na,law,female\nb,law, and more,male\nc,law\nd,law,male\n")
    for read in (
        lambda: load_collection(file),
        lambda: Collection.from_records(tmp_path / "rows.csv", groups="gender"),
    ):
        with pytest.raises(DataError) as raised:
            read()
        assert [fault.line for fault in raised.value.faults] == [3, 4]
        assert "expected 3 columns (id, text, gender), got 4" in str(raised.value)
        assert "a cell that holds a separator is quoted" in str(raised.value)


def test_136_a_quote_that_is_never_closed_is_said_where_it_opens(tmp_path: Path) -> None:
    file = csv(tmp_path, 'id,text,gender\na,law,female\nb,"law,male\nc,law,male\nd,law,male\n')
    with pytest.raises(DataError, match=r"rows\.csv:3: no row of a CSV file \(unexpected end of data\)"):
        load_collection(file)


def test_137_a_column_of_groups_that_is_empty(tmp_path: Path) -> None:
    empty = [row | {"gender": ""} for row in ROWS]
    with pytest.raises(DataError, match="the column 'gender' of dimension 'gender' is empty in every row"):
        FairAgent.from_records(empty, groups="gender")
    with pytest.raises(DataError, match="no hit has a label of 'gender'"):
        fair_rerank(empty, "gender")
    collection = load_collection(csv(tmp_path, "id,text,gender\na,law,\nb,law,\n"))
    assert "no document has a label of dimension 'gender'" in collection.notes
    assert look_at(tmp_path / "rows.csv").groups == ()


def test_138_a_column_that_there_is_not_is_named_with_those_that_there_are() -> None:
    there = "there are: id, text, gender"
    for columns in ({"text": "txt"}, {"id": "key"}, {"groups": ["sex"]}):
        with pytest.raises(DataError, match=there):
            FairAgent.from_records(ROWS, **columns)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=there):
        fair_rerank(ROWS, "sex")


def test_139_and_140_ids_that_occur_twice_and_cells_that_are_no_text_are_said_with_their_rows() -> None:
    with pytest.raises(DataError, match="records:10: the document id 'd0' is that of 1 already"):
        FairAgent.from_records([*ROWS, ROWS[0]])
    for cell in (2.5, None, b"law", ["law"], {"law": 1}, object()):
        with pytest.raises(DataError, match=r"records:10: field 'text' is .*, expected text"):
            FairAgent.from_records([*ROWS, {"id": "odd", "text": cell}])


@pytest.mark.parametrize("form", ["csv", "parquet", "dataset"])
def test_141_damage_at_random_is_an_error_of_ours_or_none(tmp_path: Path, form: str) -> None:
    """Arrow believes the offsets that a file names: a wrong one ended the process."""
    import pyarrow
    from datasets import Dataset, disable_progress_bars
    from pyarrow.parquet import write_table

    disable_progress_bars()
    source = file = tmp_path / f"rows.{form}"
    if form == "csv":
        csv(tmp_path, "id,text,gender\n" + "".join(f'{row["id"]},"{row["text"]}, x",f\n' for row in ROWS))
    elif form == "parquet":
        write_table(pyarrow.Table.from_pylist(ROWS), file)
    else:
        Dataset.from_list(ROWS).save_to_disk(str(source))
        (file,) = source.glob("*.arrow")
    whole, rng, found = file.read_bytes(), random.Random(166), 0
    for _ in range(30):
        damaged = bytearray(whole)
        for _ in range(rng.choice((1, 3, 10))):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        file.write_bytes(damaged)
        for read in (lambda: Collection.from_records(source), lambda: look_at(source)):
            try:
                read()
            except FairAgentError:
                found += 1
    assert found > 10


def test_142_hits_in_no_order_or_of_no_kind_are_refused() -> None:
    with pytest.raises(UsageError, match="the hits are in no order: hit 3 has the score 3 and the one before it 1"):
        fair_rerank([("a", 2), ("b", 1), ("c", 3)], {"gender": {"a": "female"}})
    with pytest.raises(UsageError, match="hit 2 is a object"):
        fair_rerank([("a", 2), object()], {"gender": {"a": "female"}})


def test_143_no_groups_at_all(tmp_path: Path) -> None:
    """BM25 searches; a search that shall be fair is refused rather than unfair in silence."""
    assert len(FairAgent.from_records(ROWS).search("law").hits) == 9
    with pytest.raises(SettingsError, match="collection 'records' has none, so there is nothing to be fair to"):
        FairAgent.from_records(ROWS, rerank="exposure")
    with pytest.raises(SettingsError, match="`profile: engine` searches without"):
        open_agent(Collection.from_records(ROWS), tmp_path / "index")


def test_144_a_build_in_memory_that_fails_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UsageError, match="no dimension 'region'"):
        FairAgent.from_records(ROWS, groups="gender", dimensions=["region"])
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_190_labels_of_mixed_types_are_named_with_a_row_of_each() -> None:
    mixed = [*ROWS, ROWS[0] | {"id": "x", "gender": 1}, ROWS[0] | {"id": "y", "gender": True}]
    kinds = r"text \('male', .*:1\), whole numbers \(1, .*:10\), true or false \(True, .*:11\); say with `map`"
    with pytest.raises(DataError, match=kinds):
        FairAgent.from_records(mixed, groups="gender")


def test_191_a_map_that_leaves_no_label(tmp_path: Path) -> None:
    nothing = r"the `map` of dimension 'gender' leaves no label: it makes nothing of 'female' \(6\), 'male' \(3\)"
    with pytest.raises(DataError, match=nothing):
        FairAgent.from_records(ROWS, groups="gender", labels={"gender": {"female": [], "male": []}})
    file = csv(tmp_path, "id,text,gender\na,law,N/A\nb,law,-\n")
    file.write_text(file.read_text(encoding="utf-8").replace("{gender: {}}", "{gender: {map: {N/A: [], '-': []}}}"))
    with pytest.raises(DataError, match="leaves no label: it makes nothing of 'N/A'"):
        load_collection(file)
    with pytest.raises(UsageError, match="the column 'gender' holds no label, only 'N/A'"):
        look_at(tmp_path / "rows.csv", groups=["gender"])


def test_192_one_labelled_document_is_said_and_searched() -> None:
    one = [row | {"gender": row["gender"] if row["id"] == "d0" else None} for row in ROWS]
    agent = FairAgent.from_records(one, groups="gender", target="uniform", n=5)
    assert "a single document of 9 has a label of 'gender' (male)" in agent.collection.notes[-1]
    assert len(agent.search("law").hits) == 5
