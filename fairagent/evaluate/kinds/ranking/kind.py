"""Systems rank documents, and the rankings are judged by relevance and by the exposure that they give groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pydantic import Field

from fairagent.errors import UsageError
from fairagent.evaluate.engine.kind import Checking, Measured, Opened, Record, Subject
from fairagent.evaluate.engine.outcome import Outcome
from fairagent.evaluate.engine.plan import Plan
from fairagent.evaluate.engine.systems import System, build_systems
from fairagent.evaluate.judging import Judge, JudgedKind
from fairagent.measures import Measure, Product, parse_measure

STANDARD = ("nDCG@20", "AWRF(unknown=ignore)@20", "nDCG@20*AWRF(unknown=ignore)@20")


@dataclass(frozen=True, slots=True, eq=False)
class RankingTrial:
    """Lets systems rank documents, and judges the rankings."""

    judge: Judge
    systems: Mapping[str, System]

    def outcome(self, system: str, id: str) -> Outcome:
        """See `Trial.outcome`."""
        used, judge, topic = self.systems[system], self.judge, self.judge.collection.topics[id]
        found = used.agent.search(topic)
        return Outcome.of(
            topic,
            system,
            judge.values(id, found.ranking),
            found.trace.usage,
            search=found,
            hits=judge.hits(id, found.hits),
            exposures=judge.exposures(id, found.ranking),
            oracle=found.trace.oracle and used.sees_groups,
            # What a search takes, and not its judgment.
            seconds=found.trace.seconds,
        )


class Ranking(JudgedKind):
    """Systems rank a collection's documents, and the rankings are judged."""

    kind: Literal["ranking"] = "ranking"
    measures: tuple[str, ...] = Field(STANDARD, min_length=1)
    """Each in the form that `fairagent.measures.parse_measure` reads."""

    @cached_property
    def parsed(self) -> tuple[Measure, ...]:
        """The measures that can be read."""
        return tuple(measure for text in self.measures if isinstance(measure := _read(text), Measure))

    @property
    def n(self) -> int:
        """The largest cut-off of the measures."""
        return max((measure.n for measure in self.parsed), default=1)

    def check(self, checking: Checking) -> None:
        """Add measures that there are not."""
        for error in map(_read, self.measures):
            if isinstance(error, UsageError):
                checking.problems.add(UsageError, f"measures: {error}")

    def measured(self, dimensions: Sequence[str]) -> tuple[Measured, ...]:
        """The measures of the file, which define themselves."""
        return tuple(Measured(str(one), "", one.lower_is_better, one.of_groups) for one in self.parsed)

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> Record:
        """Which topics count."""
        return {"per_group": self.per_group}

    def trial(self, opened: Opened) -> RankingTrial:
        """Every system as an agent."""
        judge = Judge.of(opened.plan, opened.collection, self.per_group, opened.plan.measures)
        return RankingTrial(judge, build_systems(opened))


def _read(text: str) -> Measure | UsageError:
    """The measure of a text, or what is wrong with it."""
    try:
        measure = parse_measure(text)
    except UsageError as error:
        return error
    if isinstance(measure, Product) and measure.left.n != measure.right.n:
        return UsageError(f"{text!r}: the factors of a product have the same cut-off here")
    return measure
