"""Judges of relevance: a model that reads query and text together, or a language model's yes or no."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

from fairagent.answer.filtering import Page, ask_verdicts, batches, page_of
from fairagent.llm import Model
from fairagent.llm.asking import unless_failing
from fairagent.llm.budget import in_threads
from fairagent.llm.prompts import Prompts
from fairagent.measures.exposure import min_max
from fairagent.retrieve.base import full_text
from fairagent.search.rerank.base import PairScorer, pair_scores
from fairagent.types import Document, Query
from fairagent.types.clean import query_shown

RELEVANCE = "judge_relevance"


@dataclass(frozen=True, slots=True)
class RelevanceJudgment:
    """For each document the chance in [0, 1] that it is relevant, None where it was not judged; `notes` say why not."""

    chances: tuple[float | None, ...]
    notes: tuple[str, ...] = ()


class RelevanceJudge(Protocol):
    """Any object with this method will do."""

    def judge(self, query: str, documents: Sequence[Document]) -> RelevanceJudgment:
        """How relevant each of these is."""
        ...


@dataclass(frozen=True, slots=True)
class ScorerJudge:
    """A cross-encoder, whatever its scores mean: the worst of the documents has the chance 0, the best 1."""

    scorer: PairScorer

    def judge(self, query: str, documents: Sequence[Document]) -> RelevanceJudgment:
        """All documents are judged; where all scores are alike, all have the chance 1."""
        scores = pair_scores(self.scorer, Query(query), list(map(full_text, documents)))
        return RelevanceJudgment(tuple(min_max(scores).tolist()))


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """A language model's yes or no with the template `judge_relevance`, `batch` documents a call, `workers` at a time.

    Where a call fails, or the budget is used up, its documents are not judged ("fallback": what the engine says of them
    counts), or the error is raised ("fail").
    """

    model: Model
    prompts: Prompts
    batch: int = 5
    workers: int = 8
    on_error: Literal["fallback", "fail"] = "fallback"

    def judge(self, query: str, documents: Sequence[Document]) -> RelevanceJudgment:
        """What the calls that were answered say. Raises FatalModelError, and with "fail" what else asking raises."""
        pages = [page_of(document) for document in documents]
        replies = in_threads(partial(self._ask, query_shown(query)), batches(pages, self.batch), self.workers, "judge")
        chances = tuple(chance for some, _ in replies for chance in some)
        failures = dict.fromkeys(failure for _, failure in replies if failure)
        missing = sum(chance is None for chance in chances)
        notes = [f"{missing} of {len(chances)} documents were not judged: {failure}" for failure in failures]
        return RelevanceJudgment(chances, tuple(notes))

    def _ask(self, query: str, pages: Sequence[Page]) -> tuple[list[float | None], str]:
        def judged() -> tuple[list[float | None], str]:
            verdicts, _ = ask_verdicts(self.model, self.prompts, RELEVANCE, pages, query=query)
            return [float(verdict.passed) for verdict in verdicts], ""

        def unjudged(error: Exception) -> tuple[list[float | None], str]:
            return [None] * len(pages), str(error)

        return unless_failing(judged, self.on_error, unjudged, unpaid=True)
