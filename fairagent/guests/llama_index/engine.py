"""A LlamaIndex retriever as fairagent's search engine, and an agent over it."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from fairagent.adapters.groups import Shares, groups_alone
from fairagent.adapters.llama_index.groups import Keys, MetadataGroups, given
from fairagent.adapters.llama_index.nodes import document_id, document_of, scores_of
from fairagent.collection import Collection, Groups
from fairagent.errors import BackendUnavailable, DataError, FairAgentError, SettingsError, UsageError
from fairagent.llm.models import Models
from fairagent.pipeline import Pipeline, build, resolve, served
from fairagent.retrieve.clock import engine_time
from fairagent.retrieve.local import LocalTerms, local_bm25
from fairagent.settings import Settings
from fairagent.site import Site
from fairagent.types import Document, FloatArray, Query, Ranking

REMEMBERED = 50_000
"""Documents whose texts are kept at least: far more than the lists of one search hold."""


class LlamaIndexRetriever:
    """A LlamaIndex retriever as a `Retriever`: its nodes, in its order, as documents.

    Keywords are added to the text of the query, without their weights. A query returns as many documents as the
    retriever was built for (`similarity_top_k`): make that as large as the setting `depth`. Nodes that are parts of one
    document (`document_id` says which) count once, where the first of them stands.

    A retriever cannot score given documents, so `score` is a local BM25 over their texts, as far as they were seen.
    Threads may share it if they may share the retriever.
    """

    def __init__(self, retriever: BaseRetriever, id_key: str = "") -> None:
        """Take the retriever, and the metadata key with the document's id ("": the source node's id, or the node's)."""
        self._retriever, self._id_key = retriever, id_key
        self._seen: OrderedDict[str, dict[str, Document]] = OrderedDict()
        self._lock = threading.Lock()

    @engine_time()
    def search(self, query: Query, n: int) -> Ranking:
        """The first `n` documents of the retriever's list.

        Raises DataError for a node without an id, BackendUnavailable where the retriever fails.
        """
        if n < 1:
            raise UsageError(f"n is the number of documents to retrieve and must be at least 1, not {n}")
        nodes = self._nodes(str(query))
        ids = [document_id(node.node, self._id_key) for node in nodes]
        self._remember(ids, nodes)
        first = {id: place for place, id in reversed(list(enumerate(ids)))}
        places = sorted(first.values())[:n]
        return Ranking(tuple(ids[place] for place in places), scores_of(nodes)[places])

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """BM25 of the documents' texts among themselves, (n,); of a document in parts, that of its best part.

        Raises DataError naming a document that was not retrieved.
        """
        parts = [self._parts(id) for id in ids]
        if not parts:
            return np.zeros(0)
        starts = np.cumsum([0, *map(len, parts[:-1])])
        return np.maximum.reduceat(self._scores(query, [part for some in parts for part in some]), starts)

    def document(self, id: str) -> Document:
        """The document, as far as it was seen; `extra` is its metadata.

        Raises DataError where it was not retrieved.
        """
        parts = self._parts(id)
        return Document(id, "\n\n".join(part.text for part in parts), parts[0].title, parts[0].extra)

    def passages(self, query: Query, ids: Sequence[str]) -> list[Document]:
        """The best seen part of each of these documents for `query`; of equal ones the first seen."""
        parts = [self._parts(id) for id in ids]
        return [some[int(np.argmax(self._scores(query, some)))] for some in parts]

    def _nodes(self, query: str) -> list[NodeWithScore]:
        try:
            return self._retriever.retrieve(QueryBundle(query))
        except FairAgentError:
            raise
        except Exception as error:
            # Foreign code, which may raise anything; an experiment counts this as one topic's failure.
            raise BackendUnavailable(
                f"the LlamaIndex retriever {type(self._retriever).__name__} failed for {query[:80]!r}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _remember(self, ids: Sequence[str], nodes: Sequence[NodeWithScore]) -> None:
        with self._lock:
            for id, found in zip(ids, nodes, strict=True):
                self._seen.setdefault(id, {})[found.node.node_id] = document_of(found.node, id)
                self._seen.move_to_end(id)
            while len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)

    def _parts(self, id: str) -> list[Document]:
        with self._lock:
            if id not in self._seen:
                raise DataError(f"document {id!r} was not retrieved before, and a LlamaIndex retriever cannot fetch it")
            return list(self._seen[id].values())

    def _scores(self, query: Query, parts: Sequence[Document]) -> FloatArray:
        return local_bm25(query, [f"{part.title} {part.text}" for part in parts])


def fair_agent(
    retriever: BaseRetriever | LlamaIndexRetriever,
    groups: Collection | Groups | Keys,
    population: Shares | None = None,
    settings: Settings | Path | str | None = None,
    **overrides: Any,
) -> Pipeline:
    """The pipeline of the settings, with a LlamaIndex retriever as its engine.

    `groups` are a collection, its groups (a GroupTable), or metadata keys ({"author_gender": "gender"}); metadata need
    a `population` or a target that names all labels of each dimension: the shares that they have of the world, or
    should get. Settings are as in `open_agent`; those of engine, analyzer and expansion have no effect here. Whatever
    reads the words of documents reads those of the texts that were retrieved.

        half = {"gender": {"female": 0.5, "male": 0.5}}
        agent = fair_agent(index.as_retriever(similarity_top_k=200), {"author_gender": "gender"}, target=half, n=10)

    Raises SettingsError, also for parts that need an index of the collection, such as `rerank: {kind: mmr, by:
    embeddings}`; and UsageError for metadata without labels or a dimension that there is not.
    """
    chosen = resolve(settings, overrides)
    engine = retriever if isinstance(retriever, LlamaIndexRetriever) else LlamaIndexRetriever(retriever)
    collection = _collection(engine, groups, population or {}, chosen)
    words = LocalTerms(engine)
    models, seed = Models.of(chosen), chosen.sampling.seed
    site = Site(collection, chosen, Path(), models, seed, engine=engine, words=words)
    for slot in ("refine", "rerank"):
        try:
            getattr(chosen, slot).check(site)
        except SettingsError as error:
            raise SettingsError(f"{slot}: {getattr(chosen, slot)}: {error}") from None
    return served(build(site))


def _collection(
    engine: LlamaIndexRetriever, groups: Collection | Groups | Keys, population: Shares, settings: Settings
) -> Collection:
    if not isinstance(groups, Mapping):
        return groups_alone(groups, population)
    known = {**population, **given(settings.target, groups.values())}
    return groups_alone(MetadataGroups(engine, groups, known), population)
