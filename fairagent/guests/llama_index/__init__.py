"""fairagent in a LlamaIndex pipeline, and LlamaIndex's retrievers in fairagent.

    FairRetriever            a fair ranking as a LlamaIndex retriever
    fair_query_engine        a query engine that answers from one
    FairFilterPostprocessor  takes biased nodes out of any retriever's list
    DebiasPostprocessor      chooses contexts with DebiasRAG, and adds counterfactual ones
    ExposurePostprocessor    re-ranks any retriever's list so that every group gets its share
    LlamaIndexRetriever      any LlamaIndex retriever as the engine of a pipeline
    fair_agent               the pipeline of your settings over one

Importing this imports llama_index.core; it raises BackendUnavailable where that is not installed.
"""

# ruff: noqa: E402
import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import SkipValidation

from fairagent.answer.context import debias_with
from fairagent.answer.filtering import Filter, filter_with
from fairagent.collection import Collection, GroupTable
from fairagent.collection.known import warn_once
from fairagent.collection.labels import meant
from fairagent.collection.records import listed, shown
from fairagent.errors import BackendUnavailable, DataError, FairAgentError, SettingsError, UsageError
from fairagent.guests.results import ExposureStage, OnResult, check_texts, documents_found, metadata_of
from fairagent.guests.terms import LocalTerms, local_bm25
from fairagent.llm.models import Models
from fairagent.papers.debias_rag.stage import DebiasRAG
from fairagent.retrieve.base import TextSource, check_length, engine_time
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.hits import HitGroups, Shares, at_path, fields_of, groups_alone
from fairagent.search.pipeline import build, resolve
from fairagent.settings import Settings
from fairagent.storage.packages import expect_installed
from fairagent.types import Debiased, Document, Filtered, FloatArray, Query, Ranking
from fairagent.types.clean import label_text

expect_installed("llama-index-core", "fairagent.guests.llama_index")

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode

__all__ = [
    "DebiasPostprocessor",
    "ExposurePostprocessor",
    "FairFilterPostprocessor",
    "FairRetriever",
    "LlamaIndexRetriever",
    "fair_agent",
    "fair_query_engine",
]

CACHED = 50_000
"""Documents whose texts are cached at least: far more than the lists of one search hold."""


def document_id(node: BaseNode, id_key: str = "") -> str:
    """The document that a node is, or is a part of: metadata `id_key`, else its source node's id, else its own.

    Raises DataError where that is empty.
    """
    source = node.source_node
    id = str(node.metadata.get(id_key) or "") if id_key else (source.node_id if source else "") or node.node_id
    if not id:
        what, text = f"metadata {id_key!r}" if id_key else "id", node.get_content(metadata_mode=MetadataMode.NONE)
        raise DataError(f"a node has no {what} ({text[:60]!r}); give each node the id of its document")
    return id


def document_of(node: BaseNode, id: str) -> Document:
    """The node's text under the document's id; `extra` is its metadata, of which `title` is the title."""
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    return Document(id, text, str(node.metadata.get("title") or ""), dict(node.metadata))


def node_of(document: Document, metadata: dict[str, Any]) -> TextNode:
    """The document as a node; of its metadata a model reads the title alone: groups would only sway it."""
    hidden = [key for key in metadata if key != "title" or not metadata[key]]
    return TextNode(
        id_=document.id,
        text=document.text,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )


class LlamaIndexRetriever:
    """A LlamaIndex retriever as a `Retriever`: its nodes, in its order, as documents.

    Keywords are added to the text of the query, without their weights. A query returns as many documents as the
    retriever was built for (`similarity_top_k`): make that as large as the setting `depth`. Nodes that are parts of one
    document (`document_id` says which) count once, where the first of them stands. A retriever cannot score given
    documents, so `score` is a local BM25 over their texts, as far as they were seen. Threads may share it if they may
    share the retriever.
    """

    def __init__(self, retriever: BaseRetriever, id_key: str = "") -> None:
        """Take the retriever, and the metadata key with the document's id ("": the source node's id, or the node's)."""
        self._retriever, self._id_key = retriever, id_key
        self._seen: OrderedDict[str, dict[str, Document]] = OrderedDict()
        self._lock = threading.Lock()

    @engine_time()
    def search(self, query: Query, n: int) -> Ranking:
        """The first `n` documents of the retriever's list, whose order stands.

        Where a score is missing (None, nan, infinite) or the scores rise, which some engines' distances do, all of them
        are replaced: they fall evenly from 1. Raises DataError for a node without an id, BackendUnavailable where the
        retriever fails.
        """
        check_length(n)
        try:
            nodes = self._retriever.retrieve(QueryBundle(str(query)))
        except FairAgentError:
            raise
        except Exception as error:
            # Foreign code, which may raise anything; an experiment counts this as one topic's failure.
            raise BackendUnavailable(
                f"the LlamaIndex retriever {type(self._retriever).__name__} failed for {str(query)[:80]!r}: "
                f"{type(error).__name__}: {error}"
            ) from error
        ids = [document_id(node.node, self._id_key) for node in nodes]
        with self._lock:
            for id, one in zip(ids, nodes, strict=True):
                self._seen.setdefault(id, {})[one.node.node_id] = document_of(one.node, id)
                self._seen.move_to_end(id)
            while len(self._seen) > CACHED:
                self._seen.popitem(last=False)
        first = {id: place for place, id in reversed(list(enumerate(ids)))}
        places = sorted(first.values())[:n]
        scores = np.array([np.nan if node.score is None else node.score for node in nodes], dtype=np.float64)
        if not np.isfinite(scores).all():
            name = type(self._retriever).__name__
            warn_once(f"{name} gives nodes without a score, or with none that is a number: their order stands for it")
        if not np.isfinite(scores).all() or (scores[1:] > scores[:-1]).any():
            scores = np.linspace(1, 0, len(nodes), endpoint=False)
        return Ranking(tuple(ids[place] for place in places), scores[places])

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
        """The document, as far as it was seen; `extra` is its metadata. Raises DataError where it was not retrieved."""
        parts = self._parts(id)
        return Document(id, "\n\n".join(part.text for part in parts), parts[0].title, parts[0].extra)

    def passages(self, query: Query, ids: Sequence[str]) -> list[Document]:
        """The best seen part of each of these documents for `query`; of equal ones the first seen."""
        parts = [self._parts(id) for id in ids]
        return [some[int(np.argmax(self._scores(query, some)))] for some in parts]

    def _parts(self, id: str) -> list[Document]:
        with self._lock:
            if id not in self._seen:
                raise DataError(f"document {id!r} was not retrieved before, and a LlamaIndex retriever cannot fetch it")
            return list(self._seen[id].values())

    def _scores(self, query: Query, parts: Sequence[Document]) -> FloatArray:
        return local_bm25(query, [f"{part.title} {part.text}" for part in parts])


class MetadataGroups:
    """Groups of documents as the metadata of their nodes tell them, read when a document is asked for.

    A value is a label, a list of labels (equal shares) or a mapping from labels to weights; where it is missing or
    empty, the group is not known. The shares of a whole collection are not known, so there is no target `corpus`.
    """

    oracle: tuple[str, ...] = ()
    predicted: tuple[str, ...] = ()

    def __init__(self, texts: TextSource, fields: Mapping[str, str], shares: Mapping[str, Mapping[Any, float]]) -> None:
        """Take what shows the documents, dimension -> field, and `shares`, which name all labels of each dimension.

        Raises UsageError where a dimension has no labels.
        """
        self._texts, self._fields = texts, fields
        if missing := [dimension for dimension in fields if not shares.get(dimension)]:
            raise UsageError(
                f"groups in metadata need a target that names all of them: say what share each group of "
                f'{listed(missing)} should get, e.g. target={{"gender": {{"female": 0.5, "male": 0.5}}}}'
            )
        self._labels = {dimension: tuple(map(label_text, shares[dimension])) for dimension in fields}
        self.dimensions = tuple(fields)

    def labels(self, dimension: str) -> tuple[str, ...]:
        if dimension not in self._labels:
            raise UsageError(f"no dimension {dimension!r}; there are: {listed(self.dimensions)}")
        return self._labels[dimension]

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Shares (n, 1 + g) of the documents `ids`; column 0 is unknown. `topic` makes no difference.

        Raises DataError, naming the document, where a value is none of the labels or has no such form.
        """
        labels, field = self.labels(dimension), self._fields[dimension]
        rows = np.zeros((len(ids), 1 + len(labels)))
        for row, id in zip(rows, ids, strict=True):
            metadata = self._texts.document(id).extra
            value = at_path({**metadata, "metadata": metadata}, field)
            try:
                weights = _weights(value)
                of = meant(weights, labels)
                columns = [1 + labels.index(of[label]) for label in weights]
            except ValueError:
                raise DataError(
                    f"document {id!r}: metadata {field!r} is {shown(value)}; expected nothing, one of the groups "
                    f"{listed(labels)}, a list of them, or a mapping from them to weights. A group that is missing "
                    "there belongs into the target, with share 0 if need be"
                ) from None
            if joined := [f"{label} = {own}" for label, own in of.items() if label != own]:
                warn_once(
                    f"labels of {dimension!r} that are taken for spellings of the target's groups: {listed(joined)}"
                )
            np.add.at(row, columns, list(weights.values()))
            row[0] = not weights
        return np.asarray(rows / rows.sum(axis=1, keepdims=True), dtype=np.float64)

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> None:
        self.labels(dimension)

    def shares(self, dimension: str) -> FloatArray:
        """Not known: raises UsageError."""
        raise UsageError(
            f"groups in metadata do not tell what share of all documents each group of {dimension!r} has; "
            "use a target other than 'corpus'"
        )

    def missing(self, dimension: str) -> float:
        """Not known: raises UsageError."""
        return float(self.shares(dimension)[0])


def _weights(value: object) -> dict[str, float]:
    """Label -> weight > 0; ValueError for anything that says no such thing."""
    if isinstance(value, Mapping):
        weights = {label_text(label): float(weight) for label, weight in value.items()}
        if not all(0 <= weight < np.inf for weight in weights.values()):
            raise ValueError("a weight below 0")
        return {label: weight for label, weight in weights.items() if weight}
    parts = value if isinstance(value, list | tuple) else [value]
    return {label_text(part): 1.0 for part in parts if part not in (None, "")}


def fair_agent(
    retriever: BaseRetriever | LlamaIndexRetriever,
    groups: HitGroups,
    population: Shares | None = None,
    settings: Settings | Path | str | None = None,
    **overrides: Any,
) -> FairAgent:
    """The agent of the settings, with a LlamaIndex retriever as its engine.

    `groups` are those of `fair_rerank`: fields of the metadata ({"gender": "author_gender"}), a collection, its groups
    (a GroupTable) or labels by id. Fields need a `population` or a target that names all labels of each dimension: the
    shares that they have of the world, or should get. Settings are as in `open_agent`; those of engine, analyzer and
    expansion have no effect here. Whatever reads the words of documents reads those of the texts that were retrieved.

        half = {"gender": {"female": 0.5, "male": 0.5}}
        agent = fair_agent(index.as_retriever(similarity_top_k=200), {"gender": "author_gender"}, target=half, n=10)

    Raises SettingsError, also for parts that need an index of the collection, such as `rerank: {kind: mmr, by:
    embeddings}`; and UsageError for metadata without labels or an unknown dimension.
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
    return build(site)


def _collection(engine: LlamaIndexRetriever, groups: HitGroups, population: Shares, settings: Settings) -> Collection:
    fields = fields_of(groups, settings.target)
    if not fields:
        assert not isinstance(groups, str | Sequence | Mapping)
        return groups_alone(groups, population)
    keys = {name: field for name, field in fields.items() if isinstance(field, str)}
    if by_id := {name: labels for name, labels in fields.items() if isinstance(labels, Mapping)}:
        if keys:
            raise UsageError(f"groups={shown(groups)}: name fields of the metadata, or labels by id, and not both")
        ids = dict.fromkeys(id for labels in by_id.values() for id in labels)
        rows = ((str(id), {name: labels.get(id) for name, labels in by_id.items()}) for id in ids)
        return groups_alone(GroupTable.from_rows(rows, list(by_id)), population)
    targets = settings.target if isinstance(settings.target, Mapping) else dict.fromkeys(fields, settings.target)
    given = {name: shares for name, one in targets.items() if (shares := getattr(one, "shares", None))}
    return groups_alone(MetadataGroups(engine, keys, {**population, **given}), population)


class _Postprocessor(BaseNodePostprocessor):
    @classmethod
    def class_name(cls) -> str:
        return cls.__name__


class FairFilterPostprocessor(_Postprocessor):
    """Takes nodes out of a context that would do harm to an answer, such as `FairFilter` finds; order and scores stay.

    `on_filtered` receives the verdicts and what they cost.
    """

    filter: SkipValidation[Filter]
    on_filtered: SkipValidation[Callable[[Filtered], None]] | None = None

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise UsageError("FairFilterPostprocessor judges documents for a query, and none was given")
        documents = [document_of(node.node, node.node.node_id) for node in nodes]
        filtered = filter_with(self.filter, query_bundle.query_str, documents)
        if self.on_filtered:
            self.on_filtered(filtered)
        return [node for node, verdict in zip(nodes, filtered.verdicts, strict=True) if verdict.kept]


class DebiasPostprocessor(_Postprocessor):
    """The nodes, and counterfactual contexts among them, that `DebiasRAG` chooses for a query, the best first.

    A context that it makes is a node of its own, whose metadata say `synthesized`; it works without any node, too.
    Scores are DebiasRAG's. `on_debiased` receives how the choice came about.
    """

    debiasing: SkipValidation[DebiasRAG]
    on_debiased: SkipValidation[Callable[[Debiased], None]] | None = None

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise UsageError("DebiasPostprocessor chooses contexts for a query, and none was given")
        # Two nodes may have one id.
        documents = [document_of(node.node, str(place)) for place, node in enumerate(nodes)]
        debiased = debias_with(self.debiasing, Query(query_bundle.query_str), documents)
        if self.on_debiased:
            self.on_debiased(debiased)
        chosen = zip(debiased.documents, debiased.scores, strict=True)
        return [
            NodeWithScore(
                node=node_of(one, {"title": one.title, "synthesized": True})
                if one.id in debiased.made
                else nodes[int(one.id)].node,
                score=score,
            )
            for one, score in chosen
        ]


class ExposurePostprocessor(ExposureStage, _Postprocessor):
    """The nodes that `ExposureStage` chooses, in their new order, with the re-ranker's scores, from 1 down.

    Groups are fields of the metadata, or known by the ids of the nodes' documents.
    """

    id_key: str = ""
    """The metadata key with the id of a node's document; "": its source node's id, or its own."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        # Two passages of a document are two nodes: ids name its groups.
        hits = [
            {"id": document_id(one.node, self.id_key), "score": one.score, "metadata": one.node.metadata}
            for one in nodes
        ]
        node_of_hit = {id(hit): one.node for hit, one in zip(hits, nodes, strict=True)}
        chosen = self.reranked(hits)
        placed = zip(chosen, np.linspace(1, 0, len(chosen), endpoint=False).tolist(), strict=True)
        return [NodeWithScore(node=node_of_hit[id(hit)], score=score) for hit, score in placed]


class FairRetriever(BaseRetriever):
    """The search of a pipeline as a LlamaIndex retriever: the same documents in the same order, with their texts.

    A node's metadata hold its title, rank, score and groups; a model is shown the title alone. Of a collection in
    passages a node is a document with the passage that answers the query best. The agent refines its own queries: do
    not put a query transform in front of it, which would be done twice.
    """

    def __init__(
        self,
        agent: FairAgent,
        on_result: OnResult | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """Take the agent; `on_result` receives each search with its trace.

        Raises UsageError where the agent's engine keeps no texts.
        """
        check_texts(agent)
        self._agent, self._on_result = agent, on_result
        super().__init__(callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        lines = documents_found(self._agent, query_bundle.query_str, self._on_result)
        return [NodeWithScore(node=node_of(text, metadata_of(hit, text)), score=score) for hit, text, score in lines]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The same in a thread of its own: the event loop goes on meanwhile."""
        return await asyncio.to_thread(self._retrieve, query_bundle)


def fair_query_engine(
    agent: FairAgent, llm: LLM | None = None, filter: Filter | None = None, **synthesis: Any
) -> RetrieverQueryEngine:
    """A LlamaIndex query engine over a fair ranking, with `filter` taking documents out of it if there is one.

    `llm` is LlamaIndex's `Settings.llm` unless given. `synthesis` goes to `RetrieverQueryEngine.from_args`:
    `response_mode`, `streaming`, `text_qa_template`, further `node_postprocessors` ...
    """
    filters = [FairFilterPostprocessor(filter=filter)] if filter else []
    after = [*filters, *(synthesis.pop("node_postprocessors", None) or [])]
    return RetrieverQueryEngine.from_args(FairRetriever(agent), llm=llm, node_postprocessors=after, **synthesis)
