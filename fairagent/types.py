"""The values that the parts of fairagent exchange: queries, rankings, exposures, traces, answers.

Ranks start at 1. Shares are fractions in [0, 1]. Scores are the engine's own; higher is better.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fairagent.alarms import Alarm as Alarm
from fairagent.usage import Usage as Usage

FloatArray = NDArray[np.float64]

UNKNOWN = "@UNKNOWN"
"""The label of documents whose group is unknown: column 0 of every membership matrix."""


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

    @property
    def weighted(self) -> list[tuple[str, float]]:
        """The user's words, which weigh 1, and each keyword with its weight.

        >>> Query("famous lawyers", terms=(Term("court", 0.5),)).weighted
        [('famous lawyers', 1.0), ('court', 0.5)]
        """
        return [(self.text, 1.0), *((term.text, term.weight) for term in self.terms)]


@dataclass(frozen=True, slots=True)
class Topic:
    """One information need: `query` is the text that is searched, `dimensions` those it is judged in (None: all).

    `group` is the group of topics that it belongs to, "" where it has none.
    """

    id: str
    query: str
    extra: Mapping[str, object] = field(default_factory=dict)
    dimensions: tuple[str, ...] | None = None
    group: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Distinct document ids, rank 1 first, with the `scores` (n,) that ordered them: finite, never increasing."""

    ids: tuple[str, ...]
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.ids)

    def top(self, n: int) -> Self:
        """The first `n` documents (all of them where the ranking is shorter)."""
        return self if n >= len(self.ids) else replace(self, ids=self.ids[:n], scores=self.scores[:n])


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

    `shares` and `target` (g,) are over the KNOWN `labels` and sum to 1 each (`shares` is all zero where nothing in the
    ranking is labeled); `unknown` is the exposure share of documents without a label; `divergence` is the smoothed
    divergence of `shares` from `target` (nats). `importance` in [0, 1] is the dimension's weight in the gap. Where
    rankings are judged, `missing` is the part of `unknown` that goes to documents of the dimension's type (all of it,
    where nobody says which are: None), and `predicted` says that labels are a classifier's probabilities.
    """

    dimension: str
    labels: tuple[str, ...]
    shares: FloatArray
    target: FloatArray
    unknown: float
    divergence: float
    importance: float = 1.0
    missing: float | None = None
    predicted: bool = False


@dataclass(frozen=True, slots=True)
class Refinement:
    """What a refiner proposes: keywords, who proposed them, and a `note` where there are none.

    `refused` are proposals that are no keywords (an address, a known one), with the reasons.
    """

    terms: tuple[Term, ...]
    source: str
    note: str = ""
    usage: Usage = Usage()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of the loop: what was searched or done, why, and what it did to the exposure of the groups.

    `source` says who wrote the query ("query" is the user, "topic words", a refiner's name), or names the loop's
    action; `why` says why that was chosen, `notes` what it did. `ranking` is the deep list, `gap` the sum of the
    dimensions' divergences at the cut-off. `aim` is the group that a refiner wrote for, `added` are its new keywords,
    `dropped` those that do not occur in the index, `refused` as in `Refinement`. A controller's step has the groups'
    `weights` instead, the `ranking` that would have been served, and the `reason` why it was not accepted. `alarms` are
    what its model did that must not go unnoticed.
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
    refused: tuple[str, ...] = ()
    weights: tuple[tuple[Group, float], ...] = ()
    reason: str = ""
    why: str = ""
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()


@dataclass(frozen=True, slots=True)
class Draw:
    """A draw by Plackett-Luce with `alpha` from `pool` candidates; `seed` and `request` (from 0) repeat it."""

    alpha: float
    pool: int
    seed: int
    request: int


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Everything that happened between a query and its ranking.

    `exposures` and `gap` are those of the final ranking; `targets` says where each dimension's target comes from;
    `oracle` marks a search whose target or groups came from the relevance judgments. `seconds` is the whole time,
    `engine_seconds` the engine's part of it, `usage.seconds` the model's. `draw` is set where the ranking was drawn at
    random; `notes` say what else is to be known, such as an engine that failed, `alarms` what must not go unnoticed.
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
    draw: Draw | None = None
    profile: str = ""
    engine: str = ""
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """A fair ranking: its `hits` for people, its `ranking` for programs, its `trace` for both."""

    query: Query
    ranking: Ranking
    hits: tuple[Hit, ...]
    trace: Trace


@dataclass(frozen=True, slots=True)
class Verdict:
    """A filter's verdict on one document.

    `fair`: the document brings no bias into an answer; `useful`: an answer needs it. None: not asked, or not answered;
    `note` says so, with the model's reasons and whether the text was cut.
    """

    id: str
    kept: bool
    fair: bool | None
    useful: bool | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Filtered:
    """The `documents` that a filter kept, in their order, and its verdict on every one it saw."""

    documents: tuple[Document, ...]
    verdicts: tuple[Verdict, ...]
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Debiased:
    """The contexts that DebiasRAG chose, the best first with falling `scores`, and how it chose them.

    `kind` is the bias class of the query ("" is none), `avoided` are the ids of the avoided passages, `made` those of
    the counterfactual contexts made from them (at most one each), `dropped` those of candidates that are too similar to
    what is avoided. `theta` are the weights of relevance and of distance from what is avoided.
    """

    kind: str
    avoided: tuple[str, ...]
    made: tuple[str, ...]
    documents: tuple[Document, ...] = ()
    scores: tuple[float, ...] = ()
    dropped: tuple[str, ...] = ()
    theta_before: tuple[float, float] = (0.5, 0.5)
    theta_after: tuple[float, float] = (0.5, 0.5)
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()

    @property
    def survived(self) -> tuple[str, ...]:
        """The ids of the counterfactual contexts that were not dropped."""
        return tuple(id for id in self.made if id not in self.dropped)

    @property
    def placed(self) -> tuple[str, ...]:
        """The ids of the counterfactual contexts among the chosen."""
        return tuple(one.id for one in self.documents if one.id in self.made)


@dataclass(frozen=True, slots=True)
class Removal:
    """How many documents of a group a filter saw and removed, as sums of memberships (half a member counts half)."""

    group: Group
    seen: float
    removed: float

    @property
    def share(self) -> float:
        """The share removed, in [0, 1]; 0 where none was seen."""
        return self.removed / self.seen if self.seen else 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A text that answers a query from a context of documents.

    `cited` are the numbers (from 1, in rank order) that it cites, in the order of their first mention; `source` says
    who wrote it. `truncated`: it is the beginning of an answer that was cut off.
    """

    text: str
    cited: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()
    source: str = ""
    truncated: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """How far an answer rests on each document of its context, and what that gives the groups.

    `kind` is the method: "citations", "nli", "judge" or "embeddings". `weights` (k,) are in [0, 1], in rank order.
    `exposures` are those of the attributed documents, `retrieved` those of the whole context, one a dimension; both
    are empty until they are measured.
    """

    kind: str
    weights: FloatArray
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()
    exposures: tuple[Exposure, ...] = ()
    retrieved: tuple[Exposure, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class AnswerResult:
    """An answer to a query, and everything it came from.

    `context` are the documents it was written from, in rank order: citation [k] is the k-th of them. `removed` is what
    each group lost to the filter. `seconds` is the whole time, the search's included; so are `alarms` the search's.
    """

    query: Query
    answer: Answer
    context: tuple[Hit, ...]
    search: SearchResult
    notes: tuple[str, ...] = ()
    filtered: Filtered | None = None
    removed: tuple[Removal, ...] = ()
    attribution: Attribution | None = None
    seconds: float = 0.0
    debiased: Debiased | None = None
    alarms: tuple[Alarm, ...] = ()

    @property
    def cited(self) -> tuple[Hit, ...]:
        """The documents that the answer cites, in the order of their first mention."""
        return tuple(self.context[number - 1] for number in self.answer.cited)

    @property
    def usage(self) -> Usage:
        """What all model calls took: of search, filter, debiasing, generator and attribution."""
        parts = (self.search.trace, self.answer, self.filtered, self.debiased, self.attribution)
        return sum((part.usage for part in parts if part), Usage())
