"""The packaged encoder for one text at a time, in numpy: a query has its vector before torch would be loaded.

torch, transformers and sentence-transformers take five seconds of a processor to be imported; the six small layers that
a query goes through take milliseconds. Vectors are those of sentence-transformers but for the last digits of 32-bit
floats. Many texts are left to it.

Source: Devlin et al., BERT, NAACL 2019 (the layers); Wang et al., MiniLM, NeurIPS 2020 (the model).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from fairagent.extend import BUNDLED, Embeddings, Work, expect_installed, one_blas_thread, pick_device
from fairagent.guests.dense.encoders import SentenceEncoder, bundled_folder, embedding, quickest_dtype

LAYERS, HEADS = 6, 12
TOKENS = 256
"""The longest text, as the model's own settings say."""
EPSILON = 1e-12
"""Of the layer norms."""
FLAT = 4.0
"""From here on the error function is 1, up to 2e-8."""
TERMS = 16
"""Of the polynomial that stands for it: it is off by less than 1e-7, in 32-bit floats by less than 3e-7."""


class OneTextEncoder:
    """The packaged model: one text at a time in numpy, several by sentence-transformers on torch's `device`.

    Threads may share it. Raises BackendUnavailable where its package or sentence-transformers is missing, UsageError
    where the device is.
    """

    name = BUNDLED

    def __init__(self, name: str = BUNDLED, device: str = "cpu") -> None:
        expect_installed("sentence-transformers", f"the encoder {BUNDLED}")
        self._folder, self._device = bundled_folder() / "model", device
        if device != "cpu":
            pick_device(device)

    @property
    def model(self) -> Any:
        """The model of sentence-transformers."""
        return self._library.model

    @property
    def quickest_dtype(self) -> str:
        """The type of numbers by which documents are encoded fastest here."""
        return quickest_dtype(BUNDLED, self._device)

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d) of length 1."""
        return self._one(texts[0]) if len(texts) == 1 else self._library.documents(texts)

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """The same: the model does not tell them apart."""
        return self._one(texts[0]) if len(texts) == 1 else self._library.queries(texts)

    def tokens(self, text: str) -> Embeddings:
        """The vector of each token of a text, (t, d), the special ones at both ends included."""
        return self._library.tokens(text)

    @contextmanager
    def work(self, workers: int, dtype: str) -> Iterator[Work[Embeddings]]:
        """See `embedding`."""
        with embedding(BUNDLED, workers, self._device, dtype) as work:
            yield work

    @cached_property
    def _library(self) -> SentenceEncoder:
        return SentenceEncoder(BUNDLED, self._device)

    def _one(self, text: str) -> Embeddings:
        with one_blas_thread():
            mean = self._states(self._tokenizer.encode(text.strip()).ids).mean(axis=0, keepdims=True)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)

    def _states(self, ids: Sequence[int]) -> Embeddings:
        """The last layer's vector of each token, (t, d)."""
        words = self._rows("embeddings.word_embeddings.weight", ids)
        places = self._rows("embeddings.position_embeddings.weight", range(len(ids)))
        x = self._norm(words + places + self._rows("embeddings.token_type_embeddings.weight", [0]), "embeddings")
        for number in range(LAYERS):
            layer = f"encoder.layer.{number}"
            x = self._norm(x + self._attention(x, f"{layer}.attention"), f"{layer}.attention.output")
            inner = self._linear(x, f"{layer}.intermediate.dense")
            inner *= 0.5 + 0.5 * error_function(inner * np.float32(math.sqrt(0.5)))  # GELU
            x = self._norm(x + self._linear(inner, f"{layer}.output.dense"), f"{layer}.output")
        return x

    def _attention(self, x: Embeddings, name: str) -> Embeddings:
        def heads(part: str) -> Embeddings:
            return self._linear(x, f"{name}.self.{part}").reshape(len(x), HEADS, -1).swapaxes(0, 1)

        query, key, value = heads("query"), heads("key"), heads("value")
        scores = query @ key.swapaxes(1, 2) / np.float32(math.sqrt(query.shape[-1]))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return self._linear((shares @ value).swapaxes(0, 1).reshape(x.shape), f"{name}.output.dense")

    def _linear(self, x: Embeddings, name: str) -> Embeddings:
        product: Embeddings = x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return product

    def _norm(self, x: Embeddings, name: str) -> Embeddings:
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
        scaled: Embeddings = x * self._weights[f"{name}.LayerNorm.weight"] + self._weights[f"{name}.LayerNorm.bias"]
        return scaled

    def _rows(self, name: str, numbers: Sequence[int]) -> Embeddings:
        # Of the table of words, which is half of the file, only the rows of these words are read.
        table = self._file.get_slice(name)
        return np.concatenate([table[number : number + 1] for number in numbers])

    @cached_property
    def _weights(self) -> dict[str, Embeddings]:
        """All but the tables of embeddings."""
        names = list(self._file.keys())
        return {name: self._file.get_tensor(name) for name in names if not name.endswith("_embeddings.weight")}

    @cached_property
    def _file(self) -> Any:
        from safetensors import safe_open

        return safe_open(self._folder / "model.safetensors", framework="np")

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(TOKENS)
        return tokenizer


def error_function(x: Embeddings) -> Embeddings:
    """The error function of each number, in 32-bit floats: x times a polynomial in x^2 (Horner's rule).

    The polynomial meets erf(x) / x in Chebyshev's nodes on [0, 4]. It takes a twentieth of math.erf's time.
    """
    x = np.clip(x, -FLAT, FLAT)
    # x^2 as a number in [-1, 1], on which Chebyshev's nodes are.
    place = x * x * np.float32(2 / FLAT**2) - np.float32(1)
    first, *others = _erf_by_x()
    values = np.full_like(place, first)
    for coefficient in others:
        values *= place
        values += coefficient
    values *= x
    return values


@cache
def _erf_by_x() -> tuple[np.float32, ...]:
    """The polynomial's coefficients, that of the highest power first."""

    def ratios(places: Any) -> Any:
        roots = np.sqrt((places + 1) / 2) * FLAT
        return np.array([math.erf(root) / root for root in roots.tolist()])

    series = Chebyshev.interpolate(ratios, TERMS - 1).convert(kind=Polynomial)
    return tuple(map(np.float32, series.coef[::-1].tolist()))
