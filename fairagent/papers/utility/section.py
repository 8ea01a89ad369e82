"""How much of a reference text an answer says: BERTScore-F1, by the library or by the bundled sentence encoder."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fairagent.errors import BackendUnavailable
from fairagent.evaluate.kinds.utility.section import SimilaritySection
from fairagent.loading import expect_installed, without_progress
from fairagent.measures.bertscore import greedy_match
from fairagent.retrieve.encoder import Embeddings
from fairagent.retrieve.sentence_encoder import SentenceEncoder
from fairagent.types import FloatArray

KEPT = 256
"""Texts whose token vectors are kept: the references of a topic are compared with many answers."""


class TextSimilarity(Protocol):
    """Says how alike two texts are: any object like this will do. Several threads may call it."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def f1(self, text: str, references: Sequence[str]) -> list[float]:
        """How alike `text` is to each of the references, at most 1; 0 where either is empty."""
        ...


class MiniLMTokens:
    """Greedy matching of the bundled encoder's token vectors: works offline, with numbers of its own.

    They are no BERTScore as papers report it: another model, trained for sentences, and its last layer.
    """

    name = SimilaritySection().name

    def __init__(self) -> None:
        self._encoder = SentenceEncoder()
        self._tokens = lru_cache(KEPT)(self._encoded)

    def f1(self, text: str, references: Sequence[str]) -> list[float]:
        """See `TextSimilarity.f1`; of a text its first 256 word pieces count."""
        if not text.strip():
            return [0.0] * len(references)
        ours, our_weights = self._tokens(text)
        found = []
        for reference in references:
            theirs, their_weights = self._tokens(reference)
            match = greedy_match(ours, theirs, our_weights, their_weights) if reference.strip() else None
            found.append(match.f1 if match else 0.0)
        return found

    def _encoded(self, text: str) -> tuple[Embeddings, FloatArray]:
        """The token vectors of `text` and their weights: the marks around it weigh nothing."""
        vectors = self._encoder.tokens(text)
        weights = np.ones(len(vectors))
        weights[[0, -1]] = 0.0
        return vectors, weights


class BertScore:
    """BERTScore-F1 by the library bert-score, without inverse document frequencies and without a baseline.

    `model` is a model's folder or its name in the Hugging Face cache, `layer` the layer whose vectors are compared.
    Nothing is downloaded: BackendUnavailable says what is missing.
    """

    def __init__(self, model: str, layer: int) -> None:
        self.name = SimilaritySection(kind="bert-score", model=model, layer=layer).name
        self._scorer = _scorer(model, layer)
        self._lock = threading.Lock()

    def f1(self, text: str, references: Sequence[str]) -> list[float]:
        """See `TextSimilarity.f1`; texts are cut at the model's own limit."""
        there = [place for place, reference in enumerate(references) if reference.strip()]
        found = [0.0] * len(references)
        if text.strip() and there:
            with self._lock:
                _, _, values = self._scorer.score([text] * len(there), [references[place] for place in there])
            for place, value in zip(there, values.tolist(), strict=True):
                found[place] = value
        return found


def open_similarity(section: SimilaritySection) -> TextSimilarity:
    """The one that an experiment names; BackendUnavailable where its package or its model is missing."""
    return MiniLMTokens() if section.kind == "minilm" else BertScore(section.model, section.layer)


def check_similarity(section: SimilaritySection) -> None:
    """Raise BackendUnavailable where a package or the model is missing, without loading a large model."""
    if section.kind == "minilm":
        SentenceEncoder()
    else:
        _package()
        _folder(section.model)


def _package() -> None:
    expect_installed("bert-score", "BERTScore")


def _folder(model: str) -> str:
    """Where the model is on this machine."""
    if Path(model).is_dir():
        return model
    hub = importlib.import_module("huggingface_hub")
    try:
        # A name may be in the cache; the library itself would ask the network.
        return str(hub.snapshot_download(model, local_files_only=True))
    except (OSError, ValueError) as error:
        raise BackendUnavailable(
            f"no model {model!r} on this machine for BERTScore; name a model's folder, download it beforehand, or use "
            "similarity: {kind: minilm}, whose numbers are not comparable"
        ) from error


def _scorer(model: str, layer: int) -> Any:
    _package()
    folder = _folder(model)
    library = importlib.import_module("bert_score")
    with without_progress():
        try:
            return library.BERTScorer(model_type=folder, num_layers=layer, idf=False, rescale_with_baseline=False)
        except (OSError, AssertionError) as error:
            raise BackendUnavailable(f"the model {model!r} cannot be used for BERTScore: {error}") from error
