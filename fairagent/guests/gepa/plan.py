"""What an optimization will do: the template, the two halves of the topics, and at most how many calls that takes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairagent.extend import (
    CORRECTIONS,
    LETTER,
    REFINERS,
    BudgetSettings,
    Calls,
    Case,
    CheckedExperiment,
    CollectionFile,
    ModelSettings,
    Price,
    Prompts,
    Settings,
    Usage,
    UsageError,
    check_experiment_values,
    counted,
    expect_installed,
    half,
    listed,
    meaning,
    most_calls,
    read_yaml,
    refining_part,
    resolve,
    searching_parts,
    source_relative_to,
    validate,
)
from fairagent.guests.gepa.feedback import LONGEST
from fairagent.guests.gepa.texts import TemplateText

REVISE = "revise_template"
"""The template that asks for a better wording."""
START, NO_LOOP = "start", "no loop"
FEWEST = 4
"""Topics in all."""
FEWEST_OF_HALF = 2
"""Topics of a half, with fewer of which nothing can be tested."""
NOT_OF_SYSTEMS = {"collection", "index", "prompts", "n", "cache", "budget", "prices", "dimensions", "model"}
REPLY_TOKENS = 4000
"""The longest wording that is asked for, in tokens."""


@dataclass(frozen=True, slots=True, eq=False)
class OptimizePlan:
    """An optimization that can run.

    `checked` is an experiment with the systems `start` (the template as it is) and `no loop` (what a reply that is of
    no use comes to). `tune` and `test` are the topics that candidates are scored on, and those that nothing but the
    winner is tried on. `measure` is the score of a topic and dimension, in [0, 1]. `candidates` are how many wordings
    are asked for at most, `batch` on how many topics each is tried first, `proposer` the model that writes them.
    """

    id: str
    start: TemplateText
    checked: CheckedExperiment
    tune: tuple[str, ...]
    test: tuple[str, ...]
    measure: str
    candidates: int
    batch: int
    seed: int
    proposer: ModelSettings
    source: str
    prices: Mapping[str, Price]

    @property
    def settings(self) -> Settings:
        """Those of the system that the template is a part of."""
        settings: Settings = self.checked.plan.systems[START].settings
        return settings

    @property
    def values(self) -> list[dict[str, object]]:
        """What the template is filled with, as the model that improves it is told."""
        variables = self.start.head.variables
        return [
            {"name": name, "required": name in variables.required, "meaning": meaning(self.id, name)}
            for name in (*variables.required, *variables.optional)
        ]

    def searches(self, topics: Sequence[str], times: int) -> list[Calls]:
        """The most calls of `times` searches for each of the topics."""
        queries = [self.checked.subject.topics[id].query for id in topics] * times
        return most_calls(self.checked.collection, self.settings, queries)

    def of_tuning(self) -> list[Calls]:
        """The most calls until the winner is known: the start and every candidate on all topics, and the wordings."""
        return [*self.searches(self.tune, 1 + self.candidates), self._wordings()]

    def of_testing(self) -> list[Calls]:
        """The most calls of the test: the start and the winner on the other half."""
        return self.searches(self.test, 2)

    def budget_of_tuning(self) -> BudgetSettings:
        """The budget without what the test may take at most; of the seconds the same share."""
        test, all = self.of_testing(), [*self.of_tuning(), *self.of_testing()]
        tokens = sum(one.input_tokens + one.output_tokens for one in test)
        share = sum(one.calls for one in test) / max(sum(one.calls for one in all), 1)
        return self._without(sum(one.calls for one in test), tokens, self._dollars(test), share)

    def budget_of_testing(self, usage: Usage, seconds: float) -> BudgetSettings:
        """What is left of the budget after `usage` and so many seconds."""
        tokens = usage.input_tokens + usage.output_tokens
        limit = self.checked.plan.budget.seconds
        return self._without(usage.calls, tokens, usage.cost or 0.0, seconds / limit if limit else 0.0)

    def _without(self, calls: int, tokens: int, dollars: float, share: float) -> BudgetSettings:
        budget: BudgetSettings = self.checked.plan.budget
        amounts = {"calls": calls, "tokens": tokens, "dollars": dollars}
        left = {unit: getattr(budget, unit) for unit in amounts if getattr(budget, unit) is not None}
        left = {unit: max(limit - amounts[unit], 0) for unit, limit in left.items()}
        if budget.seconds is not None:
            left["seconds"] = budget.seconds * max(1 - share, 0.0)
        return budget.model_copy(update=left)

    def _dollars(self, some: Sequence[Calls]) -> float:
        prices = [(one, self.prices.get(one.model.name)) for one in some]
        return sum(price.dollars(one.input_tokens, one.output_tokens) for one, price in prices if price)

    def _wordings(self) -> Calls:
        settings = self.settings.model_copy(update={"model": self.proposer})
        topics = [{"query": LETTER * 100, "happened": LETTER * LONGEST}] * self.batch
        times = self.candidates * (1 + CORRECTIONS)
        case = Case(settings, Prompts(self.source), [""])
        # A fault that is to be mended is named in the next request.
        read = times * (case.tokens(REVISE, template=self.start.body, values=self.values, topics=topics) + 500)
        return case.counted(REVISE, times, read)


def plan_optimization(
    id: str,
    settings: Settings,
    candidates: int = 10,
    batch: int = 3,
    limit: int | None = None,
    seed: int = 0,
    proposer: str = "",
    environ: Mapping[str, str] = os.environ,
) -> OptimizePlan:
    """The optimization of template `id` as the `settings` have it, checked before anything is asked.

    `limit` takes so many topics, drawn by `seed`; `proposer` names the model that writes the wordings, "" the one of
    the settings. Raises BackendUnavailable without gepa, UsageError where no search of these settings asks with the
    template, where no model is named, the budget is too small, or topics are too few; and what checking an experiment
    does.
    """
    expect_installed("gepa", "prompts optimize")
    if not settings.collection:
        raise UsageError("prompts optimize needs a collection with topics: name its settings file with --collection")
    if not settings.model.name:
        raise UsageError("prompts optimize asks a language model: name one with --set model.name=NAME")
    prompts = Prompts(settings.prompts)
    asking = _asking(id, settings)
    n = settings.n
    judged = _judged(settings.collection)
    fairness = f"AWRF(unknown=ignore)@{n}"
    measure = f"nDCG@{n}*{fairness}" if judged else fairness
    given = asking.model_dump(mode="json", exclude_unset=True)
    shared: dict[str, Any] = {name: value for name, value in given.items() if name not in NOT_OF_SYSTEMS}
    shared["model"] = settings.model.model_dump(mode="json", exclude_unset=True)
    if settings.index:
        shared["index"] = str(Path(settings.index).absolute())
    source = source_relative_to(settings.prompts, Path.cwd())
    values = {
        "name": f"{id} improved",
        "collection": str(Path(settings.collection).absolute()),
        "seed": seed,
        "dimensions": list(settings.dimensions),
        "measures": [measure, f"nDCG@{n}", fairness] if judged else [measure, f"gap@{n}"],
        "settings": shared,
        "systems": {START: {"prompts": source}, NO_LOOP: {"loop": "none"}},
        "budget": settings.budget.model_dump(exclude_none=True),
        "prices": {name: price.model_dump() for name, price in settings.prices.items() if name == settings.model.name},
        "cache": settings.cache,
    }
    checked = check_experiment_values(values, f"of the template {id}", Path.cwd(), limit, environ)
    halves: dict[str, list[str]] = {"tune": [], "test": []}
    for topic in checked.plan.topics:
        halves[half(checked.collection.name, topic)].append(topic)
    tune, test = tuple(halves["tune"]), tuple(halves["test"])
    _check_topics(tune, test)
    model = settings.model.model_copy(update={"name": proposer or settings.model.name, "max_tokens": REPLY_TOKENS})
    plan = OptimizePlan(
        id=id,
        start=TemplateText.of(prompts[id]),
        checked=checked,
        tune=tune,
        test=test,
        measure=checked.plan.measures[0],
        candidates=candidates,
        batch=min(batch, len(tune)),
        seed=seed,
        proposer=model,
        source=source,
        prices=settings.prices,
    )
    _check_budget(plan)
    return plan


def _judged(collection: str) -> bool:
    described = validate(CollectionFile, read_yaml(Path(collection)), collection)
    return bool(described.track or described.qrels)


def _asking(id: str, settings: Settings) -> Settings:
    """The settings under which a search asks with `id`, and an unusable reply is an error rather than hidden."""
    if id in REFINERS:
        part = refining_part(id, settings)
        loop = {} if id in _used(settings) else {"loop": "fair-qr"}
        return resolve(settings, {**loop, "refine": part.model_copy(update={"on_error": "fail"})})
    if id not in _used(settings):
        using = _used(settings)
        there = f"these ask with {listed(using)}" if using else "these ask no model"
        raise UsageError(
            f"no part of a search asks with {id} under these settings, so that no ranking depends on its wording; "
            f"{there}. `fairagent prompts list` says what each is for"
        )
    fields = type(settings.loop).model_fields
    return resolve(settings, {"loop": {"on_error": "fail"}}) if "on_error" in fields else settings


def _used(settings: Settings) -> tuple[str, ...]:
    used = (id for part in searching_parts(settings) for id in part.asks_with(settings))
    return tuple(dict.fromkeys(used))


def _check_topics(tune: Sequence[str], test: Sequence[str]) -> None:
    topics = len(tune) + len(test)
    if topics < FEWEST:
        raise UsageError(
            f"{counted(topics, 'topic')} of the collection count, and {FEWEST} are needed: wordings are scored on one "
            "half of the topics, and the best one is tested on the other"
        )
    if min(len(tune), len(test)) < FEWEST_OF_HALF:
        raise UsageError(
            f"the halves of the topics (by a hash of their ids) have {len(tune)} and {len(test)}, and each needs "
            f"{FEWEST_OF_HALF}: take more topics"
        )


def _check_budget(plan: OptimizePlan) -> None:
    """Raise UsageError where not even the start can be scored and tested."""
    limit = plan.checked.plan.budget.calls
    least = sum(one.calls for one in (*plan.searches(plan.tune, 1), *plan.of_testing())) + 1
    if limit is not None and limit < least:
        raise UsageError(
            f"budget.calls is {limit}: to score the template as it is, ask for one wording and test it may take "
            f"{least} calls; set more, or take fewer topics (--limit-topics)"
        )
    for unit in ("tokens", "dollars"):
        if getattr(plan.checked.plan.budget, unit) == 0:
            raise UsageError(f"budget.{unit} is 0, so that no model can be asked")


def with_systems(checked: CheckedExperiment, systems: Mapping[str, str]) -> CheckedExperiment:
    """The experiment with systems that differ from `start` in the folder of their templates alone, and `no loop`."""
    start, plan = checked.plan.systems[START], checked.plan
    made = {
        name: start.model_copy(update={"settings": start.settings.model_copy(update={"prompts": folder})})
        for name, folder in systems.items()
    }
    return replace(checked, plan=plan.model_copy(update={"systems": {**made, NO_LOOP: plan.systems[NO_LOOP]}}))
