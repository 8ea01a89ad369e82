"""fairagent in Haystack's own conventions, with the real package: a ranker and a retriever as components."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.retrievers import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from adapters.test_hits import EVEN, GENDERS, ORDER, SCORES
from adapters.test_llama_index import fair
from fairagent import build_index, load_collection, open_agent, write_demo
from fairagent.guests.haystack import ExposureRanker, FairHaystackRetriever

OURS = ["fairagent.guests.haystack"]
"""Haystack loads only what it is told to trust."""


def documents(key: str = "gender") -> list[Document]:
    rows = zip(GENDERS, SCORES, strict=True)
    return [Document(id=f"d{n}", content="x", meta={key: one}, score=score) for n, (one, score) in enumerate(rows)]


def test_the_ranker_gives_the_order_of_fair_rerank() -> None:
    hits = documents()
    ranker = ExposureRanker("gender", EVEN, top_k=5, fairness=2)
    found = ranker.run(documents=hits)
    assert [hits.index(one) for one in found["documents"]] == ORDER
    assert all(any(one is hit for hit in hits) for one in found["documents"])
    assert ranker.run(documents=[])["documents"] == []


def test_a_pipeline_is_saved_and_goes_on_as_before() -> None:
    store = InMemoryDocumentStore()
    store.write_documents(
        [Document(id=f"d{n}", content="jazz " * (n + 1), meta={"by": {"gender": one}}) for n, one in enumerate(GENDERS)]
    )
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=12))
    pipeline.add_component("fair", ExposureRanker({"gender": "meta.by.gender"}, EVEN, top_k=4, fairness=10))
    pipeline.connect("retriever", "fair")
    found = pipeline.run({"retriever": {"query": "jazz"}})["fair"]
    assert [one.meta["by"]["gender"] for one in found["documents"]].count("female") == 2
    saved = pipeline.dumps()
    again = Pipeline.loads(saved, allowed_modules=OURS)
    assert again.dumps() == saved
    ranker = again.get_component("fair")
    assert (ranker.groups, ranker.n, ranker.fairness) == ({"gender": "meta.by.gender"}, 4, 10)


def test_the_retriever_gives_the_ranking_of_the_search() -> None:
    expected = fair().search("q")
    found = FairHaystackRetriever(fair()).run(query="q")["documents"]
    assert tuple(one.id for one in found) == expected.ranking.ids
    assert [one.score for one in found] == expected.ranking.scores.tolist()
    assert (found[0].content, found[0].meta["rank"]) == (f"This is {found[0].id}.", 1)
    assert found[0].meta["groups"] == {name: dict(one) for name, one in expected.hits[0].groups.items()}


def test_a_retriever_from_a_file_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = write_demo(tmp_path / "demo", people=60)
    build_index(load_collection(file), tmp_path / "indexes" / "demo")
    settings: dict[str, Any] = {"n": 5, "target": "uniform"}
    pipeline = Pipeline()
    pipeline.add_component("search", FairHaystackRetriever(str(file), settings))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=OURS)
    found = again.run({"search": {"query": "judge"}})["search"]["documents"]
    assert [one.id for one in found] == list(open_agent(file, **settings).search("judge").ranking.ids)
    assert len(found) == 5
