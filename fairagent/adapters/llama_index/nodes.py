"""Conversion between LlamaIndex's nodes and fairagent's documents."""

from collections.abc import Sequence

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, TextNode

from fairagent.errors import DataError
from fairagent.types import Document, FloatArray, Hit

SHOWN = ("title",)
"""The metadata that a model reads beside the text; what groups a document is in would only sway it."""


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


def node_of(hit: Hit, document: Document) -> NodeWithScore:
    """A line of a result with its text.

    The metadata hold title, rank, score, groups and whatever else the document has; a model reads the title alone.
    """
    metadata = {**document.extra, "title": hit.title, "rank": hit.rank, "score": hit.score}
    metadata["groups"] = {dimension: dict(shares) for dimension, shares in hit.groups.items()}
    hidden = [key for key in metadata if key not in SHOWN or not metadata[key]]
    node = TextNode(
        id_=hit.id,
        text=document.text,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
    return NodeWithScore(node=node, score=hit.score)


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


def scores_of(nodes: Sequence[NodeWithScore]) -> FloatArray:
    """The nodes' scores, (n,), in a form that a ranking may have; their order is the engine's and stands.

    Where a score is missing (None, nan, infinite) or the scores rise, which some engines' distances do, all of them are
    replaced: they fall evenly from 1.
    """
    scores = np.array([np.nan if node.score is None else node.score for node in nodes], dtype=np.float64)
    if np.isfinite(scores).all() and not (scores[1:] > scores[:-1]).any():
        return scores
    return np.linspace(1, 0, len(nodes), endpoint=False)


def _beginning(node: BaseNode) -> str:
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
