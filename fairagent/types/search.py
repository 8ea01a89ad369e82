"""A search: its query, rankings, exposures, steps and result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from fairagent.types.change import ExposureChange, exposure_change, seen_change
from fairagent.types.clean import name_of
from fairagent.types.common import Alarm, Recorded, Summarized, Usage, counted, quoted

if TYPE_CHECKING:
    from fairagent.types import FloatArray

UNKNOWN = "@UNKNOWN"
"""The label of documents whose group is unknown: column 0 of every membership matrix."""


@dataclass(frozen=True, slots=True, repr=False)
class Document(Summarized):
    """One searchable text; `extra` holds every other field of its source record."""

    id: str
    text: str
    title: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def _summary(self) -> str:
        return f"{self.id!r} {quoted(self.title)}: {counted(len(self.text), 'character')}"

    @property
    def snippet(self) -> str:
        """The first 200 characters of its text in one line, or 199 and an ellipsis."""
        # Of a book only the first pages are looked at.
        words = " ".join(self.text[:800].split())
        return words if len(words) <= 200 else f"{words[:199]}…"


@dataclass(frozen=True, slots=True)
class Term:
    """A query keyword and its weight relative to one word of the user's query (> 0)."""

    text: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True, repr=False)
class Query(Summarized):
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

    @property
    def _summary(self) -> str:
        added = f" and {counted(len(self.terms), 'keyword')}" if self.terms else ""
        return f"{quoted(self.text)}{f' ({self.id})' if self.id else ''}{added}"


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


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Ranking(Summarized):
    """Distinct document ids, rank 1 first, with the `scores` (n,) that ordered them: finite, never increasing."""

    ids: tuple[str, ...]
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.ids)

    def top(self, n: int) -> Self:
        """The first `n` documents (all of them where the ranking is shorter)."""
        return self if n >= len(self.ids) else replace(self, ids=self.ids[:n], scores=self.scores[:n])

    @property
    def _summary(self) -> str:
        if not self.ids:
            return "of no document"
        return f"of {counted(len(self), 'document')}: {self.ids[0]!r} ({self.scores[0]:.4g}) first"


@dataclass(frozen=True, slots=True)
class Hit:
    """One line of a result: a document, its place, and the share of each group it belongs to.

    `rank` is its place, 1 first; `score` is the engine's for the user's own query, None for what the engine's list for
    it lacks: scores of a re-ranked list need not fall. `title`, `snippet` (the beginning of its text), `text` and
    `columns` (the other columns of its row) are empty where the engine keeps no texts.
    """

    rank: int
    id: str
    score: float | None
    title: str
    groups: Mapping[str, Mapping[str, float]]
    snippet: str = ""
    text: str = ""
    columns: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What people read of it: see `name_of`."""
        return name_of(self.title, self.snippet, self.id)


@dataclass(frozen=True, slots=True)
class Group:
    """One group of one dimension, e.g. `Group("gender", "female")`."""

    dimension: str
    label: str

    def __str__(self) -> str:
        return f"{self.label} ({self.dimension})"


FAIRNESS = 1.0
"""The price of the gap where no dial is set; what others give on public topics: evaluations/controller/README.md."""


class Dial(NamedTuple):
    """How a list is chosen on the frontier of relevance and fairness; the first that is set counts.

    `keep`: the fairest list that keeps this share of the relevance. `gap`: the most relevant list within this gap.
    `fairness`: the list with the largest relevance less so many times the gap. None of them: `FAIRNESS`.
    """

    keep: float | None = None
    gap: float | None = None
    fairness: float | None = None

    def check(self) -> None:
        """Raise ValueError where more than one is set."""
        if sum(one is not None for one in self) > 1:
            raise ValueError("fairness, keep and gap are three ways to choose one list; give one of them")

    @property
    def price(self) -> float:
        """What a gap of 1 costs."""
        return FAIRNESS if self.fairness is None else self.fairness


NO_LABEL = "no label (of all)"
"""What documents whose group is unknown are called, in the last row of every exposure."""


class ExposureRow(NamedTuple):
    """What one group gets and should get; `target` is None for documents without a label that are ignored."""

    label: str
    share: float
    target: float | None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Exposure(Summarized):
    """What one ranking gives the groups of one dimension, and what they should get.

    `shares` and `target` (g,) are over the KNOWN `labels` and sum to 1 each (`shares` is all zero where nothing in the
    ranking is labeled); `unknown` is the exposure share of documents without a label; `divergence` is the smoothed
    divergence of `shares` from `target` (nats). `unknown_target` is what documents without a label should get, by
    default their share of the engine's own list: they are then one more group in the divergence. None: they are
    ignored there. `importance` in [0, 1] is the dimension's weight in the gap. Where rankings are judged, `missing` is
    the part of `unknown` that goes to documents of the dimension's type (None: not known which are, so all of it), and
    `predicted` tells that labels are a classifier's probabilities; `target_known` (g,) is the part of the target
    that is known whatever the missing labels are (None: all of it). `likely` is AWRF by predicted labels, with the ends
    of 95 % of what their errors make of it (`measures.awrf_under_error`) and the part of these that all topics share
    (`measures.shared_part`); so in what a search serves, where labels were made.
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
    unknown_target: float | None = None
    target_known: FloatArray | None = None
    likely: tuple[float, float, float, float] | None = None

    @property
    def _summary(self) -> str:
        *known, unknown = exposure_rows(self)
        far = sorted(known, key=lambda row: -abs(row.share - (row.target or 0)))[:4]
        shown = [_row(row) for row in known if row in far]
        more = [f"{len(known) - len(shown)} more groups"] if len(known) > len(shown) else []
        return f"{self.dimension}: {', '.join([*shown, *more, _row(unknown)])}"


def exposure_rows(exposure: Any) -> list[ExposureRow]:
    """The rows of an `Exposure`, or of what has its fields, in tables and bars: the known groups, then the unlabeled.

    The known groups share 1 among themselves, the last row is a share of all.
    """
    known = zip(exposure.labels, map(float, exposure.shares), map(float, exposure.target), strict=True)
    return [*(ExposureRow(*row) for row in known), ExposureRow(NO_LABEL, exposure.unknown, exposure.unknown_target)]


def _row(row: ExposureRow) -> str:
    return f"{row.label} {row.share:.0%}" + ("" if row.target is None else f" (target {row.target:.0%})")


@dataclass(frozen=True, slots=True)
class Proposals:
    """How many keywords, passages or sentences a model has `made`, in replies that had their form, and those `usable`.

    >>> Proposals(5, 3) + Proposals(1, 0)
    Proposals(made=6, usable=3)
    """

    made: int = 0
    usable: int = 0

    def __add__(self, other: Proposals) -> Proposals:
        return Proposals(self.made + other.made, self.usable + other.usable)

    def __bool__(self) -> bool:
        return self.made > 0

    def __str__(self) -> str:
        return f"{self.usable} of {self.made} usable"


@dataclass(frozen=True, slots=True, repr=False)
class Refinement(Summarized):
    """What a refiner proposes: keywords, who proposed them, and a `note` where there are none.

    `refused` are proposals that are no keywords (an address, a known one), with the reasons; `proposals` counts a
    model's.
    """

    terms: tuple[Term, ...]
    source: str
    note: str = ""
    usage: Usage = Usage()
    refused: tuple[str, ...] = ()
    proposals: Proposals = Proposals()

    @property
    def _summary(self) -> str:
        return f"by {self.source}: {', '.join(term.text for term in self.terms) or self.note or 'nothing'}"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Step(Summarized):
    """One step of the loop: what was searched or done, why, and what it did to the exposure of the groups.

    `source` is who wrote the query ("query" is the user, "topic words", a refiner's name), or the loop's action; `why`
    is the reason for that choice, `notes` what it did. `ranking` is the deep list, `gap` the sum of the dimensions'
    divergences at the cut-off. `aim` is the group that a refiner wrote for, `added` are its new keywords, `dropped`
    those that do not occur in the index, `refused` and `proposals` as in `Refinement`. A step of `loop: widen` has the
    `ranking` that would have been served instead, and the `reason` why it was not accepted.
    `entered` is the number of documents that it retrieved from the whole collection and no list before it had, `worse`
    the dimensions in which an accepted step is less fair than the last one accepted before it. Of an action, `was` is
    the gap of what would be served without it, `objectives` are J (`fairagent.measures.objective`) without and with it.
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
    reason: str = ""
    why: str = ""
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    entered: int = 0
    worse: tuple[str, ...] = ()
    proposals: Proposals = Proposals()
    was: float | None = None
    objectives: tuple[float, ...] = ()

    @property
    def _summary(self) -> str:
        became = "accepted" if self.accepted else f"discarded{f': {self.reason}' if self.reason else ''}"
        keywords = f", {counted(len(self.added), 'keyword')} added" if self.added else ""
        return f"{self.source}{f' for {self.aim}' if self.aim else ''}{keywords}: gap {self.gap:.4g}, {became}"


@dataclass(frozen=True, slots=True)
class Draw:
    """A draw by Plackett-Luce with `alpha` from `pool` candidates; `seed` and `request` (from 0) repeat it."""

    alpha: float
    pool: int
    seed: int
    request: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Trace(Summarized):
    """Everything that happened between a query and its ranking.

    `exposures` and `gap` are those of the final ranking; `targets` are where each dimension's target comes from;
    `oracle` marks a search whose target or groups came from the relevance judgments. `seconds` is the whole time,
    `engine_seconds` the engine's part of it, `usage.seconds` the model's. `draw` is set where the ranking was drawn at
    random; `entered` is the number of documents served that only a second search has retrieved. `notes` are what else
    is to be known, such as an engine that failed. `relevance_kept` is the share (0 to 1) of the estimated relevance
    that the ranking keeps of the most relevant list of the same candidates (None: there is no such dial), `relevance`
    the ranking's own, and `objective` what a dial weighs: the relevance less `fairness` times the gap.
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
    entered: int = 0
    relevance_kept: float | None = None
    collection: str = ""
    relevance: float = 0.0
    fairness: float = FAIRNESS

    @property
    def objective(self) -> float:
        """J of the ranking (`fairagent.measures.objective`)."""
        return self.relevance - self.fairness * self.gap

    @property
    def changes(self) -> tuple[ExposureChange, ...]:
        """What the search changed for the groups, a sentence a dimension: the engine's own list beside what is served.

        Whether it is fairer is said by `seen_change` (a list without any label has the largest divergence).
        """
        if not self.steps or not self.exposures:
            return ()
        changes = []
        for was, now in zip(self.steps[0].exposures, self.exposures, strict=True):
            before, after = exposure_rows(was), exposure_rows(now)
            about = {"verdict": seen_change(before, after, now.divergence - was.divergence)}
            changes.append(exposure_change(now.dimension, before, after, **about, likely=now.likely and now.likely[:3]))
        return tuple(changes)

    @property
    def _summary(self) -> str:
        gaps = f"gap {self.steps[0].gap:.4g} to {self.gap:.4g}" if self.steps else f"gap {self.gap:.4g}"
        ended = f"; {self.stopped}" if self.stopped else ""
        return f"of {quoted(self.query.text)}: {counted(len(self.steps), 'step')}, {gaps}, {self.seconds:.2f} s{ended}"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SearchResult(Recorded):
    """A fair ranking: its `hits` for people, its `ranking` for programs, its `trace` for both.

    `retrieved` are the ids of the candidates that the re-ranker was given, in their order.
    """

    query: Query
    ranking: Ranking
    hits: tuple[Hit, ...]
    trace: Trace
    retrieved: tuple[str, ...] = ()

    @property
    def _summary(self) -> str:
        first = f", first {quoted(self.hits[0].name)}" if self.hits else ""
        return f"of {quoted(self.query.text)}: {counted(len(self.hits), 'document')}{first}; gap {self.trace.gap:.4g}"


def with_terms(query: Query, terms: Sequence[Term]) -> Query:
    """`query` with more keywords; a keyword that it has already gets the sum of both weights.

    >>> with_terms(Query("lawyers", terms=(Term("court", 0.5),)), [Term("court", 0.5), Term("she")]).terms
    (Term(text='court', weight=1.0), Term(text='she', weight=1.0))
    """
    merged: dict[str, Term] = {}
    for term in (*query.terms, *terms):
        known = merged.get(term.text)
        merged[term.text] = Term(term.text, known.weight + term.weight) if known else term
    return Query(query.text, query.id, tuple(merged.values()))
