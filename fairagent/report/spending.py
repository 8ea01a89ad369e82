"""What systems take for a topic, and what that buys in fairness: no drawing here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from fairagent.evaluate.engine.exposures import counted_topics, outcomes_by_topic
from fairagent.evaluate.engine.outcome import Outcome
from fairagent.evaluate.engine.run import Run
from fairagent.report.points import Mean, Point, points
from fairagent.report.series import comparisons_of, main_measure


@dataclass(frozen=True, slots=True)
class Spending:
    """What one system takes for a topic, over the topics that are judged: means, but the median of the milliseconds.

    `dollars` are US dollars for 1,000 topics, None where a price is not known. The median leaves out what is slow once,
    such as the first search of a process.
    """

    system: int
    retrievals: float
    calls: float
    tokens: float
    dollars: float | None
    milliseconds: float


class Currency(Enum):
    """What systems are told apart by: a field of `Spending`; the value is its unit in words."""

    DOLLARS = "US dollars for 1,000 topics"
    CALLS = "model calls a topic"
    MILLISECONDS = "milliseconds a topic"

    def of(self, spent: Spending) -> float:
        """What a system takes of it."""
        amount: float = getattr(spent, self.name.lower())
        return amount


@dataclass(frozen=True, slots=True)
class CostTradeOff:
    """Dimension -> the systems' costs in `currency`, and their means in its `main_measure`."""

    currency: Currency
    spending: tuple[Spending, ...]
    points: Mapping[str, tuple[Point, ...]]


def cost_trade_off(run: Run) -> CostTradeOff | None:
    """What fairness costs; None where nothing is judged by it, or all systems cost the same.

    Less cost and more fairness is better; the rest is as in `fairagent.report.points.trade_off`.
    """
    spent = spending(run)
    chosen = currency(spent)
    # Answers are judged by being right or by agreeing with a stereotype: no measure is of both.
    if chosen is None or run.kind.classes:
        return None
    found = {}
    for dimension in run.dimensions:
        compared = comparisons_of(run, dimension)
        if measure := main_measure(run, dimension):
            costs = {run.systems[each.system]: chosen.of(each) for each in spent}
            pairs = {
                system: (Mean(cost, cost, cost), Mean.of(compared[system, measure])) for system, cost in costs.items()
            }
            found[dimension] = points(run, pairs, cheap=True)
    return CostTradeOff(chosen, spent, found) if found else None


def spending(run: Run) -> tuple[Spending, ...]:
    """Every system's; none where no topic is judged."""
    outcomes = outcomes_by_topic(run)
    topics = counted_topics(run)
    systems = enumerate(run.systems if topics else ())
    return tuple(_spending(number, [outcomes[topic][system] for topic in topics]) for number, system in systems)


def _spending(system: int, own: Sequence[Outcome]) -> Spending:
    dollars = [outcome.cost for outcome in own if outcome.cost is not None]
    return Spending(
        system,
        float(np.mean([retrievals(outcome) for outcome in own])),
        float(np.mean([outcome.calls for outcome in own])),
        float(np.mean([outcome.input_tokens + outcome.output_tokens for outcome in own])),
        1000 * float(np.mean(dollars)) if len(dollars) == len(own) else None,
        1000 * float(np.median([outcome.seconds for outcome in own])),
    )


def retrievals(outcome: Outcome) -> int:
    """How many lists the loop asked its engine for: that of the user's query, and each that terms were added for."""
    return sum(place == 0 or bool(step.terms) for place, step in enumerate(outcome.steps))


def currency(spent: Sequence[Spending]) -> Currency | None:
    """Dollars where every price is known, else calls; time where nobody calls a model; None where all cost the same."""
    if not any(each.calls for each in spent):
        chosen = Currency.MILLISECONDS
    else:
        chosen = Currency.CALLS if any(each.dollars is None for each in spent) else Currency.DOLLARS
    return chosen if len({chosen.of(each) for each in spent}) > 1 else None
