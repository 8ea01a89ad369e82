"""fairagent in LangChain: a fair ranking as a retriever, and a document compressor that re-ranks any retriever's list.

    from fairagent.guests.langchain import ExposureCompressor, FairLangChainRetriever

    stage = ExposureCompressor(groups="gender", target={"female": 0.5, "male": 0.5}, n=10)
    fair = retriever | (lambda documents: stage.compress_documents(documents, ""))

Importing this imports langchain_core; it raises BackendUnavailable where that is not installed.
"""

# ruff: noqa: E402
from collections.abc import Sequence
from typing import Any

from fairagent.storage.packages import expect_installed

expect_installed("langchain-core", "fairagent.guests.langchain")

from langchain_core.callbacks import CallbackManagerForRetrieverRun, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, SkipValidation

from fairagent.guests.results import ExposureStage, OnResult, check_texts, documents_found, metadata_of


class ExposureCompressor(ExposureStage, BaseDocumentCompressor):
    """The documents that `ExposureStage` chooses, in their new order; it needs no query.

    Groups are metadata keys or paths, or known by the documents' ids. A document of LangChain has no score, so the
    order stands for it.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The same objects in their new order; raises what `fair_rerank` does."""
        return self.reranked(list(documents))


class FairLangChainRetriever(BaseRetriever):
    """The search of a pipeline as a LangChain retriever: the same documents in the same order, with their texts.

    A document's metadata hold its title, rank, score and groups. `on_result` receives each search with its trace.
    Raises UsageError where the agent's engine keeps no texts.
    """

    agent: SkipValidation[Any]
    """The `FairAgent`, which `open_agent` gives."""
    on_result: SkipValidation[OnResult] | None = None

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        check_texts(self.agent)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        lines = documents_found(self.agent, query, self.on_result)
        return [Document(id=hit.id, page_content=one.text, metadata=metadata_of(hit, one)) for hit, one, _ in lines]
