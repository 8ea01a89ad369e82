"""Attribution by sentence embeddings: an answer rests on documents with a very similar sentence. Offline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from fairagent.attribute.attributor import nothing_to_ask, statement
from fairagent.filter.pages import page_of
from fairagent.generate.sentences import sentences
from fairagent.retrieve.encoder import BUNDLED, Embeddings, Encoder, check_encoder, open_encoder
from fairagent.settings import Part
from fairagent.site import Site
from fairagent.types import Answer, Attribution, Document

THRESHOLD = 0.6
"""For all-MiniLM-L6-v2: sentences of unrelated Wikipedia articles stay below .53, most paraphrases reach .69 to .9."""


@dataclass(frozen=True, slots=True)
class EmbeddingAttributor:
    """A document weighs 1 if one of its sentences is similar to a sentence of the answer (>= `threshold`), else 0.

    Likeness is the cosine of the vectors that `encoder` makes, in [-1, 1]. A document's sentences are read with its
    title before them, since most call their subject "he", "she" or "it". Likeness knows a subject better than a claim:
    two sentences that contradict each other can be close. Where that matters, take `NliAttributor`.
    """

    encoder: Encoder
    threshold: float = THRESHOLD

    def attribute(self, query: str, answer: Answer, documents: Sequence[Document]) -> Attribution:
        """See `Attributor.attribute`."""
        claims = sentences(statement(answer))
        if nothing := nothing_to_ask("embeddings", claims, documents):
            return nothing
        pages = [page_of(document) for document in documents]
        parts = [[f"{page.title}: {part}".lstrip(": ") for part in sentences(page.text) or [""]] for page in pages]
        vectors = _unit(self.encoder.documents([*claims, *(sentence for part in parts for sentence in part)]))
        likeness = (vectors[len(claims) :] @ vectors[: len(claims)].T).max(axis=1)
        starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
        best = np.maximum.reduceat(likeness, starts)
        return Attribution("embeddings", (best >= self.threshold).astype(np.float64))


def _unit(vectors: Embeddings) -> Embeddings:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Embeddings = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit


class EmbeddingConfig(Part):
    """By the similarity of sentences."""

    kind: Literal["embeddings"] = "embeddings"
    encoder: str = BUNDLED
    """The local model's folder or name."""
    threshold: float = Field(THRESHOLD, ge=-1, le=1)
    """How alike two sentences have to be (cosine)."""

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the model is not on this machine."""
        check_encoder(self.encoder)

    def build(self, site: Site) -> EmbeddingAttributor:
        """The attributor."""
        return EmbeddingAttributor(open_encoder(self.encoder, served=site.embeddings), self.threshold)
