"""`Sampled`: a pipeline that draws a new ranking for every request (Fair RAG, ICTIR 2025)."""

from collections.abc import Callable
from dataclasses import dataclass, field

from fairagent.retrieve.base import Retriever
from fairagent.retrieve.stochastic import RequestCounter, Samples, checked_alpha, draw, topic_rng
from fairagent.search.agent import FairAgent
from fairagent.search.loop.base import OnStep, ignore_step
from fairagent.search.run import SearchRun
from fairagent.settings import Settings
from fairagent.types import AnswerResult, Draw, Query, Ranking, SearchResult, Topic
from fairagent.types.search import as_query


@dataclass(frozen=True, slots=True)
class Sampled:
    """`agent`, with a new ranking for each request, drawn from its candidates by Plackett-Luce with `alpha`.

    What the loop and the re-ranker do for the groups and what chance does add up. Requests for one query differ; the
    seed (`settings.sampling.seed`) and the request's number give a ranking again. Threads may share it. Raises
    UsageError where `alpha` is negative or not finite.
    """

    agent: FairAgent
    alpha: float
    _requests: RequestCounter = field(default_factory=RequestCounter, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checked_alpha(self.alpha)

    @property
    def settings(self) -> Settings:
        """Those of the agent."""
        return self.agent.settings

    @property
    def retriever(self) -> Retriever:
        """That of the agent."""
        return self.agent.retriever

    def search(self, query: str | Query | Topic, on_step: OnStep = ignore_step) -> SearchResult:
        """A ranking that was drawn for this request; otherwise as `FairAgent.search`."""
        found = self._find(query, on_step)
        return found.result(*self._drawn(found))

    def answer(
        self,
        query: str | Query | Topic,
        on_text: Callable[[str], None] | None = None,
        on_step: OnStep = ignore_step,
    ) -> AnswerResult:
        """An answer from a ranking that was drawn for this request; otherwise as `FairAgent.answer`."""
        answerer = self.agent.open_answerer()
        found = self._find(query, on_step)
        return answerer.answer(found.result(*self._drawn(found)), found.meter, self.agent.retriever, on_text)

    def sample(self, query: str | Query | Topic, n_samples: int) -> Samples:
        """`n_samples` of the rankings that may be served for `query`, from one run of the loop.

        They are the same at every call, whatever is served meanwhile. Raises what `search` does, UsageError for fewer
        than one sample.
        """
        found = self._find(query)
        rng = topic_rng(self.settings.sampling.seed, _topic(found.query))
        return draw(found.pool, self.alpha, self.settings.n, rng, n_samples)

    def _find(self, query: str | Query | Topic, on_step: OnStep = ignore_step) -> SearchRun:
        return self.agent.find(as_query(query), self.settings.sampling.pool, on_step)

    def _drawn(self, found: SearchRun) -> tuple[Ranking, Draw]:
        """The ranking of this request."""
        seed, topic = self.settings.sampling.seed, _topic(found.query)
        request = self._requests.number(topic)
        ranking = draw(found.pool, self.alpha, self.settings.n, topic_rng(seed, topic, request)).ranking(0)
        return ranking, Draw(self.alpha, len(found.pool), seed, request)


def _topic(query: Query) -> str:
    return query.id or query.text
