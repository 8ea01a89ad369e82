"""A LlamaIndex retriever as fairagent's search engine, and an agent over it.

Conversion between LlamaIndex's nodes and fairagent's documents.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode

from fairagent.collection import Collection, GroupTable
from fairagent.collection.known import warn_once
from fairagent.collection.records import listed, shown
from fairagent.collection.spellings import meant
from fairagent.errors import BackendUnavailable, DataError, FairAgentError, SettingsError, UsageError
from fairagent.guests.results import metadata_of
from fairagent.guests.terms import LocalTerms, local_bm25
from fairagent.llm.models import Models
from fairagent.retrieve.base import TextSource, engine_time
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.hits import HitGroups, Shares, at_path, fields_of, groups_alone
from fairagent.search.pipeline import build, resolve
from fairagent.settings import Settings
from fairagent.types import Document, FloatArray, Hit, Query, Ranking
from fairagent.types.clean import label_text

SHOWN = ("title",)
"""The metadata that a model reads with the text; the groups of a document would only sway it."""


def document_id(node: BaseNode, id_key: str = "") -> str:
    """The document that a node is, or is a part of: metadata `id_key`, else its source node's id, else its own.

    Raises DataError where that is empty.
    """
    source = node.source_node
    id = str(node.metadata.get(id_key) or "") if id_key else (source.node_id if source else "") or node.node_id
    if not id:
        what = f"has no metadata {id_key!r}" if id_key else "has no id"
        raise DataError(f"a node {what} ({_beginning(node)}); give each node the id of its document")
    return id


def document_of(node: BaseNode, id: str) -> Document:
    """The node's text under the document's id; `extra` is its metadata, of which `title` is the title."""
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    return Document(id, text, str(node.metadata.get("title") or ""), dict(node.metadata))


def node_of(hit: Hit, document: Document, score: float) -> NodeWithScore:
    """A line of a result with its text.

    Nodes are sorted by `score`. The metadata hold title, rank, the engine's score, groups and whatever else the
    document has; a model reads the title alone.
    """
    metadata = metadata_of(hit, document)
    hidden = [key for key in metadata if key not in SHOWN or not metadata[key]]
    node = TextNode(
        id_=hit.id,
        text=document.text,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
    return NodeWithScore(node=node, score=score)


def made_node(document: Document) -> TextNode:
    """A context that was made and stands in no collection: its title, which a model reads, and its metadata say so."""
    metadata = {"title": document.title, "synthesized": True}
    return TextNode(
        id_=document.id,
        text=document.text,
        metadata=metadata,
        excluded_llm_metadata_keys=["synthesized"],
        excluded_embed_metadata_keys=list(metadata),
    )


def _beginning(node: BaseNode) -> str:
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


CACHED = 50_000
"""Documents whose texts are cached at least: far more than the lists of one search hold."""


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
        if n < 1:
            raise UsageError(f"n is the number of documents to retrieve and must be at least 1, not {n}")
        nodes = self._nodes(str(query))
        ids = [document_id(node.node, self._id_key) for node in nodes]
        self._remember(ids, nodes)
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
            for id, node in zip(ids, nodes, strict=True):
                self._seen.setdefault(id, {})[node.node.node_id] = document_of(node.node, id)
                self._seen.move_to_end(id)
            while len(self._seen) > CACHED:
                self._seen.popitem(last=False)

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
        """The known labels, in the order of the columns 1 .. g."""
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
        """Not known. Raises UsageError for an unknown dimension."""
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
