"""The values that travel through fairagent: frozen, and without behavior beyond reading themselves.

Ranks start at 1. Shares are fractions in [0, 1]. Scores are the engine's own; higher is better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

UNKNOWN = "@UNKNOWN"
"""The label of documents whose group is not known: column 0 of every membership matrix."""


@dataclass(frozen=True, slots=True)
class Document:
    """One searchable text; `extra` holds every other field of its source record."""

    id: str
    text: str
    title: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Term:
    """A query keyword and its weight relative to one word of the user's query (> 0)."""

    text: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for: the user's words, and the weighted keywords that a refiner added.

    `id` is the topic's id where the query is a topic, and seeds whatever is random about it.
    """

    text: str
    id: str = ""
    terms: tuple[Term, ...] = ()

    def __str__(self) -> str:
        """The query as one line of keywords, for engines and readers without weights."""
        return " ".join([self.text, *(term.text for term in self.terms)])


@dataclass(frozen=True, slots=True)
class Topic:
    """One information need of a test collection; `query` is the text that is searched.

    `dimensions` are those that it is to be judged in; None means all.
    """

    id: str
    query: str
    extra: Mapping[str, object] = field(default_factory=dict)
    dimensions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Document ids in rank order (rank 1 first) with the scores that ordered them.

    `ids` are distinct; `scores` has shape (n,), finite and never increasing.
    """

    ids: tuple[str, ...]
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.ids)

    def top(self, n: int) -> Ranking:
        """The first `n` documents (all of them where the ranking is shorter)."""
        return self if n >= len(self.ids) else Ranking(self.ids[:n], self.scores[:n])


@dataclass(frozen=True, slots=True)
class Hit:
    """One line of a result: a document, its place, and the share of each group it belongs to."""

    rank: int
    id: str
    score: float
    title: str
    groups: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Group:
    """One group of one dimension, e.g. `Group("gender", "female")`."""

    dimension: str
    label: str

    def __str__(self) -> str:
        return f"{self.label} ({self.dimension})"


@dataclass(frozen=True, slots=True, eq=False)
class Exposure:
    """What one ranking gives the groups of one dimension, beside what they should get.

    `shares` and `target` have shape (g,) over the KNOWN `labels` and sum to 1 each (`shares` is all
    zero where nothing in the ranking is labeled); `unknown` is the exposure share of documents
    without a label; `divergence` is the smoothed divergence of `shares` from `target` (nats).
    """

    dimension: str
    labels: tuple[str, ...]
    shares: FloatArray
    target: FloatArray
    unknown: float
    divergence: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What language-model calls consumed; `cost` is in US dollars, None where a price is not known."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            cost,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class Refinement:
    """What a refiner proposes: keywords, who proposed them, and why there are none where there are none."""

    terms: tuple[Term, ...]
    source: str
    note: str = ""
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One retrieval of the loop: what was searched, why, and what it did to the exposure of the groups.

    `source` says who wrote the query: "query" (the user), "topic words", or a refiner's name. `aim` is the group
    that a refiner wrote for. `added` are its new keywords, `dropped` those that do not occur in the index. `ranking`
    is the deep list, `gap` the sum of the dimensions' divergences at the cut-off.
    """

    source: str
    query: Query
    ranking: Ranking
    exposures: tuple[Exposure, ...]
    gap: float
    aim: Group | None = None
    added: tuple[Term, ...] = ()
    dropped: tuple[str, ...] = ()
    accepted: bool = True
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Everything that happened between a query and its ranking.

    `exposures` and `gap` are those of the final ranking; `targets` says where each dimension's target comes from, and
    `oracle` marks a run in which a target or the groups came from the relevance judgments. `seconds` is the whole time,
    `engine_seconds` the search engine's part of it, `usage.seconds` the language model's.
    """

    query: Query
    steps: tuple[Step, ...]
    stopped: str
    candidates: str
    reranker: str
    exposures: tuple[Exposure, ...]
    gap: float
    targets: tuple[str, ...]
    oracle: bool
    usage: Usage
    seconds: float
    engine_seconds: float

    def __str__(self) -> str:
        """The readable story of the search, as `fairagent search` prints it."""
        # The one import against the stream: a value that prints itself, and only when someone reads it.
        from fairagent.report.story import story_text

        return story_text(self)


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """A fair ranking: its `hits` for people, its `ranking` for programs, its `trace` for both."""

    query: Query
    ranking: Ranking
    hits: tuple[Hit, ...]
    trace: Trace
