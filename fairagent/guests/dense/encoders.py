"""Text encoders: sentence-transformers models, loaded from this machine only."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairagent.errors import BackendUnavailable
from fairagent.retrieve.encoders import BUNDLED, Embeddings
from fairagent.storage.packages import expect_fitting, installed, pick_device, without_progress
from fairagent.storage.threads import one_torch_thread

CONTRIEVER, COSINE = "contriever:", "contriever-cosine:"
PUBLISHED = ("facebook/contriever", "facebook/mcontriever")
"""How the names of the published Contrievers begin."""


def open_transformer(kind: Any, name: str, device: str, what: str, instead: str) -> Any:
    """A model of sentence-transformers of this `kind`: a folder's, or one in the Hugging Face cache.

    Nothing is downloaded: BackendUnavailable says that `what` is missing, and what to do `instead`.
    """
    try:
        with without_progress():
            model = kind(name, device=device, local_files_only=True)
    except OSError as error:
        raise BackendUnavailable(f"no {what} {name!r} on this machine; name a model's folder, {instead}") from error
    if transformer := getattr(model[0], "auto_model", None):
        expect_fitting(model.tokenizer, transformer, name)
    return model


class SentenceEncoder:
    """A sentence-transformers model: a folder, or a name in the Hugging Face cache.

    Vectors have length 1 unless the model was made for inner products. Texts are cut at the model's own limit.
    Nothing is downloaded: BackendUnavailable says what is missing, UsageError which device. Threads may share it.
    """

    def __init__(self, name: str, device: str = "cpu") -> None:
        self.name = name
        library, place = installed("sentence-transformers", "vector search"), pick_device(device)
        instead = f"download it beforehand, or use {BUNDLED}"
        self.model = open_transformer(library.SentenceTransformer, name, place, "embedding model", instead)
        self._lock = threading.Lock()

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d) of documents, with the prompt for documents if the model has one."""
        return self._encoded(self.model.encode_document, texts)

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d) of queries, with the prompt for queries if the model has one."""
        with one_torch_thread():
            return self._encoded(self.model.encode_query, texts)

    def _encoded(self, encode: Any, texts: Sequence[str]) -> Embeddings:
        unit = self.model.similarity_fn_name != "dot"
        # Fast tokenizers change their padding settings in place, which other threads would see.
        with self._lock:
            vectors = encode(list(texts), normalize_embeddings=unit, show_progress_bar=False, convert_to_tensor=True)
        return np.asarray(vectors.float().cpu(), dtype=np.float32)


class MeanPooledEncoder(SentenceEncoder):
    """A BERT without a head, such as Contriever: the mean of a text's token vectors, as long as it comes out.

    `name` is as in `SentenceEncoder`; with `unit` vectors have length 1, so that products are cosines. Queries and
    documents are cut at `query_tokens` and `document_tokens`, or at the model's own limit where that is less.

    Source: Izacard et al., Unsupervised Dense Information Retrieval with Contrastive Learning, TMLR 2022.
    """

    def __init__(
        self, name: str, device: str = "cpu", unit: bool = False, query_tokens: int = 128, document_tokens: int = 512
    ) -> None:
        super().__init__(name, device)
        self.name = f"{COSINE if unit else CONTRIEVER}{name}"
        # sentence-transformers pools a model of which it knows nothing else by the mean, which it has spelled two ways.
        layers = [type(module).__name__ for module in self.model]
        pooling = self.model[1].get_config_dict() if layers == ["Transformer", "Pooling"] else {}
        modes = [key for key, chosen in pooling.items() if key.startswith("pooling_mode_") and chosen is True]
        if pooling.get("pooling_mode") != "mean" and modes != ["pooling_mode_mean_tokens"]:
            raise BackendUnavailable(
                f"the model {name!r} does not end in the mean of its tokens (its layers: {', '.join(layers)}); "
                f"name it without {self.name.removesuffix(name)!r}"
            )
        limit = self.model.max_seq_length or document_tokens
        self._limits = min(query_tokens, limit), min(document_tokens, limit)
        self._unit = unit

    def documents(self, texts: Sequence[str]) -> Embeddings:
        return self._mean(texts, self._limits[1])

    def queries(self, texts: Sequence[str]) -> Embeddings:
        with one_torch_thread():
            return self._mean(texts, self._limits[0])

    def _mean(self, texts: Sequence[str], tokens: int) -> Embeddings:
        with self._lock:
            self.model.max_seq_length = tokens
            vectors = self.model.encode(list(texts), normalize_embeddings=self._unit, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


def open_sentence_encoder(name: str, device: str = "cpu") -> SentenceEncoder:
    """The encoder of this name that sentence-transformers runs; names are those of `open_encoder`."""
    if name.startswith(COSINE):
        return MeanPooledEncoder(name.removeprefix(COSINE), device, unit=True)
    if name.startswith((CONTRIEVER, *PUBLISHED)):
        return MeanPooledEncoder(name.removeprefix(CONTRIEVER), device)
    return SentenceEncoder(name, device)
