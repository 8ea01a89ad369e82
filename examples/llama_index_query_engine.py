"""A LlamaIndex query engine that answers from a fair ranking: runs as it is, offline, on the made-up collection."""

from pathlib import Path

from llama_index.core.llms import MockLLM

from fairagent import build_index, load_collection, open_agent, write_demo
from fairagent.guests.llama_index import fair_query_engine

collection = load_collection(write_demo(Path("fairagent-demo")))  # or your own collection.yaml
index = Path("indexes/demo")
if not index.exists():
    build_index(collection, index)
agent = open_agent(collection, index, n=10)

# Your model instead, e.g. llama_index.llms.openai.OpenAI(...); without `llm` it is LlamaIndex's Settings.llm.
engine = fair_query_engine(agent, llm=MockLLM(max_tokens=40))
response = engine.query("jazz musicians")

print(response)
for node in response.source_nodes:
    print(node.metadata["rank"], node.metadata["title"], node.metadata["groups"])
