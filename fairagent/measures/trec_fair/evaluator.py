"""`TrackEvaluator`: evaluates any number of runs (`TrackRun`) against one set of pages, judgments and dimensions.

Task 1: one ranking a topic, measured by nDCG, AWRF and their product. Task 2: a sequence of rankings a topic, measured
by expected exposure, EE-L, EE-D and EE-R. All topics of a run are measured at once, on touched cells only: on a cell
that no ranking touches the Jensen-Shannon divergence has the term 1/2 ln 2 times the target there, EE-D and EE-R have
0, and EE-L the square of the target.

2021 differs from 2022: Task 1 leaves the cell in which everything is unknown out of exposure and target, and a ranking
that shows nothing else counts as showing all other cells alike; Task 2 counts the exposure of every listed page, and
not of the relevant ones alone; rankings are longer.
Sources: TREC Fair Ranking 2022, Task1Evaluation, Task2Alignment and Task2Evaluation; 2021, Alignments and metrics.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, UsageError
from fairagent.measures.base import LOG2_MAX2
from fairagent.measures.expected_exposure import class_exposure, exposure_terms
from fairagent.measures.exposure import jensen_shannon_terms
from fairagent.measures.ranking import normalized_gain
from fairagent.measures.trec_fair.pages import LARGEST_ID, QUALITIES, IntArray, Pages, find
from fairagent.measures.trec_fair.targets import Amounts, Space, Targets, averaged_with_world, grouped, totals
from fairagent.types import FloatArray

Repeated = Literal["error", "count"]
"""What becomes of a page that a ranking lists twice: a fault, or each of its lines counts, as in the track's code."""


@dataclass(frozen=True, slots=True, eq=False)
class TrackRun:
    """The rankings of a run: one a topic in Task 1, a sequence of them in Task 2.

    `topics` are the distinct topic ids. Ranking r belongs to topic number `topic[r]` and lists
    `pages[bounds[r] : bounds[r + 1]]`, best first.
    """

    name: str
    topics: tuple[str, ...]
    topic: IntArray
    bounds: IntArray
    pages: IntArray

    @classmethod
    def of(cls, name: str, rankings: Mapping[str, Sequence[Sequence[int]]], repeated: Repeated = "error") -> TrackRun:
        """The run with these rankings: topic -> rankings (in Task 1 a single one) -> page ids, best first.

        Raises DataError where an id is no number from 0 to 2^31 - 1 and, unless `repeated` is "count", where a ranking
        lists a page twice.

        >>> TrackRun.of("mine", {"12": [[7, 9]], "3": [[9, 7, 8]]}).ranks().tolist()
        [1, 2, 1, 2, 3]
        """
        flat = [ranking for of_topic in rankings.values() for ranking in of_topic]
        lengths = [len(ranking) for ranking in flat]
        pages = _ids(f"run {name!r}", [page for ranking in flat for page in ranking])
        for topic, of_topic in rankings.items() if repeated == "error" else ():
            for ranking in of_topic:
                if len(set(ranking)) < len(ranking):
                    page = next(page for place, page in enumerate(ranking) if page in ranking[:place])
                    raise DataError(f"run {name!r}, topic {topic}: page {page} is listed twice in a ranking")
        topic_of = np.repeat(np.arange(len(rankings)), [len(of_topic) for of_topic in rankings.values()])
        bounds = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        return cls(name, tuple(rankings), topic_of, bounds, pages)

    @property
    def lengths(self) -> IntArray:
        """How many pages each ranking lists, (r,)."""
        return np.diff(self.bounds)

    def ranks(self) -> IntArray:
        """The rank of every line, from 1 in each ranking, (n,)."""
        return np.arange(1, self.pages.size + 1) - np.repeat(self.bounds[:-1], self.lengths)

    def discounts(self) -> FloatArray:
        """The attention of every line, 1 / log2(max(rank, 2)), (n,)."""
        return LOG2_MAX2(int(self.lengths.max(initial=0)))[self.ranks() - 1]

    def line_topics(self) -> IntArray:
        """The number of every line's topic, (n,)."""
        return np.repeat(self.topic, self.lengths)


class Judgments:
    """The relevant pages of t topics, each once, topic by topic in the order of page ids.

    Judgment j: page `ids[j]`, which has `row[j]` in `pages` (-1: it has no metadata), is relevant to topic number
    `topic[j]`. `relevant` (t,) counts a topic's relevant pages, known or not.
    """

    def __init__(self, pages: Pages, qrels: Mapping[str, Collection[int]]) -> None:
        """Take topic -> ids of relevant pages, repeated ones counting once; DataError for what is no id."""
        if not qrels:
            raise DataError("the qrels have no topics")
        self.pages, self.topics = pages, tuple(qrels)
        listed = [_ids(f"qrels, topic {topic}", pages) for topic, pages in qrels.items()]
        topics = np.repeat(np.arange(len(listed)), [ids.size for ids in listed])
        ids = np.concatenate(listed)
        self._beyond = int(ids.max(initial=0)) + 1  # stands for all ids that are relevant to no topic
        self._known = np.unique(self._keys(topics, ids))
        self.topic, self.ids = np.divmod(self._known, self._beyond + 1)
        self.row = find(pages.ids, self.ids)
        self.relevant = np.bincount(self.topic, minlength=len(listed))

    def numbers(self, run: TrackRun) -> IntArray:
        """The number here of each topic of a run; DataError, naming them, for topics that are not judged."""
        numbers = {topic: number for number, topic in enumerate(self.topics)}
        if unjudged := [topic for topic in run.topics if topic not in numbers]:
            raise DataError(
                f"run {run.name!r}: {len(unjudged)} of its {len(run.topics)} topics are not in the qrels "
                f"({', '.join(unjudged[:10])}{' ...' if len(unjudged) > 10 else ''}); is it for another set of topics?"
            )
        return np.array([numbers[topic] for topic in run.topics], np.int64)

    def shown_by(self, run: TrackRun, depth: int | None = None) -> ShownPages:
        """What a run shows in its first `depth` ranks (None: in all); raises DataError as `numbers` does."""
        ids, discounts, topics = run.pages, run.discounts(), self.numbers(run)[run.line_topics()]
        if depth is not None and run.lengths.max(initial=0) > depth:
            within = run.ranks() <= depth
            ids, discounts, topics = ids[within], discounts[within], topics[within]
        lines = np.ones(ids.size, np.int64)
        if run.topic.size > len(run.topics):
            pairs, discounts, lines = grouped(topics * (LARGEST_ID + 1) + ids, discounts)
            topics, ids = np.divmod(pairs, LARGEST_ID + 1)
        relevant = find(self._known, self._keys(topics, ids)) >= 0
        return ShownPages(topics, discounts, lines, find(self.pages.ids, ids), relevant)

    def _keys(self, topics: IntArray, ids: IntArray) -> IntArray:
        """A number for each pair, rising with the topic and then the id."""
        return topics * (self._beyond + 1) + np.minimum(ids, self._beyond)


@dataclass(frozen=True, slots=True, eq=False)
class ShownPages:
    """The pages that a run shows for its topics, each pair of page and topic once; all arrays are (m,).

    `attention` is the sum of the discounts of the `lines` that list the page; `row` its place in `pages` (-1: none).
    """

    topic: IntArray
    attention: FloatArray
    lines: IntArray
    row: IntArray
    relevant: NDArray[np.bool_]


def _ids(where: str, pages: Collection[int]) -> IntArray:
    ids = np.asarray(pages if isinstance(pages, np.ndarray) else list(pages))
    if ids.size and (ids.dtype.kind not in "iu" or not 0 <= ids.min() <= ids.max() <= LARGEST_ID):
        raise DataError(f"{where}: page ids are whole numbers from 0 to {LARGEST_ID}")
    return ids.astype(np.int64)


Year = Literal[2021, 2022]
Task = Literal[1, 2]

LONGEST: dict[Year, int] = {2021: 1000, 2022: 500}
"""Task 1: how many pages a ranking may have, by year."""
RANKING_LENGTH: dict[Year, int] = {2021: 50, 2022: 20}
"""Task 2: how many pages a full ranking has, by year; targets are scaled to its attention."""
LOWEST = 1.0 - math.log(2.0)
"""The AWRF of a ranking that shows nothing of what it should."""
ROUNDING = 1e-9
"""So much above 1 is no value of nDCG, but how it was rounded."""


@dataclass(frozen=True, slots=True)
class Task1Row:
    """One topic of a run: `ndcg` in [0, 1], `awrf` in [1 - ln 2, 1], `score` their product.

    `unknown` is the number of listed pages without metadata, which AWRF leaves out.
    """

    topic: str
    ndcg: float
    awrf: float
    score: float
    unknown: int


@dataclass(frozen=True, slots=True)
class Task2Row:
    """One topic of a run: loss EE-L (lower is better), disparity EE-D and relevance EE-R, all 0 or more.

    `rankings` is how many the topic has, `unknown` the number of lines in them whose page has no metadata.
    """

    topic: str
    ee_l: float
    ee_d: float
    ee_r: float
    rankings: int
    unknown: int


TopicRow = Task1Row | Task2Row


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """A run's rows, one for each of its topics that has a target, in the order of the qrels.

    `missing` are the topics with a target that the run has no line for, which `mean` leaves out, like the track;
    `left_out` those without a target, with the reason.
    """

    run: str
    dimensions: tuple[str, ...]
    rows: tuple[TopicRow, ...]
    missing: tuple[str, ...]
    left_out: Mapping[str, str]

    def mean(self, measure: str) -> float:
        """The mean over the rows of a `measure` (`ndcg`, `awrf`, `score`, `ee_l` ...); DataError without a row."""
        if not self.rows:
            raise DataError(f"run {self.run!r} has no topic that can be evaluated")
        return math.fsum(getattr(row, measure) for row in self.rows) / len(self.rows)


class TrackEvaluator:
    """The official measures of TREC Fair Ranking 2022 or 2021 for one task and some dimensions.

    One dimension is measured against its own target, several against the intersectional target of ALL dimensions of
    `pages`, summed over the others, as in the official evaluation. `over` gives the same evaluation over other
    dimensions. `qrels` map topic ids to the ids of their relevant pages; `weights` (j,) are what each judgment counts
    in the targets: 1 in Task 1, in Task 2 what exposure the page should get; 0 without metadata (Task 2: or quality
    class). `n` (Task 1) cuts rankings to their first n pages; without it a ranking longer than 500 (2021: 1000) is a
    DataError.

    What stops or spoils the track's own code is defined here:

    - A topic without relevant pages, or with none that has metadata (Task 2: and a quality class; 2021, Task 1: and
      a label), has no target: it is in `left_out`, with the reason, and gets no row.
    - A relevant page without metadata counts in nDCG, and nowhere else; `notes` says how many there are.
    - A ranking without any page that has metadata: AWRF is 1 - ln 2, its lowest value (2021: as the track has it,
      all cells alike); Task 2: no exposure, EE-D = EE-R = 0.
    - Lines that repeat a page and bring nDCG above 1 are a DataError, as is a topic that is not in `qrels`.

    >>> from fairagent.measures.trec_fair import DIMENSIONS_2022
    >>> genders = {1: "male", 2: "male", 3: "female", 4: "@UNKNOWN", 9: "@UNKNOWN"}
    >>> pages = Pages.from_alignments(
    ...     DIMENSIONS_2022[2:3], [(page, {"gender": {label: 1.0}}, None) for page, label in genders.items()]
    ... )
    >>> track = TrackEvaluator(2022, 1, ["gender"], pages, {"A": [1, 2, 3, 4]})
    >>> row = track.evaluate(TrackRun.of("mine", {"A": [[1, 9, 3]]})).rows[0]
    >>> round(row.ndcg, 6), round(row.awrf, 6), round(row.score, 6)
    (0.520909, 0.988707, 0.515027)
    """

    def __init__(
        self,
        year: Year,
        task: Task,
        dimensions: Sequence[str],
        pages: Pages,
        qrels: Mapping[str, Collection[int]],
        n: int | None = None,
    ) -> None:
        if year not in LONGEST or task not in (1, 2):
            raise UsageError(f"year {year!r}, task {task!r}: there are the years 2021 and 2022, and tasks 1 and 2")
        _check_cut_off(task, n)
        if year == 2021 and not all(dimension.averaged for dimension in pages.dimensions):
            raise UsageError("2021 has dimensions with a background only: DIMENSIONS_2021")
        self.year, self.task, self.n = year, task, n
        self.judgments = judgments = Judgments(pages, qrels)
        self.weights = (judgments.row >= 0).astype(np.float64)
        if task == 2:
            # Pages that need more work come first in the ideal ranking; those of a class share its ranks.
            quality = np.where(judgments.row >= 0, pages.quality.take(judgments.row, mode="clip"), -1)
            known, places = quality >= 0, judgments.topic * len(QUALITIES) + quality
            counts = np.bincount(places[known], minlength=len(judgments.topics) * len(QUALITIES))
            shares = class_exposure(counts.reshape(-1, len(QUALITIES)), LOG2_MAX2).ravel()
            self.weights = np.where(known, shares.take(places, mode="clip"), 0.0)
        self._intersectional: list[Targets] = []  # those over all dimensions, once they are made
        self._choose(dimensions)

    def over(self, dimensions: Sequence[str]) -> TrackEvaluator:
        """The same evaluation over other dimensions of the pages."""
        other = copy.copy(self)
        other._choose(dimensions)
        return other

    def _choose(self, dimensions: Sequence[str]) -> None:
        """The targets over these dimensions, and the topics that have none, with the reason."""
        judgments, pages, topics = self.judgments, self.judgments.pages, len(self.judgments.topics)
        self.dimensions = tuple(dimensions)
        space = Space.of([pages.dimension(name) for name in dimensions])
        if len(dimensions) == 1:
            targets = averaged_with_world(space, self._alignment(space), topics)
            self.targets: Targets = targets if self.task == 1 else self._scaled(targets, targets.total)
        else:
            if not self._intersectional:
                whole = Space.of(pages.dimensions)
                alignment = self._alignment(whole)
                targets = averaged_with_world(whole, alignment, topics)
                if self.task == 2:
                    # 2022 divides by the weights and not by the mass: alignments may add up to more than 1.
                    of_pages = totals(judgments.topic, self.weights, topics)
                    mass = targets.by_topic(alignment.keys, alignment.values)
                    targets = self._scaled(targets, of_pages if self.year == 2022 else mass)
                self._intersectional.append(targets)
            [targets] = self._intersectional
            self.targets = targets if len(dimensions) == len(pages.dimensions) else targets.over(dimensions)
        needed = "metadata and a quality class" if self.task == 2 else "metadata"
        needed = "metadata and a known label" if (self.year, self.task) == (2021, 1) else needed
        self.left_out: dict[str, str] = {}
        for number in np.flatnonzero(~(self.targets.total > 0.0)).tolist():
            none = f"none of its {judgments.relevant[number]} relevant pages has {needed}"
            self.left_out[judgments.topics[number]] = none if judgments.relevant[number] else "no page is relevant"

    def _alignment(self, space: Space) -> Amounts:
        """The weighted sum of the relevant pages' alignments, topic by topic to stay small."""
        counted = self.weights > 0.0
        topic, row, weight = self.judgments.topic[counted], self.judgments.row[counted], self.weights[counted]
        bounds = np.searchsorted(topic, np.arange(len(self.judgments.topics) + 1))
        parts = [
            space.amounts(self.judgments.pages, row[start:end], topic[start:end], weight[start:end])
            for start, end in zip(bounds.tolist(), bounds[1:].tolist(), strict=False)
        ]
        keys = np.concatenate([*(part.keys for part in parts), np.zeros(0, np.int64)])
        whole = Amounts(keys, np.concatenate([*(part.values for part in parts), np.zeros(0)]))
        return _without_unknown(whole, space) if (self.year, self.task) == (2021, 1) else whole

    def _scaled(self, targets: Targets, divisors: FloatArray) -> Targets:
        """The targets with the attention of a full ranking, `divisors` (t,) being their sums; none where that is 0."""
        attention = float(LOG2_MAX2(RANKING_LENGTH[self.year]).sum())
        return targets.scaled(np.divide(attention, divisors, out=np.zeros_like(divisors), where=divisors > 0.0))

    def __str__(self) -> str:
        measures = f"nDCG, AWRF, Score @{self.n or LONGEST[self.year]}" if self.task == 1 else "EE-L, EE-D, EE-R"
        return f"TREC Fair {self.year}, Task {self.task}, {'*'.join(self.dimensions)}: {measures}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What is odd about the judgments, in words."""
        topics = self.judgments.topics
        counts = np.bincount(self.judgments.topic[self.judgments.row < 0], minlength=len(topics)).tolist()
        named = [f"{topic}: {count}" for topic, count in zip(topics, counts, strict=True) if count]
        if not named:
            return ()
        which = ", ".join(named[:20]) + (f" and {len(named) - 20} more" if len(named) > 20 else "")
        return (f"relevant pages without metadata, which count in no target: {sum(counts)} (topic {which})",)

    def evaluate(self, run: TrackRun) -> Evaluation:
        """The rows of one run; DataError for topics that are not judged and for rankings that are too long."""
        topics = self.judgments.topics
        check_length(run, self.year, self.task, self.n)
        rankings = np.zeros(len(topics), np.int64)
        rankings[self.judgments.numbers(run)] = np.bincount(run.topic, minlength=len(run.topics))
        shown = self.judgments.shown_by(run, self.n)
        rows = self._task1(run.name, shown) if self.task == 1 else self._task2(shown, rankings)
        judged = [number for number, topic in enumerate(topics) if topic not in self.left_out]
        return Evaluation(
            run.name,
            self.dimensions,
            tuple(rows[number] for number in judged if rankings[number]),
            tuple(topics[number] for number in judged if not rankings[number]),
            self.left_out,
        )

    def _task1(self, run: str, shown: ShownPages) -> Sequence[TopicRow]:
        """A row for every topic number, also where the run has none."""
        judgments, targets = self.judgments, self.targets
        gained = totals(shown.topic, shown.attention * shown.relevant, len(judgments.topics))
        relevance = normalized_gain(gained, judgments.relevant, self.n or LONGEST[self.year], LOG2_MAX2)
        if above := np.flatnonzero(relevance > 1.0 + ROUNDING).tolist():
            raise DataError(
                f"run {run!r}, topic {judgments.topics[above[0]]}: relevant pages that are listed repeatedly "
                f"bring nDCG to {relevance[above[0]]:.4f}; above 1 the track's own code stops as well"
            )
        exposure = self._amounts(shown, only_relevant=False)
        if self.year == 2021:
            # A topic for which nothing else is shown counts as showing all cells but 0 alike.
            exposure, cells = _without_unknown(exposure, targets.space), targets.space.cells
            empty = np.setdiff1d(np.arange(len(judgments.topics)), exposure.keys // cells)
            keys = np.concatenate((exposure.keys, (empty[:, None] * cells + np.arange(1, cells)).ravel()))
            values = np.concatenate((exposure.values, np.ones(keys.size - exposure.keys.size)))
            exposure = Amounts(keys[keys.argsort()], values[keys.argsort()])
        # Both sides are divided by their sums; with no exposure at all (no known page) the track defines nothing.
        topics, mass = exposure.keys // targets.space.cells, targets.by_topic(exposure.keys, exposure.values)
        p = exposure.values / mass[topics]
        q = targets.at(exposure.keys) / np.where(targets.total > 0.0, targets.total, 1.0)[topics]
        untouched = 0.5 * math.log(2.0) * (1.0 - targets.by_topic(exposure.keys, q))
        divergence = targets.by_topic(exposure.keys, jensen_shannon_terms(p, q)) + untouched
        fairness = np.where(mass > 0.0, 1.0 - divergence.clip(0.0, math.log(2.0)), LOWEST)
        columns = (of.tolist() for of in (relevance, fairness, relevance * fairness, self._unknown(shown)))
        return [Task1Row(*values) for values in zip(judgments.topics, *columns, strict=True)]

    def _task2(self, shown: ShownPages, rankings: IntArray) -> Sequence[TopicRow]:
        """A row for every topic number, also where the run has none."""
        targets, exposure = self.targets, self._amounts(shown, only_relevant=self.year == 2022)
        tau = targets.at(exposure.keys)
        terms = exposure_terms(exposure.values / rankings[exposure.keys // targets.space.cells], tau)
        loss, disparity, relevance, touched = (targets.by_topic(exposure.keys, one) for one in (*terms, tau**2))
        loss = loss + (targets.squares - touched).clip(0.0)
        columns = (of.tolist() for of in (loss, disparity, relevance, rankings, self._unknown(shown)))
        return [Task2Row(*values) for values in zip(self.judgments.topics, *columns, strict=True)]

    def _amounts(self, shown: ShownPages, only_relevant: bool) -> Amounts:
        known = shown.row >= 0
        lines = np.flatnonzero(known & shown.relevant if only_relevant else known)
        pages = self.judgments.pages
        return self.targets.space.amounts(pages, shown.row[lines], shown.topic[lines], shown.attention[lines])

    def _unknown(self, shown: ShownPages) -> IntArray:
        absent = shown.row < 0
        counts = totals(shown.topic[absent], shown.lines[absent].astype(np.float64), len(self.judgments.topics))
        return counts.astype(np.int64)


def _without_unknown(amounts: Amounts, space: Space) -> Amounts:
    """The amounts without cell 0, in which every dimension is unknown."""
    known = amounts.keys % space.cells > 0
    return Amounts(amounts.keys[known], amounts.values[known])


def check_length(run: TrackRun, year: Year, task: Task, n: int | None = None) -> None:
    """Raise DataError where Task 1 does not take a run's rankings: several of a topic or, unless cut at `n`, long ones.

    Task 2 takes rankings of any number and length, as the track's code does, and cuts none: UsageError.
    """
    _check_cut_off(task, n)
    if task == 2:
        return
    if run.topic.size > len(run.topics):
        raise DataError(f"run {run.name!r} has several rankings of a topic; is it a run of Task 2?")
    longest = LONGEST[year]
    if n is None and run.lengths.max(initial=0) > longest:
        place = int(run.lengths.argmax())
        raise DataError(
            f"run {run.name!r}, topic {run.topics[run.topic[place]]}: {run.lengths[place]} pages; Task 1 of {year} "
            f"takes at most {longest}; to cut the rankings, name a length (--n {longest})"
        )


def _check_cut_off(task: Task, n: int | None) -> None:
    if n is not None and (task != 1 or n < 1):
        raise UsageError(f"n is {n} in Task {task}; Task 1 has a cut-off of 1 or more, Task 2 has none")
