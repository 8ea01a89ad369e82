"""SPLADE: every text a sparse vector with a weight for each entry of the model's vocabulary."""

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from fairagent.errors import BackendUnavailable
from fairagent.loading import installed, without_progress

BATCH = 8
"""Texts that the model reads at a time: it gives every token of them a number for the whole vocabulary."""

SUGGESTED = "naver/splade-cocondenser-ensembledistil"


class SparseTextEncoder(Protocol):
    """Turns texts into sparse vectors whose inner product says how alike they are: any object like this will do."""

    @property
    def name(self) -> str:
        """What messages and manifests call it."""
        ...

    def documents(self, texts: Sequence[str]) -> csr_array:
        """Weights of texts to be found, (n, d), none below 0."""
        ...

    def queries(self, texts: Sequence[str]) -> csr_array:
        """Weights of queries, (n, d), none below 0."""
        ...


class SpladeEncoder:
    """A SPLADE model: a folder, or a name in the Hugging Face cache; a plain masked language model is SPLADE v2 max.

    The weight of vocabulary entry j in a text is the largest log(1 + relu(l_ij)) over its tokens i, special ones
    included, with l the logits of the masked language model (Formal et al., SPLADE v2, 2021, equation 6). Models that
    say otherwise in a sentence-transformers folder (sums, queries that need no model) are taken at their word. Texts
    are cut at the model's own limit. Nothing is downloaded: BackendUnavailable says what is missing. Threads may share
    it.
    """

    def __init__(self, name: str, device: str = "cpu") -> None:
        self.name = name
        self._model = _load(name, device)
        self._lock = threading.Lock()

    @cached_property
    def vocabulary(self) -> list[str]:
        """The vocabulary entries, in the order of the weights."""
        entries = self._model.tokenizer.get_vocab()
        return sorted(entries, key=entries.__getitem__)

    def documents(self, texts: Sequence[str]) -> csr_array:
        """Weights of documents, (n, size of the vocabulary)."""
        return self._encoded(self._model.encode_document, texts)

    def queries(self, texts: Sequence[str]) -> csr_array:
        """Weights of queries, (n, size of the vocabulary)."""
        return self._encoded(self._model.encode_query, texts)

    def _encoded(self, encode: Any, texts: Sequence[str]) -> csr_array:
        # Fast tokenizers change their padding settings in place, which other threads would see.
        with self._lock:
            found = encode(list(texts), batch_size=BATCH, show_progress_bar=False, save_to_cpu=True).coalesce()
        places, weights = found.indices().numpy(), found.values().numpy().astype(np.float32)
        return csr_array((weights, (places[0], places[1])), shape=tuple(found.shape))


def _load(name: str, device: str) -> Any:
    library = installed("sentence-transformers", "SPLADE")
    try:
        with without_progress():
            model = library.SparseEncoder(name, device=device, local_files_only=True)
    except OSError as error:
        raise BackendUnavailable(
            f"no SPLADE model {name!r} on this machine; name a model's folder, or download one beforehand, "
            f"such as {SUGGESTED}"
        ) from error
    # Of a model without a masked-language head the library would make a sparse encoder of random weights.
    if not any(type(module).__name__ == "SpladePooling" for module in model.modules()):
        raise BackendUnavailable(
            f"the model {name!r} is no SPLADE model: it has no head that fills in masks; take one such as {SUGGESTED}"
        )
    return model
