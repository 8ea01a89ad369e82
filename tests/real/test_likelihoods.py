"""The small model, converted, in this process: likelihoods (the stereotype benchmarks, FairFT's signal, DebiasRAG's
fluency).
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from fairagent.guests.local.likelihood import CausalModel
from fairagent.llm.prompts import Prompts
from fairagent.papers.debias_rag.benchmarks.items import read_crows_pairs, read_stereoset
from fairagent.papers.debias_rag.benchmarks.preference import Likelihoods
from fairagent.papers.fairft.settings import TrainingExample
from fairagent.papers.fairft.train import Signals
from fairagent.types import Document

pytestmark = [pytest.mark.llm, pytest.mark.slow]

SENTENCE, SHUFFLED = "The judge read the law in the court.", "Court law the in judge the read the."
ITEMS = 20


@pytest.fixture(scope="module")
def causal(converted: Path) -> CausalModel:
    return CausalModel(str(converted), "cpu")


def test_it_opens_as_a_conversation_and_finds_a_sentence_likelier_than_its_words_in_disorder(converted: Path) -> None:
    chat = CausalModel(str(converted), "cpu", chat=True)
    assert chat.tokenizer.chat_template
    assert chat.perplexity(SENTENCE, "Say something.") < chat.perplexity(SHUFFLED, "Say something.")


@pytest.mark.shared
@pytest.mark.parametrize("benchmark", ["stereoset", "crows_pairs"])
def test_twenty_items_of_a_benchmark(shared: Path, converted: Path, benchmark: str) -> None:
    folder = shared / "data" / benchmark
    if benchmark == "stereoset":
        every = read_stereoset(folder / "intrasentence.jsonl")
    else:
        every = read_crows_pairs(folder / "crows_pairs.jsonl")
    scorer = Likelihoods(kind="causal", name=str(converted), device="cpu").open()
    for item in islice(every.values(), ITEMS):
        scored = scorer.score(item).scores
        assert scored.shape == (len(item.sentences),)
        assert np.isfinite(scored).all()
        assert len(set(scored.tolist())) == len(item.sentences), item
        assert set(item.values(scored).values()) <= {0.0, 0.5, 1.0}


def test_the_signal_of_fairft(causal: CausalModel, tmp_path: Path) -> None:
    asked = TrainingExample("q1", "Is every judge late?", "No, that is a prejudice.")
    documents = [Document("d1", "Judges are as punctual as others."), Document("d2", "A wall is painted.")]
    signals = Signals(causal, Prompts(), tmp_path / "signals.jsonl")
    places = np.array([[0, 1]])
    (found,) = signals.table([asked], documents, places)
    assert (found < 0).all()
    assert found[0] != found[1]
    again = Signals(causal, Prompts(), tmp_path / "signals.jsonl")
    assert again.table([asked], documents, places).tolist() == [found.tolist()]
    assert again.computed == 0
