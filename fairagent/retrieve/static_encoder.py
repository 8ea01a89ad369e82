"""Static models by the package model2vec: a vector a token, and their mean a text; thousands of texts a second."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.errors import BackendUnavailable
from fairagent.loading import installed
from fairagent.retrieve.encoder import MODEL2VEC, Embeddings, of_length_one


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
