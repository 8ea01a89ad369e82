"""The retriever that is trained, its exact top documents, and how it stands before and after training."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from fairagent.errors import UsageError
from fairagent.papers.fairft.loss import kl_loss, log_target
from fairagent.papers.fairft.settings import TrainingExample, TrainingSection
from fairagent.papers.fairft.signals import Signals
from fairagent.retrieve.base import full_text
from fairagent.retrieve.encoders import Embeddings, open_sentence_model
from fairagent.storage.folders import workshop
from fairagent.storage.packages import pick_device
from fairagent.types import Document, FloatArray

if TYPE_CHECKING:
    import torch


Kind = Literal["query", "document"]

PROMPTS: Mapping[Kind, Sequence[str]] = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""Under which names models keep what stands before a query or a document."""


class Tower:
    """A sentence-transformers model whose vectors have length 1, so that inner products are cosines.

    It is in evaluation mode even while it is trained, as in the paper's code: nothing is dropped out, and the same
    weights give the same vectors.
    """

    def __init__(self, name: str, device: str = "", dtype: str = "float32", batch: int = 64) -> None:
        self.name = name
        self.device = pick_device(device)
        self.model: Any = open_sentence_model(name, self.device).model.eval().float()
        # Whoever searches with the saved model compares as it was trained.
        self.model.similarity_fn_name = "cosine"
        self._half = dtype == "bfloat16"
        self._batch = batch

    def vectors(self, kind: Kind, texts: Sequence[str]) -> torch.Tensor:
        """The vectors (n, d) of texts, with a gradient."""
        library = importlib.import_module("torch")
        prompts = self.model.prompts
        prompt = next((prompts[name] for name in PROMPTS[kind] if name in prompts), "") or ""
        # Before version 5.2 of sentence-transformers there was no `preprocess`.
        if hasattr(self.model, "preprocess"):
            features = self.model.preprocess(list(texts), prompt=prompt or None, task=kind)
        else:
            features = self.model.tokenize([prompt + text for text in texts])
        features = {name: value.to(self.device) if hasattr(value, "to") else value for name, value in features.items()}
        half = library.autocast(library.device(self.device).type, library.bfloat16) if self._half else nullcontext()
        with half:
            embeddings = self.model(features, task=kind)["sentence_embedding"]
        vectors: torch.Tensor = library.nn.functional.normalize(embeddings.float(), dim=-1)
        return vectors

    def encode(self, kind: Kind, texts: Sequence[str]) -> Embeddings:
        """The vectors (n, d) as a numpy array of 32-bit floats, without a gradient; there is at least one text."""
        torch = importlib.import_module("torch")
        # Those of about the same length together: little is spent on padding.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        with torch.no_grad():
            parts = [
                self.vectors(kind, [texts[place] for place in order[start : start + self._batch]]).cpu().numpy()
                for start in range(0, len(order), self._batch)
            ]
        vectors = np.empty((len(texts), parts[0].shape[1]), np.float32)
        vectors[order] = np.concatenate(parts)
        return vectors

    def save(self, folder: Path) -> None:
        """Write the model as a folder that sentence-transformers opens, at once: it is whole or not there."""
        with workshop(folder) as shop:
            self.model.save_pretrained(str(shop.new), create_model_card=False)
            shop.put()


def top(queries: Embeddings, documents: Embeddings, count: int) -> NDArray[np.intp]:
    """The places of the `count` documents (n, d) with the largest inner products, (q, count), for each query (q, d).

    The largest first; ties by place. There are at least `count` documents.

    >>> top(np.array([[1.0, 0.0]]), np.array([[0.5, 0], [0.9, 0], [0.5, 1]]), 2).tolist()
    [[1, 0]]
    """
    places = np.empty((len(queries), count), np.intp)
    for row, query in zip(places, queries, strict=True):
        scores = documents @ query
        least = np.partition(scores, -count)[-count]
        close = np.flatnonzero(scores >= least)
        row[:] = close[np.argsort(-scores[close], kind="stable")[:count]]
    return places


SHOWN = 3
"""Documents that an answer is written from, as in the paper."""


@dataclass(frozen=True, slots=True)
class RetrieverQuality:
    """How one retriever stands to the language model; means over the questions.

    `kl` is the KL (nats, in the direction of the settings) on the documents that the retriever before training ranks
    first, `kl_own` on those that this one ranks first. `expected` is the probability, in [0, 1], of the fair answer
    with one document drawn from this retriever's distribution; `likelihood` is the model's log-likelihood (<= 0) of it
    with one document, mean over the first three of this retriever.
    """

    kl: float
    kl_own: float
    expected: float
    likelihood: float


@dataclass(frozen=True, slots=True)
class TrainingEffect:
    """Two standings on `questions` held-out questions, and how much of the ranking stayed, in [0, 1].

    `overlap` is the mean share of the first `documents` (the setting) that are the same, `overlap_first` that of the
    first three.
    """

    questions: int
    documents: int
    before: RetrieverQuality
    after: RetrieverQuality
    overlap: float
    overlap_first: float


def compare(
    before: Tower,
    after: Tower,
    documents: Sequence[Document],
    examples: Sequence[TrainingExample],
    signals: Signals,
    settings: TrainingSection,
) -> TrainingEffect:
    """Both retrievers on the same questions, documents and signals; these may be another model's than trained on."""
    if not examples:
        raise UsageError("there is no question to evaluate on")
    count = min(settings.documents, len(documents))
    texts, questions = list(map(full_text, documents)), [example.query for example in examples]
    vectors = [(tower.encode("query", questions), tower.encode("document", texts)) for tower in (before, after)]
    one, two = (top(*pair, count) for pair in vectors)
    standings = []
    for (queries, embedded), own in zip(vectors, (one, two), strict=True):
        kl = held_out_kl(queries, embedded, one, signals.table(examples, documents, one), settings)
        likelihoods = signals.table(examples, documents, own)
        kl_own = held_out_kl(queries, embedded, own, likelihoods, settings)
        shares = softmax(cosines_at(queries, embedded, own) / settings.gamma, axis=1)
        expected = float((shares * np.exp(likelihoods)).sum(axis=1).mean())
        standings.append(RetrieverQuality(kl, kl_own, expected, float(likelihoods[:, :SHOWN].mean())))
    overlaps = (_overlap(one, two, first) for first in (count, min(SHOWN, count)))
    return TrainingEffect(len(examples), count, standings[0], standings[1], *overlaps)


def held_out_kl(
    queries: Embeddings,
    vectors: Embeddings,
    places: NDArray[np.intp],
    likelihoods: FloatArray,
    settings: TrainingSection,
) -> float:
    """The mean KL (nats) of questions (q, d) over the documents at `places` (q, k) of `vectors` (n, d)."""
    tensor = importlib.import_module("torch").from_numpy
    cosines, log_q = cosines_at(queries, vectors, places), log_target(likelihoods, settings.beta)
    return float(kl_loss(tensor(cosines), tensor(log_q), settings.gamma, settings.direction))


def cosines_at(queries: Embeddings, vectors: Embeddings, places: NDArray[np.intp]) -> FloatArray:
    """The cosines (q, k) of questions (q, d) and the documents at `places` (q, k) of `vectors` (n, d)."""
    return np.asarray(np.einsum("qd,qkd->qk", queries.astype(np.float64), vectors[places].astype(np.float64)))


def _overlap(before: NDArray[np.intp], after: NDArray[np.intp], count: int) -> float:
    same = [len(np.intersect1d(one[:count], two[:count])) for one, two in zip(before, after, strict=True)]
    return float(np.mean(same)) / count
