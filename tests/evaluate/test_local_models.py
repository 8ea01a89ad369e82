"""Systems with models of this machine, on tiny ones: Contriever, SPLADE and a cross-encoder, end to end."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tiny_models import save_bert, save_cross_encoder, save_masked

from fairagent.errors import BackendUnavailable, IndexMismatch, SettingsError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import build_indexes, run_experiment
from fairagent.evaluate.plan import site_of
from fairagent.evaluate.run import Results
from fairagent.evaluate.workers import threads
from fairagent.guests.dense.cross_encoder import CrossEncoderScorer
from fairagent.guests.dense.splade import SpladeEncoder, SpladeRetriever
from fairagent.llm.models import Models
from fairagent.retrieve.bm25.part import close_all
from fairagent.retrieve.dense import EmbeddingSource
from fairagent.storage.files import file_name
from fairagent.storage.threads import Memo
from fairagent.types import Query

from . import words

VOCABULARY = (*words.SUBJECTS, "he", "she", "the", "met", "a", "query", "document", "relevant", ":", "true", "false")
SYSTEMS = """\
name: local models
collection: collection.yaml
seed: 3
measures: [nDCG@8, AWRF(unknown=ignore)@8]
topics: 8
settings: {index: FOLDER/index, depth: 20}
systems:
  BM25: {profile: engine}
  Contriever: {profile: engine, engine: {kind: dense, encoder: 'contriever:FOLDER/bert'}}
  SPLADE: {profile: engine, engine: {kind: splade, model: FOLDER/masked}}
  agent, SPLADE: {engine: {kind: splade, model: FOLDER/masked}}
  cross-encoder: {profile: engine, rerank: {kind: cross-encoder, scorer: FOLDER/cross}}
  cross-encoder, nothing read: {profile: engine, rerank: {kind: cross-encoder, scorer: FOLDER/cross, depth: 1}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers")
    folder = tmp_path_factory.mktemp("local")
    for save, name in ((save_bert, "bert"), (save_masked, "masked"), (save_cross_encoder, "cross")):
        save(folder / name, VOCABULARY)
    words.write(folder, SYSTEMS.replace("FOLDER", str(folder)))
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Results:
    checked = check_experiment(folder / "experiment.yaml", environ={})
    told: list[tuple[str, int]] = []
    build_indexes(checked, lambda what, done: told.append((what, done)))
    assert {("indexing words", 40), ("embedding words", 40), ("weighing words", 40)} <= set(told)
    build_indexes(checked, lambda what, done: pytest.fail("it is there already"))
    with threads(2) as workers:
        return run_experiment(checked, folder / "run", workers, environ={})


def found(run: Results, system: str) -> dict[str, list[str]]:
    return {outcome.topic: [hit.id for hit in outcome.hits] for outcome in run.outcomes if outcome.system == system}


def test_all_of_them_rank(run: Results) -> None:
    for outcome in run.outcomes:
        assert outcome.failed is None
        assert 0 < len(outcome.hits) <= 8
        assert all(hit.title for hit in outcome.hits)
    rankings = [found(run, system) for system in ("BM25", "Contriever", "SPLADE", "cross-encoder")]
    assert all(len(one) == 8 for one in rankings)
    assert all(one != other for i, one in enumerate(rankings) for other in rankings[:i])
    assert found(run, "cross-encoder, nothing read") == found(run, "BM25")


def test_splade_is_the_order_of_its_products(run: Results, folder: Path) -> None:
    collection = check_experiment(folder / "experiment.yaml", environ={}).collection
    encoder = SpladeEncoder(str(folder / "masked"))
    weights = folder / "index" / f"splade-{file_name(str(folder / 'masked'))}"
    engine = SpladeRetriever(weights, encoder, collection)
    ids = [text["id"] for text in words.documents()]
    texts = [f"{text['title']} {text['text']}" for text in words.documents()]
    for topic, ranked in found(run, "SPLADE").items():
        query = collection.topics[topic].query
        products = encoder.documents(texts).toarray() @ encoder.queries([query]).toarray()[0]
        of = dict(zip(ids, products.tolist(), strict=True))
        assert engine.score(Query(query), ranked).tolist() == pytest.approx([of[id] for id in ranked], rel=1e-4)
        assert min(of[id] for id in ranked) >= np.sort(products)[-8] - 1e-3


def test_the_cross_encoder_reads_the_first_list(run: Results, folder: Path) -> None:
    checked = check_experiment(folder / "experiment.yaml", environ={})
    memo = Memo()
    plans, models = checked.plan.systems, Models()
    sites = {name: site_of(plans[name], checked.collection, models, memo=memo) for name in ("BM25", "SPLADE")}
    lucene = plans["BM25"].settings.engine.build(sites["BM25"])
    scorer = CrossEncoderScorer(str(folder / "cross"))
    assert not isinstance(plans["SPLADE"].settings.engine.build(sites["SPLADE"]), EmbeddingSource)
    for topic, ranked in found(run, "cross-encoder").items():
        query = Query(checked.collection.topics[topic].query)
        pool = lucene.search(query, 20).ids
        texts = [f"{document.title} {document.text}" for document in map(lucene.document, pool)]
        of = dict(zip(pool, scorer.score(query.text, texts).tolist(), strict=True))
        assert [of[id] for id in ranked] == pytest.approx(sorted(of.values(), reverse=True)[:8], abs=1e-4)
    close_all(memo)


def test_everything_that_is_missing_is_named_before_anything_runs(folder: Path, tmp_path: Path) -> None:
    text = SYSTEMS.replace("FOLDER", str(folder))
    for name in ("bert", "masked", "cross"):
        text = text.replace(f"{folder}/{name}", str(tmp_path / f"no-{name}"))
    with pytest.raises(BackendUnavailable) as caught:
        check_experiment(words.write(tmp_path, text), environ={})
    for model in ("embedding model", "SPLADE model", "cross-encoder"):
        assert f"no {model} '{tmp_path}" in str(caught.value)


def test_splade_has_to_be_named_and_read_what_it_was_built_from(folder: Path, tmp_path: Path, run: Results) -> None:
    for told, fault in (
        ("engine: splade", "engine.model: is missing"),
        ("rerank: {kind: mmr, retriever: splade}", "rerank.retriever: unknown key of re-ranker 'mmr'"),
        ("rerank: cross-encoder", "rerank.scorer: is missing"),
    ):
        with pytest.raises(SettingsError, match=re.escape(fault)):
            check_experiment(words.write(tmp_path, words.EXPERIMENT + f"  a: {{{told}}}\n"), environ={})
    file = words.write(tmp_path, SYSTEMS.replace("FOLDER", str(folder)))
    with (tmp_path / "docs.jsonl").open("a", encoding="utf-8") as documents:
        documents.write('{"id": "d40", "title": "", "text": "one more"}\n')
    with pytest.raises(IndexMismatch, match=r"the SPLADE weights at .* do not belong to collection 'words'"):
        check_experiment(file, environ={})
