"""What one search may ask for, over the settings; and a search that is done in another order."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from scripted import drawing

import fairagent
from fairagent.collection.demo import write_demo
from fairagent.errors import SettingsError, UsageError
from fairagent.search.agent import FairAgent
from fairagent.settings import OptionValues, SearchOptions, Settings
from fairagent.types import Query, SearchResult

QUERY = "lawyer"
EQUAL = {"gender": {"woman": 0.5, "man": 0.5}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    fairagent.build_index(write_demo(folder, people=400), folder / "index")
    return folder


@pytest.fixture(scope="module")
def agent(folder: Path) -> FairAgent:
    made = fairagent.open_agent(folder / "collection.yaml", folder / "index", n=10)
    labels = made.collection.groups.labels("gender")
    EQUAL["gender"] = {label: float(label in labels[:2]) / 2 for label in labels}
    return made


def ids(result: SearchResult) -> tuple[str, ...]:
    return result.ranking.ids


def test_the_keywords_of_a_call_are_the_fields_of_the_model() -> None:
    schema = SearchOptions.model_json_schema()
    assert set(get_type_hints(OptionValues)) == set(SearchOptions.model_fields) == set(schema["properties"])
    assert all(one["description"] for one in schema["properties"].values())


def test_options_are_laid_over_settings() -> None:
    settings = Settings(n=10, target={"gender": "uniform", "region": "corpus"})
    laid = SearchOptions(n=3, fairness=2, unknown="ignore", shares=EQUAL).over(settings)
    assert (laid.n, laid.unknown, laid.rerank.parts[-1].fairness) == (3, "ignore", 2.0)  # type: ignore[attr-defined]
    assert isinstance(laid.target, dict)
    assert (laid.target["gender"].kind, laid.target["region"].kind) == ("given", "corpus")
    assert SearchOptions().over(settings) is settings
    # One target for all dimensions stays that of the others.
    one = SearchOptions(shares=EQUAL).over(Settings(target="uniform"), ("gender", "region")).target
    assert isinstance(one, dict)
    assert (one["gender"].kind, one["region"].kind) == ("given", "uniform")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"n": 0}, "n"),
        ({"fairness": math.nan}, "fairness"),
        ({"fairness": -1}, "fairness"),
        ({"keep": 1.5}, "keep"),
        ({"gap": -0.1}, "gap"),
        ({"keep": 0.9, "gap": 0.1}, "give one of them"),
        ({"unknown": "some"}, "unknown"),
        ({"unknown": 1.5}, "unknown"),
        ({"shares": {"gender": {"woman": 2}}}, "shares"),
        ({"fairnes": 1}, "did you mean 'fairness'"),
    ],
    ids=str,
)
def test_options_that_cannot_be(agent: FairAgent, values: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        agent.search(QUERY, **values)


@pytest.mark.parametrize("dial", ["fairness", "keep", "gap"])
def test_a_dial_needs_a_reranker_that_has_it(agent: FairAgent, dial: str) -> None:
    options = SearchOptions.of({dial: 0.5})
    assert getattr(options.over(Settings(rerank={"kind": "exposure", "keep": 0.9})).rerank, dial) == 0.5
    with pytest.raises(SettingsError, match=f"{dial}: .*graph, exposure"):
        options.over(Settings(rerank="original"))
    with pytest.raises(UsageError, match="graph, exposure"):
        dataclasses.replace(agent, reranker=None).under(options)


@pytest.mark.parametrize("dial", [{"fairness": 3}, {"keep": 0.9}, {"gap": 0.01}], ids=str)
def test_options_of_a_call_are_settings_of_an_agent(agent: FairAgent, folder: Path, dial: dict[str, float]) -> None:
    options: dict[str, Any] = {"n": 5, **dial, "unknown": 0.1, "shares": EQUAL}
    found = agent.search(QUERY, **options)
    chosen = {"n": 5, "rerank": dial, "unknown": 0.1, "target": EQUAL}
    same = fairagent.open_agent(folder / "collection.yaml", folder / "index", **chosen).search(QUERY)
    assert len(found.hits) == 5
    assert ids(found) == ids(same)
    assert found.trace.gap == same.trace.gap
    # The agent itself is as it was.
    assert len(agent.search(QUERY).hits) == 10
    assert len(drawing(agent, 2).search(QUERY, n=4).hits) == 4
    assert agent.answer(QUERY, n=4).search.trace.gap == agent.search(QUERY, n=4).trace.gap


def test_a_search_in_another_order(agent: FairAgent) -> None:
    run = agent.find(Query(QUERY), 10)
    once, same = run.result(run.pool), agent.reorder(run)
    assert ids(same) == ids(once)
    assert same.trace.exposures[0].shares.tolist() == once.trace.exposures[0].shares.tolist()
    assert [step.gap for step in same.trace.steps] == [step.gap for step in once.trace.steps]
    assert len(agent.reorder(run, SearchOptions(n=3)).hits) == 3
    candidates = set(run.loop.candidates.ids) | set(run.engine_list.ids)
    for values in ({"fairness": 0}, {"keep": 0.8}, {"gap": 0.0}, {"unknown": "ignore", "shares": EQUAL}):
        other = agent.reorder(run, SearchOptions.of(values))
        assert set(ids(other)) <= candidates
        assert other.trace.relevance_kept is not None
        assert 0 <= other.trace.relevance_kept <= 1 + 1e-12
    by_shares = agent.reorder(run, SearchOptions(shares=EQUAL))
    assert by_shares.trace.exposures[0].target.tolist() == list(EQUAL["gender"].values())
    assert by_shares.trace.targets[0] == "given"


def test_a_dial_is_walked_along_the_same_lists(agent: FairAgent) -> None:
    run = agent.find(Query(QUERY), 10)
    dials: tuple[dict[str, float], ...] = ({"fairness": 0}, {"fairness": 1}, {"fairness": 5}, {"fairness": 16})
    walked = [agent.reorder(run, SearchOptions.of(dial)) for dial in dials]
    assert ids(walked[1]) == ids(run.result(run.pool))
    for before, after in pairwise(walked):
        assert after.trace.gap <= before.trace.gap + 1e-9
        assert (after.trace.relevance_kept or 0) <= (before.trace.relevance_kept or 0) + 1e-9
    for keep in (1.0, 0.9, 0.5):
        assert (agent.reorder(run, SearchOptions(keep=keep)).trace.relevance_kept or 0) >= keep - 1e-9
