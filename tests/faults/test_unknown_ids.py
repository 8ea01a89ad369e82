"""Case 214 of docs/reliability.md: ids of runs, judgments, groups and lists that the collection does not have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairagent import BM25Retriever, DataError, build_index, load_collection, open_agent
from fairagent.cli.app import app
from fairagent.collection import known as of_collection
from fairagent.collection.known import KnownIds, compare_ids, warn_once
from fairagent.evaluate.ranking.kind import check_runs
from fairagent.retrieve.known import indexed_documents

from .tiny import write

pytestmark = pytest.mark.usefixtures("no_variables")


@pytest.fixture(autouse=True)
def said_anew() -> None:
    warn_once.cache_clear()


def run(path: Path, ids: str) -> Path:
    """A run that ranks these documents for each topic."""
    path.write_text("".join(f"{topic}\t{id}\n" for topic in ("T1", "T2") for id in ids.split()), encoding="utf-8")
    return path


def evaluated(folder: Path, *arguments: str) -> Any:
    """What `fairagent evaluate-run` says."""
    return CliRunner().invoke(app, ["evaluate-run", *arguments, "--collection", str(folder / "collection.yaml")])


def test_214_a_run_of_other_documents_is_an_error(tmp_path: Path) -> None:
    """The issue's: exit 0 and an AWRF of .63 before."""
    write(tmp_path)
    called = evaluated(tmp_path, str(run(tmp_path / "run.tsv", "x1 x2 x3")))
    assert called.exit_code == 4, called.output
    words = r"none of the 3 documents of run .*run\.tsv is in collection 'tiny': they are called 'x1', 'x2', 'x3', and"
    with pytest.raises(DataError, match=rf"{words} those there 'm1', 'm2'"):
        check_runs([tmp_path / "run.tsv"], tmp_path / "collection.yaml", environ={})


def test_214_a_run_of_some_other_documents_is_judged_with_a_note(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path)
    made = run(tmp_path / "run.tsv", "m1 x1 f1 x2 x3")
    note = "3 of 5 documents of run"
    called = evaluated(tmp_path, str(made), "--run", str(tmp_path / "out"))
    assert called.exit_code == 0, called.output
    assert note in called.stdout
    assert "(60 %): 'x1', 'x2', 'x3'" in called.stdout
    assert sum(note in record.message for record in caplog.records) <= 1
    assert note in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    head = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    (unknown,) = head["provenance"]["collection"]["unknown"]
    assert unknown.startswith(note)
    plain = evaluated(tmp_path, str(run(tmp_path / "plain.tsv", "m1 f1")))
    assert "are not in" not in plain.output


def test_214_judgments_and_groups(tmp_path: Path) -> None:
    """Of a sample of a collection they name others too, which is said; of another collection they are an error."""
    file, made = write(tmp_path), run(tmp_path / "run.tsv", "m1 f1")
    (tmp_path / "qrels.tsv").write_text("T1 0 f1 1\nT1 0 y1 1\nT1 0 y2 0\nT2 0 u1 1\n", encoding="utf-8")
    (tmp_path / "groups.tsv").write_text("id\tgender\nm1\tmale\nf1\tfemale\nz1\tmale\n", encoding="utf-8")
    unknown = check_runs([made], file, environ={}).unknown
    assert [note.split(" are ")[0] for note in unknown] == [
        "2 of 4 judged documents",
        "1 of 3 documents with groups of gender",
    ]
    (tmp_path / "qrels.tsv").write_text("T1 0 y1 1\nT1 0 y2 1\n", encoding="utf-8")
    (tmp_path / "groups.tsv").write_text("id\tgender\nm1.0\tmale\nf1.0\tfemale\n", encoding="utf-8")
    with pytest.raises(DataError) as raised:
        check_runs([made], file, environ={})
    assert "none of the 2 judged documents is in collection 'tiny'" in str(raised.value)


def test_214_the_index_tells_which_documents_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = load_collection(write(tmp_path))
    build_index(collection, tmp_path / "index", engine="bm25")
    monkeypatch.setattr(of_collection, "QUICKLY_READ", 0)
    there = indexed_documents(collection, tmp_path / "index")
    assert there is not None
    assert there.where == f"the index at {tmp_path / 'index'}"
    assert list(there.has(["m1", "x1", "", "\udc00", "u1"])) == [True, False, False, False, True]
    assert len(BM25Retriever(tmp_path / "index").ids) == 6
    # Without it: what has a label or a judgment. Nothing follows from that for judgments and groups.
    labels = indexed_documents(collection, tmp_path / "nothing")
    assert labels is not None
    assert not labels.whole
    assert list(labels.has(["m1", "x1", "u1"])) == [True, False, True]
    with pytest.raises(DataError, match="none of the 1 documents of the run is in the labels and judgments of"):
        compare_ids("documents of the run", ["x1"], labels)
    engine = {"kind": "run-file", "path": str(run(tmp_path / "run.tsv", "x1"))}
    with pytest.raises(DataError, match="none of the 1 documents of run"):
        open_agent(collection, tmp_path / "index", profile="engine", engine=engine)


ALMOST: list[tuple[Callable[[str], str], str]] = [
    (lambda id: f"{id}.0", "without `.0` at their end 3 of 3 are: they went through numbers with fractions"),
    (lambda id: id.lstrip("0"), r"with zeros before them \(4 digits\) 3 of 3 are"),
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
