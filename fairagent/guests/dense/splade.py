"""Sparse search: exact inner products of SPLADE weights over an inverted index.

Every text is a sparse vector with a weight for each entry of the model's vocabulary; the index has for every entry the
documents with a weight for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csc_array, csr_array, vstack

from fairagent.errors import BackendUnavailable, IndexMismatch
from fairagent.retrieve.base import Retriever, check_length, engine_time, ignore, lend_texts
from fairagent.retrieve.bm25.part import check_index, earlier_of, index_sibling, open_index, prepare_index
from fairagent.retrieve.catalog import IdTable, mapped
from fairagent.retrieve.encoded import PROBE_TEXT, EncodedBuild, EncodedManifest, Work
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.manifest import Indexable
from fairagent.retrieve.passages import PassageRetriever
from fairagent.retrieve.site import Site
from fairagent.settings import Part
from fairagent.settings.parts import Progress
from fairagent.storage.arrays import write_array
from fairagent.storage.files import file_name
from fairagent.storage.packages import installed, without_progress
from fairagent.storage.threads import Memo
from fairagent.types import FloatArray, Query, Ranking

BATCH = 8
"""Texts that the model reads at a time: it gives every token of them a number for the whole vocabulary."""
SUGGESTED = "naver/splade-cocondenser-ensembledistil"


class SparseTextEncoder(Protocol):
    """Turns texts into sparse vectors whose inner product says how alike they are: any object like this will do."""

    @property
    def name(self) -> str:
        """What messages and manifests call it."""

    def documents(self, texts: Sequence[str]) -> csr_array:
        """Weights of texts to be searched, (n, d), none below 0."""

    def queries(self, texts: Sequence[str]) -> csr_array:
        """Weights of queries, (n, d), none below 0."""


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
            tensor = encode(list(texts), batch_size=BATCH, show_progress_bar=False, save_to_cpu=True).coalesce()
        places, weights = tensor.indices().numpy(), tensor.values().numpy().astype(np.float32)
        return csr_array((weights, (places[0], places[1])), shape=tuple(tensor.shape))


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


@dataclass(frozen=True, slots=True)
class SpladeManifest(EncodedManifest):
    """What the weights were made from and by; `dimension` is the size of the vocabulary."""

    FILE: ClassVar[str] = "fairagent-splade.json"
    WHAT: ClassVar[str] = "SPLADE weights"
    MAKE: ClassVar[str] = "make them with `fairagent index` or build_splade_index"


@dataclass(frozen=True, slots=True, eq=False)
class InvertedWeights:
    """The postings of vocabulary entry j: `documents[starts[j]:starts[j + 1]]`, rising, with their `weights`."""

    starts: NDArray[np.int64]
    documents: NDArray[np.integer[Any]]
    weights: NDArray[np.float32]
    count: int
    seen: set[int] = field(default_factory=set)
    """The entries whose postings were looked at: they can be right."""

    @classmethod
    def load(cls, folder: Path, count: int) -> InvertedWeights:
        """Map what a build has written of `count` documents; raises OSError or ValueError where it is damaged."""
        starts, documents, weights = (mapped(folder / f"{name}.npy") for name in ("starts", "documents", "weights"))
        if starts[0] or (starts[1:] < starts[:-1]).any():
            raise ValueError("the postings do not follow one another")
        if not len(documents) == len(weights) == int(starts[-1]):
            raise ValueError(f"{len(documents)} documents, {len(weights)} weights, {starts[-1]} expected")
        return cls(starts, documents, weights, count)

    def of(self, entry: int) -> tuple[NDArray[np.integer[Any]], NDArray[np.float32]]:
        """The numbers of the documents that have this vocabulary entry, rising, and their weights.

        Raises IndexMismatch where what is there cannot be.
        """
        start, stop = int(self.starts[entry]), int(self.starts[entry + 1])
        documents, weights = self.documents[start:stop], self.weights[start:stop]
        if entry not in self.seen:
            rising = stop == start or (
                documents[0] >= 0 and documents[-1] < self.count and bool((documents[1:] > documents[:-1]).all())
            )
            if not (rising and np.isfinite(weights).all()):
                raise IndexMismatch(f"the SPLADE weights are damaged at entry {entry}; remove them, and index again")
            self.seen.add(entry)
        return documents, weights


def build_splade_index(
    collection: Indexable,
    folder: Path,
    encoder: SparseTextEncoder,
    progress: Callable[[int], None] = ignore,
    earlier: Path | None = None,
) -> SpladeManifest:
    """Weigh title and text of every document of `collection` into `folder`, which appears only when all are done.

    See `EncodedBuild.run` for what is taken over from `earlier`, and what it raises. Memory holds all weights.
    """
    work = Work(encoder.documents, progress=progress)
    return _WeightsBuild(SpladeManifest, encoder.name, probe_vector(encoder), work).run(collection, folder, earlier)


def probe_vector(encoder: SparseTextEncoder) -> Embeddings:
    """The weights of the test text, (d,), zeros included."""
    return np.asarray(encoder.documents([PROBE_TEXT]).toarray()[0], dtype=np.float32)


class _WeightsBuild(EncodedBuild[SpladeManifest, csr_array]):
    """Postings of all documents, inverted together at the end."""

    def stored(self, folder: Path) -> Callable[[NDArray[np.intp]], csr_array]:
        count = len(IdTable.load(folder))
        old = InvertedWeights.load(folder, count)
        # Both of one width, or all indexes become the wider one.
        starts = old.starts.astype(old.documents.dtype)
        rows = csc_array((old.weights, old.documents, starts), (count, len(starts) - 1)).tocsr()
        return lambda numbers: rows[numbers]

    def stacked(self, first: csr_array, second: csr_array, order: NDArray[np.intp]) -> csr_array:
        rows: csr_array = vstack([first, second], format="csr")[order]
        return rows

    def write(self, folder: Path, vectors: Iterable[csr_array]) -> None:
        inverted = vstack(list(vectors), format="csc")
        inverted.eliminate_zeros()
        inverted.sort_indices()
        arrays = {"starts": inverted.indptr.astype(np.int64), "documents": inverted.indices}
        for name, array in {**arrays, "weights": inverted.data}.items():
            write_array(folder / f"{name}.npy", array)


class SpladeRetriever:
    """Every document by the inner product of its weights and the query's; ties are ordered by document id.

    A query is weighed as its text and its keywords in one line, without their weights. A document that shares no
    vocabulary entry with the query has no place in the list; a blank query matches nothing.
    """

    def __init__(self, folder: Path, encoder: SparseTextEncoder, collection: Indexable | None = None) -> None:
        """Open the index in `folder`; with `collection`, only if the index was built from it as it is now.

        Raises BackendUnavailable where there is no index, IndexMismatch where it is damaged, or was built from
        something else or with another model.
        """
        with SpladeManifest.opening(folder, collection) as manifest:
            self.manifest, self.ids = manifest, IdTable.load(folder)
            self._weights = InvertedWeights.load(folder, len(self.ids))
        manifest.check_model(folder, encoder.name, probe_vector(encoder))
        self._encoder = encoder
        # The query of a search is often scored against a pool afterwards.
        self._query = lru_cache(maxsize=64)(self._weighed)

    def __len__(self) -> int:
        return len(self.ids)

    def search(self, query: Query, n: int) -> Ranking:
        """The `n` documents with the largest inner products above 0, exactly."""
        check_length(n)
        scores = np.zeros(len(self))
        with engine_time("vectors"):
            for entry, weight in self._query(str(query)):
                documents, weights = self._weights.of(entry)
                scores[documents] += weight * weights.astype(np.float64)
            return self.ids.best(scores, n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The inner products of the given documents, (n,), equal to those of `search`; 0 for a blank query.

        Raises DataError naming ids that are not in the index.
        """
        numbers = self.ids.known(ids)
        scores = np.zeros(len(ids))
        with engine_time("vectors"):
            # In the order of `search`, so that every sum is rounded alike.
            for entry, weight in self._query(str(query)):
                documents, weights = self._weights.of(entry)
                if not len(documents):
                    continue
                at = np.minimum(np.searchsorted(documents, numbers), len(documents) - 1)
                hit = np.flatnonzero(documents[at] == numbers)
                scores[hit] += weight * weights[at[hit]].astype(np.float64)
        return scores

    def _weighed(self, text: str) -> list[tuple[int, float]]:
        """The query's vocabulary entries in rising order, with their weights."""
        if not text.strip():
            return []
        row = self._encoder.queries([text])
        return sorted(zip(row.indices.tolist(), row.data.tolist(), strict=True))


class SpladeConfig(Part):
    """Sparse search (exact) with the weights that a SPLADE model gives."""

    scores_items: ClassVar[bool] = True
    kind: Literal["splade"] = "splade"
    model: str = Field(min_length=1)
    """The SPLADE model: a folder, or a name in the Hugging Face cache, e.g. naver/splade-cocondenser-ensembledistil."""

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the model is missing, IndexMismatch for an index of something else."""
        self.open_encoder(site.memo)
        folder = self._folder(site)
        if SpladeManifest.exists(folder):
            SpladeManifest.read_checked(folder, site.collection)
        check_index(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        """Build the index and the weights where there are none."""
        prepare_index(site, progress)
        folder = self._folder(site)
        if not SpladeManifest.exists(folder):
            encoder, what = self.open_encoder(site.memo), f"weighing {site.collection.name}"
            report = partial(progress, what)
            build_splade_index(site.collection, folder, encoder, report, earlier_of(site, folder))

    def build(self, site: Site) -> Retriever:
        """The engine."""

        def opened() -> Retriever:
            splade = SpladeRetriever(self._folder(site), self.open_encoder(site.memo), site.collection)
            return lend_texts(PassageRetriever(splade) if site.collection.chunks else splade, open_index(site))

        engine: Retriever = site.memo.get(("splade", site.index, self.model), opened)
        return engine

    def open_encoder(self, memo: Memo) -> SpladeEncoder:
        """The model, opened once; BackendUnavailable where it is not on this machine."""
        encoder: SpladeEncoder = memo.get(("splade encoder", self.model), lambda: SpladeEncoder(self.model))
        return encoder

    def _folder(self, site: Site) -> Path:
        return index_sibling(site, f"splade-{file_name(self.model)}")
