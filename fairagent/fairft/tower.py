"""The retriever that is trained: a sentence-transformers model with gradients, and its exact top documents."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairagent.folders import workshop
from fairagent.loading import found_device
from fairagent.retrieve.encoder import Embeddings
from fairagent.retrieve.sentence_encoder import load_sentence_model

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
        self.device = found_device(device)
        self.model: Any = load_sentence_model(name, self.device).eval().float()
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
            found = self.model(features, task=kind)["sentence_embedding"]
        vectors: torch.Tensor = library.nn.functional.normalize(found.float(), dim=-1)
        return vectors

    def encode(self, kind: Kind, texts: Sequence[str], progress: Callable[[int], None] = lambda done: None) -> Any:
        """The vectors (n, d) as a numpy array of 32-bit floats, without a gradient."""
        torch = importlib.import_module("torch")
        # Those of about the same length together: little is spent on padding.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        found: Embeddings | None = None
        with torch.no_grad():
            for start in range(0, len(order), self._batch):
                batch = order[start : start + self._batch]
                vectors = self.vectors(kind, [texts[place] for place in batch]).cpu().numpy()
                if found is None:
                    found = np.zeros((len(texts), vectors.shape[1]), np.float32)
                found[batch] = vectors
                progress(start + len(batch))
        return found

    def save(self, folder: Path) -> None:
        """Write the model as a folder that sentence-transformers opens, at once: it is whole or not there."""
        with workshop(folder) as shop:
            shop.begin()
            self.model.save_pretrained(str(shop.new), create_model_card=False)
            shop.put()


def top(queries: Embeddings, documents: Embeddings, count: int) -> NDArray[np.intp]:
    """The places of the `count` documents (n, d) with the largest inner products, (q, count), for each query (q, d).

    The largest first; ties by place. There are at least `count` documents.

    >>> top(np.array([[1.0, 0.0]]), np.array([[0.5, 0], [0.9, 0], [0.5, 1]]), 2).tolist()
    [[1, 0]]
    """
    found = np.empty((len(queries), count), np.intp)
    for row, query in zip(found, queries, strict=True):
        scores = documents @ query
        least = np.partition(scores, -count)[-count]
        close = np.flatnonzero(scores >= least)
        row[:] = close[np.argsort(-scores[close], kind="stable")[:count]]
    return found
