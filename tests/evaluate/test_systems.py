"""Every kind of system runs on a real index, and does what its name says."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import build_indexes, run_experiment
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.plan import SystemPlan
from fairagent.evaluate.run import Results
from fairagent.evaluate.workers import threads
from fairagent.papers.rivals.deltr import FOLDS, cross_fitted, fold_of
from fairagent.papers.rivals.fa_star_ir import FAStarIRReranker, ProtectedGroup
from fairagent.retrieve import vectors
from fairagent.retrieve.encoders import Embeddings
from fairagent.search.rerank.base import Pool
from fairagent.settings.parts import shipped

from . import words

SYSTEMS = """\
name: every kind
collection: collection.yaml
seed: 3
topics: [T09, T10, T11, T12, T13, T14, T15, T16, T17, T18]
measures: [nDCG@8, AWRF(unknown=ignore)@8]
settings: {index: INDEX, depth: 20, engine: bm25, expansion: {terms: 5, documents: 3}}
systems:
  BM25: {profile: engine}
  BM25 again: {profile: engine, rerank: fused}
  RM3: {profile: engine, engine: &rm3 {kind: rm3, documents: 3, terms: 5}}
  dense: {profile: engine, engine: dense}
  MMR: {profile: engine, rerank: mmr}
  MMR, relevance alone: {profile: engine, rerank: {kind: mmr, relevance: 1}}
  MMR, groups: {profile: engine, rerank: {kind: mmr, by: groups}}
  MMR, embeddings: {profile: engine, engine: dense, rerank: {kind: mmr, by: embeddings}}
  FA*IR: {profile: engine, rerank: {kind: fa-star-ir, group: {gender: female}, alpha: 0.4}}
  FA*IR, RM3: {profile: engine, engine: *rm3, rerank: fa-star-ir}
  DELTR: {profile: engine, rerank: {kind: deltr, iterations: 20, gamma: 0}}
  DELTR, female: {profile: engine, rerank: {kind: deltr, iterations: 20, gamma: 5, group: {gender: female}}}
  DLF: {profile: engine, rerank: dlf}
  Plackett-Luce: {profile: engine, rerank: plackett-luce}
  fused: {profile: engine, engine: fused}
  graph: {profile: engine, engine: fused, rerank: {kind: graph, k: 10}}
  exposure: {profile: engine, rerank: exposure}
  adaptive: {profile: engine, engine: fused, rerank: adaptive}
  adaptive, BM25: {profile: engine, rerank: {kind: adaptive, encoder: minilm, scorer: "similarity:minilm", budget: 9}}
  amortized: {profile: engine, rerank: amortized}
  FAIR-QR: {loop: fair-qr, rerank: {kind: exposure, fairness: 0.5, unlabeled: 1}}
  agent: {}
  agent, default engine: {engine: auto}
  agent, dense: {engine: dense}
  agent, gender: {dimensions: [gender]}
  oracle: {target: trec}
"""


class HashEncoder:
    """Every word is a coordinate of its own (of 64): enough to search with, and nothing to download."""

    name = "hash"

    def documents(self, texts: Sequence[str]) -> Embeddings:
        vectors = np.zeros((len(texts), 64), np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                vectors[row, hashlib.sha256(word.encode()).digest()[0] % 64] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    queries = documents


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    words.write(folder, SYSTEMS.replace("INDEX", str(folder / "index")))
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Results:
    with pytest.MonkeyPatch.context() as patch, threads(2) as workers:
        patch.setattr(vectors, "open_encoder", lambda model, device, served: HashEncoder())
        checked = check_experiment(folder / "experiment.yaml", environ={})
        told: list[tuple[str, int]] = []
        build_indexes(checked, lambda what, done: told.append((what, done)))
        assert told[-1] == ("neighbors in words", 40)
        assert {("indexing words", 40), ("embedding words", 40)} <= set(told)
        build_indexes(checked, lambda what, done: pytest.fail("it is there already"))
        return run_experiment(checked, folder / "run", workers, environ={})


def of(run: Results, system: str) -> list[Outcome]:
    return [outcome for outcome in run.outcomes if outcome.system == system]


def ids(run: Results, system: str) -> list[list[str]]:
    return [[hit.id for hit in outcome.hits] for outcome in of(run, system)]


def test_every_kind_is_tried(folder: Path, run: Results) -> None:
    plans = check_plan(folder).values()
    # `auto` has come to one of the others; the last ones are indexes that somebody else has made.
    others = {"words", "auto", "run-file", "splade", "oracle", "adversarial", "okapi", "none"}
    others |= {"opensearch", "lucene", "lucene-impact", "lucene-hnsw"}
    assert {plan.settings.engine.kind for plan in plans} == set(shipped("engine")) - others
    others = {"cross-encoder", "original", "representative", "listwise"}
    assert {plan.settings.rerank.kind for plan in plans} == set(shipped("rerank")) - others
    assert {plan.settings.loop.kind for plan in plans} == set(shipped("loop"))
    assert check_plan(folder)["agent, default engine"].settings.engine.kind == "bm25"
    assert not run.excluded
    assert run.oracle_systems == ("oracle",)
    for system in run.systems:
        assert len(of(run, system)) == 10
        for outcome in of(run, system):
            assert 0 < len(outcome.hits) <= 8
            assert outcome.failed is None
            assert all(hit.title for hit in outcome.hits)


def check_plan(folder: Path) -> dict[str, SystemPlan]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "open_encoder", lambda model, device, served: HashEncoder())
        return dict(check_experiment(folder / "experiment.yaml", environ={}).plan.systems)


def test_baselines_do_what_they_are_called(run: Results) -> None:
    plain = ids(run, "BM25")
    assert ids(run, "BM25 again") == plain == ids(run, "MMR, relevance alone")
    others = ("RM3", "dense", "MMR", "Plackett-Luce", "DLF", "agent", "fused", "exposure", "adaptive", "FAIR-QR")
    for other in (*others, "adaptive, BM25", "MMR, groups", "FA*IR, RM3"):
        assert ids(run, other) != plain, other
    assert ids(run, "dense") != ids(run, "agent, dense")
    assert ids(run, "fused") != ids(run, "dense")
    assert ids(run, "graph") != ids(run, "fused")
    assert ids(run, "agent, default engine") == ids(run, "agent")
    women = [
        sum("female" in hit.groups["gender"] for outcome in of(run, name) for hit in outcome.hits[:4])
        for name in ("BM25", "FA*IR")
    ]
    assert women[1] > women[0]
    assert ids(run, "DELTR") != ids(run, "DELTR, female")


def test_baselines_have_no_loop(run: Results) -> None:
    for system in ("BM25", "RM3", "FA*IR", "Plackett-Luce", "fused", "exposure", "graph"):
        assert all(len(outcome.steps) == 1 and outcome.stopped == "" for outcome in of(run, system))
    assert all(len(outcome.steps) > 1 and outcome.stopped for outcome in of(run, "agent"))
    assert {exposure.dimension for exposure in of(run, "agent, gender")[0].steps[0].exposures} == {"gender"}
    assert {exposure.dimension for exposure in of(run, "agent, gender")[0].exposures} == {"gender", "era"}


def test_groups_from_judgments_make_oracles_of_those_who_look_at_groups(tmp_path: Path) -> None:
    text = words.EXPERIMENT.replace("collection.yaml", "stances.yaml") + "dimensions: [stance]\n"
    file = words.write(tmp_path, text)
    collection = "target: uniform\n" + words.COLLECTION.split("groups:")[0].replace(
        "{path: qrels.tsv}", "{path: stances.tsv, header: true, dimensions: {stance: {}}}"
    )
    (tmp_path / "stances.yaml").write_text(collection, encoding="utf-8")
    lines = [
        f"T{n:02d}\t0\td{4 * (n % 10) + k:02d}\t1\t{'for' if k else 'against'}\n" for n in range(9) for k in (0, 1)
    ]
    (tmp_path / "stances.tsv").write_text(
        "topic\titeration\tdocument\trel\tstance\n" + "".join(lines), encoding="utf-8"
    )
    assert words.run(file, tmp_path / "run").oracle_systems == ("fair",)


def test_nobody_is_judged_by_what_it_was_trained_on() -> None:
    pool = Pool.__new__(Pool)
    pools = {f"T{n}": pool for n in range(40)}
    seen: list[set[str]] = []

    def fit(others: dict[str, Pool]) -> FAStarIRReranker:
        seen.append(set(others))
        return FAStarIRReranker(group=ProtectedGroup(0, len(seen) - 1))

    fitted = cross_fitted(pools, fit, seed=1)  # type: ignore[arg-type]
    assert len(fitted.rerankers) == FOLDS
    folds = {topic: fold_of(topic, 1) for topic in pools}
    assert set(folds.values()) == set(range(FOLDS))
    assert all(topic not in seen[folds[topic]] for topic in pools)
    assert all(topic in seen[other] for topic in pools for other in range(FOLDS) if other != folds[topic])
    assert fold_of("T1", 1) != fold_of("T1", 2) or fold_of("T2", 1) != fold_of("T2", 2)
    with pytest.raises(DataError, match="1 topics are too few"):
        cross_fitted({"T1": pool}, fit, seed=1)  # type: ignore[arg-type]
