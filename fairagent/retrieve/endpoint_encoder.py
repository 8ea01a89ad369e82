"""An embedding model of an OpenAI-compatible server as an encoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairagent.llm.embeddings import EmbeddingModel
from fairagent.retrieve.encoders import ENDPOINT, Embeddings, of_length_one

ANY_TEXT = "text"
"""Asks a server how long its vectors are."""


class EndpointEncoder:
    """What a server's embedding model makes of texts; documents and queries alike. Threads may share it.

    Vectors have length 1, but those of blank texts, which a server may refuse: these are zeros, and like nothing. It
    raises what `EmbeddingModel.embed` does.
    """

    def __init__(self, model: EmbeddingModel) -> None:
        self.name = f"{ENDPOINT}{model.name}"
        self._model = model

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d)."""
        there = np.array([bool(text.strip()) for text in texts], dtype=np.bool_)
        found = self._model.embed([text for text in texts if text.strip()])
        size = self._model.dimension or self._model.embed([ANY_TEXT]).shape[1]
        rows = np.zeros((len(texts), size), dtype=np.float32)
        if len(found):
            rows[there] = found
        return of_length_one(rows)

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d)."""
        return self.documents(texts)

    def cost(self, tokens: int) -> float | None:
        """US dollars for texts of so many tokens; None where the price is not known."""
        return self._model.cost(tokens)
