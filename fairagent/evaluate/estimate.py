"""What an experiment will ask of language models, before it asks anything.

The prompts are rendered with the topics' queries, the longest group's name and stand-ins for keywords, and counted as
one token for every four characters. Every refinement is taken to happen: most searches stop earlier. What questions
take is in `fairagent.evaluate.answers.estimate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairagent.evaluate.answers.estimate import Calls, answering
from fairagent.evaluate.check import Checked
from fairagent.evaluate.fair_rag.estimate import drawing, labeling
from fairagent.evaluate.plan import SystemPlan
from fairagent.evaluate.utility.estimate import writing
from fairagent.exposure import dimensions_of
from fairagent.llm.base import estimate_tokens
from fairagent.prompts import Prompts
from fairagent.refine.asking import MOST_SHOWN, PROMPTS
from fairagent.refine.grounded import MOST_TITLES
from fairagent.refine.keywords import MOST_KEYWORDS

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
    """One line a system, those that ask no model taking nothing; before them, the utility labels that are missing."""
    topics = len(checked.plan.topics)
    labels = [_priced(f"labels for {name}", topics, [calls], checked) for name, calls in labeling(checked)]
    return labels + [_estimate(name, system, checked) for name, system in checked.plan.systems.items()]


def _estimate(name: str, system: SystemPlan, checked: Checked) -> Estimate:
    plan = checked.plan
    if not system.asks_model:
        return Estimate(name, "", len(plan.topics), 0, 0, 0, 0.0)
    asked = [*_refining(system, checked), *answering(system, plan, checked.questions), *drawing(system, checked)]
    asked += writing(name, system, plan, checked.queries)
    return _priced(name, len(plan.topics), asked, checked)


def _priced(name: str, topics: int, asked: Sequence[Calls], checked: Checked) -> Estimate:
    """The sum of the calls, which are all of one model but for a judge's."""
    plan = checked.plan
    prices = [(calls, plan.prices.get(calls.model.name)) for calls in asked]
    priced = [price.dollars(calls.input_tokens, calls.output_tokens) for calls, price in prices if price]
    return Estimate(
        name,
        asked[0].model.name if asked else "",
        topics,
        sum(calls.calls for calls in asked),
        sum(calls.input_tokens for calls in asked),
        sum(calls.output_tokens for calls in asked),
        sum(priced) if len(priced) == len(asked) else None,
    )


def _refining(system: SystemPlan, checked: Checked) -> Iterator[Calls]:
    """The calls of a refiner that asks a model."""
    settings = system.settings
    if system.kind != "agent" or settings.refiner not in PROMPTS:
        return
    prompts = Prompts(settings.prompts)
    collection = checked.collection
    dimensions = dimensions_of(collection, settings)
    groups = [(label, name) for name in dimensions for label in collection.groups.labels(name)]
    group, dimension = max(groups, key=lambda pair: len(pair[0]) + len(pair[1]))
    prompt, input_tokens = PROMPTS[settings.refiner], 0
    evidence: dict[str, object] = {}
    if settings.refiner == "grounded":
        words = [{"word": STAND_IN, "of_group": 10, "of_all": 100}] * settings.feedback.terms
        titles = [f"{STAND_IN} {STAND_IN} {STAND_IN}"] * MOST_TITLES
        documents = {"of_group": settings.feedback.documents, "of_list": settings.depth}
        evidence = {"words": words, "titles": titles, **documents}
    for query in checked.queries:
        for iteration in range(settings.iterations):
            messages = prompts.render(
                prompt,
                query=query,
                dimension=dimension,
                group=group,
                share="10.0%",
                target="50.0%",
                keywords=[STAND_IN] * MOST_SHOWN,
                tried=[STAND_IN] * (MOST_KEYWORDS * iteration),
                **evidence,
            )
            input_tokens += estimate_tokens(*(text for _, text in messages))
    calls = len(checked.plan.topics) * settings.iterations
    output_tokens = calls * prompts[prompt].longest_reply(settings.model.max_tokens)
    yield Calls(settings.model, calls, input_tokens, output_tokens)
