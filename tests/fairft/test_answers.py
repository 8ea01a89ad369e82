"""FairFT reaches answers: train, search with the trained folder, answer, and grade; and its files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from fairagent.collection import load_collection
from fairagent.errors import FairAgentError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.plan import prepared, site_of
from fairagent.evaluate.workers import threads
from fairagent.guests.dense.encoders import SentenceEncoder
from fairagent.guests.testing import LoopbackServer
from fairagent.llm.models import Models
from fairagent.papers.fairft.run import check, read_file, run_training
from fairagent.papers.fairft.settings import OPENING
from fairagent.papers.fairft.train import Tower, top
from fairagent.retrieve.base import full_text
from fairagent.settings import read_yaml
from fairagent.types import Query

from .small import WORDS, write_lines, write_task

PAPERS = Path(__file__).resolve().parents[2] / "evaluations" / "papers" / "fairft"
QUESTIONS = [f"the {WORDS[i]} {WORDS[(i * 3 + 1) % len(WORDS)]} ?" for i in range(4)]


@pytest.mark.slow
def test_a_trained_retriever_finds_what_answers_are_given_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = write_task(tmp_path)
    run = run_training(check(task), tmp_path / "run")
    trained = run.model
    assert run.history.best > 0
    questions = [{"prompt": f"{OPENING}{question}", "bias_type": "gender"} for question in QUESTIONS]
    write_lines(tmp_path / "agreement.jsonl", questions)
    dense = {
        name: {"profile": "fairft", "engine": {"kind": "dense", "encoder": str(folder)}}
        for name, folder in (("untrained", tmp_path / "retriever"), ("FairFT", trained))
    }
    experiment = {
        "kind": "agreement",
        "name": "end to end",
        "cache": "",
        "collection": "collection.yaml",
        "questions": {"path": "agreement.jsonl"},
        "settings": {"model": {"name": "tiny"}, "context": {"documents": 3}, "index": str(tmp_path / "index")},
        "systems": {"no retrieval": {"profile": "engine", "engine": "none"}, **dense},
    }
    file = tmp_path / "answers.yaml"
    file.write_text(yaml.safe_dump(experiment), encoding="utf-8")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    checked = check_experiment(file)
    for part, site in prepared(checked.plan.systems, checked.collection):
        part.prepare(site, lambda what, done: None)

    # What is searched with the folder is what the training ranks first; embeddings are kept in half the digits.
    tower, documents = Tower(str(trained), "cpu"), list(load_collection(tmp_path / "collection.yaml").documents())
    queries, vectors = tower.encode("query", QUESTIONS), tower.encode("document", list(map(full_text, documents)))
    site = site_of(checked.plan.systems["FairFT"], checked.collection, Models())
    engine = site.settings.engine.build(site)
    found = [engine.search(Query(question), 3).ids for question in QUESTIONS]
    places = {document.id: place for place, document in enumerate(documents)}
    for query, ids, best in zip(queries, found, top(queries, vectors, 3), strict=True):
        assert np.allclose(vectors[[places[id] for id in ids]] @ query, vectors[best] @ query, atol=2e-3)
    untrained = Tower(str(tmp_path / "retriever"), "cpu").encode("document", list(map(full_text, documents)))
    assert not np.allclose(vectors, untrained, atol=1e-4)

    with threads(1) as workers, LoopbackServer(lambda request: "No.") as server:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        answered = run_experiment(checked, tmp_path / "answered", workers)
    means = {row.system: row.mean for row in answered.comparisons if row.dimension == ""}
    assert means.keys() == {"no retrieval", "untrained", "FairFT"}
    lines = [json.loads(line) for line in (tmp_path / "answered" / "journal.jsonl").read_text().splitlines()]
    outcomes = [line for line in lines if line.get("system") == "FairFT"]
    assert len(outcomes) == len(QUESTIONS)
    assert not any(line.get("error") for line in outcomes)


def test_a_model_made_for_inner_products_is_searched_as_it_was_trained(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    write_task(tmp_path)
    plain = SentenceTransformer(str(tmp_path / "retriever"), device="cpu", similarity_fn_name="dot")
    plain.save_pretrained(str(tmp_path / "dot"))
    tower = Tower(str(tmp_path / "dot"), "cpu")
    tower.save(tmp_path / "model")
    texts = ["the judge", "a river"]
    dot, saved = (SentenceEncoder(str(tmp_path / name)).documents(texts) for name in ("dot", "model"))
    assert np.allclose(saved, tower.encode("document", texts), atol=1e-6)
    assert not np.allclose(np.linalg.norm(dot, axis=1), 1, atol=0.01)


def test_a_papers_table_says_which_retrievers_are_to_be_trained() -> None:
    file = PAPERS / "table_8_agreement.yaml"
    named = read_yaml(file)["trainings"]
    searched = set(re.findall(r"runs/([^/]+)/model", file.read_text(encoding="utf-8")))
    assert searched == {read_file(PAPERS / one).name for one in named}
    with pytest.raises(FairAgentError) as fault:
        check_experiment(file, environ={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    for one in named:
        assert f"{PAPERS / one} is not trained" in str(fault.value)
