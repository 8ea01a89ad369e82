"""Local stand-ins for LlamaIndex: an embedding of words, a model that says what it read, retrievers from lists."""

import math
from collections.abc import Sequence
from typing import Any
from zlib import crc32

from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode


class WordEmbedding(BaseEmbedding):
    """A text as the counts of its words, each word in one of 256 places: no model, the same everywhere."""

    def _get_text_embedding(self, text: str) -> list[float]:
        places = [0.0] * 256
        for word in text.lower().split():
            places[crc32(word.strip(".,").encode()) % 256] += 1
        length = math.sqrt(sum(count * count for count in places)) or 1.0
        return [count / length for count in places]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Echo(CustomLLM):
    """Answers with the prompt it was given."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=100_000, num_output=100)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=prompt)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        yield CompletionResponse(text=prompt, delta=prompt)


class Listed(BaseRetriever):
    """Returns these nodes whatever is asked, or raises; remembers the queries."""

    def __init__(self, nodes: Sequence[NodeWithScore] = (), error: Exception | None = None) -> None:
        self.nodes, self.error, self.asked = list(nodes), error, []
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append(query_bundle.query_str)
        if self.error:
            raise self.error
        return self.nodes


def node(id: str, text: str = "", score: float | None = 0.0, **metadata: Any) -> NodeWithScore:
    return NodeWithScore(node=TextNode(id_=id, text=text or f"This is {id}.", metadata=metadata), score=score)


def vector_index(nodes: Sequence[BaseNode]) -> VectorStoreIndex:
    return VectorStoreIndex(list(nodes), embed_model=WordEmbedding())
