"""The same ids and scores as pyserini's own searchers, which run in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from anserini_indexes import impacts

from fairagent.guests.dense.splade import SpladeEncoder
from fairagent.guests.lucene.bm25 import AnseriniRetriever
from fairagent.guests.lucene.vectors import HnswRetriever, ImpactRetriever
from fairagent.types import Query, Ranking

from .conftest import unit_rows
from .test_vectors import Told

pytestmark = pytest.mark.slow

QUERIES = ("lawyers of Bonn", "a history of judges in Berlin", "quiet harbor", "night fees", "nothing there")
PRETOKENIZED = ("lawyer bonn", "judge judge lawyer", "bonn ignore_step")
ENCODED = ("the judge of the city", "nurse", "good law, bad law?")
ASK = """
import json, sys
from fairagent.guests.lucene.java import start_java
start_java()
from pyserini.search.lucene import LuceneHnswDenseSearcher, LuceneImpactSearcher, LuceneSearcher
asked = json.loads(sys.argv[1])
folder = asked["folder"]
texts, impact = LuceneSearcher(f"{folder}/full"), LuceneImpactSearcher(f"{folder}/impact", None)
nearest = LuceneHnswDenseSearcher(f"{folder}/hnsw", ef_search=100)
def listed(hits):
    return [[hit.docid, hit.score] for hit in hits]
found = {"bm25": {}, "other": {}, "impact": {}, "hnsw": {}}
from pyserini.encode import SpladeQueryEncoder
splade = SpladeQueryEncoder(asked["model"])
found["splade"] = {query: splade.encode(query) for query in asked["encoded"]}
for query in asked["queries"]:
    found["bm25"][query] = listed(texts.search(query, 12))
texts.set_bm25(1.2, .75)
for query in asked["queries"]:
    found["other"][query] = listed(texts.search(query, 12))
for query in asked["pretokenized"]:
    found["impact"][query] = listed(impact.search(query, 12))
for query in asked["vectors"]:
    found["hnsw"][query] = listed(nearest.search(query, 12))
print("FOUND" + json.dumps(found))
"""


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SPLADE model of random weights."""
    return tiny_models.save_masked(tmp_path_factory.mktemp("model") / "masked")


@pytest.fixture(scope="module")
def theirs(built: Path, masked: Path) -> dict[str, dict[str, Any]]:
    vectors = [json.dumps(row.tolist()) for row in unit_rows(3, seed=9)]
    asked = {"folder": str(built), "queries": QUERIES, "pretokenized": PRETOKENIZED, "vectors": vectors}
    asked |= {"model": str(masked), "encoded": ENCODED}
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(asked)],
        env={**os.environ, "OPENAI_API_KEY": "none", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    line = next((line for line in done.stdout.splitlines() if line.startswith("FOUND")), "")
    assert line, done.stderr[-3000:]
    found: dict[str, dict[str, Any]] = json.loads(line.removeprefix("FOUND"))
    return found


def expect_same(ours: Ranking, listed: list[Any], within: float) -> None:
    """The same documents and scores; pyserini rounds to four decimals and takes 1e-6 off the later ones of a tie."""
    assert dict(zip(ours.ids, ours.scores.tolist(), strict=True)) == pytest.approx(dict(listed), abs=within)
    assert list(ours.ids) == [id for id, _ in listed]


@pytest.mark.parametrize(("settings", "name"), [({}, "bm25"), ({"k1": 1.2, "b": 0.75}, "other")])
def test_bm25(built, theirs, settings, name):
    ours = AnseriniRetriever(built / "full", **settings)
    assert sum(map(len, theirs[name].values())) > 15
    for query, listed in theirs[name].items():
        expect_same(ours.search(Query(query), 12), listed, 6e-5)


def test_impacts(built, theirs):
    ours = ImpactRetriever(built / "impact")
    for query, listed in theirs["impact"].items():
        assert len(listed) >= 3
        expect_same(ours.search(Query(query), 12), listed, 1e-3)


def test_embeddings(built, theirs):
    for text, listed in theirs["hnsw"].items():
        found = HnswRetriever(built / "hnsw", Told(json.loads(text))).search(Query("any"), 12)
        # Lucene's score of an inner product p is (1 + p) / 2.
        expect_same(Ranking(found.ids, (1 + found.scores) / 2), listed, 6e-5)


def test_queries_are_weighed_as_pyserini_s_splade_encoder_does(tmp_path, masked, theirs):
    model = SpladeEncoder(str(masked))
    terms = dict.fromkeys(model.vocabulary, 1)
    index = impacts(tmp_path / "whole", [{"id": "d1", "contents": "x", "vector": terms}])
    ours = ImpactRetriever(index, model)
    for query, weights in theirs["splade"].items():
        there = {term: weight for term, weight in weights.items() if weight}
        assert len(there) > 5
        assert ours.weights(Query(query)) == there
        assert ours.score(Query(query), ["d1"]).tolist() == [sum(there.values())]
