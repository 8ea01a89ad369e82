"""Fairness for a vector index that you have already: nodes with their authors' gender in the metadata."""

import math
from zlib import crc32

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import TextNode

from fairagent.guests.llama_index import ExposurePostprocessor, FairRetriever, fair_agent
from fairagent.report.story import story_text


class WordEmbedding(BaseEmbedding):
    """Counts words, so that this file runs without a model; put your own embedding here."""

    def _get_text_embedding(self, text: str) -> list[float]:
        places = [0.0] * 256
        for word in text.lower().split():
            places[crc32(word.encode()) % 256] += 1
        length = math.sqrt(sum(count * count for count in places)) or 1.0
        return [count / length for count in places]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


# Made up, and skewed: the texts about women have other words around "trial lawyer", which puts them behind.
fields = ("contracts", "patents", "shipping", "taxes", "inheritance", "privacy", "tenancy", "insurance")
texts = [("male", f"trial lawyer for {field}") for field in fields]
texts += [("female", f"trial lawyer and teacher, known for her work on {field}") for field in fields]
texts += [(gender, f"painter of {scene}") for gender in ("female", "male") for scene in ("ships", "hills", "rain")]
nodes = [
    TextNode(id_=f"{gender}-{n}", text=text, metadata={"author_gender": gender})
    for n, (gender, text) in enumerate(texts)
]
index = VectorStoreIndex(nodes, embed_model=WordEmbedding())
half = {"gender": {"female": 0.5, "male": 0.5}}

# Re-rank what the retriever found: many nodes in, ten out.
retriever = index.as_retriever(similarity_top_k=24)
fair = ExposurePostprocessor(groups={"gender": "author_gender"}, target=half, n=10)
found = retriever.retrieve("trial lawyer")
print("as found: ", *(node.node_id for node in found[:10]))
print("re-ranked:", *(node.node_id for node in fair.postprocess_nodes(found, query_str="trial lawyer")))

# Or the whole loop: measure, ask again for the group that is shown too little, re-rank.
agent = fair_agent(retriever, {"gender": "author_gender"}, target=half, n=10)
result = agent.search("trial lawyer")
print("the agent:", *result.ranking.ids)
print(story_text(result.trace))
print("as nodes: ", *(node.node_id for node in FairRetriever(agent).retrieve("trial lawyer")))
