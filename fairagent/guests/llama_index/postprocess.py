"""FairFilter, DebiasRAG and the exposure-aware re-ranker as LlamaIndex's node post-processors.

A fair ranking as LlamaIndex's retriever, and a query engine that answers from it.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import Field, SkipValidation

from fairagent.answer.context import debias_with
from fairagent.answer.filtering import Filter, filter_with
from fairagent.errors import UsageError
from fairagent.guests.llama_index.engine import document_id, document_of, made_node, node_of
from fairagent.guests.results import OnResult, check_texts, documents_found
from fairagent.papers.debias_rag.stage import DebiasRAG
from fairagent.search.agent import FairAgent
from fairagent.search.hits import FairHits, fair_rerank, fields_of
from fairagent.settings import Unknown
from fairagent.types import Debiased, Filtered, Query


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
        """The nodes that stay. Raises UsageError without a query, and what the filter raises."""
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
        """The chosen nodes. Raises UsageError without a query, and what the debiasing raises."""
        if query_bundle is None:
            raise UsageError("DebiasPostprocessor chooses contexts for a query, and none was given")
        # Two nodes may have one id.
        documents = [document_of(node.node, str(place)) for place, node in enumerate(nodes)]
        debiased = debias_with(self.debiasing, Query(query_bundle.query_str), documents)
        if self.on_debiased:
            self.on_debiased(debiased)
        chosen = zip(debiased.documents, debiased.scores, strict=True)
        return [
            NodeWithScore(node=made_node(one) if one.id in debiased.made else nodes[int(one.id)].node, score=score)
            for one, score in chosen
        ]


class ExposurePostprocessor(_Postprocessor):
    """The `n` nodes that are relevant and together give every group about its target share of the exposure.

    Put it behind a retriever that returns many more nodes than `n`: it can only choose among those. `groups`, `target`,
    `fairness`, `keep`, `gap` and `unknown` are those of `fair_rerank`: groups are fields of the metadata, or known by
    the ids of the nodes' documents. Scores are the re-ranker's, from 1 down. `on_fair` receives the exposures before
    and after. Raises UsageError for groups that do not go with the target.
    """

    groups: SkipValidation[Any]
    target: SkipValidation[Any] = None
    n: int = Field(default=10, ge=1)
    fairness: float | None = Field(default=None, ge=0)
    keep: float | None = Field(default=None, ge=0, le=1)
    gap: float | None = Field(default=None, ge=0)
    unknown: Unknown = "share"
    id_key: str = ""
    """The metadata key with the id of a node's document; "": its source node's id, or its own."""
    on_fair: SkipValidation[Callable[[FairHits], None]] | None = None

    def model_post_init(self, context: Any, /) -> None:
        """Look at the groups."""
        super().model_post_init(context)
        fields_of(self.groups, self.target)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        """The first `n` nodes of the new order; raises what `fair_rerank` does."""
        # Two passages of a document are two nodes: ids name its groups.
        hits = [
            {"id": document_id(one.node, self.id_key), "score": one.score, "metadata": one.node.metadata}
            for one in nodes
        ]
        dial: dict[str, Any] = {"fairness": self.fairness, "keep": self.keep, "gap": self.gap}
        fair = fair_rerank(hits, self.groups, self.target, self.n, unknown=self.unknown, **dial)
        if self.on_fair:
            self.on_fair(fair)
        node_of_hit = {id(hit): one.node for hit, one in zip(hits, nodes, strict=True)}
        scores = np.linspace(1, 0, len(fair.hits), endpoint=False).tolist()
        placed = zip(fair.hits, scores, strict=True)
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
        """What the pipeline's search finds, and what it raises."""
        found = documents_found(self._agent, query_bundle.query_str, self._on_result)
        return [node_of(*one) for one in found]

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
