"""The loop that decides: actions, each measured by what would be served, and accepted only if that is better.

The query q takes in what its first documents have in common, whoever they are about: relevance feedback (Rocchio). Then
comes the controller of group evidence, the action `refine`. For each group g its evidence E_g is what its own best
documents have in common, or what a model says of it. The refined query is (1 - beta) q + beta sum_g w_g E_g, with w
beginning at the target t; what would be served is measured, and w_g <- w_g ((t_g + s) / (e_g + s))^eta, until the gap
stops falling. It is FAIR-QR's promise (arXiv 2503.21092), kept by control rather than by words added to a query.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Literal

import numpy as np

from fairagent.collection.exposure import ExposureMeter, total_gap, worse_dimensions
from fairagent.errors import BudgetExceeded, ModelError
from fairagent.llm.asking import unless_failing
from fairagent.llm.budget import ledger
from fairagent.search.loop.actions import STOP, Action, ActionOutcome, RefineAction
from fairagent.search.loop.base import LoopResult, Search
from fairagent.search.loop.channels import Mixer, SecondSearch
from fairagent.search.loop.environment import Environment
from fairagent.search.loop.fair_qr import measured
from fairagent.search.loop.guard import Guard
from fairagent.search.loop.kinds import KindSource, importance
from fairagent.search.loop.policy import Decision, Policy, Rules
from fairagent.search.loop.sources import Sources
from fairagent.search.loop.state import State, refusal, sorted_by
from fairagent.types import FloatArray, Group, Ranking, Step, Usage

HEAD = 50
"""Documents by which it is told whether a dimension applies to a query."""


@dataclass(frozen=True, slots=True, eq=False)
class Controller:
    """`actions`, chosen by `policy`, until nothing is left or the gap is within `tolerance`.

    An action counts if what would be served after it has a smaller gap, and its estimated relevance, the mean score by
    the engine, `kinds` and judges, stays above (1 - `drift`) of that of the engine's own list. `mixer` makes scores of
    the groups' evidence, learned from `feedback` documents, and of what `sources` ask a model. `prior` is the weight of
    the kinds of documents (`fairagent.search.loop.kinds`), 0 for none. `guard` is as in `LoopResult`.
    """

    actions: tuple[Action, ...] = (RefineAction(),)
    policy: Policy = field(default_factory=Rules)
    mixer: Mixer = field(default_factory=lambda: Mixer())
    feedback: int = 20
    drift: float = 0.1
    tolerance: float = 0.0
    prior: float = 0.6
    guard: Guard | None = field(default_factory=Guard)
    kinds: KindSource | None = None
    sources: Sources | None = None
    second: SecondSearch | None = None
    on_error: Literal["fallback", "fail"] = "fallback"

    def run(self, search: Search) -> LoopResult:
        """See `Loop.run`: the candidates with the scores of the last list accepted.

        What an action's model raises ends the loop with what was reached, but for FatalModelError and with "fail".
        """
        first = search.steps[-1].ranking
        if not len(first):
            search.on_step(search.steps[-1])
            return LoopResult(first, search.steps, "the query retrieves nothing", search.meter)
        environment = self._environment(search, weighed(search.meter, first, self.kinds))
        fed = environment.fed_back(first)
        environment = environment.counting_kinds(first, fed)
        state, stopped = environment.begin(first, fed), ""
        steps = [measured(environment.meter, step) for step in search.steps]
        # What the first action has to beat is no retrieval, and would be seen nowhere else.
        steps[-1] = replace(steps[-1], notes=(f"re-ranked, before any action: the gap is {state.gap:.4f}",))
        search.on_step(steps[-1])
        begun = len(steps)
        while not stopped:
            state, step, stopped = self._next(environment, state, steps, begun)
            if step:
                steps.append(step)
                search.on_step(step)
        removed = frozenset(first.ids) - frozenset(state.found.ids)
        candidates = sorted_by(state.found, state.scores)
        reached = self.guard, removed, state.served, state.entered
        return LoopResult(candidates, tuple(steps), stopped, environment.meter, environment.unit, *reached)

    def _next(
        self, environment: Environment, state: State, steps: Sequence[Step], begun: int
    ) -> tuple[State, Step | None, str]:
        """The state after one more action, the action as a step, and why the loop ends; "" where it does not.

        The first `begun` of the `steps` are retrievals.
        """
        actions = {action.name: action for action in self.actions}
        offers = {name: action.offer(environment, state) for name, action in actions.items()}
        with ledger() as book:
            decision = self.policy.choose(environment, state, offers, steps[begun:])
            if decision.action == STOP:
                asked = book.usage != Usage()
                return state, _stop(environment, state, decision, book.usage) if asked else None, decision.why
            stopped = ""

            def ended(error: ModelError | BudgetExceeded) -> ActionOutcome:
                nonlocal stopped
                stopped = f"{decision.action}: {error}"
                return ActionOutcome(state, state, state.gap, failure=str(error))

            act = partial(actions[decision.action].act, environment, state)
            tried = unless_failing(act, self.on_error, ended, unpaid=True)
        reason = tried.failure or refusal(tried.after, tried.bar)
        before = next(step for step in reversed(steps) if step.accepted)
        step = _step(environment, state, decision, tried, reason, book.usage, before)
        reached = tried.otherwise if reason else tried.after
        return replace(reached, tried=state.tried | {decision.action}), step, stopped

    def _environment(self, search: Search, meter: ExposureMeter) -> Environment:
        unit = max(float(np.ptp(search.steps[-1].ranking.scores)), 1e-9)
        limits = (self.feedback, self.drift, self.tolerance)
        search = replace(search, retrieve=lru_cache(maxsize=64)(search.retrieve))
        return Environment(search, meter, unit, self.mixer, *limits, self.kinds, self.prior, self.sources, self.second)


def weighed(meter: ExposureMeter, first: Ranking, kinds: KindSource | None) -> ExposureMeter:
    """The meter in which a dimension counts by how much it applies to what was found, where `kinds` tell that."""
    head = first.top(HEAD)
    found = kinds.document_kinds(head.ids, meter.topic) if kinds else []
    applies = {kind.dimension: importance(float(kind.of.mean()), kind.chance) for kind in found}
    return replace(meter, importance=tuple(applies.get(target.dimension, 1.0) for target in meter.targets))


def without(ranking: Ranking, removed: frozenset[str]) -> Ranking:
    """The ranking without these documents."""
    places = [place for place, id in enumerate(ranking.ids) if id not in removed]
    return Ranking(tuple(ranking.ids[place] for place in places), ranking.scores[places])


def _step(
    environment: Environment,
    state: State,
    decision: Decision,
    unless_failing: ActionOutcome,
    reason: str,
    usage: Usage,
    before: Step,
) -> Step:
    """What an action did, and what was made of it; `before` is the last step that was accepted."""
    after, evidence = unless_failing.after, unless_failing.otherwise.model_evidence
    new = evidence if evidence and state.model_evidence is None else None
    return Step(
        decision.action,
        environment.search.query,
        after.served,
        after.exposures,
        total_gap(after.exposures),
        accepted=not reason,
        usage=usage,
        refused=new.refused if new else (),
        weights=_named(environment.meter, unless_failing.weights),
        reason=reason,
        why=decision.why,
        notes=(*(new.notes if new else ()), *unless_failing.notes),
        alarms=unless_failing.alarms,
        entered=len(unless_failing.otherwise.entered - state.entered),
        worse=() if reason else worse_dimensions(before.exposures, after.exposures),
    )


def _stop(environment: Environment, state: State, decision: Decision, usage: Usage) -> Step:
    """That a model was asked what to do next, and the loop ended: the list stays, and the answer has its price."""
    gap = total_gap(state.exposures)
    query, why = environment.search.query, decision.why
    return Step(STOP, query, state.served, state.exposures, gap, accepted=False, usage=usage, reason=why, why=why)


def _named(meter: ExposureMeter, weights: FloatArray | None) -> tuple[tuple[Group, float], ...]:
    names = [Group(target.dimension, label) for target in meter.targets for label in target.labels]
    return () if weights is None else tuple(zip(names, weights.tolist(), strict=True))
