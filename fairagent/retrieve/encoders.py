"""Text encoders behind one small protocol, and the names by which settings call them.

An add-on brings encoders through the entry point group `fairagent.encoders`: a name, or what stands before the colon of
names, for a callable that makes an encoder of (name, device). The shipped ones are in `fairagent.guests.dense`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import UsageError
from fairagent.settings.plugins import plugins

if TYPE_CHECKING:
    from fairagent.llm.embeddings import EmbeddingModel

Embeddings = NDArray[np.float32]

BUNDLED = "minilm"
"""all-MiniLM-L6-v2 as Python packages (384 numbers a text, the first 256 word pieces of it)."""
ENDPOINT = "endpoint:"
GROUP, OTHERS = "fairagent.encoders", "sentence-transformers"
"""The entry points of encoders, and the one that opens what no other does."""

Served: TypeAlias = "Callable[[str], EmbeddingModel]"
"""Opens the embedding model of this name at the settings' server."""


class Encoder(Protocol):
    """Turns texts into vectors whose inner product says how alike they are: any object like this will do."""

    @property
    def name(self) -> str:
        """What messages and manifests call it."""

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """Vectors of texts to be searched, (n, d)."""

    def queries(self, texts: Sequence[str]) -> Embeddings:
        """Vectors of queries, (n, d): the same as `documents` but for models that tell them apart."""


@runtime_checkable
class SentenceModel(Encoder, Protocol):
    """An encoder that a model of sentence-transformers makes."""

    model: Any


@runtime_checkable
class EncoderPart(Protocol):
    """An engine's part with an encoder of its own, whose vectors may be sparse."""

    def open_encoder(self, memo: Any) -> Any:
        """The encoder, opened once for a `memo`."""


def of_length_one(rows: Embeddings) -> Embeddings:
    """Vectors (n, d) with length 1; zeros stay zeros.

    >>> of_length_one(np.array([[3, 4], [0, 0]], dtype=np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Embeddings = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return unit


def open_encoder(name: str, device: str = "cpu", served: "Served | None" = None) -> Encoder:
    """The text encoder that a settings file names.

    * `minilm`: the packaged model, by onnxruntime.
    * `endpoint:MODEL`: MODEL of the settings' server (model.base_url, OPENAI_BASE_URL), which `served` opens.
    * `contriever:NAME` is the mean of token vectors compared by inner product, `contriever-cosine:NAME` the same
      compared by cosine; the published Contrievers (facebook/contriever ...) need no `contriever:` before them.
    * Any other NAME: what sentence-transformers makes of it. NAME is a folder or a name in the Hugging Face cache.

    `device` is torch's. Nothing is downloaded. Raises BackendUnavailable where a model, a package or a key is missing,
    UsageError where a device is, or nothing is served; SettingsError for a model without a price under a budget.
    """
    if name.startswith(ENDPOINT):
        if served is None:
            raise UsageError(f"encoder {name!r}: vectors of a server cannot be had here; name a model on this machine")
        return EndpointEncoder(served(name.removeprefix(ENDPOINT)))
    entries = plugins(GROUP)
    (entry,) = entries.get(name.partition(":")[0]) or entries[OTHERS]
    encoder: Encoder = entry.load()(name, device)
    return encoder


def open_sentence_model(name: str, device: str = "cpu") -> SentenceModel:
    """As `open_encoder`; UsageError where no model of sentence-transformers makes the vectors."""
    encoder = open_encoder(name, device)
    if not isinstance(encoder, SentenceModel):
        raise UsageError(f"encoder {name!r} is not a model of sentence-transformers; name one")
    return encoder


class EndpointEncoder:
    """What a server's embedding model makes of texts; documents and queries alike. Threads may share it.

    Vectors have length 1, but those of blank texts, which a server may refuse, are zeros.
    """

    def __init__(self, model: "EmbeddingModel") -> None:
        self.name, self.cost, self._model = f"{ENDPOINT}{model.name}", model.cost, model

    def documents(self, texts: Sequence[str]) -> Embeddings:
        filled = [number for number, text in enumerate(texts) if text.strip()]
        vectors = self._model.embed([texts[number] for number in filled])
        # Any text shows how long the server's vectors are.
        size = self._model.dimension or self._model.embed(["text"]).shape[1]
        rows = np.zeros((len(texts), size), dtype=np.float32)
        if filled:
            rows[filled] = vectors
        return of_length_one(rows)

    queries = documents
