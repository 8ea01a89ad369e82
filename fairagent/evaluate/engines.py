"""The search engines of an experiment: which indexes they need, building what is missing, opening each once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairagent.assemble import open_retriever
from fairagent.collection import Collection
from fairagent.files import file_name
from fairagent.rerank.pair_scorer import PairScorer, open_pair_scorer
from fairagent.retrieve.base import texts_for
from fairagent.retrieve.dense import DenseRetriever
from fairagent.retrieve.dense_index import MANIFEST as DENSE_MANIFEST
from fairagent.retrieve.dense_index import DenseManifest, build_dense_index
from fairagent.retrieve.encoder import Embeddings, Encoder, open_encoder
from fairagent.retrieve.lucene import LuceneRetriever, Manifest, build_index
from fairagent.retrieve.lucene.index import MANIFEST
from fairagent.retrieve.passages import DensePassages, LucenePassages, PassageRetriever
from fairagent.retrieve.splade import SpladeRetriever
from fairagent.retrieve.splade_encoder import SpladeEncoder
from fairagent.retrieve.splade_index import MANIFEST as SPLADE_MANIFEST
from fairagent.retrieve.splade_index import SpladeManifest, build_splade_index
from fairagent.settings import Settings
from fairagent.types import Document, FloatArray, Query, Ranking

Progress = Callable[[str, int], None]
"""Told what is being built, and how many documents of it are done."""


@dataclass(frozen=True, slots=True)
class Titled:
    """An engine that can also show its documents, of which its own index keeps no texts."""

    engine: DenseRetriever | SpladeRetriever | PassageRetriever
    texts: LuceneRetriever | LucenePassages

    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents by the engine."""
        return self.engine.search(query, n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The engine's scores of the given documents, (n,)."""
        return self.engine.score(query, ids)

    def document(self, id: str) -> Document:
        """The document as the Lucene index stores it."""
        return self.texts.document(id)

    def passages(self, query: Query, ids: Sequence[str]) -> list[Document]:
        """The documents, or of a collection in passages the best passage of each, by its words."""
        return texts_for(query, ids, self.texts)


@dataclass(frozen=True, slots=True)
class TitledDense(Titled):
    """Vector search that can also show its documents, and tells their embeddings."""

    engine: DenseRetriever | DensePassages

    def vectors(self, ids: Sequence[str]) -> Embeddings:
        """The embeddings of these documents, (n, d)."""
        return self.engine.vectors(ids)


class Engines:
    """Opens every engine of an experiment once, however many systems share it."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._lucene: dict[tuple[str, str, float, float], LuceneRetriever | LucenePassages] = {}
        self._dense: dict[tuple[str, str], TitledDense] = {}
        self._splade: dict[tuple[str, str], Titled] = {}
        self._scorers: dict[str, PairScorer] = {}

    def lucene(self, folder: str, settings: Settings) -> LuceneRetriever | LucenePassages:
        """BM25 over the index in `folder`."""
        retrieval = settings.retrieval
        key = (folder, retrieval.analyzer, retrieval.k1, retrieval.b)
        if key not in self._lucene:
            self._lucene[key] = open_retriever(self._collection, Path(folder), settings)
        return self._lucene[key]

    def dense(self, folder: str, settings: Settings, model: str) -> TitledDense:
        """Vector search with the embeddings beside the Lucene index in `folder`."""
        if (folder, model) not in self._dense:
            dense = DenseRetriever(dense_folder(folder, model), encoder(model), self._collection)
            engine = DensePassages(dense) if self._collection.chunks else dense
            self._dense[folder, model] = TitledDense(engine, self.lucene(folder, settings))
        return self._dense[folder, model]

    def splade(self, folder: str, settings: Settings, model: str) -> Titled:
        """Sparse search with the SPLADE weights beside the Lucene index in `folder`."""
        if (folder, model) not in self._splade:
            splade = SpladeRetriever(splade_folder(folder, model), SpladeEncoder(model), self._collection)
            engine = PassageRetriever(splade) if self._collection.chunks else splade
            self._splade[folder, model] = Titled(engine, self.lucene(folder, settings))
        return self._splade[folder, model]

    def scorer(self, name: str) -> PairScorer:
        """The model that scores pairs of a query and a text."""
        if name not in self._scorers:
            self._scorers[name] = open_pair_scorer(name)
        return self._scorers[name]

    def close(self) -> None:
        """Release the index files."""
        for engine in self._lucene.values():
            engine.close()


def dense_folder(folder: str, model: str) -> Path:
    """Where the embeddings of `model` are: beside the Lucene index."""
    return Path(f"{folder}-{file_name(model)}")


def splade_folder(folder: str, model: str) -> Path:
    """Where the weights of the SPLADE model `model` are: beside the Lucene index."""
    return Path(f"{folder}-splade-{file_name(model)}")


def encoder(model: str) -> Encoder:
    """The text encoder `model`; BackendUnavailable where it is not on this machine."""
    return open_encoder(model)


def check_lucene(collection: Collection, folder: str, settings: Settings) -> None:
    """Raise IndexMismatch where there is an index that does not belong to `collection` as it is now."""
    if (Path(folder) / MANIFEST).is_file():
        Manifest.read(Path(folder)).check(collection, settings.retrieval.analyzer, Path(folder))


def check_dense(collection: Collection, folder: str, model: str) -> None:
    """Raise BackendUnavailable where the model is missing, IndexMismatch where its embeddings are of something else."""
    encoder(model)
    embeddings = dense_folder(folder, model)
    if (embeddings / DENSE_MANIFEST).is_file():
        DenseManifest.read(embeddings).check(collection, embeddings)


def check_splade(collection: Collection, folder: str, model: str) -> None:
    """Raise BackendUnavailable where the model is missing, IndexMismatch where its weights are of something else."""
    SpladeEncoder(model)
    weights = splade_folder(folder, model)
    if (weights / SPLADE_MANIFEST).is_file():
        SpladeManifest.read(weights).check(collection, weights)


def build_lucene(collection: Collection, folder: str, settings: Settings, progress: Progress) -> None:
    """Build the Lucene index in `folder` where there is none."""
    if not (Path(folder) / MANIFEST).is_file():
        retrieval = settings.retrieval
        build_index(
            collection,
            Path(folder),
            retrieval.analyzer,
            lambda done: progress(f"indexing {collection.name}", done),
            retrieval.memory,
        )


def build_dense(collection: Collection, folder: str, model: str, progress: Progress) -> None:
    """Make the embeddings of `collection` where there are none."""
    embeddings = dense_folder(folder, model)
    if not (embeddings / DENSE_MANIFEST).is_file():
        build_dense_index(
            collection, embeddings, encoder(model), lambda done: progress(f"embedding {collection.name}", done)
        )


def build_splade(collection: Collection, folder: str, model: str, progress: Progress) -> None:
    """Make the SPLADE weights of `collection` where there are none."""
    weights = splade_folder(folder, model)
    if not (weights / SPLADE_MANIFEST).is_file():
        build_splade_index(
            collection, weights, SpladeEncoder(model), lambda done: progress(f"weighing {collection.name}", done)
        )
