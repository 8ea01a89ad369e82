"""Systems compared, measure by measure, over the topics that all of them answered.

Systems that rank exactly as another does: a table in which they stand has to say so, and why.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairagent.errors import DataError
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.statistics import (
    bootstrap_intervals,
    holm,
    paired_randomization,
    paired_t,
    seeded,
    wins_ties_losses,
)
from fairagent.settings import Settings
from fairagent.types import FloatArray


@dataclass(frozen=True, slots=True)
class Comparison:
    """One system by one measure: its mean over the topics that count, and how it stands to the baseline.

    `dimension` is "" for measures of relevance alone. `low` and `high` are the 95 % bootstrap interval of the mean.
    `difference` (of means, system - baseline) and the p-values are None for the baseline itself, and the p-values
    where fewer than two topics count; `t_holm` and `randomization_holm` are corrected (Holm) over the systems of the
    measure and dimension. Wins, ties (up to 1e-9) and losses are topics (0 for the baseline); where lower values are
    better, these win.
    """

    system: str
    dimension: str
    measure: str
    mean: float
    low: float
    high: float
    difference: float | None
    t_p: float | None
    randomization_p: float | None
    t_holm: float | None
    randomization_holm: float | None
    wins: int
    ties: int
    losses: int
    topics: int


SAME = 1e-9
"""Two values of a topic that differ by no more are a tie."""

Answers = Mapping[tuple[str, str], Outcome]
"""(topic, system) -> outcome."""


def compare(
    answers: Answers,
    topics: Sequence[str],
    systems: Sequence[str],
    columns: Sequence[tuple[str, str]],
    seed: int,
    lower_is_better: Container[str] = (),
) -> tuple[Comparison, ...]:
    """Every system by every measure over `topics`, which all systems answered; the first system is the baseline.

    `columns` are (dimension, measure); one that no topic counts for is left out. `lower_is_better` are the measures of
    which it is. In the order of the columns, then of the systems. The random numbers depend on `seed`, dimension and
    measure: all systems are resampled alike.
    """
    found: list[Comparison] = []
    for dimension, measure in columns:
        counted = [topic for topic in topics if measure in answers[topic, systems[0]].values.get(dimension, {})]
        if not counted:
            continue
        try:
            of_topic = [[answers[topic, system].values[dimension][measure] for topic in counted] for system in systems]
        except KeyError as error:
            raise DataError(f"the journal is damaged: an outcome lacks {error}; start over with --new") from None
        found.extend(_rows(dimension, measure, systems, np.array(of_topic), seed, measure in lower_is_better))
    return tuple(found)


def _rows(
    dimension: str, measure: str, systems: Sequence[str], values: FloatArray, seed: int, lower: bool
) -> Iterator[Comparison]:
    """The comparisons of one column; `values` is (systems, topics), the baseline first."""
    low, high = bootstrap_intervals(values, seeded(seed, "bootstrap", dimension, measure))
    ends = zip(systems, values.mean(axis=1).tolist(), low.tolist(), high.tolist(), strict=True)
    topics = values.shape[1]
    rows = [
        Comparison(system, dimension, measure, mean, least, most, None, None, None, None, None, 0, 0, 0, topics)
        for system, mean, least, most in ends
    ]
    yield rows[0]
    differences = values[1:] - values[0]
    differences[np.abs(differences) <= SAME] = 0
    t = [paired_t(of_system) for of_system in differences]
    randomization = paired_randomization(differences, seeded(seed, "randomization", dimension, measure))
    tests = zip(rows[1:], differences, t, holm(t), randomization, holm(randomization), strict=True)
    for row, of_system, t_p, t_holm, randomization_p, randomization_holm in tests:
        wins, ties, losses = wins_ties_losses(-of_system if lower else of_system)
        yield replace(
            row,
            difference=float(of_system.mean()),
            t_p=t_p,
            randomization_p=randomization_p,
            t_holm=t_holm,
            randomization_holm=randomization_holm,
            wins=wins,
            ties=ties,
            losses=losses,
        )


SIGN = "="
"""Marks systems whose rankings equal those of another."""
ORIGINAL = "re-ranking by the user's own query gives the engine's list back"
SAME_SETTINGS = "both come to the same settings"


@dataclass(frozen=True, slots=True)
class Equal:
    """`system` ranks as `other` does, a system before it, on all topics; `why` is empty where it is not known."""

    system: str
    other: str
    why: str = ""

    def __str__(self) -> str:
        """A line for below a table."""
        since = f", since {self.why}" if self.why else ""
        return f"{SIGN} {self.system}: the rankings of {self.other} on all topics{since}"


def equal_systems(
    rankings: Mapping[str, Sequence[Sequence[str]]], settings: Mapping[str, Settings]
) -> tuple[Equal, ...]:
    """The systems whose rankings are those of one before them: system -> the ids of each topic, best first.

    The first system that ranks so is the one named. Empty where there are no topics.

    >>> ranked = {"BM25": [["a", "b"]], "fair": [["b", "a"]], "FAIR-QR": [["a", "b"]]}
    >>> [str(one) for one in equal_systems(ranked, {})]
    ['= FAIR-QR: the rankings of BM25 on all topics']
    """
    first: dict[tuple[tuple[str, ...], ...], str] = {}
    found = []
    for system, of_topics in rankings.items():
        other = first.setdefault(tuple(map(tuple, of_topics)), system)
        if other != system and len(of_topics):
            both = system in settings and other in settings
            found.append(Equal(system, other, _why(settings[system], settings[other]) if both else ""))
    return tuple(found)


def _why(own: Settings, other: Settings) -> str:
    """Why two systems rank alike, where their settings tell."""
    if own.given == other.given:
        return SAME_SETTINGS
    # The union of all lists holds the first one, so at full depth nothing that a loop did remains.
    original = own.rerank.undoes_loops and not getattr(own.loop, "rerank_depth", 0)
    plain = not other.loops and (other.rerank.idle(other) or other.rerank.undoes_loops)
    return ORIGINAL if original and plain and own.engine == other.engine else ""
