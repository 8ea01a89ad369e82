"""What an experiment will ask of language models, before it asks anything.

The prompts are rendered with the topics' queries, the longest group's name and stand-ins for keywords, and counted as
one token for every four characters. Every refinement is taken to happen: most searches stop earlier.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairagent.evaluate.check import Checked
from fairagent.evaluate.plan import SystemPlan
from fairagent.llm.base import estimate_tokens
from fairagent.prompts import Prompts
from fairagent.refine.llm import MOST_KEYWORDS, MOST_SHOWN, PROMPT

STAND_IN = "keywords"
"""A word of usual length."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """At most so many calls and tokens for all topics under one system, and US dollars (None: no price is set).

    Corrections of invalid replies and attempts that are repeated come on top.
    """

    system: str
    model: str
    topics: int
    calls: int
    input_tokens: int
    output_tokens: int
    dollars: float | None


def estimate(checked: Checked) -> list[Estimate]:
    """One line a system; those that ask no model take nothing."""
    return [_estimate(name, system, checked) for name, system in checked.plan.systems.items()]


def _estimate(name: str, system: SystemPlan, checked: Checked) -> Estimate:
    plan, settings = checked.plan, system.settings
    if system.kind != "agent" or settings.refiner != "llm":
        return Estimate(name, "", len(plan.topics), 0, 0, 0, 0.0)
    prompts = Prompts(settings.prompts)
    groups = [(label, name) for name in settings.dimensions for label in checked.collection.groups.labels(name)]
    group, dimension = max(groups, key=lambda pair: len(pair[0]) + len(pair[1]))
    input_tokens = 0
    for topic in plan.topics:
        for iteration in range(settings.iterations):
            messages = prompts.render(
                PROMPT,
                query=checked.collection.topics[topic].query,
                dimension=dimension,
                group=group,
                share="10.0%",
                target="50.0%",
                keywords=[STAND_IN] * MOST_SHOWN,
                tried=[STAND_IN] * (MOST_KEYWORDS * iteration),
            )
            input_tokens += estimate_tokens(*(text for _, text in messages))
    calls = len(plan.topics) * settings.iterations
    longest = min(settings.model.max_tokens, prompts[PROMPT].head.max_tokens or settings.model.max_tokens)
    output_tokens = calls * longest
    price = plan.prices.get(settings.model.name)
    dollars = (input_tokens * price.input + output_tokens * price.output) / 1e6 if price else None
    return Estimate(name, settings.model.name, len(plan.topics), calls, input_tokens, output_tokens, dollars)
