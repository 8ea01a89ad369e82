"""`TrackEvaluator`: evaluates any number of runs against one set of pages, judgments and dimensions."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.errors import DataError, UsageError
from fairagent.measures.trec_fair import space as y2021
from fairagent.measures.trec_fair.pages import IntArray, Pages
from fairagent.measures.trec_fair.runs import Judgments, ShownPages, TrackRun
from fairagent.measures.trec_fair.space import Amounts, totals
from fairagent.measures.trec_fair.targets import Targets
from fairagent.measures.trec_fair.tasks import Relevant, Task, Task1Row, Task2Row, Year, awrf, expected_exposure, ndcg

TopicRow = Task1Row | Task2Row

LONGEST: dict[Year, int] = {2021: 1000, 2022: 500}
"""Task 1: how many pages a ranking may have, by year."""
ROUNDING = 1e-9
"""So much above 1 is no value of nDCG, but how it was rounded."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """A run's rows, one for each of its topics that has a target, in the order of the qrels.

    `missing` are the topics with a target that the run has no line for. Like the track, `mean` leaves them out, so
    a run is not punished for them: say so beside it. `left_out` are the topics without a target, with the reason.
    """

    run: str
    dimensions: tuple[str, ...]
    rows: tuple[TopicRow, ...]
    missing: tuple[str, ...]
    left_out: Mapping[str, str]

    def mean(self, measure: str) -> float:
        """The mean over the rows of `ndcg`, `awrf`, `score` or `ee_l`, `ee_d`, `ee_r`: the run's official value.

        Raises DataError where there is no row.
        """
        if not self.rows:
            raise DataError(f"run {self.run!r} has no topic that can be evaluated")
        return math.fsum(getattr(row, measure) for row in self.rows) / len(self.rows)


class TrackEvaluator:
    """The official measures of TREC Fair Ranking 2022 or 2021 for one task and some dimensions.

    One dimension is measured against its own target, several against the intersectional target of ALL dimensions
    of `pages`, summed over the others, which is what the official evaluation does: the two differ for dimensions
    without a background. `over` gives the same evaluation over other dimensions and shares the work.

    `qrels` map topic ids to the ids of their relevant pages; a repeated id counts once, an unlisted page is not
    relevant. `n` (Task 1) cuts rankings to their first n pages and takes n as the length of the best one, of which more
    than the relevant pages make no difference; without it that is 500 (2021: 1000), and a longer ranking is a DataError
    (`check_length`).

    What stops or spoils the track's own code is defined here:

    * A topic without relevant pages, or with none that has metadata (Task 2: and a quality class; 2021, Task 1: and
      a label), has no target: it is in `left_out`, with the reason, and gets no row.
    * A relevant page without metadata counts in nDCG, and nowhere else; `notes` says how many there are.
    * A topic with a single relevant page is like any other; the dimensions may have any sizes, in any order.
    * A ranking without any page that has metadata: AWRF is 1 - ln 2, its lowest value (2021: as the track has it,
      all cells alike); Task 2: no exposure, EE-D = EE-R = 0.
    * A page that a ranking lists twice is a DataError wherever a `TrackRun` is made, unless its lines shall count,
      as in the track's code; where they bring nDCG above 1, that code stops, and here it is a DataError.
      So is a topic that is not in `qrels`. Values are 64-bit floats: a perfect ranking has nDCG 1 and no more.

    >>> from fairagent.measures.trec_fair import DIMENSIONS_2022, Pages, TrackRun
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
        self.judgments = Judgments(pages, qrels)
        self._relevant = Relevant(year, task, self.judgments)
        self._choose(dimensions)

    def over(self, dimensions: Sequence[str]) -> TrackEvaluator:
        """The same evaluation over other dimensions of the pages."""
        other = copy.copy(self)
        other._choose(dimensions)
        return other

    def _choose(self, dimensions: Sequence[str]) -> None:
        self.dimensions = tuple(dimensions)
        self.targets: Targets = self._relevant.targets(dimensions)
        self.left_out: Mapping[str, str] = self._relevant.left_out(self.targets)

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
        exposure = self._amounts(shown, only_relevant=False)
        if self.year == 2021:
            space = self.targets.space
            exposure = y2021.or_uniform(y2021.without_unknown(exposure, space), space, len(self.judgments.topics))
        relevance = ndcg(self.judgments, shown, self.n or LONGEST[self.year])
        if above := np.flatnonzero(relevance > 1.0 + ROUNDING).tolist():
            raise DataError(
                f"run {run!r}, topic {self.judgments.topics[above[0]]}: relevant pages that are listed repeatedly "
                f"bring nDCG to {relevance[above[0]]:.4f}; above 1 the track's own code stops as well"
            )
        fairness = awrf(exposure, self.targets)
        columns = (values.tolist() for values in (relevance, fairness, relevance * fairness, self._unknown(shown)))
        return [Task1Row(*values) for values in zip(self.judgments.topics, *columns, strict=True)]

    def _task2(self, shown: ShownPages, rankings: IntArray) -> Sequence[TopicRow]:
        """A row for every topic number, also where the run has none."""
        exposure = self._amounts(shown, only_relevant=self.year == 2022)
        values = exposure.values / rankings[exposure.keys // self.targets.space.cells]
        losses = expected_exposure(Amounts(exposure.keys, values), self.targets)
        columns = (values.tolist() for values in (*losses, rankings, self._unknown(shown)))
        return [Task2Row(*values) for values in zip(self.judgments.topics, *columns, strict=True)]

    def _amounts(self, shown: ShownPages, only_relevant: bool) -> Amounts:
        known = shown.row >= 0
        kept = np.flatnonzero(known & shown.relevant if only_relevant else known)
        pages = self.judgments.pages
        return self.targets.space.amounts(pages, shown.row[kept], shown.topic[kept], shown.attention[kept])

    def _unknown(self, shown: ShownPages) -> IntArray:
        absent = shown.row < 0
        counts = totals(shown.topic[absent], shown.lines[absent].astype(np.float64), len(self.judgments.topics))
        return counts.astype(np.int64)


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
