"""Bad input through the front door, `open_agent` and `search`: a clear error, or a defined result. One row each.

The collection has six documents; the population knows a group, nonbinary, that no document is in. Files of a
collection have their own table (tests/collection), the command line too (tests/cli).
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from anserini_indexes import texts

from fairagent import (
    BackendUnavailable,
    DataError,
    FairAgentError,
    Query,
    SettingsError,
    UsageError,
    build_index,
    load_collection,
    open_agent,
)
from fairagent.errors import IndexMismatch
from fairagent.types import Group

from .conftest import Search
from .tiny import DOCUMENTS, write

pytestmark = pytest.mark.usefixtures("no_variables")

# --- errors -----------------------------------------------------------------------------------------------------

WRONG = [
    # dimensions and targets
    ({"dimensions": ["age"]}, UsageError, "no dimension 'age'; there are: gender"),
    ({"dimensions": "gender"}, SettingsError, "dimensions: Input should be a valid tuple (got 'gender')"),
    ({"target": "populaton"}, SettingsError, "target: no target of kind 'populaton'; did you mean 'population'?"),
    ({"target": "xyzzy"}, SettingsError, "target: no target of kind 'xyzzy'; there are: population, uniform"),
    ({"target": {"gender": "populaton"}}, SettingsError, "target.gender: no target of kind 'populaton'; did you mean"),
    ({"target": {"gender": {"female": 0.5, "male": 0.4}}}, DataError, "the shares add up to 0.9, expected 1"),
    (
        {"target": {"gender": {"female": 1.5, "male": -0.5}}},
        DataError,
        "the share of 'female' is 1.5, expected a number",
    ),
    (
        {"target": {"gender": {"female": 0.5, "mail": 0.5}}},
        DataError,
        "mail is no group of the dimension, which has: fe",
    ),
    ({"target": {"gender": {}}}, DataError, "expected label -> share"),
    ({"target": {"female": 0.5, "male": 0.5}}, SettingsError, "e.g. {gender: {female: 0.5, male: 0.5}}"),
    ({"target": {"age": "uniform"}}, UsageError, "a target is set for 'age', which is no dimension; there are: gender"),
    ({"target": "qrels"}, DataError, "no relevant document has a label of 'gender', so there is no target 'qrels'"),
    # numbers and names
    ({"n": 0}, SettingsError, "n: Input should be greater than or equal to 1 (got 0)"),
    ({"depth": -1, "threshold": -1}, SettingsError, "2 fault(s)"),
    ({"discount": "log3"}, UsageError, "'log3' is no rank discount; the accepted forms are: log2-max2"),
    ({"refine": {"term": 3}}, SettingsError, "refine.term: unknown key of refiner 'feedback'; did you mean 'terms'?"),
    ({"settings": "nowhere.yaml"}, SettingsError, "nowhere.yaml: no such file"),
    # engines and models
    ({"analyzer": "german"}, IndexMismatch, "analyzer: index english, now german"),
    ({"loop": "fair-qr", "refine": "llm"}, BackendUnavailable, "set OPENAI_API_KEY"),
    ({"loop": "fair-qr", "refine": "llm"}, BackendUnavailable, "`profile: offline` works without a model"),
]


@pytest.mark.parametrize(("settings", "error", "words"), WRONG)
def test_settings(search: Search, settings: dict[str, Any], error: type[FairAgentError], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        search(**settings)


def test_a_model_without_a_name(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")
    with pytest.raises(SettingsError, match="no language model is named") as raised:
        search(loop="fair-qr", refine="llm")
    assert "canary" not in str(raised.value)


def test_a_variable_that_is_wrong(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRAGENT_RERANK__KIND", "[")
    with pytest.raises(SettingsError, match="FAIRAGENT_RERANK__KIND: not valid YAML"):
        search()


@pytest.mark.parametrize(
    ("collection", "error", "words"),
    [
        ("", UsageError, "no collection: name its settings file"),
        ("nowhere.yaml", SettingsError, "nowhere.yaml: no such file"),
        (".", SettingsError, "cannot be read"),
    ],
)
def test_no_collection(collection: str, error: type[FairAgentError], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        open_agent(collection)


def test_a_collection_without_groups_or_labels(tmp_path: Path) -> None:
    file = write(tmp_path / "files", "name: plain\ndocuments: {path: docs.jsonl}\n")
    with pytest.raises(SettingsError, match="'plain' has none, so there is nothing to be fair to; `profile: engine` s"):
        open_agent(file)
    with pytest.raises(SettingsError, match=r"^rerank: fa-star-ir looks at groups, and collection 'plain' has none"):
        open_agent(file, profile="engine", rerank="fa-star-ir")


def test_no_index(tiny: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match=r"no index at .*none; build it with `fairagent index`"):
        open_agent(tiny[0], tmp_path / "none")


@pytest.mark.parametrize(
    "part",
    [
        *("rows.numbers.npy", "columns.starts.npy", "lengths.npy", "terms.bytes.npy", "words.starts.npy"),
        *("texts.bytes.npy", "ids.npy", "ids.order.npy", "fairagent.json"),
    ],
)
def test_a_damaged_index(tiny: tuple[Path, Path], tmp_path: Path, part: str) -> None:
    folder = tmp_path / "index"
    shutil.copytree(tiny[1], folder)
    if part == "fairagent.json":
        (folder / part).write_text("{", encoding="utf-8")
    else:
        (folder / part).unlink()
    with pytest.raises(IndexMismatch, match=r"build (it|the index) again"):
        open_agent(tiny[0], folder)


def test_an_index_of_other_documents(tiny: tuple[Path, Path], tmp_path: Path) -> None:
    file = write(tmp_path / "files")
    assert open_agent(file, tiny[1])  # the same bytes elsewhere are the same collection
    with (tmp_path / "files" / "docs.jsonl").open("a", encoding="utf-8") as documents:
        documents.write('{"id": "m4", "text": "law"}\n')
    with pytest.raises(
        IndexMismatch, match=r"does not belong to collection 'tiny' as it is now .*fairagent index --force"
    ):
        open_agent(file, tiny[1])


@pytest.mark.parametrize("home", ["empty", "old"])
def test_no_java_or_one_that_is_too_old(tmp_path: Path, home: str) -> None:
    """For an index of Lucene's; one of fairagent's own needs none."""
    file = write(tmp_path / "files")
    build_index(load_collection(file), tmp_path / "own")
    texts(tmp_path / "index", [{"id": id, "contents": text} for id, text in DOCUMENTS.items()], "-storeRaw")
    java = tmp_path / home
    java.mkdir()
    if home == "old":
        (java / "bin").mkdir()
        (java / "bin" / "java").touch()
        (java / "release").write_text('JAVA_VERSION="17.0.2"\n', encoding="utf-8")
    expected = "is not a Java installation" if home == "empty" else "is Java 17; Lucene needs Java 21 or newer"
    # In a process of its own: Java starts once a process, and this one has started it.
    code = (
        "import sys\n"
        "from fairagent import BackendUnavailable, open_agent\n"
        "try:\n"
        "    print(len(open_agent(*sys.argv[1:3]).search('law').hits))\n"
        "    open_agent(sys.argv[1], engine={'kind': 'lucene', 'index': sys.argv[3]})\n"
        "except BackendUnavailable as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, (file, tmp_path / "own", tmp_path / "index"))],
        env=os.environ | {"JAVA_HOME": str(java), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("5\n")
    assert f"JAVA_HOME={java}" in done.stdout
    assert expected in done.stdout
    assert "Unset JAVA_HOME" in done.stdout or "unset it" in done.stdout


def test_ids_that_are_not_in_the_index(tiny: tuple[Path, Path]) -> None:
    engine = open_agent(*tiny).retriever
    with pytest.raises(DataError, match=r"2 document id\(s\) are not in the index: '?x1'?, '?x2'?"):
        engine.score(Query("law"), ["m1", "x1", "x2"])


def test_a_topic_that_the_judgments_do_not_know(search: Search) -> None:
    with pytest.raises(DataError, match="topic 'T9': no relevant document has a label"):
        search(Query("law", "T9"), target="qrels")
    with pytest.raises(DataError, match="topic 'T2': no relevant document has a label"):
        search(Query("court", "T2"), target="qrels")  # its only relevant document has no label


def test_half_a_character(search: Search) -> None:
    with pytest.raises(DataError, match="half of a surrogate pair"):
        search("law \ud83d")


# --- defined results --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   \n",
        "the of and",
        "zzzz",
        'AND "( OR NOT ~* [a TO b]',
        "\u0437\u0430\u043a\u043e\u043d",
        "\u6cd5\u5f8b",
        "\U0001f600",
        "y" * 10_000,
    ],
    ids=["empty", "blank", "stop words", "unknown", "operators", "Cyrillic", "Chinese", "emoji", "one long word"],
)
def test_a_query_that_finds_nothing(search: Search, query: str) -> None:
    result = search(query)
    assert (result.ranking.ids, result.hits, result.trace.gap) == ((), (), math.inf)
    assert result.trace.stopped == "the query retrieves nothing"
    assert [step.source for step in result.trace.steps] == ["query"]


@pytest.mark.parametrize(
    "query",
    [
        "law +court -judge",
        "(law OR court) AND NOT river~2",
        "law\x00court",
        "\u202elaw court",
        "LAW court",
        "law " * 2500 + "court",
    ],
    ids=["signs", "operators", "NUL", "right to left", "case", "ten thousand characters"],
)
def test_a_query_that_is_odd_and_works(search: Search, query: str) -> None:
    result = search(query)
    assert len(result.ranking) == 3
    assert math.isfinite(result.trace.gap)
    assert result.query.text == query


def test_two_queries_differ(search: Search) -> None:
    assert search("advocate", expansion={"documents": 0}).ranking.ids == ("f2",)
    assert set(search("river", expansion={"documents": 0}).ranking.ids) == {"u1"}


def test_more_ranks_than_documents(search: Search) -> None:
    result = search("law advocate", n=50)
    assert sorted(result.ranking.ids) == sorted(DOCUMENTS)
    assert [hit.rank for hit in result.hits] == [1, 2, 3, 4, 5, 6]


def test_a_group_without_documents_has_a_share_of_0_and_a_finite_gap(search: Search) -> None:
    result = search(target="population")
    (exposure,) = result.trace.exposures
    assert exposure.labels == ("female", "male", "nonbinary")
    assert (exposure.shares[2], exposure.target[2]) == (0.0, 0.1)
    assert math.isfinite(result.trace.gap)


def test_no_document_of_the_group_that_is_aimed_at(search: Search) -> None:
    target = {"gender": {"female": 0.1, "male": 0.1, "nonbinary": 0.8}}
    result = search(target=target, loop="fair-qr")
    assert result.trace.steps[-1].aim == Group("gender", "nonbinary")
    assert re.fullmatch(r"no document of nonbinary \(gender\) among the \d retrieved", result.trace.stopped)
    assert len(result.ranking) == 3


def test_a_target_with_a_zero_is_never_aimed_at(search: Search) -> None:
    result = search(target={"gender": {"female": 1, "male": 0, "nonbinary": 0}})
    assert {step.aim for step in result.trace.steps} <= {None, Group("gender", "female")}
    assert math.isfinite(result.trace.gap)


def test_nothing_labeled_is_found(search: Search) -> None:
    result = search("river", loop="fair-qr", target="population")
    assert result.ranking.ids == ("u1",)
    assert result.trace.gap == math.inf
    assert result.trace.exposures[0].unknown == 1.0
    assert dict(result.hits[0].groups["gender"]) == {}


def test_the_estimate_of_a_list_without_labels_is_the_corpus_and_says_so(search: Search) -> None:
    trace = search("river", expansion={"documents": 0}, target="estimated").trace
    assert trace.targets == ("estimated (nothing labeled was ranked: corpus)",)
    assert trace.exposures[0].target.tolist() == pytest.approx([0.4, 0.6, 0.0])
    assert not trace.oracle


def test_judgments_of_documents_that_are_not_there_do_no_harm(tiny: tuple[Path, Path]) -> None:
    made = open_agent(*tiny, target="qrels", n=3)
    qrels = {"T1": {"f1": 1, "ghost": 1}}
    (exposure,) = (
        replace(made, collection=replace(made.collection, qrels=qrels)).search(Query("law", "T1")).trace.exposures
    )
    assert exposure.target.tolist() == [1.0, 0.0, 0.0]


def test_an_oracle_is_marked(search: Search) -> None:
    trace = search(Query("law", "T1"), target="qrels").trace
    assert (trace.oracle, trace.targets) == (True, ("qrels",))
    assert trace.exposures[0].target.tolist() == [0.5, 0.5, 0.0]
