"""Bad input through the front door, `open_agent` and `search`: a clear error, or a defined result. One row each.

The collection has six documents; the population knows a group, nonbinary, that no document is in. Files of a
collection have their own table (tests/collection), the command line too (tests/cli).
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from fairagent import (
    BackendUnavailable,
    DataError,
    FairAgentError,
    Query,
    SettingsError,
    UsageError,
    open_agent,
)
from fairagent.errors import IndexMismatch
from fairagent.types import Group

from .conftest import Search
from .tiny import write

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
    ({"depth": -1, "threshold": -1}, SettingsError, "2 errors"),
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
