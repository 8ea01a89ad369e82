"""`Sampled`: a pipeline that draws a new ranking for every request (Fair RAG, ICTIR 2025)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Unpack

from fairagent.llm.budget import in_threads
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.stochastic import RequestCounter, Samples, checked_alpha, draw, topic_rng
from fairagent.search.agent import FairAgent
from fairagent.search.asynchronous import Asynchronous
from fairagent.search.loop.base import OnStep, ignore_step
from fairagent.search.run import SearchRun
from fairagent.settings import OptionValues, SearchOptions, Settings
from fairagent.types import AnswerResult, Draw, Query, Ranking, SearchResult, Topic

if TYPE_CHECKING:
    from fairagent.answer.citing import OnCited


@dataclass(frozen=True, slots=True)
class Sampled(Asynchronous):
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

    def search(
        self, query: str | Query | Topic, on_step: OnStep = ignore_step, **options: Unpack[OptionValues]
    ) -> SearchResult:
        """A ranking that was drawn for this request; otherwise as `FairAgent.search`."""
        agent = self.agent.latest().under(SearchOptions.of(options))
        run = agent.find(query, self.settings.sampling.pool, on_step)
        return agent.serve(run, *self._drawn(run))

    def search_many(
        self, queries: Iterable[str | Query | Topic], **options: Unpack[OptionValues]
    ) -> list[SearchResult]:
        """A drawn ranking for each of the queries, in their order; in threads as `FairAgent.search_many`."""
        agent, pool = self.agent.latest().under(SearchOptions.of(options)), self.settings.sampling.pool
        if agent.threads == 1:
            return [self.search(query, **options) for query in queries]
        runs = in_threads(lambda query: agent.find(query, pool), queries, agent.threads, "search")
        # Requests are numbered in the order of the queries.
        return [agent.serve(run, *self._drawn(run)) for run in runs]

    def answer(
        self,
        query: str | Query | Topic,
        on_text: Callable[[str], None] | None = None,
        on_step: OnStep = ignore_step,
        on_cited: OnCited | None = None,
        **options: Unpack[OptionValues],
    ) -> AnswerResult:
        """An answer from a ranking that was drawn for this request; otherwise as `FairAgent.answer`."""
        agent = self.agent.latest().under(SearchOptions.of(options))
        answerer = agent.open_answerer()
        run = agent.find(query, self.settings.sampling.pool, on_step)
        served = agent.serve(run, *self._drawn(run))
        return answerer.answer(served, run.meter, agent.retriever, on_text, on_cited)

    def latest(self) -> Sampled:
        """The same with what the agent has open at this moment; requests are counted on."""
        now = Sampled(self.agent.latest(), self.alpha)
        object.__setattr__(now, "_requests", self._requests)
        return now

    def sample(self, query: str | Query | Topic, n_samples: int) -> Samples:
        """`n_samples` of the rankings that may be served for `query`, from one run of the loop.

        They are the same at every call, whatever is served meanwhile. Raises what `search` does, UsageError for fewer
        than one sample.
        """
        run = self.agent.find(query, self.settings.sampling.pool)
        rng = topic_rng(self.settings.sampling.seed, run.query.id or run.query.text)
        return draw(run.pool, self.alpha, self.settings.n, rng, n_samples)

    def _drawn(self, run: SearchRun) -> tuple[Ranking, Draw]:
        """The ranking of this request."""
        seed, topic = self.settings.sampling.seed, run.query.id or run.query.text
        request = self._requests.number(topic)
        ranking = draw(run.pool, self.alpha, run.settings.n, topic_rng(seed, topic, request)).ranking(0)
        return ranking, Draw(self.alpha, len(run.pool), seed, request)
