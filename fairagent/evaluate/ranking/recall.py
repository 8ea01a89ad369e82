"""Recall by group before anything is re-ranked, and measures without judgments: what a system changes of a ranking.

No re-ranker can serve what was not retrieved, and what a loop's second search brings in shows here, wherever it ends up
in the ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np

from fairagent.collection import Groups
from fairagent.evaluate.kind import MeasureInfo
from fairagent.evaluate.outcome import GroupRecall
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import Column, Table
from fairagent.measures import LOG2_MAX2, min_max
from fairagent.types import UNKNOWN
from fairagent.types.common import counted

FILE = "recall.csv"
WHOLE = 1_000_000_000
"""The depth of lists that are judged to their ends."""
FEW = 4
"""A dimension with more groups has a column for the lowest recall alone; the page and the file have them all."""


@dataclass(frozen=True, slots=True)
class MeanRecall:
    """A system's mean recall at `depth` of a `group` ("": all), and how many documents the engine's own first lack."""

    system: str
    dimension: str
    group: str
    depth: int
    topics: int
    recall: float
    entered: float


def first_retrieved(candidates: Sequence[str], engine: Sequence[str], depth: int) -> tuple[str, ...]:
    """The first `depth` documents retrieved: a loop's candidates in its order, then what else is in the engine's list.

    All systems have as many, so that what enters has to be worth more than what it displaces.

    >>> first_retrieved(["x", "b"], ["a", "b", "c"], 3)
    ('x', 'b', 'a')
    """
    return tuple(dict.fromkeys((*candidates, *engine)))[:depth]


def group_recall(
    groups: Groups, dimension: str, topic: str, relevant: Sequence[str], retrieved: Sequence[str]
) -> GroupRecall:
    """What of the `relevant` documents is `retrieved`, by group; one of several groups counts for each its share."""
    labels = (UNKNOWN, *groups.labels(dimension))
    rows = groups.memberships(dimension, relevant, topic) if relevant else np.zeros((0, len(labels)))
    known = frozenset(retrieved)
    there = np.array([id in known for id in relevant], dtype=np.bool_)
    return GroupRecall(dimension, labels, tuple(rows[there].sum(axis=0).tolist()), tuple(rows.sum(axis=0).tolist()))


def mean_recalls(run: Run) -> list[MeanRecall]:
    """Every system in every dimension, over the topics that all systems have answered: all, no label, each group."""
    recalls: list[MeanRecall] = run.memo.get(FILE, lambda: list(_mean_recalls(run)))
    return recalls


def _mean_recalls(run: Run) -> Iterator[MeanRecall]:
    outcomes, topics, depth = run.by_topic, run.counted_topics, getattr(run.kind, "run_depth", 0)
    for dimension in run.dimensions:
        for system in run.systems:
            own = [outcomes[topic][system] for topic in topics]
            pairs = [(one, recall) for one in own for recall in one.recall if recall.dimension == dimension]
            if not pairs:
                continue
            entered = float(np.mean([outcome.entered for outcome, _ in pairs]))
            of_groups = [[one.retrieved for _, one in pairs], [one.relevant for _, one in pairs]]
            retrieved, relevant = (np.insert(np.array(of), 0, np.sum(of, axis=1), axis=1) for of in of_groups)
            for place, group in enumerate(("", *pairs[0][1].labels)):
                there = relevant[:, place] > 0
                if there.any():
                    mean = float((retrieved[there, place] / relevant[there, place]).mean())
                    yield MeanRecall(system, dimension, group, depth, int(there.sum()), mean, entered)


def tables(run: Run) -> list[Table]:
    """A table a dimension: a column for each of few groups, or the lowest of many and which it is."""
    return [_table(run, dimension, FEW) for dimension in _dimensions(run)]


def group_tables(run: Run) -> list[Table]:
    """All groups of the dimensions whose tables do not show them."""
    return [_table(run, one, None) for one in _dimensions(run) if len(_groups(run, one)) > FEW]


def files(run: Run) -> dict[str, Table]:
    """One line a system, dimension and group; no file where nothing is judged."""
    lines = [astuple(row) for row in mean_recalls(run)]
    return {FILE: Table.of([field.name for field in fields(MeanRecall)], lines)} if lines else {}


def _dimensions(run: Run) -> list[str]:
    return list(dict.fromkeys(row.dimension for row in mean_recalls(run)))


def _groups(run: Run, dimension: str) -> list[str]:
    """The known groups that some topic has relevant documents of."""
    own = (row.group for row in mean_recalls(run) if row.dimension == dimension)
    return [group for group in dict.fromkeys(own) if group not in ("", UNKNOWN)]


def _table(run: Run, dimension: str, few: int | None) -> Table:
    rows = [row for row in mean_recalls(run) if row.dimension == dimension]
    groups, no_label = _groups(run, dimension), any(row.group == UNKNOWN for row in rows)
    each = few is None or len(groups) <= few
    lines = []
    for system in dict.fromkeys(row.system for row in rows):
        own = {row.group: row.recall for row in rows if row.system == system}
        lowest = min(groups, key=lambda group: own[group], default="")
        of_groups = [own[group] for group in groups] if each else [own[lowest], lowest]
        entered = next(row.entered for row in rows if row.system == system)
        lines.append([system, own[""], *of_groups, *([own[UNKNOWN]] if no_label else []), entered])
    heads = [*(groups if each else ["lowest", "group"]), *(["no label"] if no_label else [])]
    depth, topics = rows[0].depth, max(row.topics for row in rows)
    # Run files that are compared are as deep as they are.
    within = f"@{depth}" if depth < WHOLE else ""
    title = f"{dimension}, recall{within} of the relevant documents of each group ({counted(topics, 'topic')})"
    notes = [
        "the loop's candidates, then the engine's list, before anything is re-ranked; means over the topics that have "
        "relevant documents of the group",
        *([f"entered: how many of the {depth:,} the engine's own first {depth:,} lack"] if within else []),
    ]
    columns: list[str | Column] = ["system", "all", *heads, Column("entered", ".1f")]
    return Table.of(columns, lines, title, notes, systems=True, folded=few is None)


# --- measures that need no judgments --------------------------------------------------------------------------------


DEFINITIONS = {
    "changed": "the share of the first {n} documents that the baseline does not show there",
    "kept": "how much of the baseline's relevance scores the first {n} documents keep: the sum of their scores in the "
    "baseline's ranking (min-max, 0 where it lacks one), weighted by 1 / log2(max(rank, 2)), over that of its own",
}
"""Name -> what it is, at cut-off `n`."""

Scored = Sequence[tuple[str, float]]
"""Documents with their scores, best first."""


@dataclass(frozen=True, slots=True)
class AgainstBaseline:
    """`changed` or `kept` at cut-off `n`, of a system's ranking beside the baseline's."""

    name: str
    n: int

    def __str__(self) -> str:
        return f"{self.name}@{self.n}"

    @property
    def of_scores(self) -> bool:
        """Whether it looks at the scores of the baseline's ranking, and not at its order alone."""
        return self.name == "kept"

    @property
    def measured(self) -> MeasureInfo:
        """It as a measure of the experiment: to change much is neither good nor bad."""
        return MeasureInfo(str(self), DEFINITIONS[self.name].format(n=self.n), neutral=self.name == "changed")

    def value(self, own: Scored, baseline: Scored) -> float:
        """The value, in [0, 1] for `changed`; `kept` is 1 for the baseline itself, and 0 where it shows nothing."""
        shown = [id for id, _ in own[: self.n]]
        if self.name == "changed":
            first = {id for id, _ in baseline[: self.n]}
            return sum(id not in first for id in shown) / len(shown) if shown else 0.0
        worth = min_max(np.array([score for _, score in baseline]))
        scores = dict(zip((id for id, _ in baseline), worth.tolist(), strict=True))
        own_worth, all = (
            float(LOG2_MAX2(len(ids)) @ np.array([scores.get(id, 0.0) for id in ids]))
            for ids in (shown, list(scores)[: self.n])
        )
        return own_worth / all if all else 0.0


def read(text: str) -> AgainstBaseline | None:
    """The measure of a text such as `changed@20`; None where it is none of these."""
    match = re.fullmatch(rf"({'|'.join(DEFINITIONS)})@([1-9][0-9]*)", text.strip())
    return AgainstBaseline(match[1], int(match[2])) if match else None
