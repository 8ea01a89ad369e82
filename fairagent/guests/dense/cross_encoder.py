"""The re-ranker `cross-encoder`: a model reads the user's query and each document together and gives one number."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from fairagent.errors import BackendUnavailable
from fairagent.retrieve.base import Retriever, full_text, texts_for
from fairagent.retrieve.site import Site
from fairagent.search.rerank.base import PairScorer, Pool, ordered, pair_scorer, pair_scores
from fairagent.settings import Part
from fairagent.storage.packages import installed, without_progress
from fairagent.types import FloatArray, Ranking

BATCH = 16
"""Pairs that a model reads at a time."""


class CrossEncoderScorer:
    """A sentence-transformers CrossEncoder with one output: a model's folder, or a name in the Hugging Face cache.

    The score is the output as it is, without the sigmoid that would make good texts alike. A pair is cut at the model's
    own limit. Nothing is downloaded: BackendUnavailable says what is missing. Threads may share it.
    """

    def __init__(self, name: str, device: str = "cpu") -> None:
        self.name, self._lock = name, threading.Lock()
        library = installed("sentence-transformers", "a cross-encoder")
        import torch
        from transformers import AutoConfig

        try:
            with without_progress():
                config = AutoConfig.from_pretrained(name, local_files_only=True)
                # Of a model without a head that scores the library would make one of random weights.
                kinds = ", ".join(config.architectures or ["unknown"])
                if not kinds.endswith("ForSequenceClassification") or config.num_labels != 1:
                    raise BackendUnavailable(
                        f"the model {name!r} ({kinds}) is no cross-encoder: it has no head that gives a pair one number"
                    )
                self._model = library.CrossEncoder(name, device=device, local_files_only=True)
        except (OSError, ValueError) as error:
            raise BackendUnavailable(
                f"no cross-encoder {name!r} on this machine; name a model's folder, or download it beforehand"
            ) from error
        self._identity = torch.nn.Identity()

    def score(self, query: str, texts: Sequence[str]) -> FloatArray:
        """The model's output for each pair, (n,)."""
        if not texts:
            return np.zeros(0)
        pairs = [(query, text) for text in texts]
        # Fast tokenizers change their padding settings in place, which other threads would see.
        with self._lock:
            scores = self._model.predict(pairs, batch_size=BATCH, activation_fn=self._identity, show_progress_bar=False)
        return np.asarray(scores, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class CrossEncoderReranker:
    """The best `depth` candidates by the scorer's number for the user's query and the document, ties by id.

    It reads title and text as `retriever` keeps them, of a long document the passage that answers best. Candidates
    beyond `depth` (1 or more) follow in their order, each one below the one before. Raises UsageError where the engine
    keeps no texts, DataError where a score is no finite number.
    """

    retriever: Retriever
    scorer: PairScorer
    depth: int = 100

    def rerank(self, pool: Pool) -> Ranking:
        ids = pool.ranking.ids[: self.depth]
        texts = list(map(full_text, texts_for(pool.query, ids, self.retriever)))
        best = ordered(ids, pair_scores(self.scorer, pool.query, texts, ids), pool.n)
        rest = pool.ranking.ids[self.depth : self.depth + pool.n - len(best)]
        if not rest:
            return best
        return Ranking(best.ids + rest, np.concatenate([best.scores, best.scores[-1] - np.arange(1, len(rest) + 1)]))


class CrossEncoderConfig(Part):
    """The best candidates by a model that reads query and document together."""

    kind: Literal["cross-encoder"] = "cross-encoder"
    scorer: str = Field(min_length=1)
    """The cross-encoder: a folder, or a name in the Hugging Face cache."""
    depth: int = Field(100, ge=1)
    """How many of the first candidates the model reads; the others stay behind them. More take longer in proportion."""

    def check(self, site: Site) -> None:
        pair_scorer(site, self.scorer)

    def open_scorer(self) -> PairScorer:
        """The model; BackendUnavailable where it is not on this machine."""
        return CrossEncoderScorer(self.scorer)

    def build(self, site: Site) -> CrossEncoderReranker:
        return CrossEncoderReranker(site.engine, pair_scorer(site, self.scorer), self.depth)
