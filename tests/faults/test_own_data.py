"""Cases 137 to 144, 191, 192, 214, 230 and 231: data and hits of one's own that will not do, said where it is."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairagent import DataError, FairAgent, SettingsError, UsageError, build_index, fair_rerank, load_collection
from fairagent.cli.app import app
from fairagent.collection import known as of_collection
from fairagent.collection.known import KnownIds, compare_ids, warn_once
from fairagent.collection.look import look_at
from fairagent.evaluate.check import check_runs
from fairagent.retrieve.manifest import indexed_documents

from .tiny import write

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


def test_137_a_column_of_groups_that_is_empty(tmp_path: Path) -> None:
    empty = [row | {"gender": ""} for row in ROWS]
    with pytest.raises(DataError, match="the column 'gender' of dimension 'gender' is empty in every row"):
        FairAgent.from_records(empty, groups="gender")
    with pytest.raises(DataError, match="no hit has a label of 'gender'"):
        fair_rerank(empty, "gender")
    collection = load_collection(csv(tmp_path, "id,text,gender\na,law,\nb,law,\n"))
    assert "no document has a label of dimension 'gender'" in collection.notes
    assert look_at(tmp_path / "rows.csv").groups == ()


def test_142_and_144_hits_in_no_order_or_of_no_kind_and_a_build_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what is built in memory no folder is left."""
    for hits, said in (([("a", 2), ("b", 1), ("c", 3)], "hit 3 has the score 3"), ([("a", 2), object()], "hit 2 is a")):
        with pytest.raises(UsageError, match=said):
            fair_rerank(hits, {"gender": {"a": "female"}})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UsageError, match="no dimension 'region'"):
        FairAgent.from_records(ROWS, groups="gender", dimensions=["region"])
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_143_and_192_no_label_at_all_or_a_single_one_is_said() -> None:
    """BM25 searches; a search that shall be fair is refused rather than unfair in silence."""
    assert len(FairAgent.from_records(ROWS).search("law").hits) == 9
    with pytest.raises(SettingsError, match="nothing to be fair to"):
        FairAgent.from_records(ROWS, rerank="exposure")
    one = [row | {"gender": row["gender"] if row["id"] == "d0" else None} for row in ROWS]
    agent = FairAgent.from_records(one, groups="gender", target="uniform", n=5)
    assert "a single document of 9 has a label of 'gender' (male)" in agent.collection.notes[-1]
    assert len(agent.search("law").hits) == 5


ALMOST: list[tuple[Callable[[str], str], str]] = [
    (lambda id: f"{id}.0", r"without `.0` at their end .* 3 of 3 are"),
    (lambda id: id.lstrip("0"), r"with zeros before them \(of judgments: `digits: 4`\) 3 of 3 are"),
    (lambda id: f"00{id}", "without zeros before them"),
    (lambda id: f"\ufeff{id}", "without white space, quotes and invisible characters 3 of 3 are"),
    (lambda id: f"{id}#1", r"without the number of a passage \(#1\) 3 of 3 are"),
    (lambda id: f"docs/{id}", "without what stands before their last / 3 of 3 are"),
    (lambda id: f"other-{id}", "and those there '0001', '0002', '0003'$"),
]


def test_214_ids_that_almost_match() -> None:
    ids = ["0001", "0002", "0003"]
    for change, hint in ALMOST:
        # Zeros that are too many go back to what numbers are.
        there = KnownIds.of("the collection", [id.lstrip("0") for id in ids] if "00" in change("") else ids)
        with pytest.raises(DataError, match=hint):
            compare_ids("documents of the run", map(change, ids), there)
    capitals = KnownIds.of("the collection", ["A1", "B2"])
    assert compare_ids("ids", ["A1", "b2"], capitals).endswith("(50 %): 'b2'; in capitals 1 of 1 are")


def test_191_a_map_that_leaves_no_label(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"leaves no label: it makes nothing of 'female' \(6\), 'male' \(3\)"):
        FairAgent.from_records(ROWS, groups="gender", labels={"gender": {"female": [], "male": []}})
    file = csv(tmp_path, "id,text,gender\na,law,N/A\nb,law,-\n")
    file.write_text(file.read_text(encoding="utf-8").replace("{gender: {}}", "{gender: {map: {N/A: [], '-': []}}}"))
    with pytest.raises(DataError, match="leaves no label: it makes nothing of 'N/A'"):
        load_collection(file)
    with pytest.raises(UsageError, match="holds no label, only 'N/A'"):
        look_at(tmp_path / "rows.csv", groups=["gender"])


def test_214_runs_judgments_and_groups_of_other_documents(tmp_path: Path) -> None:
    """Of some it is said; of all it is an error."""
    warn_once.cache_clear()
    file = write(tmp_path)

    def evaluated(ids: str) -> Any:
        """What `fairagent evaluate-run` says of a run that ranks these documents for each topic."""
        lines = "".join(f"{topic}\t{id}\n" for topic in ("T1", "T2") for id in ids.split())
        (tmp_path / "run.tsv").write_text(lines, encoding="utf-8")
        return CliRunner().invoke(app, ["evaluate-run", str(tmp_path / "run.tsv"), "-c", str(file), "--run", out])

    out = str(tmp_path / "out")
    assert evaluated("x1 x2 x3").exit_code == 4
    with pytest.raises(DataError, match=r"none of the 3 documents of run .* 'x1', 'x2', 'x3', and those"):
        check_runs([tmp_path / "run.tsv"], file, environ={})
    called = evaluated("m1 x1 f1 x2 x3")
    assert called.exit_code == 0, called.output
    note = "3 of 5 documents of run"
    assert note in called.stdout
    assert "(60 %): 'x1', 'x2', 'x3'" in called.stdout
    assert note in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    (unknown,) = json.loads((tmp_path / "out" / "run.json").read_text())["provenance"]["collection"]["unknown"]
    assert unknown.startswith(note)
    out = str(tmp_path / "plain")
    assert "are not in" not in evaluated("m1 f1").output
    (tmp_path / "qrels.tsv").write_text("T1 0 f1 1\nT1 0 y1 1\nT1 0 y2 0\nT2 0 u1 1\n", encoding="utf-8")
    (tmp_path / "groups.tsv").write_text("id\tgender\nm1\tmale\nf1\tfemale\nz1\tmale\n", encoding="utf-8")
    judged, labeled = check_runs([tmp_path / "run.tsv"], file, environ={}).unknown
    assert judged.startswith("2 of 4 judged documents")
    assert labeled.startswith("1 of 3 documents with groups of gender")
    (tmp_path / "qrels.tsv").write_text("T1 0 y1 1\nT1 0 y2 1\n", encoding="utf-8")
    with pytest.raises(DataError, match="none of the 2 judged documents"):
        check_runs([tmp_path / "run.tsv"], file, environ={})


def test_214_the_index_tells_which_documents_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = load_collection(write(tmp_path))
    build_index(collection, tmp_path / "index", engine="bm25")
    monkeypatch.setattr(of_collection, "QUICKLY_READ", 0)
    there = indexed_documents(collection, tmp_path / "index")
    assert there is not None
    assert list(there.has(["m1", "x1", "", "\udc00", "u1"])) == [True, False, False, False, True]
    # Without it: what has a label or a judgment. Nothing follows from that for judgments and groups.
    labels = indexed_documents(collection, tmp_path / "nothing")
    assert labels is not None
    assert not labels.whole
    assert list(labels.has(["m1", "x1", "u1"])) == [True, False, True]
    with pytest.raises(DataError, match="in the labels and judgments of"):
        compare_ids("documents of the run", ["x1"], labels)
