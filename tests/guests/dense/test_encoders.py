"""Text encoders by name: means of token vectors by hand, for tiny models; what several processes embed is in order."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import save_bert, tokenizer

from fairagent.errors import BackendUnavailable, UsageError
from fairagent.guests.dense.encoders import MeanPooledEncoder, SentenceEncoder
from fairagent.papers.utility.trial import BertScore
from fairagent.retrieve.encoders import open_encoder
from fairagent.storage.packages import load
from fairagent.types import FloatArray

TEXTS = ["the judge wrote a good book", "nurse", "she is a doctor . he was a judge in the city , he wrote"]

# Looked for, not imported: that takes seconds in each process that collects tests.
pytestmark = pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs the extra dense")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("contriever") / "bert")


def by_hand(folder: Path, text: str, limit: int = 512) -> FloatArray:
    """The mean of the last layer over the text's tokens, [CLS] and [SEP] among them, alone in its batch."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(text, truncation=True, max_length=limit, return_tensors="pt")
    with torch.inference_mode():
        states = AutoModel.from_pretrained(folder)(**tokens).last_hidden_state[0]
    mask = tokens["attention_mask"][0].unsqueeze(-1)
    return np.asarray((states * mask).sum(dim=0) / mask.sum(), dtype=np.float64)


def test_the_mean_of_the_tokens_as_long_as_it_is(model: Path) -> None:
    # Together they are padded to the longest: the padding counts for nothing.
    vectors = MeanPooledEncoder(str(model)).documents(TEXTS)
    for vector, text in zip(vectors, TEXTS, strict=True):
        assert vector == pytest.approx(by_hand(model, text), abs=1e-5)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).min() > 0.1


def test_queries_and_documents_are_cut_at_their_own_lengths(model: Path) -> None:
    encoder = MeanPooledEncoder(str(model), query_tokens=5, document_tokens=9)
    for _ in range(2):
        assert encoder.queries(TEXTS[2:])[0] == pytest.approx(by_hand(model, TEXTS[2], 5), abs=1e-5)
        assert encoder.documents(TEXTS[2:])[0] == pytest.approx(by_hand(model, TEXTS[2], 9), abs=1e-5)
    # The tiny model has 128 positions, fewer than the 512 tokens of a document.
    long = "judge " * 300
    assert MeanPooledEncoder(str(model)).documents([long])[0] == pytest.approx(by_hand(model, long, 128), abs=1e-5)


def test_names(model: Path) -> None:
    dot, cosine, plain = (open_encoder(f"{how}{model}") for how in ("contriever:", "contriever-cosine:", ""))
    assert [type(one) for one in (dot, cosine, plain)] == [MeanPooledEncoder, MeanPooledEncoder, SentenceEncoder]
    assert [encoder.name for encoder in (dot, cosine)] == [f"contriever:{model}", f"contriever-cosine:{model}"]
    assert dot.documents(TEXTS)[0] == pytest.approx(by_hand(model, TEXTS[0]), abs=1e-5)
    lengths = [np.linalg.norm(encoder.documents(TEXTS), axis=1) for encoder in (cosine, plain)]
    assert lengths == [pytest.approx(1, abs=1e-5)] * 2


def test_a_model_that_ends_otherwise_is_refused(model: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    trained = SentenceTransformer(str(model), device="cpu")
    trained.save(str(tmp_path / "mean"))
    assert MeanPooledEncoder(str(tmp_path / "mean")).documents(TEXTS)[0] == pytest.approx(
        by_hand(model, TEXTS[0]), abs=1e-5
    )
    settings = tmp_path / "mean" / "1_Pooling" / "config.json"
    settings.write_text(settings.read_text().replace('"mean"', '"cls"'))
    with pytest.raises(BackendUnavailable, match=r"does not end in the mean.*name it without 'contriever:'"):
        MeanPooledEncoder(str(tmp_path / "mean"))


def test_texts_of_one_length_are_encoded_together_and_come_back_in_their_order(model: Path) -> None:
    encoder = open_encoder(str(model))
    shapes: list[tuple[int, int]] = []

    def look(module: object, arguments: tuple[Any, ...]) -> None:
        shapes.append(tuple(arguments[0].shape))

    watched = encoder.model[0].auto_model.embeddings.word_embeddings.register_forward_pre_hook(look)
    texts = [" ".join(["judge"] * (60 if n % 2 else 1 + n // 32)) for n in range(64)]
    vectors = encoder.documents(texts)
    watched.remove()
    # In the order of the texts every batch would be padded to 62 tokens, twice as many as there are.
    assert sorted(shapes) == [(32, 4), (32, 62)]
    for vector, text in zip(vectors, texts, strict=True):
        assert vector == pytest.approx(encoder.documents([text])[0], abs=1e-5)


def test_a_model_or_a_device_that_is_not_there(model: Path, tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="nowhere"):
        SentenceEncoder(str(tmp_path / "nowhere"))
    with pytest.raises(UsageError):
        open_encoder(str(model), "cuda:93")


def test_a_tokenizer_with_more_tokens_than_its_model_has_vectors_is_refused(tmp_path: Path) -> None:
    folder = str(save_bert(tmp_path / "bert"))
    tokenizer([f"word{number}" for number in range(40)]).save_pretrained(folder)
    for opened in (lambda: SentenceEncoder(folder), lambda: BertScore(folder, 1), lambda: load("AutoModel", folder)):
        with pytest.raises(BackendUnavailable, match=r"the tokenizer of '.*' does not fit its model: it has 49 tokens"):
            opened()
