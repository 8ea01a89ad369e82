"""What an experiment will ask of language models, before it asks anything.

Parts tell their own worst case (`Part.worst_case`); this adds what kinds of experiments ask besides. Prompts are
rendered and counted as one token for every four characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairagent.evaluate.engine.check import Checked
from fairagent.evaluate.engine.plan import SystemPlan
from fairagent.exposure import dimensions_of
from fairagent.prompts import Prompts
from fairagent.prompts.calls import Calls, Case


@dataclass(frozen=True, slots=True)
class Estimate:
    """At most so many calls and tokens for all topics under one system, and US dollars (None: no price is set).

    `waiting` are the seconds that the calls may take one after the other, each up to its time limit. Corrections of
    invalid replies and attempts that are repeated come on top.
    """

    system: str
    model: str
    topics: int
    calls: int
    input_tokens: int
    output_tokens: int
    dollars: float | None
    waiting: float


def estimate(checked: Checked) -> list[Estimate]:
    """One line a system, those that ask no model taking nothing; before them, what is to be asked beforehand."""
    plan, kind = checked.plan, checked.plan.experiment
    before = kind.calls_before(plan, checked.subject)
    asked = [(what, [calls]) for what, calls in before]
    for name, system in plan.systems.items():
        of_kind = kind.worst_case(name, plan, checked.subject) if system.asks else ()
        asked.append((name, [*_searching(system, checked), *of_kind]))
    return [_priced(name, calls, checked) for name, calls in asked]


def _priced(name: str, asked: Sequence[Calls], checked: Checked) -> Estimate:
    """The sum of the calls, which are all of one model but for a judge's."""
    plan = checked.plan
    prices = [(calls, plan.prices.get(calls.model.name)) for calls in asked]
    priced = [price.dollars(calls.input_tokens, calls.output_tokens) for calls, price in prices if price]
    return Estimate(
        name,
        asked[0].model.name if asked else "",
        len(plan.topics),
        sum(calls.calls for calls in asked),
        sum(calls.input_tokens for calls in asked),
        sum(calls.output_tokens for calls in asked),
        float(sum(priced)) if len(priced) == len(asked) else None,
        sum(calls.calls * calls.model.timeout for calls in asked),
    )


def _searching(system: SystemPlan, checked: Checked) -> Iterator[Calls]:
    """The calls of the parts that a search asks."""
    settings = system.settings
    if not system.searching_with:
        return
    groups = checked.collection.groups
    named = [(label, name) for name in dimensions_of(checked.collection, settings) for label in groups.labels(name)]
    longest = max(named, key=lambda pair: len(pair[0]) + len(pair[1]), default=("", ""))
    case = Case(settings, Prompts(settings.prompts), checked.queries, longest)
    for part in system.searching:
        yield from part.worst_case(case)
