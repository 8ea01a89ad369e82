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
from fairagent.storage.packages import expect_installed

expect_installed("llama-index-core", "fairagent.guests.llama_index")

from fairagent.guests.llama_index.engine import LlamaIndexRetriever, fair_agent
from fairagent.guests.llama_index.postprocess import (
    DebiasPostprocessor,
    ExposurePostprocessor,
    FairFilterPostprocessor,
    FairRetriever,
    fair_query_engine,
)

__all__ = [
    "DebiasPostprocessor",
    "ExposurePostprocessor",
    "FairFilterPostprocessor",
    "FairRetriever",
    "LlamaIndexRetriever",
    "fair_agent",
    "fair_query_engine",
]
