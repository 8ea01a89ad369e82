"""Whatever an experiment compares, `search` and `answer` serve: each baseline by its settings over a profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evaluate import words

from fairagent.collection import load_collection
from fairagent.retrieve.bm25.build import build_index

from .conftest import Call, Small

TOPIC = "T03"
"""Asks for miners and painters."""

RERANKERS = {
    "none": [],
    "original": ["rerank=original"],
    "mmr": ["rerank.kind=mmr"],
    "mmr by groups": ["rerank.kind=mmr", "rerank.by=groups", "rerank.relevance=0.1"],
    "mmr by embeddings": ["rerank={kind: mmr, by: embeddings}"],
    "fa-star-ir": ["rerank.kind=fa-star-ir", "rerank.group={gender: female}"],
    "deltr": ["rerank={kind: deltr, gamma: 10, iterations: 50}"],
    "dlf": ["rerank.kind=dlf"],
    "plackett-luce": ["rerank.kind=plackett-luce", "rerank.alpha=0"],
    "exposure": ["rerank=exposure"],
    "mmr, exposure": ["rerank=[mmr, {kind: exposure, fairness: 2}]"],
}
ENGINES = {
    "bm25": ["engine={kind: bm25, k1: 1.2}"],
    "rm3": ["engine=rm3", "engine.terms=5"],
    "dense": ["engine=dense"],
    "the agent over dense": ["profile=offline", "engine=dense"],
}
JUDGED = {
    "engine=oracle": {"d12", "d13", "d15"},
    "engine.kind=adversarial": {"d00"},
    "engine={kind: oracle, reading: sorted}": {"d12", "d13", "d15", "d00"},
}
"""Settings -> what is found: the three relevant documents, and one that was judged not to be."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The collection of made words with its indexes."""
    folder = tmp_path_factory.mktemp("words")
    words.write(folder)
    with (folder / "qrels.tsv").open("a", encoding="utf-8") as qrels:
        qrels.write(f"{TOPIC} 0 d00 0\n")
    build_index(load_collection(folder / "collection.yaml"), folder / "index")
    return Small(folder / "collection.yaml", folder / "index")


def assigned(settings: list[str]) -> list[str]:
    return [part for one in ["profile=engine", "n=6", *settings] for part in ("--set", one)]


def record(call: Call, command: str, *arguments: str) -> Any:
    result = call(command, "--topic", TOPIC, *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def ids(found: Any) -> list[str]:
    return [hit["id"] for hit in found["hits"]]


@pytest.mark.parametrize("name", RERANKERS)
def test_every_reranker_is_served(call: Call, made: Small, name: str) -> None:
    chosen = assigned(RERANKERS[name])
    if "embeddings" in name or name == "dlf":
        pytest.importorskip("sentence_transformers")
        assert call("index", *made.options, *chosen).exit_code == 0
    found = record(call, "search", *made.options, *chosen)
    assert (found["profile"], found["reranker"]) == ("engine", name.split(" by ")[0])
    assert [step["source"] for step in found["steps"]] == ["query"]
    assert found["stopped"] == ""
    assert len(set(ids(found))) == 6
    plain = record(call, "search", *made.options, *assigned([]))
    assert (ids(found) == ids(plain)) == (name in ("none", "original"))
    answered = record(call, "answer", *made.options, *chosen)
    assert [source["id"] for source in answered["context"]] == ids(found)
    assert answered["answer"]


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_is_served(call: Call, made: Small, name: str) -> None:
    chosen = assigned(ENGINES[name])
    assert call("index", *made.options, *chosen).exit_code == 0
    found = record(call, "search", *made.options, *chosen)
    assert found["profile"] == ("offline" if "agent" in name else "engine")
    assert len(ids(found)) == 6
    assert all(hit["title"] for hit in found["hits"])
    assert record(call, "answer", *made.options, *chosen)["answer"]


@pytest.mark.parametrize(("setting", "expected"), JUDGED.items())
def test_what_knows_the_judgments_needs_no_index(call: Call, made: Small, setting: str, expected: set[str]) -> None:
    assert set(ids(record(call, "search", "-c", str(made.file), *assigned([setting])))) == expected
    refused = call("answer", "--topic", TOPIC, "-c", str(made.file), *assigned([setting]))
    assert refused.exit_code == 2
    assert "keeps no texts of its documents to answer from" in refused.stderr


def test_a_run_file(call: Call, made: Small) -> None:
    Path("run.txt").write_text("T03 Q0 d05 1 2.5 mine\nT03 Q0 d02 2 1.5 mine\nT04 Q0 d01 1 1 mine\n")
    found = record(call, "search", "-c", str(made.file), *assigned(["engine={kind: run-file, path: run.txt}"]))
    assert [(hit["id"], hit["score"]) for hit in found["hits"]] == [("d05", 2.5), ("d02", 1.5)]
    fair = ["engine={kind: run-file, path: run.txt}", "rerank={kind: mmr, by: groups}"]
    assert ids(record(call, "search", "-c", str(made.file), *assigned(fair))) == ["d05", "d02"]


def test_no_retrieval(call: Call, made: Small) -> None:
    chosen = assigned(["engine=none"])
    assert ids(record(call, "search", "-c", str(made.file), *chosen)) == []
    answered = record(call, "answer", "-c", str(made.file), *chosen)
    assert (answered["context"], answered["answer"]) == ([], "")


def test_models_of_this_machine(call: Call, made: Small, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    from tiny_models import save_cross_encoder, save_masked

    vocabulary = (*words.SUBJECTS, "he", "she", "the", "met", "a")
    splade, cross = (save(tmp_path / save.__name__, vocabulary) for save in (save_masked, save_cross_encoder))
    both = [f"engine={{kind: splade, model: {splade}}}", f"rerank={{kind: cross-encoder, scorer: {cross}}}"]
    missing = call("search", "--topic", TOPIC, *made.options, *assigned(both))
    assert missing.exit_code == 3
    assert "fairagent index" in missing.stderr
    assert call("index", *made.options, *assigned(both)).exit_code == 0
    found = record(call, "search", *made.options, *assigned(both))
    assert found["reranker"] == "cross-encoder"
    assert len(ids(found)) == 6
    assert ids(found) != ids(record(call, "search", *made.options, *assigned(both[:1])))
    assert record(call, "answer", *made.options, *assigned(both))["answer"]


def test_rankings_that_are_drawn_from_a_baseline(call: Call, made: Small) -> None:
    chosen = assigned(["rerank={kind: mmr, by: groups}"])
    drawn = record(call, "search", "--stochastic", "0", *made.options, *chosen)
    assert (drawn["draw"]["alpha"], drawn["draw"]["seed"], drawn["draw"]["request"]) == (0, 0, 0)
    assert ids(drawn) != ids(record(call, "search", *made.options, *chosen))
    answered = record(call, "answer", *made.options, *chosen, "--set", "sampling.alpha=0")
    assert [source["id"] for source in answered["context"]] == ids(drawn)


def test_the_story_says_the_profile_and_tells_of_no_loop(call: Call, made: Small) -> None:
    told = call("search", "--topic", TOPIC, *made.options, *assigned(["rerank=mmr"])).stdout
    story = told[told.index("1. query") :].split("\n")
    assert ["profile", "engine"] in [line.split() for line in story]
    assert ["final", "ranking", "from", "the", "list", "retrieved,", "re-ranked", "(mmr)"] in [
        line.split() for line in story
    ]
    assert "stopped" not in told


def test_a_collection_without_groups_is_searched_and_answered_from(call: Call, tmp_path: Path) -> None:
    words.write(tmp_path)
    file = tmp_path / "collection.yaml"
    file.write_text(words.COLLECTION[: words.COLLECTION.index("groups:")], encoding="utf-8")
    assert call("index", "-c", str(file), "--index", "index").exit_code == 0
    options = ["-c", str(file), "--index", "index", *assigned(["rerank=mmr"])]
    found = record(call, "search", *options)
    assert len(ids(found)) == 6
    assert (found["exposure"], found["targets"]) == ({"before": [], "after": []}, {})
    told = call("search", "--topic", TOPIC, *options).stdout
    assert "1. query" in told
    assert not {"exposure", "gap", "target"} & set(told.split())
    assert "[1]" in call("answer", "--topic", TOPIC, *options).stdout
    beside = call("answer", "--topic", TOPIC, "--beside", *options)
    assert beside.exit_code == 0
    assert "the engine alone" in beside.stdout
