"""Evaluation of a training: the retriever before and after, on held-out questions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from fairagent.errors import UsageError
from fairagent.fairft.examples import Example
from fairagent.fairft.loss import kl_loss, log_target
from fairagent.fairft.settings import TrainingSection
from fairagent.fairft.signals import Signals
from fairagent.fairft.tower import Tower, top
from fairagent.retrieve.base import full_text
from fairagent.retrieve.encoder import Embeddings
from fairagent.types import Document, FloatArray

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

    `kept` is the mean share of the first `documents` (the setting) that are the same, `kept_first` that of the first
    three.
    """

    questions: int
    documents: int
    before: RetrieverQuality
    after: RetrieverQuality
    kept: float
    kept_first: float


def compare(
    before: Tower,
    after: Tower,
    documents: Sequence[Document],
    examples: Sequence[Example],
    signals: Signals,
    settings: TrainingSection,
) -> TrainingEffect:
    """Both retrievers on the same questions, documents and signals; these may be another model's than trained on."""
    if not examples:
        raise UsageError("there is no question to evaluate on")
    count = min(settings.documents, len(documents))
    rankers = [_ranked(tower, documents, examples, count) for tower in (before, after)]
    given = rankers[0].first
    standings = []
    for ranker in rankers:
        kl, _ = ranker.against(given, documents, examples, signals, settings)
        kl_own, likelihoods = ranker.against(ranker.first, documents, examples, signals, settings)
        shares = softmax(cosines_at(ranker.queries, ranker.vectors, ranker.first) / settings.gamma, axis=1)
        expected = float((shares * np.exp(likelihoods)).sum(axis=1).mean())
        standings.append(RetrieverQuality(kl, kl_own, expected, float(likelihoods[:, :SHOWN].mean())))
    one, two = (ranker.first for ranker in rankers)
    kept, kept_first = (_kept(one, two, first) for first in (count, min(SHOWN, count)))
    return TrainingEffect(len(examples), count, standings[0], standings[1], kept, kept_first)


@dataclass(frozen=True, slots=True, eq=False)
class _Ranked:
    """A retriever's vectors of questions (q, d) and documents (n, d), and the places of the first ones (q, k)."""

    queries: Embeddings
    vectors: Embeddings
    first: NDArray[np.intp]

    def against(
        self,
        places: NDArray[np.intp],
        documents: Sequence[Document],
        examples: Sequence[Example],
        signals: Signals,
        settings: TrainingSection,
    ) -> tuple[float, FloatArray]:
        """The KL on the documents at `places` (q, k), and the model's log-likelihoods with them, (q, k)."""
        likelihoods = signals.table(examples, documents, places)
        return held_out_kl(self.queries, self.vectors, places, likelihoods, settings), likelihoods


def held_out_kl(
    queries: Embeddings,
    vectors: Embeddings,
    places: NDArray[np.intp],
    likelihoods: FloatArray,
    settings: TrainingSection,
) -> float:
    """The mean KL (nats) of questions (q, d) over the documents at `places` (q, k) of `vectors` (n, d)."""
    cosines = cosines_at(queries, vectors, places)
    return kl_loss(cosines, log_target(likelihoods, settings.beta), settings.gamma, settings.direction)


def cosines_at(queries: Embeddings, vectors: Embeddings, places: NDArray[np.intp]) -> FloatArray:
    """The cosines (q, k) of questions (q, d) and the documents at `places` (q, k) of `vectors` (n, d)."""
    return np.asarray(np.einsum("qd,qkd->qk", queries.astype(np.float64), vectors[places].astype(np.float64)))


def _ranked(tower: Tower, documents: Sequence[Document], examples: Sequence[Example], count: int) -> _Ranked:
    vectors = tower.encode("document", list(map(full_text, documents)))
    queries = tower.encode("query", [example.query for example in examples])
    return _Ranked(queries, vectors, top(queries, vectors, count))


def _kept(before: NDArray[np.intp], after: NDArray[np.intp], count: int) -> float:
    same = [len(np.intersect1d(one[:count], two[:count])) for one, two in zip(before, after, strict=True)]
    return float(np.mean(same)) / count
