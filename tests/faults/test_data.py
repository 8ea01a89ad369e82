"""Cases 28 to 35 of docs/reliability.md: settings and data that are wrong, odd, empty or tied.

Each is shown once, from end to end; the tables of all variants are in test_bad_input.py, tests/collection and
tests/measures/test_edges.py.
"""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from evaluate import words

from fairagent import DataError, SettingsError, build_index, load_collection, open_agent
from fairagent.collection.trec_fair.runs import read_run
from fairagent.errors import UsageError
from fairagent.evaluate.results import results_text
from fairagent.measures import AWRF, DIVERGENCES, awrf
from fairagent.settings import load_settings

from .conftest import Search
from .tiny import write

pytestmark = pytest.mark.usefixtures("no_variables")


def test_28_all_faults_of_the_settings_are_reported_together(search: Search) -> None:
    wrong = {"n": -1, "iteration": 3, "expansion": {"weight": 1.5}, "refine": "lmm"}
    with pytest.raises(SettingsError) as raised:
        load_settings(None, wrong, environ={})
    said = str(raised.value)
    assert "4 errors" in said
    assert "n: Input should be greater than or equal to 1 (got -1)" in said
    assert "iteration: unknown key; did you mean 'iterations'?" in said
    assert "expansion.weight: Input should be less than 1 (got 1.5)" in said
    assert "refine: no refiner of kind 'lmm'; did you mean 'llm'?" in said
    with pytest.raises(DataError, match=r"the shares add up to 0\.9, expected 1"):
        search(target={"gender": {"female": 0.4, "male": 0.5}})
    idle = search(loop="fair-qr", iterations=0, expansion={"documents": 50}).trace
    assert (idle.stopped, [step.aim for step in idle.steps]) == ("", [None, None])


def test_29_topics_that_cannot_be_judged_are_named_and_left_out_for_all(tmp_path: Path) -> None:
    file = words.write(tmp_path)
    with (tmp_path / "qrels.tsv").open("a", encoding="utf-8") as qrels:
        qrels.write("T77 0 d00 1\n")
    run = words.run(file, tmp_path / "run")
    assert run.excluded == {"T19": "no relevant document"}
    assert {row.topics for row in run.comparisons if not row.dimension} == {19}
    assert all(math.isfinite(row.mean) for row in run.comparisons)
    said = results_text(run)
    assert "T19" in said
    assert "nan" not in said.lower()
    notes = load_collection(tmp_path / "collection.yaml").notes
    assert any("T77" in note for note in notes)


LABELS = {
    "a document without a line": ("id\tgender\nm1\tmale\nf1\tfemale\n", None),
    "empty labels": ("id\tgender\nm1\tmale\nm2\t\nm3\t\nf1\tfemale\nf2\t\nu1\t\n", None),
    "two groups at once": ("id\tgender\nm1\tmale|female\nm2\tmale\nm3\tmale\nf1\tfemale\nf2\tfemale\n", None),
    "a document twice": ("id\tgender\nm1\tmale\nm1\tfemale\n", r"groups\.tsv:3: .*m1"),
    "a document that is not there": ("id\tgender\nm1\tmale\nx9\tfemale\n", None),
}


@pytest.mark.parametrize(("lines", "fault"), LABELS.values(), ids=LABELS)
def test_30_group_labels(tmp_path: Path, lines: str, fault: str | None) -> None:
    file = write(tmp_path / "files")
    (tmp_path / "files" / "groups.tsv").write_text(lines, encoding="utf-8")
    if fault:
        with pytest.raises(DataError, match=fault):
            load_collection(file)
        return
    collection = load_collection(file)
    rows = collection.groups.memberships("gender", ["m1", "u1"])
    assert rows.sum(axis=1) == pytest.approx([1, 1])
    assert rows[1, 0] == 1
    build_index(collection, tmp_path / "index")
    trace = open_agent(collection, tmp_path / "index", n=3, target="population").search("law").trace
    assert trace.gap >= 0, "infinite where nothing that is shown has a label"
    assert trace.exposures[0].labels[-1] == "nonbinary"


def test_31_empty_short_repeated_and_nan_rankings(search: Search) -> None:
    target = np.array([0.0, 0.5, 0.5])
    assert awrf(np.array([[0.0, 1, 0]]), target, 20) == pytest.approx(awrf(np.array([[0.0, 1, 0]]), target, 1))
    for membership in (np.zeros((0, 3)), np.array([[0, np.nan, 1]]), np.array([[0, np.inf, 1]])):
        with pytest.raises(DataError):
            awrf(membership, target, 20)
    with pytest.raises((DataError, UsageError)):
        AWRF(0)
    assert search("zzzz").ranking.ids == ()


def test_32_one_group_zeros_and_equal_distributions(tmp_path: Path) -> None:
    half = np.array([0.5, 0.5])
    for name, divergence in DIVERGENCES.items():
        assert divergence(half, half, 1e-6) == pytest.approx(0, abs=1e-12), name
        assert math.isfinite(divergence(half, np.array([1.0, 0.0]), 1e-6)), name
    file = write(tmp_path / "files")
    everyone = "".join(f"{id}\tfemale\n" for id in ("m1", "m2", "m3", "f1", "f2", "u1"))
    (tmp_path / "files" / "groups.tsv").write_text("id\tgender\n" + everyone, encoding="utf-8")
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: text.index("population")], encoding="utf-8")
    collection = load_collection(file)
    build_index(collection, tmp_path / "index")
    trace = open_agent(collection, tmp_path / "index", n=3).search("law").trace
    assert trace.gap == 0
    assert trace.stopped == "the gap is not above 0"
    assert trace.usage.calls == 0


RUN_LINES = {
    "as the track has it": ("1\t7\n1\t8\n", None),
    "header, CRLF and BOM": ("\ufeffid\tpage\r\n1\t7\r\n", None),
    "spaces": ("1 7\n", None),
    "commas": ("id,page\n1,7\n", None),
    "three columns": ("1\t7\n1\t1\t8\n", r"run.*:2: expected 2 columns"),
    "six columns": ("1 Q0 7 1 2.0 me\n", None),
    "six columns, ranks against scores": ("1 Q0 7 1 2.0 me\n1 Q0 8 2 3.0 me\n", r"run.*:2: rank 2 of topic 1 has the"),
    "a page that is no number": ("1\tseven\n", r"run.*:1: the page 'seven'"),
    "an id with a space": ("1\t7 8\n", r"run.*:1: the page '7 8'"),
    "a page twice": ("1\t7\n1\t7\n", r"run.*:2: "),
    "nothing": ("", r"run.*: there are no lines"),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize(("lines", "fault"), RUN_LINES.values(), ids=RUN_LINES)
def test_33_run_files(tmp_path: Path, lines: str, fault: str | None, packed: bool) -> None:
    path = tmp_path / ("run.txt.gz" if packed else "run.txt")
    path.write_bytes(gzip.compress(lines.encode(), mtime=0) if packed else lines.encode())
    if fault:
        with pytest.raises(DataError, match=fault):
            read_run(path, 2022, 1)
    else:
        assert read_run(path, 2022, 1)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"T1 0 f1\n", "expected"),
        (b"T1 0 f1 1 me\n", "expected"),
        (b"T1 0 f1 nan\n", "nan"),
        (b"T1 0 f\xff 1\n", "UTF-8"),
    ],
    ids=["three columns", "five columns", "nan", "not UTF-8"],
)
def test_33_judgments(tmp_path: Path, line: bytes, fault: str) -> None:
    file = write(tmp_path / "files")
    (tmp_path / "files" / "qrels.tsv").write_bytes(b"T1 0 m1 1\r\n" + line)
    with pytest.raises(DataError, match=rf"qrels\.tsv:2: .*{fault}"):
        load_collection(file)


def test_34_ties_are_written_so_that_other_tools_see_our_order(tmp_path: Path) -> None:
    import ir_measures

    run = words.run(words.write(tmp_path), tmp_path / "run")
    ours = {outcome.topic: [hit.id for hit in outcome.hits] for outcome in run.outcomes if outcome.system == "plain"}
    assert any(len({hit.score for hit in outcome.hits}) < len(outcome.hits) for outcome in run.outcomes)
    theirs: dict[str, list[str]] = {}
    scored = list(ir_measures.read_trec_run(str(tmp_path / "run" / "runs" / "plain.txt")))
    for line in sorted(scored, key=lambda line: (line.query_id, -np.float32(line.score))):
        theirs.setdefault(line.query_id, []).append(line.doc_id)
    assert {topic: ids for topic, ids in ours.items() if ids} == theirs


@pytest.mark.parametrize("query", ["\u0645\u062d\u0627\u0645", "\U0001f600", "law " * 2500, 'AND "(', "", "the"])
def test_35_any_query_works_or_finds_nothing(search: Search, query: str) -> None:
    result = search(query)
    assert len(result.hits) in (0, 3)
    assert result.query.text == query


def test_35_different_queries_differ(search: Search) -> None:
    plain = {"expansion": {"documents": 0}}
    assert search("advocate", **plain).ranking.ids != search("river", **plain).ranking.ids
