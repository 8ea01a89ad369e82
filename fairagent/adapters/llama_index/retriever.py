"""A fair ranking as LlamaIndex's retriever, and a query engine that answers from it."""

import asyncio
from collections.abc import Callable
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle

from fairagent.adapters.llama_index.nodes import node_of
from fairagent.adapters.llama_index.postprocess import FairFilterPostprocessor
from fairagent.errors import UsageError
from fairagent.filter import Filter
from fairagent.pipeline import Pipeline
from fairagent.retrieve.base import PassageSource, TextSource, texts_for
from fairagent.types import SearchResult


class FairRetriever(BaseRetriever):
    """The search of a pipeline as a LlamaIndex retriever: the same documents in the same order, with their texts.

    A node's metadata hold its title, rank, score and groups; a model is shown the title alone. Of a collection in
    passages a node is a document with the passage that answers the query best. The agent refines its own queries: do
    not put a query transform in front of it, which would be done twice.
    """

    def __init__(
        self,
        agent: Pipeline,
        on_result: Callable[[SearchResult], None] | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """Take the agent; `on_result` is told each search with its trace.

        Raises UsageError where the agent's engine keeps no texts.
        """
        if not isinstance(agent.retriever, PassageSource | TextSource):
            raise UsageError(f"{type(agent.retriever).__name__} keeps no texts of its documents for nodes to hold")
        self._agent, self._on_result = agent, on_result
        super().__init__(callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """What the pipeline's search finds, and what it raises."""
        found = self._agent.search(query_bundle.query_str)
        if self._on_result:
            self._on_result(found)
        texts = texts_for(found.query, found.ranking.ids, self._agent.retriever)
        return [node_of(hit, text) for hit, text in zip(found.hits, texts, strict=True)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The same in a thread of its own: the event loop goes on meanwhile."""
        return await asyncio.to_thread(self._retrieve, query_bundle)


def fair_query_engine(
    agent: Pipeline, llm: LLM | None = None, filter: Filter | None = None, **synthesis: Any
) -> RetrieverQueryEngine:
    """A LlamaIndex query engine over a fair ranking, with `filter` taking documents out of it if there is one.

    `llm` is LlamaIndex's `Settings.llm` unless given. `synthesis` goes to `RetrieverQueryEngine.from_args`:
    `response_mode`, `streaming`, `text_qa_template`, further `node_postprocessors` ...
    """
    filters = [FairFilterPostprocessor(filter=filter)] if filter else []
    after = [*filters, *(synthesis.pop("node_postprocessors", None) or [])]
    return RetrieverQueryEngine.from_args(FairRetriever(agent), llm=llm, node_postprocessors=after, **synthesis)
