"""What a utility experiment came to: utility and its correlation with ranking quality, row by row and k by k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairagent.extend import Correlation, Line, PairedTest, PlotPoint, Run, fitted_line, paired_test, pearson
from fairagent.papers.utility.section import Utility


@dataclass(frozen=True, slots=True)
class RowSummary:
    """One row at one k, over the `topics` that every row has and whose utility is defined.

    `performance`, `utility` and `quality` (nDCG@k) are means, `correlation` is that of utility with quality, and `fit`
    the line of utility on it. `to_baseline` tests its utility against the baseline's (None for itself), `to_order`
    against that of the same documents in rank order (None where they are). The tests are not corrected for being
    several.
    """

    system: str
    k: int
    topics: int
    performance: float
    utility: float
    quality: float
    correlation: Correlation | None
    fit: Line | None
    to_baseline: PairedTest | None
    to_order: PairedTest | None

    @property
    def name(self) -> str:
        """What tables call it.

        >>> RowSummary("BM25", 5, 0, 0.0, 0.0, 0.0, None, None, None, None).name
        'BM25 k=5'
        """
        return f"{self.system} k={self.k}"


def summary(run: Run, section: Utility) -> tuple[RowSummary, ...]:
    """A line for each row and k, row by row; none where no topic counts."""
    values = _values(run)
    topics = defined_topics(run, section, values)
    if not topics:
        return ()
    return tuple(_summary(run, section, values, topics, system, k) for system in run.systems for k in section.ks)


def topic_points(run: Run, section: Utility, system: str, k: int) -> list[PlotPoint]:
    """Every topic's nDCG@k and utility, of one row."""
    values = _values(run)
    of_topics = ((topic, values[topic, system]) for topic in defined_topics(run, section, values))
    return [PlotPoint(topic, of[section.quality(k)], of[section.utility(k)]) for topic, of in of_topics]


def without_utility(run: Run, section: Utility) -> tuple[str, ...]:
    """The topics that every row has and whose utility is not defined: an answer from no documents is worth nothing."""
    values = _values(run)
    defined = set(defined_topics(run, section, values))
    return tuple(topic for topic in _finished(run, values) if topic not in defined)


Values = Mapping[tuple[str, str], Mapping[str, float]]
"""(topic, system) -> measure -> value."""


def defined_topics(run: Run, section: Utility, values: Values) -> tuple[str, ...]:
    """The topics that every row has and whose utility is defined, in their order."""
    first = section.utility(section.ks[0])
    return tuple(topic for topic in _finished(run, values) if first in values[topic, run.baseline])


def _values(run: Run) -> Values:
    return {
        (one.topic, one.system): one.values[""]
        for one in run.outcomes
        if one.failed is None and one.topic not in run.excluded
    }


def _finished(run: Run, values: Values) -> tuple[str, ...]:
    tried = dict.fromkeys(one.topic for one in run.outcomes)
    return tuple(topic for topic in tried if all((topic, system) in values for system in run.systems))


def _summary(run: Run, section: Utility, values: Values, topics: Sequence[str], system: str, k: int) -> RowSummary:
    def of(name: str, measure: str) -> list[float]:
        return [values[topic, name][measure] for topic in topics]

    utilities, qualities = of(system, section.utility(k)), of(system, section.quality(k))
    in_order = run.rows[system]["of"]
    return RowSummary(
        system,
        k,
        len(topics),
        _mean(of(system, section.performance(k))),
        _mean(utilities),
        _mean(qualities),
        pearson(utilities, qualities),
        fitted_line(qualities, utilities),
        None if system == run.baseline else paired_test(utilities, of(run.baseline, section.utility(k))),
        None if system == in_order else paired_test(utilities, of(in_order, section.utility(k))),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
