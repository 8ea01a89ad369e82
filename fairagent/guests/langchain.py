"""fairagent in LangChain: a fair ranking as a retriever, and a document compressor that re-ranks any retriever's list.

    from fairagent.guests.langchain import ExposureCompressor, FairLangChainRetriever

    stage = ExposureCompressor(groups="gender", target={"female": 0.5, "male": 0.5}, n=10)
    fair = retriever | (lambda documents: stage.compress_documents(documents, ""))

Importing this imports langchain_core; it raises BackendUnavailable where that is not installed.
"""

# ruff: noqa: E402
from collections.abc import Callable, Sequence
from typing import Any

from fairagent.search.hits import FairHits, fair_rerank, fields_of
from fairagent.settings import Unknown
from fairagent.storage.packages import expect_installed

expect_installed("langchain-core", "fairagent.guests.langchain")

from langchain_core.callbacks import CallbackManagerForRetrieverRun, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, SkipValidation

from fairagent.guests.results import OnResult, check_texts, documents_found, metadata_of


class ExposureCompressor(BaseDocumentCompressor):
    """The `n` documents that are relevant and together give every group about its target share of the exposure.

    Put it behind a retriever that returns many more than `n`: it can only choose among those. `groups`, `target`,
    `fairness`, `keep`, `gap` and `unknown` are those of `fair_rerank`: groups are metadata keys or paths, or known by
    the documents' ids. A document of LangChain has no score, so the order stands for it. `on_fair` receives the
    exposures before and after. It needs no query.
    """

    groups: SkipValidation[Any]
    target: SkipValidation[Any] = None
    n: int = Field(default=10, ge=1)
    fairness: float | None = Field(default=None, ge=0)
    keep: float | None = Field(default=None, ge=0, le=1)
    gap: float | None = Field(default=None, ge=0)
    unknown: Unknown = "share"
    on_fair: SkipValidation[Callable[[FairHits], None]] | None = None

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        fields_of(self.groups, self.target)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The same objects in their new order; raises what `fair_rerank` does."""
        dial: dict[str, Any] = {"fairness": self.fairness, "keep": self.keep, "gap": self.gap}
        fair = fair_rerank(list(documents), self.groups, self.target, self.n, unknown=self.unknown, **dial)
        if self.on_fair:
            self.on_fair(fair)
        return fair.hits


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
