"""Cases 28 to 35 of docs/reliability.md: settings and data that are wrong, odd, empty or tied, through `open_agent`.

Each is shown once, from end to end; the tables of all variants are in tests/collection and tests/measures. The
collection has six documents; its population knows a group, nonbinary, that no document is in.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluate import words

from fairagent import BackendUnavailable, DataError, Query, SettingsError, build_index, load_collection, open_agent
from fairagent.collection.trec_fair.runs import read_run
from fairagent.errors import FairAgentError, IndexMismatch, UsageError
from fairagent.evaluate.results import results_text
from fairagent.measures import AWRF, DIVERGENCES, awrf
from fairagent.settings import load_settings
from fairagent.types import Group

from .conftest import Search
from .tiny import write

pytestmark = pytest.mark.usefixtures("no_variables")


def test_28_all_faults_of_the_settings_are_reported_together(search: Search) -> None:
    wrong = {"n": -1, "iteration": 3, "expansion": {"weight": 1.5}, "refine": "lmm"}
    with pytest.raises(SettingsError) as raised:
        load_settings(None, wrong, environ={})
    said = str(raised.value)
    assert "4 errors" in said
    assert "n: expected 1 or more (got -1)" in said
    assert "iteration: unknown key; did you mean 'iterations'?" in said
    assert "expansion.weight: expected less than 1 (got 1.5)" in said
    assert "refine: no refiner of kind 'lmm'; did you mean 'llm'?" in said
    idle = search(loop="fair-qr", iterations=0, expansion={"documents": 50}).trace
    assert (idle.stopped, [step.aim for step in idle.steps]) == ("", [None, None])


WRONG: list[tuple[dict[str, Any], type[FairAgentError], str]] = [
    # dimensions and targets
    ({"dimensions": ["age"]}, UsageError, "no dimension 'age'; there are: gender"),
    ({"dimensions": "gender"}, SettingsError, "dimensions: expected a list"),
    ({"target": "populaton"}, SettingsError, "did you mean 'population'?"),
    ({"target": {"gender": "populaton"}}, SettingsError, "target.gender: no target of kind 'populaton'"),
    ({"target": {"gender": {"female": 0.5, "male": 0.4}}}, DataError, "the shares add up to 0.9, expected 1"),
    ({"target": {"gender": {"female": 1.5, "male": -0.5}}}, DataError, "the share of 'female' is 1.5"),
    ({"target": {"gender": {"female": 0.5, "mail": 0.5}}}, DataError, "no group 'mail'"),
    ({"target": {"gender": {}}}, DataError, "expected label -> share"),
    ({"target": {"female": 0.5, "male": 0.5}}, SettingsError, "e.g. {gender: {female: 0.5, male: 0.5}}"),
    ({"target": {"age": "uniform"}}, UsageError, "no dimension 'age'"),
    ({"target": "qrels"}, DataError, "so there is no target 'qrels'"),
    # numbers, names, engines and models
    ({"depth": -1, "threshold": -1}, SettingsError, "2 errors"),
    ({"discount": "log3"}, UsageError, "'log3' is no rank discount; the accepted forms are: log2-max2"),
    ({"refine": {"term": 3}}, SettingsError, "refine.term: unknown key of refiner 'feedback'; did you mean 'terms'?"),
    ({"settings": "nowhere.yaml"}, SettingsError, "nowhere.yaml: no such file"),
    ({"analyzer": "german"}, IndexMismatch, "analyzer: index english, now german"),
    ({"loop": "fair-qr", "refine": "llm"}, BackendUnavailable, "set OPENAI_API_KEY"),
]


def test_28_one_fault_at_a_time(search: Search, tmp_path: Path) -> None:
    for settings, error, said in WRONG:
        with pytest.raises(error, match=re.escape(said)):
            search(**settings)
    for collection, error in (("", UsageError), ("nowhere.yaml", SettingsError), (".", SettingsError)):
        with pytest.raises(error):
            open_agent(collection)
    file = write(tmp_path / "files", "name: plain\ndocuments: {path: docs.jsonl}\n")
    with pytest.raises(SettingsError, match="'plain' has none, so there is nothing to be fair to; `profile: engine` s"):
        open_agent(file)
    with pytest.raises(SettingsError, match=r"^rerank: fa-star-ir looks at groups, and collection 'plain' has none"):
        open_agent(file, profile="engine", rerank="fa-star-ir")


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
    "a document without a line": "m1\tmale\nf1\tfemale\n",
    "empty labels": "m1\tmale\nm2\t\nm3\t\nf1\tfemale\nf2\t\nu1\t\n",
    "two groups at once": "m1\tmale|female\nm2\tmale\nm3\tmale\nf1\tfemale\nf2\tfemale\n",
    "a document that is not there": "m1\tmale\nx9\tfemale\n",
}


def test_30_group_labels(tmp_path: Path) -> None:
    file = write(tmp_path / "files")
    groups = tmp_path / "files" / "groups.tsv"
    for name, lines in LABELS.items():
        groups.write_text(f"id\tgender\n{lines}", encoding="utf-8")
        collection = load_collection(file)
        rows = collection.groups.memberships("gender", ["m1", "u1"])
        assert rows.sum(axis=1) == pytest.approx([1, 1]), name
        assert rows[1, 0] == 1, name
        build_index(collection, tmp_path / name)
        trace = open_agent(collection, tmp_path / name, n=3, target="population").search("law").trace
        assert 0 <= trace.gap < math.inf
        assert trace.exposures[0].labels[-1] == "nonbinary"
    groups.write_text("id\tgender\nm1\tmale\nm1\tfemale\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"groups\.tsv:3: .*m1"):
        load_collection(file)


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
    assert trace.stopped == "no group lacks candidates"
    assert trace.usage.calls == 0


RUN_LINES = {
    "1\t7\n1\t8\n": None,
    "\ufeffid\tpage\r\n1\t7\r\n": None,
    "1 Q0 7 1 2.0 me\n1 Q0 8 2 3.0 me\n": None,
    "1\t7\n1\t1\t8\n": r"run.*:2: 3 columns, and 2 above",
    "1\tseven\n": r"run.*:1: the page 'seven'",
    "1\t7\n1\t7\n": r"run.*:2: ",
    "": r"run.*: there are no lines",
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_33_run_files_and_judgments(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "run.txt"
    for lines, fault in RUN_LINES.items():
        path.write_bytes(pack(lines.encode()))
        if fault:
            with pytest.raises(DataError, match=fault):
                read_run(path, 2022, 1)
        else:
            assert read_run(path, 2022, 1), lines
    path.write_bytes(pack(b"1\t7\n" * 9)[:-9])
    if pack is not bytes:
        with pytest.raises(DataError, match="break off or are damaged"):
            read_run(path, 2022, 1)
    file = write(tmp_path / "files")
    for line in (b"T1 0 f1\n", b"T1 0 f1 1 me\n", b"T1 0 f1 nan\n", b"T1 0 f\xff 1\n"):
        (tmp_path / "files" / "qrels.tsv").write_bytes(b"T1 0 m1 1\r\n" + line)
        with pytest.raises(DataError, match=r"qrels\.tsv:2: "):
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


NOTHING = (
    *("", "   \n", "the of and", "zzzz", 'AND "( OR NOT ~* [a TO b]', "\u0437\u0430\u043a"),
    *("\u6cd5", "\U0001f600", "y" * 10_000),
)
ODD = ("law +court -judge", "(law OR court) AND NOT river~2", "law\x00court", "\u202elaw court", "LAW", "law " * 2500)


def test_35_any_query_works_or_finds_nothing(search: Search) -> None:
    for query in NOTHING:
        result = search(query)
        assert (result.ranking.ids, result.hits, result.trace.gap) == ((), (), pytest.approx(math.log(2))), query
        assert result.trace.stopped == "the query retrieves nothing"
        assert [step.source for step in result.trace.steps] == ["query"]
    for query in ODD:
        result = search(query)
        assert len(result.ranking) == 3, query
        assert math.isfinite(result.trace.gap)
        assert result.query.text == query
    with pytest.raises(DataError, match="half of a surrogate pair"):
        search("law \ud83d")
    plain = {"expansion": {"documents": 0}}
    assert search("advocate", **plain).ranking.ids != search("river", **plain).ranking.ids


def test_30_and_32_groups_that_are_aimed_at_in_vain(search: Search) -> None:
    """Without documents, without a share, without labels, without judgments."""
    (exposure,) = (result := search(target="population")).trace.exposures
    assert exposure.labels == ("female", "male", "nonbinary")
    assert (exposure.shares[2], exposure.target[2]) == (0.0, 0.1)
    assert math.isfinite(result.trace.gap)
    result = search(target={"gender": {"female": 0.1, "male": 0.1, "nonbinary": 0.8}}, loop="fair-qr")
    assert result.trace.steps[-1].aim == Group("gender", "nonbinary")
    assert re.fullmatch(r"no document of nonbinary \(gender\) among the \d retrieved", result.trace.stopped)
    assert len(result.ranking) == 3
    result = search(target={"gender": {"female": 1, "male": 0, "nonbinary": 0}})
    assert {step.aim for step in result.trace.steps} <= {None, Group("gender", "female")}
    result = search("river", loop="fair-qr", target="population")
    assert (result.ranking.ids, result.trace.gap) == (("u1",), pytest.approx(math.log(2)))
    assert result.trace.exposures[0].unknown == 1.0
    trace = search("river", expansion={"documents": 0}, target="estimated").trace
    assert trace.targets == ("estimated (nothing labeled was ranked: corpus)",)
    assert trace.exposures[0].target.tolist() == pytest.approx([0.4, 0.6, 0.0])
    assert not trace.oracle
    for topic in ("T9", "T2"):  # unknown to the judgments; its only relevant document has no label
        with pytest.raises(DataError, match=f"topic '{topic}': no relevant document has a label"):
            search(Query("law", topic), target="qrels")
