"""Sparse search: exact inner products of SPLADE weights.

Every text is a sparse vector with a weight for each entry of the model's vocabulary; a compressed sparse matrix holds
those of all documents by columns, so that a query reads the columns of its own entries.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy.sparse import csc_array, csr_array, vstack

from fairagent.errors import BackendUnavailable
from fairagent.guests.dense.encoders import open_transformer
from fairagent.retrieve.base import Retriever, check_length, engine_time, lend_texts
from fairagent.retrieve.bm25.part import check_index, index_sibling, open_index, prepare_index
from fairagent.retrieve.catalog import IdTable, mapped
from fairagent.retrieve.dense import PROBE_TEXT, EncodedManifest, encode_collection
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.manifest import Indexable
from fairagent.retrieve.passages import PassageRetriever
from fairagent.retrieve.site import Site
from fairagent.settings import Part
from fairagent.settings.parts import Progress
from fairagent.storage.arrays import write_array
from fairagent.storage.files import file_name
from fairagent.storage.packages import installed
from fairagent.storage.threads import Memo
from fairagent.types import FloatArray, Query, Ranking

BATCH = 8
"""Texts that the model reads at a time: it gives every token of them a number for the whole vocabulary."""
SUGGESTED = "naver/splade-cocondenser-ensembledistil"


class SpladeEncoder:
    """A SPLADE model: a folder, or a name in the Hugging Face cache; a plain masked language model is SPLADE v2 max.

    The weight of vocabulary entry j in a text is the largest log(1 + relu(l_ij)) over its tokens i, special ones
    included, with l the logits of the masked language model (Formal et al., SPLADE v2, 2021, equation 6). Models that
    say otherwise in a sentence-transformers folder (sums, queries that need no model) are taken at their word. Texts
    are cut at the model's own limit. Nothing is downloaded: BackendUnavailable says what is missing. Threads may share
    it.
    """

    def __init__(self, name: str, device: str = "cpu") -> None:
        self.name, self._lock = name, threading.Lock()
        library = installed("sentence-transformers", "SPLADE")
        instead = f"or download one beforehand, such as {SUGGESTED}"
        self._model = open_transformer(library.SparseEncoder, name, device, "SPLADE model", instead)
        # Of a model without a masked-language head the library would make a sparse encoder of random weights.
        if not any(type(module).__name__ == "SpladePooling" for module in self._model.modules()):
            raise BackendUnavailable(
                f"the model {name!r} is no SPLADE model: it has no head that fills in masks; take one such as "
                f"{SUGGESTED}"
            )

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


@dataclass(frozen=True, slots=True)
class SpladeManifest(EncodedManifest):
    """What the weights were made from and by; `dimension` is the size of the vocabulary."""

    FILE: ClassVar[str] = "fairagent-splade.json"
    WHAT: ClassVar[str] = "SPLADE weights"
    MAKE: ClassVar[str] = "make them with `fairagent index` or build_splade_index"

    @staticmethod
    def stored(folder: Path) -> csr_array:
        return _columns(folder, len(IdTable.load(folder))).tocsr()

    @staticmethod
    def stacked(parts: Sequence[csr_array]) -> csr_array:
        rows: csr_array = vstack(parts, format="csr")
        return rows

    @staticmethod
    def probe(encoder: SpladeEncoder) -> Embeddings:
        return np.asarray(encoder.documents([PROBE_TEXT]).toarray()[0], dtype=np.float32)

    @staticmethod
    def write(folder: Path, blocks: Iterator[csr_array], dimension: int) -> None:
        columns = vstack(list(blocks), format="csc")
        columns.eliminate_zeros()
        columns.sort_indices()
        write_array(folder / "starts.npy", columns.indptr.astype(np.int64))
        write_array(folder / "documents.npy", columns.indices)
        write_array(folder / "weights.npy", columns.data)


def _columns(folder: Path, count: int) -> csc_array:
    """The weights of `count` documents by vocabulary entry, documents rising; ValueError where they are damaged."""
    starts, documents, weights = (mapped(folder / f"{name}.npy") for name in ("starts", "documents", "weights"))
    # Both of one width, or all indexes become the wider one.
    columns = csc_array((weights, documents, starts.astype(documents.dtype)), (count, len(starts) - 1))
    columns.check_format(full_check=True)
    if not (columns.has_sorted_indices and np.isfinite(weights).all()):
        raise ValueError("its entries are not in their order, or not finite")
    return columns


build_splade_index = partial(encode_collection, SpladeManifest)
"""`encode_collection` into columns of weights, all of which are in memory until they are written."""


class SpladeRetriever:
    """Every document by the inner product of its weights and the query's; ties are ordered by document id.

    A query is weighed as its text and its keywords in one line, without their weights. A document that shares no
    vocabulary entry with the query has no place in the list; a blank query matches nothing.
    """

    def __init__(self, folder: Path, encoder: SpladeEncoder, collection: Indexable | None = None) -> None:
        """Open the index in `folder`; with `collection`, only if the index was built from it as it is now.

        Raises BackendUnavailable where there is no index, IndexMismatch where it is damaged, or was built from
        something else or with another model.
        """
        with SpladeManifest.opening(folder, collection) as manifest:
            self.manifest, self.ids = manifest, IdTable.load(folder)
            self._weights = _columns(folder, len(self.ids))
        manifest.check_model(folder, encoder)
        self._encoder = encoder
        # The query of a search is often scored against a pool afterwards.
        self._scores = lru_cache(maxsize=16)(self._scored)

    def __len__(self) -> int:
        return len(self.ids)

    def search(self, query: Query, n: int) -> Ranking:
        """The `n` documents with the largest inner products above 0, exactly."""
        check_length(n)
        with engine_time("vectors"):
            return self.ids.best(self._scores(str(query)), n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The inner products of the given documents, (n,), equal to those of `search`; 0 for a blank query.

        Raises DataError naming ids that are not in the index.
        """
        numbers = self.ids.known(ids)
        with engine_time("vectors"):
            return self._scores(str(query))[numbers]

    def _scored(self, text: str) -> FloatArray:
        """The inner product of every document, (n,), summed up in the order of the vocabulary."""
        scores, weights = np.zeros(len(self)), self._weights
        if text.strip():
            row = self._encoder.queries([text])
            for entry, weight in sorted(zip(row.indices.tolist(), row.data.tolist(), strict=True)):
                start, stop = weights.indptr[entry : entry + 2]
                scores[weights.indices[start:stop]] += weight * weights.data[start:stop].astype(np.float64)
        return scores


class SpladeConfig(Part):
    """Sparse search (exact) with the weights that a SPLADE model gives."""

    scores_items: ClassVar[bool] = True
    kind: Literal["splade"] = "splade"
    model: str = Field(min_length=1)
    """The SPLADE model: a folder, or a name in the Hugging Face cache, e.g. naver/splade-cocondenser-ensembledistil."""

    def check(self, site: Site) -> None:
        self.open_encoder(site.memo)
        folder = self._folder(site)
        if SpladeManifest.exists(folder):
            SpladeManifest.read_checked(folder, site.collection)
        check_index(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        prepare_index(site, progress)
        folder = self._folder(site)
        if not SpladeManifest.exists(folder):
            encoder, what = self.open_encoder(site.memo), f"weighing {site.collection.name}"
            report = partial(progress, what)
            build_splade_index(site.collection, folder, encoder, report, site.earlier and site.earlier / folder.name)

    def build(self, site: Site) -> Retriever:
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
