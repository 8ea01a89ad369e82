"""FairFT reaches answers: train, search with the trained folder, answer, and grade; and its files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fairagent.errors import FairAgentError
from fairagent.evaluate.check import check_experiment
from fairagent.guests.dense.encoders import SentenceEncoder
from fairagent.papers.fairft.run import read_file
from fairagent.papers.fairft.train import Tower
from fairagent.settings import read_yaml

from .small import write_task

PAPERS = Path(__file__).resolve().parents[2] / "evaluations" / "papers" / "fairft"


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
