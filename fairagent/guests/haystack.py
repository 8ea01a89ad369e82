"""fairagent in Haystack: a fair ranking as a retriever, and a ranker for any retriever's documents.

    from fairagent.guests.haystack import ExposureRanker, FairHaystackRetriever

    pipeline.add_component("fair", ExposureRanker("gender", {"female": 0.5, "male": 0.5}, top_k=10))
    pipeline.connect("retriever", "fair")

Both can be saved with their pipeline, where their arguments can. Importing this imports haystack; it raises
BackendUnavailable where that is not installed.
"""

# ruff: noqa: E402
from typing import Any

from fairagent.errors import UsageError
from fairagent.search.agent import FairAgent
from fairagent.search.hits import FairHits, HitGroups, fair_rerank, fields_of
from fairagent.search.pipeline import open_agent
from fairagent.settings import Unknown
from fairagent.storage.packages import expect_installed

expect_installed("haystack-ai", "fairagent.guests.haystack")

from haystack import Document, component, default_to_dict

from fairagent.guests.results import check_texts, documents_found, metadata_of


@component
class ExposureRanker:
    """The `n` documents that are relevant and together give every group about its target share of the exposure.

    Put it behind a retriever whose `top_k` is much larger: it can only choose among those. `groups`, `target`,
    `fairness`, `keep`, `gap` and `unknown` are those of `fair_rerank`: groups are keys of `meta` or paths, or known by
    the documents' ids.
    """

    def __init__(
        self,
        groups: HitGroups,
        target: Any = None,
        top_k: int | None = None,
        fairness: float | None = None,
        keep: float | None = None,
        gap: float | None = None,
        unknown: Unknown = "share",
        n: int | None = None,
    ) -> None:
        """Take what `fair_rerank` takes; `top_k` is Haystack's name for `n`, 10 where neither is given.

        Raises UsageError for less than 1, for two that differ, and for groups that do not go with the target.
        """
        fields_of(groups, target)
        # Haystack saves what has the name of an argument.
        self.n = self.top_k = _length(n, top_k, 10)
        self.groups, self.target, self.unknown = groups, target, unknown
        self.fairness, self.keep, self.gap = fairness, keep, gap

    @component.output_types(documents=list[Document], fair=FairHits)
    def run(
        self,
        documents: list[Document],
        top_k: int | None = None,
        fairness: float | None = None,
        n: int | None = None,
    ) -> dict[str, Any]:
        """The same objects in their new order, and `fair`, with the exposures before and after.

        Raises what `fair_rerank` does.
        """
        own = {"fairness": self.fairness, "keep": self.keep, "gap": self.gap}
        dial, n = own if fairness is None else {"fairness": fairness}, _length(n, top_k, self.n)
        fair = fair_rerank(documents, self.groups, self.target, n, unknown=self.unknown, **dial)
        return {"documents": fair.hits, "fair": fair}


@component
class FairHaystackRetriever:
    """The search of a pipeline of fairagent as a Haystack retriever: the same documents in the same order, with texts.

    A document's `meta` hold its title, rank, score and groups.
    """

    def __init__(self, agent: FairAgent | str, settings: dict[str, Any] | None = None) -> None:
        """Take an open agent, or a collection's file and the settings of `open_agent`, which `warm_up` opens.

        Raises UsageError where the agent's engine keeps no texts.
        """
        if not isinstance(agent, str):
            check_texts(agent)
        self.agent, self.settings = agent, settings
        self._open: FairAgent | None = None if isinstance(agent, str) else agent

    def warm_up(self) -> None:
        """Open the agent; raises what `open_agent` does."""
        if isinstance(self.agent, str) and self._open is None:
            opened = open_agent(self.agent, **(self.settings or {}))
            check_texts(opened)
            self._open = opened

    def to_dict(self) -> dict[str, Any]:
        """Its arguments, to be saved with the pipeline; UsageError for an agent that was opened elsewhere."""
        if not isinstance(self.agent, str):
            raise UsageError(
                "an open agent cannot be saved with a pipeline; name its collection's file: FairHaystackRetriever("
                '"collection.yaml", {"n": 10})'
            )
        saved: dict[str, Any] = default_to_dict(self, agent=self.agent, settings=self.settings)
        return saved

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, list[Document]]:
        """What the search finds, and what it raises."""
        self.warm_up()
        assert self._open is not None
        lines = documents_found(self._open, query)
        documents = [
            Document(id=hit.id, content=one.text, meta=metadata_of(hit, one), score=score) for hit, one, score in lines
        ]
        return {"documents": documents}


def _length(n: int | None, top_k: int | None, otherwise: int) -> int:
    given = {one for one in (n, top_k) if one is not None} or {otherwise}
    if len(given) > 1 or min(given) < 1:
        raise UsageError(f"n, or top_k, is how many documents are given, 1 or more: n={n}, top_k={top_k}")
    return given.pop()
